//! Keeping a machine off by its service's own means (S11): `PowerRestorePolicy` (DSP2046, ComputerSystem).
//!
//! **Invariant.** Only what was read, and can therefore be put back, is changed.

use picket_driver::{Call, DriverError, Effect, Effort, ErrorKind, HoldFound, HoldReport};
use serde_json::{Value, json};

use crate::answer::tame;
use crate::ask::Ask;
use crate::asking::unread;
use crate::line::Line;
use crate::quirks::{self, Verdict};
use crate::service::Service;
use crate::task;
use crate::whose::{Slot, slot};

const POLICY: &str = "PowerRestorePolicy";
const ALWAYS_OFF: &str = "AlwaysOff";
/// How often a change is tried, with another version each time.
const TRIES: u32 = 4;
const HOLDS: &str = "restore policy always-off";

/// What the system's policy is, and the version of what was read.
async fn policy(
    line: &mut Line,
    call: &Call,
) -> Result<(String, Option<String>, Option<String>), DriverError> {
    let system = match &line.service {
        Some(service) => service.system.clone(),
        None => Service::discover(line, call).await?.service.system,
    };
    let answer = line.ask(&Ask::get(&system), call, &mut Effort::reading()).await?;
    let Some(object) = answer.fresh() else {
        return Err(unread(line, &answer, "the system"));
    };
    // Whatever stands in its slot by now would keep the policy.
    if let Slot::Unknown(why) = slot(line, &object)? {
        return Err(line.error(&Effort::reading(), ErrorKind::Protocol, why));
    }
    let text = |key| object.get(key).and_then(Value::as_str).map(str::to_owned);
    // Some say the version in the body alone.
    let own = text("@odata.etag").filter(|etag| etag.chars().all(|c| c.is_ascii_graphic()));
    Ok((system, text(POLICY), answer.etag.or(own)))
}

/// What a hold would change, as it is now.
pub async fn inspect(line: &mut Line, call: &Call) -> Result<HoldFound, DriverError> {
    if !line.settings.hold {
        return Ok(HoldFound::new());
    }
    let (_, policy, _) = policy(line, call).await?;
    Ok(policy.map(|policy| (POLICY.to_owned(), policy)).into_iter().collect())
}

/// What of a hold stands, by what was found now.
pub fn engaged(now: &HoldFound) -> Vec<String> {
    let stands = now.get(POLICY).is_some_and(|policy| policy == ALWAYS_OFF);
    if stands { vec![HOLDS.to_owned()] } else { Vec::new() }
}

/// Tells the service to leave the machine off when power comes back.
pub async fn engage(
    line: &mut Line,
    found: &HoldFound,
    session: Option<&str>,
    call: &Call,
) -> Result<HoldReport, DriverError> {
    if !found.contains_key(POLICY) {
        let why = if line.settings.hold {
            "the system has no PowerRestorePolicy"
        } else {
            "hold = false in the settings"
        };
        return Ok(HoldReport { engaged: Vec::new(), detail: why.to_owned() });
    }
    set(line, session, call, ALWAYS_OFF).await
}

/// Puts back what was found.
///
/// # Errors
/// It was refused, or taken or not.
pub async fn disengage(
    line: &mut Line,
    found: &HoldFound,
    session: Option<&str>,
    call: &Call,
) -> Result<HoldReport, DriverError> {
    let Some(before) = found.get(POLICY) else { return Ok(HoldReport::default()) };
    let report = set(line, session, call, before).await?;
    // What the service never takes is said: nobody can put it back by trying again.
    let engaged = if before == ALWAYS_OFF { report.engaged } else { Vec::new() };
    Ok(HoldReport { engaged, ..report })
}

async fn set(
    line: &mut Line,
    session: Option<&str>,
    call: &Call,
    wanted: &str,
) -> Result<HoldReport, DriverError> {
    call.may_send()?;
    let mut effort = Effort::repeatable().in_session(session);
    let (mut refused, mut said) = (None, String::new());
    // Again where somebody else changed the system between reading and changing it, or where the service takes its own version not so. The
    // policy is read right before each try: a version is no more than the second guard.
    for tries in 0..TRIES {
        let (system, now, etag) = policy(line, call).await.map_err(|error| effort.judge(error))?;
        if now.as_deref() == Some(wanted) {
            return Ok(HoldReport { engaged: stands(wanted), detail: String::new() });
        }
        let version = quirks::if_match(etag, tries, refused);
        let says_version = version.is_some();
        let ask = Ask::patch(system, json!({ POLICY: wanted }), version);
        let answer = line.ask(&ask, call, &mut effort).await?;
        match quirks::verdict(answer.status) {
            Verdict::Done => break,
            Verdict::Task => {
                // Followed like any other: one that lands late would hold what was let go.
                task::begin(line, call, &answer).await.map_err(|error| effort.judge(error))?;
                break;
            }
            _ if quirks::is_of_its_version(&answer) && (says_version || answer.status != 400) => {
                effort.refused();
                (refused, said) = (Some(answer.status), format!(" ({})", answer.words()));
            }
            Verdict::NotInThisState | Verdict::Unsupported | Verdict::Forbidden | Verdict::Refused => {
                effort.refused();
                let detail = format!("{POLICY}: the service does not set it: {}", answer.words());
                if effort.effect() == Effect::Unknown {
                    return Err(line.error(&effort, ErrorKind::Refused, detail));
                }
                return Ok(HoldReport { engaged: Vec::new(), detail });
            }
            Verdict::Gone | Verdict::Redirect | Verdict::Busy | Verdict::Uncertain => {
                let kind = if answer.status == 503 { ErrorKind::Throttled } else { ErrorKind::Protocol };
                return Err(line.error(&effort, kind, format!("{POLICY}: {}", answer.words())));
            }
        }
    }
    let (_, now, _) = policy(line, call).await.map_err(|error| effort.judge(error))?;
    match now.as_deref() == Some(wanted) {
        true => Ok(HoldReport { engaged: stands(wanted), detail: String::new() }),
        false => {
            let now = tame(now.as_deref().unwrap_or("nothing"));
            let detail = format!("{POLICY}: told {wanted}, and the system still says {now}{said}");
            Ok(HoldReport { engaged: Vec::new(), detail })
        }
    }
}

fn stands(wanted: &str) -> Vec<String> {
    if wanted == ALWAYS_OFF { vec![HOLDS.to_owned()] } else { Vec::new() }
}
