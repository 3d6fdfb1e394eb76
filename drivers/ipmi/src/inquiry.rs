//! Questions that a BMC may not be able to answer: what of its silence on them is a fact, and what is a bad moment.

use ipmi_rs_core::connection::{IpmiCommand, Message};
use picket_driver::{Call, DriverError, Effort, ErrorKind};

use crate::line::Line;
use crate::quirks::{self, Verdict};

/// How often in a row a question may come to nothing with a code that says neither "try again" nor "cannot" before it is
/// taken for one that this BMC cannot answer: a fence asks again each second or so, and must get on.
const STUBBORN: u32 = 5;

/// Asks. `None`: the BMC has no such thing, or this user may not see it.
///
/// # Errors
/// No answer, or one that says nothing of whether there is such a thing.
pub async fn ask<C: IpmiCommand>(
    line: &mut Line,
    call: &Call,
    command: C,
) -> Result<Option<C::Output>, DriverError> {
    let message: Message = command.into();
    let question = (message.netfn_raw(), message.cmd());
    let effort = &mut Effort::reading();
    let heard = line.command(message, call, effort).await?;
    let code = heard.answer.code;
    let kind = match quirks::verdict(code) {
        Verdict::Done => {
            line.unanswered.remove(&question);
            return Ok(C::parse_success_response(&heard.answer.data).ok());
        }
        Verdict::Unsupported | Verdict::Forbidden => return Ok(None),
        Verdict::Busy => ErrorKind::Throttled,
        Verdict::Uncertain => ErrorKind::Protocol,
        Verdict::NotInThisState | Verdict::Refused => ErrorKind::Refused,
    };
    if kind != ErrorKind::Throttled {
        let times = line.unanswered.entry(question).or_default();
        *times = times.saturating_add(1);
        if *times >= STUBBORN {
            return Ok(None);
        }
    }
    let (netfn, cmd) = question;
    let detail = format!("command 0x{netfn:02X}/0x{cmd:02X}: {}", quirks::describe(code));
    Err(effort.error(kind, detail))
}
