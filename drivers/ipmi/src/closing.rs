//! Ending the sessions that carried commands (S8).
//!
//! A session is over when its close was answered, when the BMC itself says in another session that there is no such
//! session, or when its idle limit was waited out since our last packet in it.

use std::time::Duration;

use ipmi_rs_core::connection::IpmiCommand;
use picket_core::power::EpochOrigin;
use picket_driver::Call;
use tokio::time::Instant;

use crate::command::{CloseSession, GetSessionInfo};
use crate::effort::Effort;
use crate::line::{Line, end_of};
use crate::live::Live;

/// How long a close may stay unanswered: a BMC that closed, and whose answer was lost, does not answer again.
const PATIENCE: Duration = Duration::from_millis(750);
/// How long it is tried to open a session in which to ask after those that do not answer.
const OUTSIDE: Duration = Duration::from_secs(2);
/// Completion code of Close Session: no such session (IPMI 2.0 table 22-23).
const NO_SUCH_SESSION: u8 = 0x87;

/// Asks in `live` to close the session `id`; whether the answer says that it is over.
async fn close(live: &mut Live, id: u32, call: &Call) -> bool {
    let until = end_of(call).min(Instant::now() + PATIENCE);
    let asked = live.ask(CloseSession(id).into(), call, until, &mut Effort::reading()).await;
    matches!(asked, Ok(Some(heard)) if matches!(heard.answer.code, 0 | NO_SUCH_SESSION))
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

/// Closes what can be closed now. `Some`: from then on the rest is surely over, if nothing more is sent.
pub async fn close_all(line: &mut Line, call: &Call) -> Option<Instant> {
    let longest = line.settings.longest_idle();
    // It carried nothing; dropped, it is closed.
    line.stand_in = None;
    line.orphans.retain(|live| Instant::now() < live.dead_at(longest));
    if let Some(live) = line.session.as_mut() {
        let id = live.remote_id();
        let answered = close(live, id, call).await;
        if let Some(live) = line.session.take() {
            match answered {
                true => live.closed(),
                false => {
                    line.next_origin = EpochOrigin::AfterLoss;
                    if live.has_carried() {
                        line.orphans.push(live);
                    }
                }
            }
        }
    }
    let mut index = 0;
    while let Some(live) = line.orphans.get_mut(index) {
        let id = live.remote_id();
        if close(live, id, call).await {
            line.orphans.swap_remove(index).closed();
        } else {
            index += 1;
        }
    }
    if !line.orphans.is_empty() {
        look_from_outside(line, call).await;
    }
    line.orphans.iter().map(|live| live.dead_at(longest)).max()
}

/// Asks in a new session after those that do not answer.
async fn look_from_outside(line: &mut Line, call: &Call) {
    let origin = line.next_origin;
    let until = end_of(call).min(Instant::now() + OUTSIDE);
    let opened = line.warm_up(call, until).await.is_ok();
    // This session is not the next epoch: it ends here.
    line.next_origin = origin;
    let Some(mut outside) = line.session.take().filter(|_| opened) else { return };
    let own = outside.remote_id();
    // A BMC that does not know the very session in which it is asked does not know the others either.
    let knows = is_open(&mut outside, own, call).await == Some(true);
    let mut index = 0;
    while let Some(id) = line.orphans.get(index).map(Live::remote_id) {
        // A BMC that gave the id to another session has ended the one that had it.
        let over = id == own
            || knows && is_open(&mut outside, id, call).await == Some(false)
            || close(&mut outside, id, call).await;
        if over {
            line.orphans.swap_remove(index).closed();
        } else {
            index += 1;
        }
    }
    if close(&mut outside, own, call).await {
        outside.closed();
    }
}
