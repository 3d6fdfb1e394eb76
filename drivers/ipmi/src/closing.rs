//! Ending the sessions that carried commands (S8).
//!
//! A session is over when its close was answered, in time or late, when the BMC itself says in another session that there is
//! no such session, or when its idle limit was waited out since our last packet in it. That it is the BMC itself is told by
//! the GUID in both handshakes. A session that we began to close is one that we closed, and was not lost, also if the caller
//! left before the answer came.

use std::time::Duration;

use ipmi_rs_core::connection::IpmiCommand;
use picket_driver::{Call, Effort};
use tokio::time::{Instant, sleep};

use crate::command::{CloseSession, GetSessionInfo};
use crate::line::{Line, LostSession};
use crate::live_session::LiveSession;

/// How long a close may stay unanswered, at least: a BMC that closed, and whose answer was lost, does not answer again.
const PATIENCE: Duration = Duration::from_millis(750);
/// What is told of sessions that were not seen to end, asked for so often since then.
pub fn open_still(idle_limit: Duration, asked: u32, since: Instant, over_at: Instant) -> String {
    format!(
        "a session that carried commands did not answer its close, asked for {asked} times in {:.1} s, and may be open for {} s more: by its idle \
         limit, idle_limit = \"{}s\"",
        since.elapsed().as_secs_f64(),
        over_at.saturating_duration_since(Instant::now()).as_secs(),
        idle_limit.as_secs()
    )
}

/// How long it is tried to open a session in which to ask after those that do not answer.
const OUTSIDE: Duration = Duration::from_secs(10);
/// The pauses before a BMC is asked again after sessions that it says nothing of. Then their idle limit is waited out: each
/// look costs a login.
pub const PAUSES: [Duration; 3] = [Duration::from_secs(2), Duration::from_secs(4), Duration::from_secs(8)];
/// Between two looks whether an answer to a close came late.
const HEARKENING: Duration = Duration::from_millis(100);
/// Completion code of Close Session: no such session (IPMI 2.0 table 22-23).
const NO_SUCH_SESSION: u8 = 0x87;

/// Asks a session to close itself; whether it did. That there is no such session cannot be said in that very session.
async fn close_itself(live: &mut LiveSession, call: &Call) -> bool {
    let until = call.end().min(Instant::now() + live.patience(PATIENCE));
    live.close(call, until).await
}

/// Asks in `live` to close the session `id`; the completion code of the answer.
async fn close_other(live: &mut LiveSession, id: u32, call: &Call) -> Option<u8> {
    let until = call.end().min(Instant::now() + live.patience(PATIENCE));
    let asked = live.ask(CloseSession(id).into(), call, until, &mut Effort::reading()).await;
    Some(asked.ok().flatten()?.answer.code)
}

/// Whether the BMC says in `live` that the session `id` is open; `None`: it does not say.
async fn is_open(live: &mut LiveSession, id: u32, call: &Call) -> Option<bool> {
    let until = call.end().min(Instant::now() + live.patience(PATIENCE));
    let asked = live.ask(GetSessionInfo(id).into(), call, until, &mut Effort::reading()).await;
    let heard = asked.ok().flatten()?;
    if heard.answer.code != 0 {
        return None;
    }
    GetSessionInfo::parse_success_response(&heard.answer.data).ok()
}

/// That this session is lost, since it does not answer.
fn lost(live: &LiveSession, call: &Call) -> Option<LostSession> {
    let since = live.unanswered_since().unwrap_or(call.now());
    Some(LostSession { epoch: live.epoch().id, since })
}

/// From when on the rest is surely over, if nothing more is sent in it; `None`: there is none.
fn over_at(line: &Line) -> Option<Instant> {
    let longest = line.settings.longest_idle();
    line.orphans.iter().map(|live| live.dead_at(longest)).max()
}

