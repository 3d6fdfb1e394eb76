//! Live migrations after which a server may run on a host that is not the one that Nova has for it.
//!
//! What is said of Nova here was read in 34.0.0, `nova/compute/manager.py`.
//!
//! # Invariants
//!
//! - The source of a live migration keeps no definition of the guest once it has moved. So Nova's Off of a
//!   server that it shows (power_state 4, and not 0) says that the guest had not moved, or is back.
//! - That holds until an action defines a guest at the source anew: from then on the Off is that of the new
//!   one. Shown by
//!   `a_stop_proves_nothing_where_a_guest_was_started_anew_after_a_live_migration_that_is_not_known_to_have_ended`.
//! - It also holds no longer where Nova was made to forget a live migration that goes on. Nova takes a stop
//!   then, which may end the source's domain when the guest runs at the destination already.
//! - After either of the two, a live migration counts as come to nothing only where its steps, or an
//!   administrator's migrations, say so (S1, S13). Shown by
//!   `an_administrator_is_told_that_a_live_migration_came_to_nothing`.
//! - Of a deleted server there is no power_state at all. Shown by
//!   `a_delete_in_the_middle_of_a_live_migration_is_no_off`.

use picket_driver::{Call, DriverError};

use crate::actions::{Action, CALM};
use crate::deleted;
use crate::driver::OpenstackDriver;
use crate::late::RESET;
use crate::placement::live_ones_are_over;

pub(crate) const LIVE: &str = "live-migration";
/// The step in which Nova saves the destination as the server's host. It fails where somebody deleted the server meanwhile.
pub(crate) const LANDED: &str = "compute_post_live_migration_at_destination";
/// The source begins with it, and notes its end as soon as the work waits in a queue. Before it nothing was moved.
const BEGUN: &str = "compute_live_migration";
/// The source asks for it after the hypervisor said that the guest did not move.
const ROLLED_BACK: &str = "compute_rollback_live_migration_at_destination";

/// What came of a live migration, by its steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Came {
    /// Nova has it where the guest is.
    There,
    /// The guest did not move.
    ToNothing,
    /// The guest may run at the destination.
    NotTold,
}

fn came(live: &Action) -> Came {
    if live.did(LANDED) {
        return Came::There;
    }
    let mut begun = live.events.iter().flatten().filter(|step| step.event == BEGUN).peekable();
    let was_refused = match begun.peek() {
        Some(_) => begun.all(|step| step.result.as_deref() == Some("Error")),
        None => live.failure().is_some(),
    };
    if was_refused || live.did(ROLLED_BACK) { Came::ToNothing } else { Came::NotTold }
}

impl OpenstackDriver {
    /// Why the server may run where a live migration of it was to go, by its actions, newest first, in words.
    pub(crate) async fn may_have_gone_live(
        &self,
        actions: &[Action],
        is_gone: bool,
        call: &Call,
    ) -> Result<Option<String>, DriverError> {
        // Whether what is newer shows that its guest was where Nova had it.
        let mut was_there = !is_gone;
        let mut delete = None;
        let mut is_newest = is_gone;
        for action in actions {
            if action.deletes() {
                delete = Some(action);
            }
            if action.action != LIVE {
                was_there &= CALM.contains(&action.action.as_str());
                // Nova refuses a stop in the middle of a live migration, until it is made to forget that.
                was_there &= action.action != RESET;
                continue;
            }
            if was_there {
                continue;
            }
            let came = match self.came_before(action, call).await? {
                // A delete that was asked for before Nova saved the destination was done by the source.
                Came::There if std::mem::take(&mut is_newest) => {
                    match self.was_deleted_there(action, delete, call).await? {
                        true => Came::There,
                        false => Came::NotTold,
                    }
                }
                came => came,
            };
            match came {
                Came::There => was_there = true,
                Came::ToNothing => {}
                Came::NotTold if !is_gone && self.migrations_say_nothing_moved(call).await? => {}
                Came::NotTold => {
                    let request = &action.request_id;
                    return Ok(Some(format!(
                        "its {LIVE} {request} is not known to have ended well, and it may run on the host to which it was to go: look there; \
                         Nova does not end that guest"
                    )));
                }
            }
        }
        Ok(None)
    }

    /// By its steps, which are asked for until they have settled it.
    async fn came_before(&self, action: &Action, call: &Call) -> Result<Came, DriverError> {
        let request = &action.request_id;
        if self.ours().moves.live.contains(request) {
            return Ok(Came::There);
        }
        if self.ours().moves.idle.contains(request) {
            return Ok(Came::ToNothing);
        }
        let came = came(&self.with_steps(action, call).await?);
        match came {
            Came::There => drop(self.ours().moves.live.insert(request.clone())),
            Came::ToNothing => drop(self.ours().moves.idle.insert(request.clone())),
            Came::NotTold => {}
        }
        Ok(came)
    }

    /// Whether the host on which a live migration arrived did the delete, or Nova had the server there before that was asked for.
    async fn was_deleted_there(
        &self,
        live: &Action,
        delete: Option<&Action>,
        call: &Call,
    ) -> Result<bool, DriverError> {
        let Some(delete) = delete else { return Ok(false) };
        let (live, delete) = (self.with_steps(live, call).await?, self.with_steps(delete, call).await?);
        let mut landed = live.events.iter().flatten().filter(|step| step.event == LANDED);
        Ok(delete.is_of(&live, LANDED, deleted::ENDS)
            || landed.any(|step| deleted::was_long_before(step, &delete)))
    }

    /// Of live migrations whose steps do not tell it an administrator is told how they ended.
    async fn migrations_say_nothing_moved(&self, call: &Call) -> Result<bool, DriverError> {
        if self.is_tenant() {
            return Ok(false);
        }
        let migrations = self.migrations(call).await?;
        let host = self.evacuated().host().cloned();
        Ok(live_ones_are_over(&migrations, host.as_deref()))
    }
}

#[cfg(test)]
mod tests;
