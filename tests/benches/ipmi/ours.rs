//! Contestants: the driver, a task a BMC, as the engine runs it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::try_join_all;
use tokio::task::JoinSet;

use crate::Wrong;
use crate::contest::Contestant;
use crate::cost;
use crate::subject::{Maker, Subject};

/// How a driver comes to the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// With a session.
    Warm,
    /// Without one. The close is not in its time.
    Cold,
    /// Without one, and it leaves none: the close is in its time, as it is in the peers'.
    ColdAndClosed,
}

/// Drivers for a crowd of BMCs.
pub struct Ours {
    start: Start,
    maker: Arc<Maker>,
    bmcs: Vec<SocketAddr>,
    subjects: Vec<Arc<Subject>>,
}

impl Ours {
    /// For these BMCs.
    pub fn new(start: Start, maker: Arc<Maker>, bmcs: Vec<SocketAddr>) -> Self {
        Self { start, maker, bmcs, subjects: Vec::new() }
    }

    /// Runs `work` for each BMC, each in a task of its own.
    async fn each<F>(&self, work: fn(Arc<Subject>) -> F) -> Result<(), Wrong>
    where
        F: Future<Output = Result<(), Wrong>> + Send + 'static,
    {
        let mut tasks = JoinSet::new();
        for subject in &self.subjects {
            tasks.spawn(work(subject.clone()));
        }
        while let Some(ended) = tasks.join_next().await {
            ended??;
        }
        Ok(())
    }
}

#[async_trait]
impl Contestant for Ours {
    fn name(&self) -> &'static str {
        match self.start {
            Start::Warm => "picket, warm",
            Start::Cold => "picket, cold",
            Start::ColdAndClosed => "picket, cold, with close",
        }
    }

    async fn prepare(&mut self) -> Result<(), Wrong> {
        if self.start != Start::Warm || self.subjects.is_empty() {
            let subjects = try_join_all(self.bmcs.iter().map(|bmc| self.maker.subject(*bmc))).await?;
            self.subjects = subjects.into_iter().map(Arc::new).collect();
        }
        match self.start {
            Start::Warm => self.each(|subject| async move { subject.look().await }).await,
            _ => Ok(()),
        }
    }

    async fn run(&mut self) -> Result<(), Wrong> {
        match self.start {
            Start::ColdAndClosed => {
                self.each(|subject| async move {
                    subject.confirmed_off().await?;
                    subject.close().await
                })
                .await
            }
            _ => self.each(|subject| async move { subject.confirmed_off().await }).await,
        }
    }

    async fn rest(&mut self) -> Result<(), Wrong> {
        match self.start {
            Start::Cold => self.each(|subject| async move { subject.close().await }).await,
            _ => Ok(()),
        }
    }

    fn cpu(&self) -> Duration {
        cost::own_cpu()
    }
}
