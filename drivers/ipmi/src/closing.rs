//! Ending the sessions that carried commands (S8).
//!
//! A session is over when its close was answered, when the BMC itself says in another session that there is no such
//! session, or when its idle limit was waited out since our last packet in it. That it is the BMC itself is told by the GUID
//! in both handshakes. A session that we began to close is one that we closed, and was not lost, also if the caller left
//! before the answer came.

use std::time::Duration;

use ipmi_rs_core::connection::IpmiCommand;
use picket_driver::{Call, Effort};
use tokio::time::Instant;

use crate::command::{CloseSession, GetSessionInfo};
use crate::line::{Line, Lost, end_of};
use crate::live::Live;

/// How long a close may stay unanswered: a BMC that closed, and whose answer was lost, does not answer again.
const PATIENCE: Duration = Duration::from_millis(750);
/// How long it is tried to open a session in which to ask after those that do not answer. Else their idle limit is waited
/// out, which takes longer.
const OUTSIDE: Duration = Duration::from_secs(10);
/// Completion code of Close Session: no such session (IPMI 2.0 table 22-23).
const NO_SUCH_SESSION: u8 = 0x87;

/// Asks in `live` to close the session `id`; the completion code of the answer.
async fn close(live: &mut Live, id: u32, call: &Call) -> Option<u8> {
    let until = end_of(call).min(Instant::now() + PATIENCE);
    let asked = live.ask(CloseSession(id).into(), call, until, &mut Effort::reading()).await;
    Some(asked.ok().flatten()?.answer.code)
}

/// Asks a session to close itself; whether it did. That there is no such session cannot be said in that very session.
async fn close_itself(live: &mut Live, call: &Call) -> bool {
    close(live, live.remote_id(), call).await == Some(0)
}

/// Whether the BMC says in `live` that the session `id` is open; `None`: it does not say.
async fn is_open(live: &mut Live, id: u32, call: &Call) -> Option<bool> {
    let until = end_of(call).min(Instant::now() + PATIENCE);
    let asked = live.ask(GetSessionInfo(id).into(), call, until, &mut Effort::reading()).await;
    let heard = asked.ok().flatten()?;
    if heard.answer.code != 0 {
        return None;
    }
    GetSessionInfo::parse_success_response(&heard.answer.data).ok()
}

/// That this session is lost, since it does not answer.
fn lost(live: &Live, call: &Call) -> Option<Lost> {
    let since = live.unanswered_since().unwrap_or(call.now());
    Some(Lost { epoch: live.epoch().id, since })
}

/// Closes what can be closed now. `Some`: from then on the rest is surely over, if nothing more is sent.
pub async fn close_all(line: &mut Line, call: &Call) -> Option<Instant> {
    let longest = line.settings.longest_idle();
    line.forget_unused();
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
    if !line.orphans.is_empty() {
        look_from_outside(line, call).await;
    }
    line.orphans.iter().map(|live| live.dead_at(longest)).max()
}

/// Whether one BMC surely has both sessions. Another one, to which the address leads by now, knows none of ours, and they live on.
fn are_of_one_bmc(one: &Live, other: &Live) -> bool {
    one.says_its_system() && one.system() == other.system()
}

/// Asks in a new session after those that do not answer.
async fn look_from_outside(line: &mut Line, call: &Call) {
    let lost = line.lost;
    let until = end_of(call).min(Instant::now() + OUTSIDE);
    let opened = line.warm_up(call, until).await.is_ok();
    // This session is not the next epoch: it ends here.
    line.lost = lost;
    let Some(mut outside) = line.session.take().filter(|_| opened) else { return };
    let own = outside.remote_id();
    // A BMC that does not know the very session in which it is asked does not know the others either.
    let knows = is_open(&mut outside, own, call).await == Some(true);
    let mut index = 0;
    while let Some(orphan) = line.orphans.get(index) {
        let id = orphan.remote_id();
        // A BMC that gave the id to another session has ended the one that had it.
        let over = are_of_one_bmc(orphan, &outside)
            && (id == own
                || knows && is_open(&mut outside, id, call).await == Some(false)
                || matches!(close(&mut outside, id, call).await, Some(0 | NO_SUCH_SESSION)));
        if over {
            line.orphans.swap_remove(index).closed();
        } else {
            index += 1;
        }
    }
    if close_itself(&mut outside, call).await {
        outside.closed();
    }
}
