//! Keeping a machine off by its service's own means (S11): what it does when power comes back, in the
//! places that `policy` knows.
//!
//! # Invariants
//!
//! - Only what was read, and can therefore be put back, is changed. Shown by
//!   `an_ilo_remains_off_and_gets_its_mode_and_its_delay_back`.
//! - A change that waits for a reboot is no hold. Shown by
//!   `an_ilo_that_remains_off_only_after_a_reboot_is_not_held`.

use picket_driver::{Call, DriverError, Effect, Effort, ErrorKind, HoldFound, HoldReport};
use serde_json::Value;

use crate::answer::tame;
use crate::bios;
use crate::exchange::unread;
use crate::line::Line;
use crate::machine_identity::{Slot, slot};
use crate::oddities::Oddity;
use crate::policy::{self, Policy};
use crate::quirks::{self, Verdict};
use crate::service::{Object, Service};
use crate::service_request::ServiceRequest;
use crate::task;

/// How often a change is tried, with another version each time.
const TRIES: u32 = 4;

/// The system as it is now.
struct Now {
    path: String,
    object: Object,
    /// The version of what was read.
    version: Option<String>,
}

impl Now {
    async fn read(line: &mut Line, call: &Call) -> Result<Self, DriverError> {
        let path = match &line.service {
            Some(service) => service.system.clone(),
            None => Service::discover(line, call).await?.service.system,
        };
        let answer = line.ask(&ServiceRequest::get(&path), call, &mut Effort::reading()).await?;
        let Some(object) = answer.fresh() else {
            return Err(unread(line, &answer, "the system"));
        };
        // Whatever stands in its slot by now would keep the policy.
        if let Slot::Unknown(why) = slot(line, &object)? {
            return Err(line.error(&Effort::reading(), ErrorKind::Protocol, why));
        }
        // Some say the version in the body alone.
        let own = object.get("@odata.etag").and_then(Value::as_str).map(str::to_owned);
        let own = own.filter(|etag| etag.chars().all(|c| c.is_ascii_graphic()));
        Ok(Self { path, object, version: answer.etag.or(own) })
    }
}

/// What a hold would change, as it is now. A person's check is told what its BIOS says where there is none.
pub async fn inspect(line: &mut Line, call: &Call) -> Result<HoldFound, DriverError> {
    if !line.settings.hold {
        return Ok(HoldFound::new());
    }
    let now = Now::read(line, call).await?;
    let place = Policy::of(&now.object);
    // A fence does not wait for it: some take seconds to list their settings.
    if call.may_only_read() {
        line.bios_remark = match place {
            Some(_) => None,
            None => bios::remark(line, call, &now.object).await,
        };
    }
    Ok(place.map(|place| place.read(&now.object)).unwrap_or_default())
}

/// What of a hold stands, by what was found now.
pub fn engaged(now: &HoldFound) -> Vec<String> {
    let place = Policy::found_in(now).filter(|place| place.keeps(now));
    place.map(|place| place.holds.to_owned()).into_iter().collect()
}

/// Tells the service to leave the machine off when power comes back.
///
/// # Errors
/// It was refused, or taken or not; or it waits for a reboot, and is not put back.
pub async fn engage(
    line: &mut Line,
    found: &HoldFound,
    session: Option<&str>,
    call: &Call,
) -> Result<HoldReport, DriverError> {
    let Some(place) = Policy::found_in(found) else {
        let detail = if line.settings.hold {
            format!("the system says no value of {}", policy::names().join(", "))
        } else {
            "hold = false in the settings".to_owned()
        };
        return Ok(HoldReport { engaged: Vec::new(), detail });
    };
    let told = set(line, place, &place.off(), Unless::IsSo, session, call).await?;
    if !told.waits {
        let engaged = if told.stands { vec![place.holds.to_owned()] } else { Vec::new() };
        return Ok(HoldReport { engaged, detail: told.detail });
    }
    // What reads so from now on would be taken for a hold by whoever leads next.
    let back = set(line, place, &place.back(found), Unless::Never, session, call).await;
    // The first change was made, whatever became of the second.
    let back = back.map_err(|error| DriverError { effect: Effect::Unknown, ..error })?;
    let name = place.name();
    let detail = match back.stands {
        true => format!("{name}: its change waits for a reboot of the machine, and was put back"),
        false => format!(
            "{name}: its change waits for a reboot of the machine, and is not put back: {}",
            back.detail
        ),
    };
    Ok(HoldReport { engaged: Vec::new(), detail })
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
    let Some(place) = Policy::found_in(found) else { return Ok(HoldReport::default()) };
    let told = set(line, place, &place.back(found), Unless::IsSo, session, call).await?;
    // What the service never takes is said: nobody can put it back by trying again.
    let stands = told.stands && place.keeps(found);
    let engaged = if stands { vec![place.holds.to_owned()] } else { Vec::new() };
    Ok(HoldReport { engaged, detail: told.detail })
}

