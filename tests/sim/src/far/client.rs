//! One gateway's way to the store: each request is a message that may be late, doubled or lost, and so may its answer.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use picket_core::ids::{FenceId, Incarnation, NodeId, Revision, Term, Version};
use picket_core::record::Fence;
use picket_core::store::{FenceQuery, Guard, KeyEntry, Note, Store, StoreError, Stored, Write, Written};
use picket_core::time::{Clock, WallTime};
use picket_driver_sim::SimClock;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::quorum::{Quorum, now};
use crate::gate::{Leaving, Process};
use crate::sky::{Sky, WAY};
use crate::trace::GatewayId;

/// How long a request is waited for.
pub(crate) const REQUEST: Duration = Duration::from_secs(2);

/// A connection to the store.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) gateway: GatewayId,
    pub(crate) quorum: Arc<Quorum>,
    pub(crate) sky: Arc<Sky>,
    pub(crate) clock: Arc<SimClock>,
    pub(crate) process: Arc<Process>,
}

impl Client {
    /// A question of which it does not matter when exactly it is answered: while the network is calm nothing but the time of
    /// its way passes. `None`: no answer came in time.
    pub(crate) async fn glance<T: Send + 'static>(
        &self,
        ask: impl Fn(&Quorum) -> Result<T, StoreError> + Send + Sync + 'static,
    ) -> Option<Result<T, StoreError>> {
        if self.sky.is_store_calm() {
            sleep(WAY * 2).await;
            return Some(ask(&self.quorum));
        }
        self.call(ask).await
    }

    /// `None`: no answer came in time, and the request may have been heard, or may yet be.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        ask: impl Fn(&Quorum) -> Result<T, StoreError> + Send + Sync + 'static,
    ) -> Option<Result<T, StoreError>> {
        let journey = self.sky.to_store();
        let (reply, answer) = oneshot::channel();
        let quorum = self.quorum.clone();
        tokio::spawn(async move {
            let Some(there) = journey.there else { return };
            sleep(there).await;
            let answer = ask(&quorum);
            // Whoever may have sent a second copy does not say that nothing was written.
            let answer = match (answer, journey.again) {
                (Err(StoreError::Unavailable(why)), Some(_)) => Err(StoreError::Unknown(why)),
                (answer, _) => answer,
            };
            if let Some(back) = journey.back {
                sleep(back).await;
                let _ = reply.send(answer);
            }
            if let Some(again) = journey.again {
                sleep(again).await;
                let _ = ask(&quorum);
            }
        });
        timeout(REQUEST, answer).await.ok()?.ok()
    }

    async fn read<T: Send + 'static>(
        &self,
        ask: impl Fn(&Quorum) -> Result<T, StoreError> + Send + Sync + 'static,
    ) -> Result<T, StoreError> {
        if self.sky.is_store_calm() {
            // Nobody but whoever asks notices when a question arrives.
            sleep(WAY).await;
            let answer = ask(&self.quorum);
            sleep(WAY).await;
            return answer;
        }
        let silent = || Err(StoreError::Unavailable("the store did not answer".to_owned()));
        self.call(ask).await.unwrap_or_else(silent)
    }

    async fn change<T: Send + 'static>(
        &self,
        ask: impl Fn(&Quorum) -> Result<T, StoreError> + Send + Sync + 'static,
    ) -> Result<T, StoreError> {
        let silent = || Err(StoreError::Unknown("the store did not answer".to_owned()));
        self.process.leaves(Leaving::Write).await;
        self.call(ask).await.unwrap_or_else(silent)
    }
}

#[async_trait]
impl Store for Client {
    fn incarnation(&self) -> Incarnation {
        self.quorum.incarnation()
    }

    /// Terms are won by the elector, together with leadership.
    async fn take_term(&self) -> Result<Term, StoreError> {
        Err(StoreError::Unavailable("a term is taken with leadership alone".to_owned()))
    }

    async fn load_all(&self) -> Result<Vec<Stored>, StoreError> {
        self.read(|quorum| quorum.read(|memory| now(memory.load_all()))).await
    }

    async fn load(&self, node: &NodeId) -> Result<Option<Stored>, StoreError> {
        let node = node.clone();
        self.read(move |quorum| quorum.read(|memory| now(memory.load(&node)))).await
    }

    async fn write(&self, guard: Guard, write: Write) -> Result<Written, StoreError> {
        let (gateway, clock) = (self.gateway, self.clock.clone());
        self.change(move |quorum| quorum.write(gateway, guard, &write, clock.wall())).await
    }

    async fn check(&self, guard: Guard, node: &NodeId, version: Version) -> Result<(), StoreError> {
        let (gateway, node) = (self.gateway, node.clone());
        let checked = self.read(move |quorum| quorum.check(gateway, guard, &node, version)).await;
        // The store's word is there, and what it is for is not sent yet.
        self.process.leaves(Leaving::Word).await;
        checked
    }

    async fn key(&self, node: &NodeId, key: &str) -> Result<Option<KeyEntry>, StoreError> {
        let (node, key) = (node.clone(), key.to_owned());
        self.read(move |quorum| quorum.read(|memory| now(memory.key(&node, &key)))).await
    }

    async fn fence(&self, id: FenceId) -> Result<Option<Fence>, StoreError> {
        self.read(move |quorum| quorum.read(|memory| now(memory.fence(id)))).await
    }

    async fn fences(&self, query: FenceQuery) -> Result<Vec<Fence>, StoreError> {
        self.read(move |quorum| quorum.read(|memory| now(memory.fences(query.clone())))).await
    }

    async fn revision(&self) -> Result<Revision, StoreError> {
        let silent = || Err(StoreError::Unavailable("the store did not answer".to_owned()));
        let newest = self.glance(|quorum| quorum.read(|memory| now(memory.revision()))).await;
        newest.unwrap_or_else(silent)
    }

    async fn changed_since(&self, since: Revision) -> Result<Vec<(Revision, NodeId)>, StoreError> {
        self.read(move |quorum| quorum.read(|memory| now(memory.changed_since(since)))).await
    }

    async fn note(&self, name: &str) -> Result<Option<Note>, StoreError> {
        let name = name.to_owned();
        self.read(move |quorum| quorum.read(|memory| now(memory.note(&name)))).await
    }

    async fn notes(&self, prefix: &str) -> Result<Vec<(String, Note)>, StoreError> {
        let prefix = prefix.to_owned();
        self.read(move |quorum| quorum.read(|memory| now(memory.notes(&prefix)))).await
    }

    async fn put_note(
        &self,
        guard: Guard,
        name: &str,
        expected: Version,
        text: Option<String>,
    ) -> Result<Version, StoreError> {
        let name = name.to_owned();
        self.change(move |quorum| quorum.put_note(guard, &name, expected, text.clone())).await
    }

    async fn forget(&self, guard: Guard, before: WallTime) -> Result<usize, StoreError> {
        self.change(move |quorum| quorum.forget(guard, before)).await
    }
}
