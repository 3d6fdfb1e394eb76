//! Ending a session that another process opened, by its name (S8): what it sent in that, and what may still
//! come in it, ends with it.
//!
//! # Invariants
//!
//! - Only the service's clear word counts. That is 200 or 204 to the deletion, whatever session has that
//!   place by now: no two have it at once. Shown by
//!   `what_another_process_may_yet_send_ends_with_its_session`, `no_other_answer_is_an_end`.
//! - 404 is no clear word: a service says it also while it starts, hides what we may not see (RFC 9110
//!   §15.5.5), or puts its sessions elsewhere. The list of sessions then has to be whole, with our own in
//!   it and that one not. Shown by
//!   `a_place_that_is_not_found_is_over_only_where_the_list_of_sessions_says_so`.
//! - What came in the session and is at work is given time to end, or to become a task. No task may be
//!   running after that. Shown by `what_became_a_task_is_waited_for`.

use std::time::Duration;

use picket_driver::{Call, DriverError, Effect, ErrorKind};

use crate::closing;
use crate::line::{Line, end_of};
use crate::service::{ROOT, Service, link, members};
use crate::service_request::ServiceRequest;
use crate::session::{Session, place_of, same_place};
use picket_driver::effort::Effort;

/// What a service begun before the deletion it has answered, or has made a task of, after so long: as long as a call of ours has.
pub const AT_WORK: Duration = Duration::from_secs(5);
/// How many tasks are looked at.
const TASKS: usize = 64;

fn unclear(line: &Line, why: impl std::fmt::Display) -> DriverError {
    unknown(line.error(&Effort::reading(), ErrorKind::Protocol, why))
}

/// What failed on the way may have left it open.
pub fn unknown(error: DriverError) -> DriverError {
    DriverError { effect: Effect::Unknown, ..error }
}

/// Ends the session of that name.
///
/// # Errors
/// It may be open still.
pub async fn end(line: &mut Line, name: &str, call: &Call) -> Result<(), DriverError> {
    let place = place_of(&line.settings, name);
    let place = place.map_err(|why| unknown(line.error(&Effort::reading(), ErrorKind::Settings, why)))?;
    call.may_send().map_err(unknown)?;
    if is_ours(line, place, call).await? {
        return Ok(());
    }
    let answer =
        line.ask(&ServiceRequest::delete(place), call, &mut Effort::ending()).await.map_err(unknown)?;
    match answer.status {
        200 | 204 if !answer.stored => Ok(()),
        404 | 410 => is_not_listed(line, place, call).await,
        _ => Err(unclear(line, format_args!("the end of session {name:?}: {}", answer.words()))),
    }
}

/// Whether a session of our own has that place, and is open: then the one before it is over. One that carried something is ended
/// first, as its name may be the very one; one that the service ended unseen proves nothing.
async fn is_ours(line: &mut Line, place: &str, call: &Call) -> Result<bool, DriverError> {
    let carried = |line: &Line| {
        let mut own = line.session.iter().chain(&line.orphans);
        own.any(|one| one.carried && is_at(one, place))
    };
    let there = |line: &Line| line.session.as_ref().is_some_and(|own| is_at(own, place));
    if carried(line) {
        closing::close_all(line, call).await?;
        if carried(line) {
            return Err(unclear(line, "a session of our own in its place does not end"));
        }
    }
    if !there(line) {
        return Ok(false);
    }
    let answer =
        line.ask(&ServiceRequest::get(place), call, &mut Effort::reading()).await.map_err(unknown)?;
    // It may have been another's, and this is a new one: that has its own place.
    match (there(line), answer.status) {
        (true, 200) if !answer.stored && answer.own_path().is_some_and(|own| same_place(&own, place)) => {
            Ok(true)
        }
        (false, _) => Ok(false),
        (true, _) => Err(unclear(line, format_args!("our own session in its place: {}", answer.words()))),
    }
}

fn is_at(session: &Session, place: &str) -> bool {
    session.path.as_deref().is_some_and(|path| same_place(path, place))
}

/// Whether the service lists its sessions, our own among them, and not that one.
async fn is_not_listed(line: &mut Line, place: &str, call: &Call) -> Result<(), DriverError> {
    let Some(sessions) = Service::sessions(line, call).await.map_err(unknown)? else {
        return Err(unclear(line, "the service has no list of sessions"));
    };
    let (_, list) = Service::read(line, call, ServiceRequest::get(sessions), "the list of sessions")
        .await
        .map_err(unknown)?;
    let Some(members) = members(&list) else {
        return Err(unclear(line, "the list of sessions is not whole"));
    };
    let Some(own) = line.session.as_ref().filter(|own| members.iter().any(|one| is_at(own, one))) else {
        return Err(unclear(line, "the list of sessions does not have our own in it"));
    };
    // Our own in its place would do as well, and is looked for before.
    if members.iter().any(|one| same_place(one, place)) && !is_at(own, place) {
        return Err(unclear(line, "the service lists the session, and does not find it"));
    }
    // Another machine's service has another list.
    line.expect_ours(call, end_of(call)).await.map_err(unknown)
}

/// Whether nothing is under way at the service: it has no tasks, or each of them is over. A service that answers 202 has to have
/// a task service (DSP0266, "Asynchronous operations").
///
/// # Errors
/// Something may be.
pub async fn nothing_runs(line: &mut Line, call: &Call) -> Result<(), DriverError> {
    // As somebody: a service may show a stranger fewer links than it has.
    let (_, root) =
        Service::read(line, call, ServiceRequest::get(ROOT), "the service root").await.map_err(unknown)?;
    if !root.contains_key("Tasks") {
        return line.expect_ours(call, end_of(call)).await.map_err(unknown);
    }
    let odd = "the service does not say where its tasks are";
    let Some(service) = link(&root, "Tasks") else { return Err(unclear(line, odd)) };
    let (_, service) =
        Service::read(line, call, ServiceRequest::get(service), "the task service").await.map_err(unknown)?;
    let Some(tasks) = link(&service, "Tasks") else { return Err(unclear(line, odd)) };
    let (_, list) =
        Service::read(line, call, ServiceRequest::get(tasks), "the list of tasks").await.map_err(unknown)?;
    let Some(tasks) = members(&list).filter(|tasks| tasks.len() <= TASKS) else {
        return Err(unclear(line, format_args!("the list of tasks is not whole, or longer than {TASKS}")));
    };
    for task in tasks {
        let answer =
            line.ask(&ServiceRequest::get(&task), call, &mut Effort::reading()).await.map_err(unknown)?;
        let state = answer.fresh().and_then(|task| Some(task.get("TaskState")?.as_str()?.to_owned()));
        let over = match answer.status {
            200 => state.as_deref().is_some_and(is_over),
            // Forgotten since it was listed.
            404 | 410 => !answer.stored,
            _ => false,
        };
        if !over {
            return Err(unclear(line, format_args!("the task {task} may be under way: {}", answer.words())));
        }
    }
    line.expect_ours(call, end_of(call)).await.map_err(unknown)
}

/// The states from which a task goes nowhere any more (DSP2046, TaskService, `TaskAutoDeleteTimeoutMinutes`).
fn is_over(state: &str) -> bool {
    matches!(state, "Completed" | "Killed" | "Cancelled" | "Exception")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_over_in_four_states_alone() {
        for state in ["Completed", "Killed", "Cancelled", "Exception"] {
            assert!(is_over(state), "{state}");
        }
        for state in
            ["New", "Running", "Suspended", "Interrupted", "Pending", "Stopping", "Service", "completed", ""]
        {
            assert!(!is_over(state), "{state}");
        }
    }
}