/// When a change is not sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unless {
    /// It reads so already.
    IsSo,
    /// It is sent in any case: what waits for a reboot need not be read yet.
    Never,
}

/// What became of a change.
#[derive(Default)]
struct ChangeResult {
    /// The system reads so.
    stands: bool,
    /// The service says that it takes effect with the next reboot.
    waits: bool,
    /// Why it does not read so.
    detail: String,
}

async fn set(
    line: &mut Line,
    place: &Policy,
    wanted: &HoldFound,
    unless: Unless,
    session: Option<&str>,
    call: &Call,
) -> Result<ChangeResult, DriverError> {
    call.may_send()?;
    let name = place.name();
    let is_so = |system: &Object| {
        let now = place.read(system);
        wanted.iter().all(|(key, value)| now.get(key) == Some(value))
    };
    let mut effort = Effort::repeatable().in_session(session);
    let (mut refused, mut said, mut waits) = (None, String::new(), false);
    // Again where somebody else changed the system between reading and changing it, or where the service takes its own version not so. The
    // policy is read right before each try: a version is no more than the second guard.
    for tries in 0..TRIES {
        let now = Now::read(line, call).await.map_err(|error| effort.judge(error))?;
        if unless == Unless::IsSo && is_so(&now.object) {
            return Ok(ChangeResult { stands: true, ..ChangeResult::default() });
        }
        let version = quirks::if_match(now.version.clone(), tries, refused);
        let (says_version, is_other) = (version.is_some(), version != now.version);
        let ask = ServiceRequest::patch(now.path, place.change(wanted), version);
        let answer = line.ask(&ask, call, &mut effort).await?;
        let verdict = quirks::verdict(answer.status);
        if is_other && matches!(verdict, Verdict::Done | Verdict::Task) {
            line.oddities.see(Oddity::Version, || line.settings.authority());
        }
        match verdict {
            Verdict::Done => {
                waits = quirks::waits_for_a_reset(&answer);
                break;
            }
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
                let detail = format!("{name}: the service does not set it: {}", answer.words());
                if effort.effect() == Effect::Unknown {
                    return Err(line.error(&effort, ErrorKind::Refused, detail));
                }
                return Ok(ChangeResult { detail, ..ChangeResult::default() });
            }
            Verdict::Gone | Verdict::Redirect | Verdict::Busy | Verdict::Uncertain => {
                let kind = if answer.status == 503 { ErrorKind::Throttled } else { ErrorKind::Protocol };
                return Err(line.error(&effort, kind, format!("{name}: {}", answer.words())));
            }
        }
    }
    let now = Now::read(line, call).await.map_err(|error| effort.judge(error))?;
    if is_so(&now.object) {
        return Ok(ChangeResult { stands: true, waits, ..ChangeResult::default() });
    }
    let shown = |values: &HoldFound| {
        let shown: Vec<String> = values.values().map(|value| tame(value)).collect();
        if shown.is_empty() { "nothing".to_owned() } else { shown.join(", ") }
    };
    let (told, now) = (shown(wanted), shown(&place.read(&now.object)));
    Ok(ChangeResult {
        waits,
        detail: format!("{name}: told {told}, and the system still says {now}{said}"),
        ..ChangeResult::default()
    })
}
