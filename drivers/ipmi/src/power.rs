//! Off, on, and what the chassis says.

use ipmi_rs_core::connection::IpmiCommand;
use picket_core::power::{Power, Reading};
use picket_driver::{Accepted, Call, DriverError, Effort, ErrorKind, Refusal};
use tokio::time::{Instant, sleep_until};

use crate::command::{ChassisControl, GetChassisStatus};
use crate::line::Line;
use crate::live_session::TimedAnswer;
use crate::quirks::{self, Verdict};
use picket_driver::pace::FIRST_PAUSE;

/// One fresh reading. Everything but a whole, successful status is `Unknown` (S1).
pub async fn read(line: &mut Line, call: &Call) -> Result<Reading, DriverError> {
    let heard = line.command(GetChassisStatus, call, &mut Effort::reading()).await?;
    line.unseen = false;
    let (power, said) = interpret(heard.answer.code, &heard.answer.data);
    Ok(Reading {
        power,
        asked_at: heard.asked_at,
        answered_at: heard.answered_at,
        epoch: Some(heard.epoch),
        said,
        lowered_by: None,
    })
}

/// What an answer to Get Chassis Status says of power. Total: any answer gets one of the three.
pub(crate) fn interpret(code: u8, data: &[u8]) -> (Power, String) {
    if code != 0 {
        return (Power::Unknown, format!("chassis status: {}", quirks::describe(code)));
    }
    match GetChassisStatus::parse_success_response(data) {
        Ok(status) => (status.power(), format!("chassis status 0x{:02X}", status.state)),
        Err(_) => (Power::Unknown, format!("chassis status of {} bytes", data.len())),
    }
}

fn accepted(heard: &TimedAnswer) -> Accepted {
    Accepted {
        // A BMC that was busy first has heard it since then (S2).
        asked_at: heard.first_asked_at,
        answered_at: heard.answered_at,
        epoch: Some(heard.epoch),
        already: false,
    }
}

/// After "not supported in present state": whether it is in the wanted state already, seen in the same session.
async fn already(
    line: &mut Line,
    call: &Call,
    heard: &TimedAnswer,
    wanted: Power,
    effort: &Effort,
) -> Result<Option<Accepted>, DriverError> {
    let reading = read(line, call).await.map_err(|error| effort.judge(error))?;
    let is_one_life = reading.epoch == Some(heard.epoch);
    // Who asked did not see that reading: nothing is sent before a loss was told, and stored (S2, S5).
    line.unseen |= !is_one_life;
    let same = reading.power == wanted && is_one_life;
    Ok(same.then(|| Accepted { answered_at: reading.answered_at, already: true, ..accepted(heard) }))
}

fn refused(verb: &str, heard: &TimedAnswer, effort: &Effort) -> DriverError {
    let code = heard.answer.code;
    let verdict = quirks::verdict(code);
    let kind = match verdict {
        Verdict::Busy => ErrorKind::Throttled,
        Verdict::Forbidden => ErrorKind::Forbidden,
        Verdict::Unsupported => ErrorKind::Unsupported,
        Verdict::Uncertain | Verdict::Done => ErrorKind::Protocol,
        Verdict::NotInThisState | Verdict::Refused => ErrorKind::Refused,
    };
    let is_final = matches!(verdict, Verdict::Forbidden | Verdict::Unsupported);
    let error = effort.error(kind, format!("chassis control, {verb}: {}", quirks::describe(code)));
    let Accepted { asked_at, answered_at, epoch, .. } = accepted(heard);
    match verdict {
        // It says nothing of the command: it may take it the next time.
        Verdict::Busy => error,
        _ => error.for_good(is_final).by_refusal(Refusal { asked_at, answered_at, epoch }),
    }
}

/// Hard off. Repeated until the BMC takes it, finds itself off already, or refuses it for good.
pub async fn off(line: &mut Line, call: &Call) -> Result<Accepted, DriverError> {
    let until = call.end();
    let mut effort = Effort::in_sight();
    let mut pause = FIRST_PAUSE;
    let mut first = None;
    loop {
        let heard = line.command(ChassisControl::Off, call, &mut effort).await?.since(&mut first);
        match quirks::verdict(heard.answer.code) {
            Verdict::Done => return Ok(accepted(&heard)),
            Verdict::NotInThisState => {
                if let Some(accepted) = already(line, call, &heard, Power::Off, &effort).await? {
                    return Ok(accepted);
                }
            }
            Verdict::Uncertain => {}
            Verdict::Busy | Verdict::Forbidden | Verdict::Unsupported | Verdict::Refused => {
                return Err(refused("off", &heard, &effort));
            }
        }
        let next = Instant::now() + pause;
        if next >= until {
            return Err(refused("off", &heard, &effort));
        }
        sleep_until(next).await;
        pause *= 2;
    }
}

/// On, once, in the session in which power was read before. None is opened for it, neither before its first copy nor after: the
/// store was asked after that session began, and whatever comes between its word and the packet, also a stop of the whole
/// machine that neither of its clocks sees, the BMC ends by its idle limit (S6, S8).
pub async fn on(line: &mut Line, call: &Call) -> Result<Accepted, DriverError> {
    let mut effort = Effort::once();
    // Asked again before the packet itself (S6); what is not sent until the call's end is never sent.
    call.may_send()?;
    if !line.is_warm() {
        let detail = "no session that answered just now: power is read first".to_owned();
        return Err(effort.error(ErrorKind::Unreachable, detail));
    }
    let heard = line.command(ChassisControl::On, call, &mut effort).await?;
    match quirks::verdict(heard.answer.code) {
        Verdict::Done => return Ok(accepted(&heard)),
        Verdict::NotInThisState => {
            if let Some(accepted) = already(line, call, &heard, Power::On, &effort).await? {
                return Ok(accepted);
            }
        }
        _ => {}
    }
    Err(refused("on", &heard, &effort))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_has_a_meaning_and_only_a_whole_success_is_on_or_off() {
        for code in 0..=u8::MAX {
            for len in 0..6 {
                for state in 0..=u8::MAX {
                    let data = vec![state; len];
                    let expected = match (code, len) {
                        (0, 3..) if state & 1 == 1 => Power::On,
                        (0, 3..) => Power::Off,
                        _ => Power::Unknown,
                    };
                    assert_eq!(interpret(code, &data).0, expected, "{code:#x} {data:x?}");
                }
            }
        }
    }
}
