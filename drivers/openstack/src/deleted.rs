//! What was under way at a server when its host ended it.
//!
//! # Invariants
//!
//! - That its host ended a server says nothing of a guest that was started after that. Nova takes a delete
//!   in the middle of anything, and not everything that starts a guest waits for it. `start_instance` holds
//!   no lock of the server, and a hard reboot ends a guest and makes another. So each action that can start
//!   a guest must have ended before the delete did its work (S1). Shown by
//!   `what_can_start_a_guest_must_have_ended_before_its_host_ended_the_server`.

use picket_driver::{Call, DriverError};
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};

use crate::actions::{Action, ActionEvent, CALM};
use crate::driver::OpenstackDriver;
use crate::live::LIVE;
use crate::moves::EVACUATE;

/// The step in which a server's host ends it.
pub(crate) const ENDS: &str = "compute_terminate_instance";
/// The step in which a host builds a new server.
const BUILDS: &str = "compute__do_build_and_run_instance";
/// The clocks of a cloud's hosts do not differ by more: Nova takes a host for dead whose reports are older than that (`service_down_time`).
const CLOCKS: Duration = Duration::MINUTE;

/// As Nova writes it: in UTC, without saying so.
fn time(text: Option<&String>) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(&format!("{}Z", text?), &Rfc3339).ok()
}

/// Whether a step had ended before that delete was asked for, whatever the clocks of their hosts are.
pub(crate) fn was_long_before(step: &ActionEvent, delete: &Action) -> bool {
    match (time(step.finish_time.as_ref()), time(delete.start_time.as_ref())) {
        (Some(end), Some(delete)) => end + CLOCKS <= delete,
        _ => false,
    }
}

/// Whether a step had ended when that action was asked for, as far as the clocks of their hosts tell.
pub(crate) fn had_ended_by(step: &ActionEvent, action: &Action) -> bool {
    match (time(step.finish_time.as_ref()), time(action.start_time.as_ref())) {
        (Some(end), Some(asked)) => end - asked <= CLOCKS,
        _ => false,
    }
}

/// Whether a step is one of a build that was tried on several hosts: Nova notes the end of each try at the first one's step, and tries no more after one
/// that ended well.
pub(crate) fn is_a_try(action: &Action, step: &ActionEvent) -> bool {
    step.event == BUILDS && step.finish_time.is_none() && action.action == "create" && action.did(BUILDS)
}

/// Whether a step had ended before that delete did its work: by one clock, where one host did both.
fn was_before(step: &ActionEvent, delete: &Action) -> bool {
    let is_by_one_clock = |ends: &&ActionEvent| {
        ends.event == ENDS
            && step.host == ends.host
            && step.host.as_ref().is_some_and(|host| !host.is_empty())
    };
    let ends = delete.events.iter().flatten().find(is_by_one_clock);
    let before = |ends: &ActionEvent| match (time(step.finish_time.as_ref()), time(ends.start_time.as_ref()))
    {
        // Nova's times may be of a second, rounded: two that are the same tell no order.
        (Some(end), Some(delete)) => end < delete,
        _ => false,
    };
    ends.is_some_and(before) || was_long_before(step, delete)
}

/// Whether an action, with its steps, had ended before that delete did its work. Without a step it may be waiting for its host.
fn had_ended(action: &Action, delete: &Action) -> bool {
    let steps = action.events.as_deref().unwrap_or_default();
    !steps.is_empty() && steps.iter().all(|step| was_before(step, delete) || is_a_try(action, step))
}

impl OpenstackDriver {
    /// Why a guest of it may have been started after its host ended it, by all of its actions, newest first, in words.
    pub(crate) async fn may_have_started_since(
        &self,
        actions: &[Action],
        call: &Call,
    ) -> Result<Option<String>, DriverError> {
        let Some((newest, older)) = actions.split_first() else { return Ok(None) };
        // Moves are looked at for themselves.
        let can_start = |action: &&Action| {
            !CALM.contains(&action.action.as_str()) && ![LIVE, EVACUATE].contains(&action.action.as_str())
        };
        let mut delete = None;
        for action in older.iter().filter(can_start) {
            if self.ours().moves.before_delete.contains(&action.request_id) {
                continue;
            }
            let delete = match &mut delete {
                Some(delete) => delete,
                none => none.insert(self.with_steps(newest, call).await?),
            };
            if !had_ended(&self.with_steps(action, call).await?, delete) {
                return Ok(Some(format!(
                    "its {} {} is not known to have ended before that, and may have started it anew: look at the host on which it was",
                    action.action, action.request_id
                )));
            }
            self.ours().moves.before_delete.insert(action.request_id.clone());
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
