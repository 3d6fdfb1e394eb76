//! A start that a compute host may do late.
//!
//! **Invariant.** Nova takes a start while it believes that the host is up, for a minute after it died, and the host does what lies in its queue when it is
//! back, also to a server that was evacuated since: `start_instance` looks at no host, starts the guest, and fails only after that, when it saves. Nova ends no
//! such guest (S1, S8). So a start that came before an evacuation must have ended before that. Read in Nova 34.0.0: `compute/manager.py` (`start_instance`),
//! `service.py` (the queue is taken after `init_host`, which removes what was evacuated); whatever else starts a guest saves its task first there, and is refused.

use picket_driver::{Call, DriverError};

use crate::actions::{self, Action};
use crate::deleted;
use crate::driver::OpenstackDriver;
use crate::moves::EVACUATE;

const START: &str = "start";
const STARTS: &str = "compute_start_instance";
/// What Nova takes while a task is under way. Of whatever else it took after a start, that one had ended before.
const AT_ANY_TIME: [&str; 8] =
    ["lock", "unlock", "resetState", "delete", "forceDelete", "softDelete", "attach_volume", "detach_volume"];

/// Whether the host did what there was to do of that start. `before`: the first evacuation after it, where there was one. That it failed says that the
/// guest was started, where that was after it.
fn has_ended(start: &Action, before: Option<&Action>) -> bool {
    let mut steps = start.events.iter().flatten().filter(|step| step.event == STARTS).peekable();
    steps.peek().is_some()
        && steps.all(|step| match before {
            Some(evacuation) => step.succeeded() || deleted::was_long_before(step, evacuation),
            None => step.finish_time.is_some(),
        })
}

impl OpenstackDriver {
    /// Why the host from which it was evacuated may start it, or has, by its actions, newest first, in words.
    pub(crate) async fn may_start_late(
        &self,
        actions: &[Action],
        call: &Call,
    ) -> Result<Option<String>, DriverError> {
        let mut evacuation = None;
        let mut was_reset = false;
        for action in actions {
            let name = action.action.as_str();
            if name == EVACUATE {
                (evacuation, was_reset) = (Some(action), false);
            }
            let Some(before) = evacuation.filter(|_| name != EVACUATE) else { continue };
            was_reset |= name == "resetState";
            if name == START && !self.ours().moves.idle.contains(&action.request_id) {
                if !has_ended(&self.with_steps(action, call).await?, Some(before)) {
                    return Ok(Some(format!(
                        "its {START} {} is not known to have ended before its evacuation {}, and the host from which that went may start it \
                         when it is back, or has: look there; Nova does not end that guest",
                        action.request_id, before.request_id
                    )));
                }
                self.ours().moves.idle.insert(action.request_id.clone());
            }
            // An administrator can make Nova forget that a task is under way.
            if !AT_ANY_TIME.contains(&name) && !was_reset {
                evacuation = None;
            }
        }
        Ok(None)
    }

    /// A start that we sent, and Nova took, of which its host is not known to have made an end: what Nova calls it.
    pub(crate) async fn start_under_way(&self, call: &Call) -> Result<Option<String>, DriverError> {
        let Some(start) = self.ours().start.clone() else { return Ok(None) };
        let action = actions::one(&self.cloud, &self.settings.server, &start, call).await?;
        if action.is_none_or(|action| !has_ended(&action, None)) {
            return Ok(Some(start));
        }
        self.ours().start = None;
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
