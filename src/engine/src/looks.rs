//! What callers look at that changes nothing, plans and fresh receipts: one look of a node at a time, however many callers ask. Without that a
//! fence would stand behind all of them in the node's mailbox, and each of them would start the node's liveness program.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::{BoxFuture, WeakShared};
use parking_lot::Mutex;
use picket_liveness::{Liveness, Look};

/// The looks of one node that are under way.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    source: Mutex<Option<WeakShared<BoxFuture<'static, Look>>>>,
    /// Who has it may put one such request before the node's task.
    pub(crate) turn: tokio::sync::Mutex<()>,
}

impl Looks {
    /// What the node's liveness source says. A caller that asks while it is being asked gets the same answer. It ends once no caller waits for it.
    pub(crate) async fn at(&self, source: Arc<dyn Liveness>) -> Look {
        let answer = {
            let mut under_way = self.source.lock();
            // One that was answered already is of before.
            let same = under_way.as_ref().and_then(WeakShared::upgrade).filter(|one| one.peek().is_none());
            same.unwrap_or_else(|| {
                let asking = async move {
                    let said = tokio::time::timeout(source.patience(), source.look()).await;
                    said.unwrap_or_else(|_| source.late())
                };
                let asking = asking.boxed().shared();
                *under_way = asking.downgrade();
                asking
            })
        };
        answer.await
    }
}
