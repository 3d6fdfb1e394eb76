//! Tasks: what the service took and does later (DSP0266, "Asynchronous operations").
//!
//! A task that was begun counts as taken, as an off does that falls later. What it came to is seen by reading power. Its end
//! matters for the opposite command alone: before that it must be over (S8).

use std::time::Duration;

use picket_driver::{Call, DriverError, Effect, Effort, ErrorKind};
use tokio::time::{Instant, sleep_until};

use crate::answer::{Answer, path_of};
use crate::exchange::FIRST_PAUSE;
use crate::line::{Line, end_of};
use crate::service_request::ServiceRequest;

/// How long it is looked whether a task fails at once.
const GLANCE: Duration = Duration::from_millis(500);

/// How a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Runs,
    /// It ended well, or nobody knows it any more.
    Over,
    /// It ended otherwise.
    Failed,
    /// We are not let look at it.
    Hidden,
}

/// Notes a task that was begun, and looks whether it fails at once.
///
/// # Errors
/// It failed.
pub async fn begin(line: &mut Line, call: &Call, answer: &Answer) -> Result<(), DriverError> {
    let named = || {
        answer.object()?.get("TaskMonitor").or(answer.object()?.get("@odata.id"))?.as_str().and_then(path_of)
    };
    let Some(monitor) = answer.location.clone().or_else(named) else {
        // Nobody can say when it ends: it is waited out like a session that does not answer its end.
        line.unfollowed = Some(Instant::now());
        return Ok(());
    };
    line.tasks.push(monitor.clone());
    let glance = call.until(Instant::now() + GLANCE);
    match follow(line, &monitor, &glance).await {
        Ok(State::Failed) => {
            line.tasks.retain(|one| *one != monitor);
            Err(line.error(&Effort::reading(), ErrorKind::Refused, "the task that was begun for it failed"))
        }
        Ok(State::Over) => {
            line.tasks.retain(|one| *one != monitor);
            Ok(())
        }
        Ok(State::Hidden) => {
            hidden(line, &monitor);
            Ok(())
        }
        // It was taken; what became of it is looked at again before the opposite command.
        Ok(State::Runs) | Err(_) => Ok(()),
    }
}

/// Follows all tasks to their ends, until the call's.
///
/// # Errors
/// One may still be running.
pub async fn finish(line: &mut Line, call: &Call) -> Result<(), DriverError> {
    while let Some(monitor) = line.tasks.last().cloned() {
        // What cannot be asked may be running.
        let unknown = |error| DriverError { effect: Effect::Unknown, ..error };
        match follow(line, &monitor, call).await.map_err(unknown)? {
            State::Over | State::Failed => drop(line.tasks.pop()),
            State::Hidden => hidden(line, &monitor),
            State::Runs => {
                let mut effort = Effort::repeatable();
                effort.sent();
                let why = "a task of ours is still running at the service";
                return Err(line.error(&effort, ErrorKind::TimedOut, why));
            }
        }
    }
    Ok(())
}

/// It is waited out like one that has no monitor.
fn hidden(line: &mut Line, monitor: &str) {
    line.tasks.retain(|one| one != monitor);
    line.unfollowed = Some(Instant::now());
}

async fn follow(line: &mut Line, monitor: &str, call: &Call) -> Result<State, DriverError> {
    let until = end_of(call);
    let mut pause = FIRST_PAUSE;
    loop {
        let answer = look(line, monitor, call).await?;
        let state = state(&answer);
        let wait = answer.retry_after.unwrap_or(pause).clamp(pause, Duration::from_secs(5));
        if state != State::Runs || Instant::now() + wait >= until {
            return Ok(state);
        }
        sleep_until(Instant::now() + wait).await;
        pause = (pause * 2).min(Duration::from_secs(2));
    }
}

/// One look at it. Who is not known to it may be unknown to the service: that is asked where everybody who is known may look.
async fn look(line: &mut Line, monitor: &str, call: &Call) -> Result<Answer, DriverError> {
    let ask = ServiceRequest::monitor(monitor);
    let mut answer = line.ask(&ask, call, &mut Effort::reading()).await?;
    if let Some(sessions) = line.sessions.clone().filter(|_| answer.status == 401) {
        line.ask(&ServiceRequest::get(sessions), call, &mut Effort::reading()).await?;
        answer = line.ask(&ask, call, &mut Effort::reading()).await?;
    }
    // Another machine's service knows nothing of it, and says so.
    line.expect_ours(call, end_of(call)).await?;
    Ok(answer)
}

fn state(answer: &Answer) -> State {
    let named = answer.object().and_then(|object| Some(object.get("TaskState")?.as_str()?.to_owned()));
    match (answer.status, named.as_deref()) {
        // It may have ended since, or not.
        _ if answer.stored => State::Runs,
        (202, _) => State::Runs,
        // Some point to the task itself rather than to its monitor: then its state says it (DSP2046, Task).
        (200..=299, None | Some("Completed")) => State::Over,
        (200..=299, Some("Exception" | "Killed" | "Cancelled")) => State::Failed,
        (200..=299, Some(_)) => State::Runs,
        // It ended and was forgotten.
        (404 | 410, _) => State::Over,
        // They speak of this request alone: it came too slowly, to the wrong place, too early, or beside another one.
        (408 | 421 | 423 | 425 | 429 | 503, _) => State::Runs,
        // That speaks of who looks, and not of the task: some let only the session look that began it.
        (401 | 403 | 405, _) => State::Hidden,
        // Asked when it is over, a monitor answers as the operation itself would have (DSP0266).
        (400..=499, _) => State::Failed,
        _ => State::Runs,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    #[test]
    fn a_task_is_over_when_the_service_says_so() {
        for (status, body, expected) in [
            (202, "{}", State::Runs),
            (202, r#"{"TaskState": "Completed"}"#, State::Runs),
            (200, "{}", State::Over),
            (204, "", State::Over),
            (200, r#"{"TaskState": "Completed"}"#, State::Over),
            (200, r#"{"TaskState": "Running"}"#, State::Runs),
            (200, r#"{"TaskState": "a new word"}"#, State::Runs),
            (200, r#"{"TaskState": "Exception"}"#, State::Failed),
            (404, "", State::Over),
            (409, "", State::Failed),
            (408, "", State::Runs),
            (421, "", State::Runs),
            (423, "", State::Runs),
            (425, "", State::Runs),
            (429, "", State::Runs),
            (403, "", State::Hidden),
            (405, "", State::Hidden),
            (500, "", State::Runs),
            (302, "", State::Runs),
        ] {
            let mut answer = Answer::begun(status, &HeaderMap::new());
            answer.body = body.as_bytes().to_vec();
            assert_eq!(state(&answer), expected, "{status} {body}");
        }
    }
}