/// Closes what can be closed now. `Some`: from then on the rest is surely over, if nothing more is sent.
pub async fn close_all(line: &mut Line, call: &Call) -> Option<Instant> {
    let longest = line.settings.longest_idle();
    line.forget_unused();
    // A yes that came late, to a close of before: that session is not asked again.
    hear(line);
    line.orphans.retain(|live| Instant::now() < live.dead_at(longest));
    // The caller may leave while a close is under way, and the BMC may have carried it out: from here on nothing else is
    // asked in this session, so that its end is never taken for a loss.
    let present = line.session.take().map(|live| {
        if live.is_silent() {
            // It may be lost already, and that must not be forgotten with the caller.
            line.lost = lost(&live, call);
        }
        let epoch = live.epoch().id;
        line.orphans.push(live);
        epoch
    });
    let mut index = 0;
    while let Some(live) = line.orphans.get_mut(index) {
        let (is_present, carried) = (present == Some(live.epoch().id), live.has_carried());
        let closed = close_itself(live, call).await;
        if closed && line.lost.is_some_and(|lost| lost.epoch == live.epoch().id) {
            // It answers after all, also where whoever asked it before left.
            line.lost = None;
        } else if is_present && !closed {
            line.lost = lost(live, call);
        }
        match closed {
            true => line.orphans.swap_remove(index).closed(),
            // Dropped, it is told once more to close.
            false if !carried => drop(line.orphans.swap_remove(index)),
            false => index += 1,
        }
    }
    look(line, call).await;
    over_at(line)
}

/// Looks once more after the sessions that did not answer their close, as [`close_all`] left them. Nothing is sent in one of
/// them: each packet there begins its idle limit anew.
pub async fn look_again(line: &mut Line, call: &Call) -> Option<Instant> {
    line.retire();
    look(line, call).await;
    over_at(line)
}

async fn look(line: &mut Line, call: &Call) {
    hear(line);
    if !line.orphans.is_empty() {
        look_from_outside(line, call).await;
        hear(line);
    }
}

/// Takes the answers in that came late.
fn hear(line: &mut Line) {
    hear_in(&mut line.orphans, &mut line.lost);
}

fn hear_in(orphans: &mut Vec<LiveSession>, lost: &mut Option<LostSession>) {
    let mut index = 0;
    while let Some(live) = orphans.get_mut(index) {
        if !live.was_closed() {
            index += 1;
            continue;
        }
        // It answered, so the BMC did not restart before.
        lost.take_if(|lost| lost.epoch == live.epoch().id);
        orphans.swap_remove(index).closed();
    }
}

/// Waits until each of the sessions has said, too late for who asked, that it closed itself.
pub async fn all_closed_late(orphans: &mut [LiveSession]) {
    while !orphans.iter_mut().all(LiveSession::was_closed) {
        sleep(HEARKENING).await;
    }
}

/// Whether nothing is open any more, by what was answered since. Nothing is sent.
pub fn is_heard(line: &mut Line) -> bool {
    hear(line);
    line.orphans.is_empty()
}

/// Whether one BMC surely has both sessions. Another one, to which the address leads by now, knows none of ours, and they live on.
fn are_of_one_bmc(one: &LiveSession, other: &LiveSession) -> bool {
    one.says_its_system() && one.system() == other.system()
}

/// Asks in another session after those that do not answer.
async fn look_from_outside(line: &mut Line, call: &Call) {
    let mut opened = None;
    let outside = if line.session.is_some() {
        // A reading opened it meanwhile: it stays.
        line.session.as_mut()
    } else {
        let until = call.end().min(Instant::now() + OUTSIDE);
        opened = line.open_outside(call, until).await;
        opened.as_mut()
    };
    let Some(outside) = outside else { return };
    // A BMC that does one thing after another has answered the close before it took this login.
    let (orphans, lost) = (&mut line.orphans, &mut line.lost);
    hear_in(orphans, lost);
    let own = outside.remote_id();
    // A BMC that does not know the very session in which it is asked does not know the others either.
    let knows = !line.orphans.is_empty() && is_open(outside, own, call).await == Some(true);
    let mut index = 0;
    while let Some(orphan) = line.orphans.get(index) {
        let id = orphan.remote_id();
        // A BMC that gave the id to another session has ended the one that had it.
        let over = are_of_one_bmc(orphan, outside)
            && (id == own
                || knows && is_open(outside, id, call).await == Some(false)
                || matches!(close_other(outside, id, call).await, Some(0 | NO_SUCH_SESSION)));
        if over {
            line.orphans.swap_remove(index).closed();
        } else {
            index += 1;
        }
    }
    if let Some(mut opened) = opened
        && close_itself(&mut opened, call).await
    {
        opened.closed();
    }
}
