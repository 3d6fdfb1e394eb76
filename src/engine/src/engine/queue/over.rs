//! Requests whose turn never comes: they waited for too long, their node has another machine, or none, by
//! now, or their caller lost the right to ask.
//!
//! # Invariants
//!
//! - A request whose node has another machine by now is ended here, and refused by the node's task. Shown
//!   by `a_request_that_waits_is_void_once_the_settings_have_another_machine`,
//!   `a_request_that_came_before_a_reload_does_not_reach_the_new_machine`.

use picket_core::budget::Ticket;
use picket_core::outcome::Reason;
use picket_core::time::BootTime;

use super::Runner;
use super::left::take_out;
use crate::error::{EngineError, another_machine};
use crate::office::queue::{Entry, WaitState};

impl Runner<'_> {
    /// Out of the store before anybody is told: what was told to be over does not come back with another leadership, whose clock may be
    /// behind.
    pub(super) async fn end_what_is_over(&mut self) {
        let now = self.engine.shared.parts.clock.boot();
        let over = |(ticket, entry): (&Ticket, &Entry)| Some((*ticket, self.why_over(entry, now)?));
        let over: Vec<_> = self.entries.iter().filter_map(over).collect();
        for (ticket, (outcome, error)) in over {
            if let Err(error) = take_out(self.engine, self.leadership, ticket).await {
                tracing::warn!(ticket, %error, "a request that is over was not taken out of the store; again later");
                return;
            }
            if let Some(entry) = self.entries.get(&ticket) {
                self.told(entry, ticket, outcome, &error.to_string());
            }
            self.end(ticket, Err(error));
        }
    }

    /// In one word for the audit, and as its caller is told. What its node's task decides just now is not over.
    fn why_over(&self, entry: &Entry, now: BootTime) -> Option<(&'static str, EngineError)> {
        let expired = |detail| EngineError::Blocked { reason: Reason::Expired, detail };
        if entry.goes {
            return None;
        }
        if entry.until <= now {
            let barred = match &*entry.state.borrow() {
                WaitState::Barred(bar) => bar.text.clone(),
                WaitState::Over(_) => String::new(),
            };
            let detail = format!("it waited until {}, and was not begun: {barred}", entry.expires_at);
            return Some(("expired", expired(detail)));
        }
        let Ok(slot) = self.engine.slot(&entry.node) else {
            let detail = "its node is not in the settings any more, and it was not begun".to_owned();
            return Some(("void", expired(detail)));
        };
        if let Err(why) = self.engine.shared.office.may_still(&entry.call, &slot.plan) {
            return Some(("refused", EngineError::RoleLost(why)));
        }
        let record = &slot.view.borrow().stored.record;
        let how = entry.target.is_another(record, &slot.plan.topology)?;
        Some(("void", expired(another_machine(&how))))
    }
}
