//! A guest that a compute host may start late.
//!
//! Nova takes an action while it believes that the host is up, for a minute after it died. The host does
//! what lies in its queue when it is back, also to a server that was evacuated since. `start_instance`,
//! `rescue_instance`, `resume_instance`, `unrescue_instance` and the end of a reverted resize look at no
//! host and start the guest. They fail only after that, when they save, if at all. That save compares the
//! server's task alone, and so does the first one of a hard reboot or a rebuild. The task may be that of
//! another action by then, on another host. Nova ends no such guest.
//!
//! Read in Nova 34.0.0: `compute/manager.py`, `service.py` (the queue is taken after `init_host`, which
//! removes what was evacuated).
//!
//! # Invariants
//!
//! - Whatever may start a guest, and came before an evacuation, must have ended before that, by its own
//!   steps (S1, S8). What Nova took after it says nothing: Nova takes some actions at any time, and an
//!   administrator can make it forget a task. Shown by
//!   `whatever_may_start_a_guest_must_have_ended_before_the_evacuation`,
//!   `a_start_that_nova_was_made_to_forget_must_have_ended_before_that`.
//! - An evacuation must have ended before the next one: it waits in the queue of its destination, and its
//!   first save compares the task alone, too. Shown by
//!   `an_older_evacuation_must_have_ended_before_the_newer_one`.

use picket_driver::{Call, DriverError};

use crate::actions::{self, Action, CALM};
use crate::deleted;
use crate::driver::OpenstackDriver;
use crate::live::LIVE;
use crate::moves::EVACUATE;

/// An administrator makes Nova forget what is under way (`openstack server set --state`).
pub(crate) const RESET: &str = "resetState";
const STARTS: &str = "compute_start_instance";
/// Actions that start no guest late, beside the calm ones: moves are looked at for themselves (an older evacuation here, the others in moves.rs and live.rs), the
/// end of a resize needs a task of its own before it starts the guest, and an image needs the guest's definition.
const STARTS_NONE: [&str; 6] = [EVACUATE, LIVE, "resize", "migrate", "createImage", "createBackup"];

/// Whether what came before it must have ended before it: it went to another host, or Nova was made to forget what was under way.
pub(crate) fn is_marker(action: &Action) -> bool {
    [EVACUATE, RESET].contains(&action.action.as_str())
}

/// Whether its host made an end of that start.
fn has_ended(start: &Action) -> bool {
    let mut steps = start.events.iter().flatten().filter(|step| step.event == STARTS).peekable();
    steps.peek().is_some() && steps.all(|step| step.finish_time.is_some())
}

/// Whether an action, with its steps, had ended before that evacuation, or reset. That it failed may say that its guest was started, where that was after it.
fn had_ended(action: &Action, before: &Action) -> bool {
    // Two hosts revert a resize, and the second one starts the guest.
    let guest = if action.action == "revertResize" { "compute_finish_revert" } else { "compute_" };
    // It waits for its host until that notes a step, unless what came before it failed.
    let was_begun = action.events.iter().flatten().any(|step| step.event.starts_with(guest));
    (was_begun || action.failure().is_some())
        && action.events.iter().flatten().all(|step| {
            step.succeeded() && deleted::had_ended_by(step, before)
                || deleted::was_long_before(step, before)
                || deleted::is_a_try(action, step)
        })
}

/// Whether an evacuation, with its steps, is over, and was so before that newer one. The guest of one that failed is looked for by moves.rs, or is a copy.
fn was_over(evacuation: &Action, newer: &Action) -> bool {
    let mut steps = evacuation.events.iter().flatten();
    let has_failed = evacuation.failure().is_some() && steps.all(|step| step.finish_time.is_some());
    has_failed || had_ended(evacuation, newer)
}

impl OpenstackDriver {
    /// Why the host from which it was evacuated may start it, or has, or its own one may, as Nova was made to forget that; by its actions, newest
    /// first, in words.
    pub(crate) async fn may_start_late(
        &self,
        actions: &[Action],
        call: &Call,
    ) -> Result<Option<String>, DriverError> {
        let mut marker = None;
        let mut evacuation: Option<&Action> = None;
        for action in actions {
            let (name, request) = (action.action.as_str(), &action.request_id);
            if is_marker(action) {
                marker = Some(action);
            }
            if name == EVACUATE
                && let Some(newer) = evacuation.replace(action)
                && !self.ours().moves.before_marker.contains(request)
            {
                if !was_over(&self.with_steps(action, call).await?, newer) {
                    return Ok(Some(format!(
                        "its evacuate {request} is not known to have ended before its evacuation {}, and the host to which it was to go may start \
                         it yet, or has: look there; Nova does not end that guest",
                        newer.request_id
                    )));
                }
                self.ours().moves.before_marker.insert(request.clone());
            }
            let Some(before) = marker else { continue };
            if CALM.contains(&name)
                || STARTS_NONE.contains(&name)
                || self.ours().moves.before_marker.contains(request)
            {
                continue;
            }
            if !had_ended(&self.with_steps(action, call).await?, before) {
                let (which, host) = match before.action == EVACUATE {
                    true => {
                        ("evacuation", "the host from which that went may start it when it is back, or has")
                    }
                    false => ("state was set anew by", "its host may start it late, or has"),
                };
                return Ok(Some(format!(
                    "its {name} {request} is not known to have ended before its {which} {}, and {host}: look there; Nova does not end that \
                     guest",
                    before.request_id
                )));
            }
            self.ours().moves.before_marker.insert(request.clone());
        }
        Ok(None)
    }

    /// A start that we sent, and Nova took, of which its host is not known to have made an end: what Nova calls it.
    pub(crate) async fn start_under_way(&self, call: &Call) -> Result<Option<String>, DriverError> {
        for start in self.starts.names() {
            let action = actions::one(&self.cloud, &self.settings.server, &start, call).await?;
            if action.is_none_or(|action| !has_ended(&action)) {
                return Ok(Some(start));
            }
            self.starts.ended(&start);
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
