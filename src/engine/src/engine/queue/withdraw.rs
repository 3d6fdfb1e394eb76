//! Withdrawing what waits: whoever does not want the node off any more ends its own requests in the queue
//! first.
//!
//! # Invariants
//!
//! - What was withdrawn is out of the store before anybody is told, and was not begun. Shown by
//!   `what_was_decided_is_out_of_the_store_before_its_holder_is_answered`,
//!   `whenever_it_comes_it_is_withdrawn_or_let_in_and_never_both`.
//! - What may have been begun is not told as withdrawn. Shown by
//!   `what_may_have_been_begun_is_not_told_as_withdrawn`.

use picket_core::budget::Ticket;
use picket_core::ids::{FenceId, NodeId};
use picket_core::outcome::Reason;
use picket_core::store::StoreError;
use tokio::sync::oneshot;

use super::left::{Left, take_out};
use super::{Engine, Runner};
use crate::error::EngineError;
use crate::office::queue::{Asked, Entry, Queued, Withdraw};
use crate::request::{Admission, Ask};

impl Runner<'_> {
    /// Ends what holders withdraw. What its node's task decides just now is waited for: it is let in, or withdrawn then.
    pub(super) async fn withdraw(&mut self) {
        for mut asked in std::mem::take(&mut self.withdrawing) {
            let done = self.withdraw_of(&mut asked).await;
            let is_waited_for = self.of(&asked).next().is_some();
            match done {
                Ok(()) if is_waited_for => self.withdrawing.push(asked),
                Ok(()) => {
                    self.engine.shared.office.takes_back(&asked.node, &asked.holder);
                    let _ = asked.reply.send(Ok(asked.ended));
                }
                Err(error) => drop(asked.reply.send(Err(error.into()))),
            }
        }
    }

    fn of(&self, asked: &Withdraw) -> impl Iterator<Item = Ticket> {
        let theirs = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.node == asked.node && entry.call.holder.name == asked.holder);
        theirs.map(|(ticket, _)| *ticket)
    }

    /// The open fence in which its holder stands, if it was begun since it came: what a leadership began of which it died
    /// comes back as waiting.
    fn begun_by(&self, entry: &Entry) -> Option<FenceId> {
        let slot = self.engine.slot(&entry.node).ok()?;
        let view = slot.view.borrow();
        let record = &view.stored.record;
        let fence = record.fence.as_ref().filter(|fence| fence.generation == record.generation)?;
        let stands =
            record.generation != entry.generation && record.holds.contains_key(&entry.call.holder.name);
        stands.then_some(fence.id)
    }

    /// Out of the store before anybody is told: what was withdrawn does not come back with another leadership.
    async fn withdraw_of(&mut self, asked: &mut Withdraw) -> Result<(), StoreError> {
        // What was decided before, and could not be taken out yet, would be begun once more by the next leadership.
        let is_theirs = |left: &Left| left.node == asked.node && left.holder == asked.holder;
        for left in self.left.iter_mut().filter(|left| is_theirs(left)) {
            left.take_out(self.engine, self.leadership).await?;
        }
        let theirs: Vec<Ticket> = self.of(asked).collect();
        for ticket in theirs {
            if self.entries.get(&ticket).is_none_or(|entry| entry.goes) {
                continue;
            }
            take_out(self.engine, self.leadership, ticket).await?;
            if let Some(fence) = self.entries.get(&ticket).and_then(|entry| self.begun_by(entry)) {
                self.end(ticket, Ok(Admission::Joined(fence)));
                continue;
            }
            let person = &asked.person;
            let detail = format!(
                "it was withdrawn by {} ({}) while it waited, and was not begun",
                person.name, person.reason
            );
            if let Some(entry) = self.entries.get(&ticket) {
                self.told(entry, ticket, "withdrawn", &detail);
            }
            self.end(ticket, Err(EngineError::Blocked { reason: Reason::Withdrawn, detail }));
            asked.ended.push(ticket);
        }
        Ok(())
    }
}

impl Engine {
    /// Ends what that holder has waiting for the node, before an unfence by it: the numbers of what was ended. An unfence
    /// that comes too late, is of another generation, or only repeats what its key is bound to, ends nothing.
    pub async fn withdraw(&self, node: &NodeId, holder: &str, ask: &Ask) -> Result<Vec<Ticket>, EngineError> {
        let generation = self.node(node)?.stored.record.generation;
        let late = ask.not_after.is_some_and(|limit| self.shared.parts.clock.wall() > limit);
        let is_stale = ask.expected_generation.is_some_and(|expected| expected != generation);
        if late || is_stale {
            return Ok(Vec::new());
        }
        // What waits is the leadership's that comes: nobody knows yet that nothing does.
        self.leading().map_err(EngineError::NoLeader)?;
        if let Some(bound) = &ask.key
            && self.is_bound(node, bound).await?
        {
            return Ok(Vec::new());
        }
        let (reply, answer) = oneshot::channel();
        let (node, holder, person) = (node.clone(), holder.to_owned(), ask.person.clone());
        let asked = Asked::Withdraw(Withdraw { node, holder, person, ended: Vec::new(), reply });
        self.shared.office.queue.entrance.send(asked).await.map_err(|_| EngineError::Unanswered)?;
        answer.await.map_err(|_| EngineError::Unanswered)?
    }

    /// The requests that wait in the queue for that node, in their order.
    pub fn waiting_for(&self, node: &NodeId) -> Vec<Queued> {
        self.shared.office.queued_for(node)
    }
}
