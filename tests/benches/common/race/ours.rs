//! Contestants: the driver, a task a BMC, as the engine runs it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt, stream};
use picket_engine::{Logins, Rank};
use tokio::task::JoinSet;

use super::contest::{Contestant, Deed};
use super::cost;
use super::subject::{Maker, Subject};
use crate::Wrong;

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

impl Start {
    /// As a contestant.
    pub fn name(self) -> &'static str {
        match self {
            Start::Warm => "picket, warm",
            Start::Cold => "picket, cold",
            Start::ColdAndClosed => "picket, cold, with close",
        }
    }
}

/// Drivers for a crowd of BMCs; all contestants use the same ones, which are without sessions between turns.
pub type Subjects = Arc<[Arc<Subject>]>;

/// One driver a BMC, that has sent nothing yet.
pub async fn subjects(maker: &Arc<Maker>, bmcs: &[SocketAddr]) -> Result<Subjects, Wrong> {
    let made = stream::iter(bmcs.to_vec()).then(|bmc| {
        let maker = maker.clone();
        async move { Ok::<_, Wrong>(Arc::new(maker.subject(bmc).await?)) }
    });
    Ok(made.try_collect::<Vec<_>>().await?.into())
}

/// How many are under way at once, as the engine has its logins take turns: of thousands at once each would wait for so long that
/// all are said again.
pub const SIDE_BY_SIDE: usize = 512;

/// Runs `work` for each BMC, each in a task of its own, [`SIDE_BY_SIDE`] of them at once; when each was done, since all began,
/// or why not.
pub async fn each<F>(
    subjects: &[Arc<Subject>],
    work: fn(Arc<Subject>) -> F,
) -> Result<Vec<Result<Duration, Wrong>>, Wrong>
where
    F: Future<Output = Result<(), Wrong>> + Send + 'static,
{
    Ok(each_at(subjects, work).await?.into_iter().map(|(_, end)| end).collect())
}

/// The same, each with its place among them.
pub async fn each_at<F>(
    subjects: &[Arc<Subject>],
    work: fn(Arc<Subject>) -> F,
) -> Result<Vec<(usize, Result<Duration, Wrong>)>, Wrong>
where
    F: Future<Output = Result<(), Wrong>> + Send + 'static,
{
    let (mut tasks, start, turns) = (JoinSet::new(), Instant::now(), Logins::new(SIDE_BY_SIDE));
    for (index, subject) in subjects.iter().enumerate() {
        let (work, turns) = (work(subject.clone()), turns.clone());
        tasks.spawn(async move {
            let turn = turns.take(Rank::Fence).await;
            (index, turn.within(work).await.map(|()| start.elapsed()))
        });
    }
    let mut ends = Vec::with_capacity(subjects.len());
    while let Some(ended) = tasks.join_next().await {
        ends.push(ended?);
    }
    Ok(ends)
}

/// The same where all must be done.
async fn all<F>(subjects: &[Arc<Subject>], work: fn(Arc<Subject>) -> F) -> Result<(), Wrong>
where
    F: Future<Output = Result<(), Wrong>> + Send + 'static,
{
    each(subjects, work).await?.into_iter().try_for_each(|ended| ended.map(drop))
}

/// The driver.
pub struct Ours {
    start: Start,
    subjects: Subjects,
}

impl Ours {
    /// With these.
    pub fn new(start: Start, subjects: Subjects) -> Self {
        Self { start, subjects }
    }
}

#[async_trait]
impl Contestant for Ours {
    fn name(&self) -> &'static str {
        self.start.name()
    }

    async fn prepare(&mut self) -> Result<(), Wrong> {
        match self.start {
            Start::Warm => all(&self.subjects, |subject| async move { subject.look().await.map(drop) }).await,
            _ => Ok(()),
        }
    }

    async fn run(&mut self, deed: Deed) -> Result<(), Wrong> {
        let subjects = &self.subjects;
        match (deed, self.start) {
            (Deed::Off, Start::ColdAndClosed) => {
                all(subjects, |subject| async move {
                    subject.confirmed_off().await?;
                    subject.close().await
                })
                .await
            }
            (Deed::Off, _) => all(subjects, |subject| async move { subject.confirmed_off().await }).await,
            (Deed::Status, Start::ColdAndClosed) => {
                all(subjects, |subject| async move {
                    subject.seen_on().await?;
                    subject.close().await
                })
                .await
            }
            (Deed::Status, _) => all(subjects, |subject| async move { subject.seen_on().await }).await,
        }
    }

    async fn rest(&mut self) -> Result<(), Wrong> {
        all(&self.subjects, |subject| async move { subject.close().await }).await
    }

    fn cpu(&self) -> Duration {
        cost::own_cpu()
    }
}
