//! Off, on, and what the system says of its power.

use std::fmt;

use picket_core::power::{Power, Reading};
use picket_driver::{Accepted, Call, DriverError, Effect, Effort, ErrorKind, Refusal};
use picket_trust::Believed;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use crate::answer::{Answer, TruncatedBody, tame};
use crate::exchange::FIRST_PAUSE;
use crate::exchange::unread;
use crate::line::{Line, end_of};
use crate::machine_identity::{Slot, slot};
use crate::quirks::{self, Verdict};
use crate::service::{DiscoveredService, Service};
use crate::service_request::ServiceRequest;
use crate::task;

/// One fresh reading. Everything but a whole answer with exactly `On` or `Off` is `Unknown` (S1). It was asked with the system's
/// question, and answered with its manager's answer, where that names the epoch.
pub async fn read(line: &mut Line, call: &Call) -> Result<Reading, DriverError> {
    let service = found(line, call).await?;
    let mut anew = false;
    loop {
        let answer = line.ask(&ServiceRequest::get(&service.system), call, &mut Effort::reading()).await?;
        // Until it is known that this speaks of our machine no on goes.
        line.sighted = false;
        let mut is_there = false;
        let (mut power, mut said) = match answer.status {
            200 => match answer.fresh().map(|object| slot(line, &object)).transpose()? {
                Some(Slot::Ours) => {
                    is_there = true;
                    state_in(&answer.body)
                }
                Some(Slot::Unknown(why)) => (Power::Unknown, why),
                // Of an answer that does not say whose it is nothing counts, whatever else can be read of it.
                None => (Power::Unknown, interpret(&answer).1),
            },
            404 | 410 => (Power::Unknown, answer.words()),
            _ => return Err(unread(line, &answer, "the system")),
        };
        if line.settings.believed == Believed::Anyone {
            said.push_str(", certificate not checked");
        }
        let before = line.epoch;
        // Asked after the power: a restart before that answer would show in it.
        let epoch = line.epoch_now(call).await?;
        if epoch.is_some_and(|epoch| epoch.begins_after_loss() && before != Some(epoch)) {
            // What was read may be a word of the life before: an On of then takes nothing back of a loss.
            if !anew {
                anew = true;
                continue;
            }
            (power, said) = (Power::Unknown, "the manager restarted while it was asked".to_owned());
        }
        if answer.status != 200 {
            // It is looked for again, and whose machine it is then is asked before any off of another fence.
            line.lose_system();
        }
        line.untold = None;
        line.sighted = is_there;
        // Answered is a reading with the last question that it needs: the time in which the manager is asked is no gap after it (S2).
        let looked_at = epoch.and(line.life.as_ref()).map(|(_, answered_at)| *answered_at);
        let answered_at = looked_at.unwrap_or(answer.answered_at);
        return Ok(Reading { power, asked_at: answer.asked_at, answered_at, epoch, said, lowered_by: None });
    }
}

/// What an answer says of power. Total: any answer gets one of the three.
pub(crate) fn interpret(answer: &Answer) -> (Power, String) {
    if answer.status != 200 {
        return (Power::Unknown, answer.words());
    }
    if answer.stored {
        // Nobody knows when it was true: it may be from before the question, and before the off (S1, S2).
        return (
            Power::Unknown,
            "an answer that a cache had kept (Age): reach the service without it".to_owned(),
        );
    }
    if let Some(TruncatedBody::Coded(coding)) = &answer.cut {
        return (Power::Unknown, format!("an answer that is packed ({coding}), which was not asked for"));
    }
    match answer.object() {
        Some(_) => state_in(&answer.body),
        None => (Power::Unknown, "an answer that is no JSON object".to_owned()),
    }
}

/// The same of a body that is known to be one whole JSON object: what is passed over here may be what makes it none. It is read again,
/// because of two members of one name the object keeps one.
fn state_in(body: &[u8]) -> (Power, String) {
    let Ok(States(states)) = serde_json::from_slice(body) else {
        return (Power::Unknown, "an answer that is no JSON object".to_owned());
    };
    match &states[..] {
        [Value::String(state)] => {
            let power = match state.as_str() {
                "On" => Power::On,
                "Off" => Power::Off,
                _ => Power::Unknown,
            };
            (power, format!("PowerState {}", tame(state)))
        }
        [other] => (Power::Unknown, format!("PowerState {}", tame(&other.to_string()))),
        [] => (Power::Unknown, "no PowerState".to_owned()),
        // One of them is wrong, and nobody knows which.
        _ => (Power::Unknown, "several PowerState".to_owned()),
    }
}

/// Every `PowerState` of the object itself, however its name is written, and none of what is inside it.
struct States(Vec<Value>);

impl<'de> Deserialize<'de> for States {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = States;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<States, A::Error> {
                let mut states = Vec::new();
                while let Some(name) = members.next_key::<String>()? {
                    match name.as_str() {
                        "PowerState" => states.push(members.next_value()?),
                        _ => drop(members.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(States(states))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// What was found at the service, now or before.
async fn found(line: &mut Line, call: &Call) -> Result<Service, DriverError> {
    match &line.service {
        Some(service) => Ok(service.clone()),
        None => {
            let DiscoveredService { service, slot, .. } = Service::discover(line, call).await?;
            match slot? {
                Slot::Ours => Ok(service),
                Slot::Unknown(why) => {
                    line.lose_system();
                    Err(line.error(&Effort::reading(), ErrorKind::Protocol, why))
                }
            }
        }
    }
}

fn accepted(line: &Line, answer: &Answer) -> Accepted {
    let epoch = line.epoch;
    Accepted { asked_at: answer.asked_at, answered_at: answer.answered_at, epoch, already: false }
}

/// After "not in this state": whether it is in the wanted state already.
async fn already(
    line: &mut Line,
    call: &Call,
    answer: &Answer,
    wanted: Power,
    effort: &Effort,
) -> Result<Option<Accepted>, DriverError> {
    let before = accepted(line, answer);
    let reading = read(line, call).await.map_err(|error| effort.judge(error))?;
    if before.epoch.is_some() && reading.epoch != before.epoch {
        // Who asked did not see that reading: nothing is sent before the loss was told, and stored.
        line.untold = Some(reading.asked_at);
        return Err(line.error(effort, ErrorKind::Unreachable, "its manager restarted; power is read first"));
    }
    Ok((reading.power == wanted).then_some(Accepted {
        answered_at: reading.answered_at,
        already: true,
        ..before
    }))
}

fn refused(line: &mut Line, verb: &str, answer: &Answer, effort: &Effort) -> DriverError {
    let verdict = quirks::verdict(answer.status);
    if verdict == Verdict::Gone {
        line.lose_system();
    }
    let kind = match verdict {
        Verdict::Busy => ErrorKind::Throttled,
        Verdict::Forbidden => ErrorKind::Forbidden,
        Verdict::Unsupported => ErrorKind::Unsupported,
        Verdict::Uncertain | Verdict::Done | Verdict::Task | Verdict::Redirect | Verdict::Gone => {
            ErrorKind::Protocol
        }
        Verdict::NotInThisState | Verdict::Refused => ErrorKind::Refused,
    };
    let error = line.error(effort, kind, format!("{verb}: {}", answer.words()));
    if !quirks::is_its_own_refusal(answer) {
        return error;
    }
    let Accepted { asked_at, answered_at, epoch, .. } = accepted(line, answer);
    let is_final = matches!(answer.status, 403 | 405 | 501) && answer.names("error");
    error.for_good(is_final).by_refusal(Refusal { asked_at, answered_at, epoch })
}

/// Accounts for what an answer says was not done.
fn account(answer: &Answer, effort: &mut Effort) -> Verdict {
    // What a cache had kept says nothing of this command.
    let verdict = if answer.stored { Verdict::Uncertain } else { quirks::verdict(answer.status) };
    match verdict {
        Verdict::NotInThisState
        | Verdict::Forbidden
        | Verdict::Gone
        | Verdict::Unsupported
        | Verdict::Redirect
        | Verdict::Refused => effort.refused(),
        // The line accounted for the busy ones.
        Verdict::Done | Verdict::Task | Verdict::Busy | Verdict::Uncertain => {}
    }
    verdict
}

/// Hard off: `ForceOff`. Repeated until the service takes it, the machine is off already, or it is refused for good.
pub async fn off(line: &mut Line, session: Option<&str>, call: &Call) -> Result<Accepted, DriverError> {
    let until = end_of(call);
    let mut effort = Effort::in_sight().in_session(session);
    // Not even looked for: a caller who may not send hears that, whatever the service would say.
    call.may_send()?;
    let service = found(line, call).await?;
    let ask = ServiceRequest::post(service.reset, json!({ "ResetType": "ForceOff" }));
    let (mut pause, mut first) = (FIRST_PAUSE, None);
    loop {
        let mut answer = line.ask(&ask, call, &mut effort).await?;
        // A service that refused it at first has heard it since then, in that life (S2).
        match first {
            Some((asked_at, epoch)) if epoch == line.epoch => answer.asked_at = asked_at,
            _ => {
                let is_heard = quirks::is_its_own_refusal(&answer);
                first = is_heard.then_some((answer.asked_at, line.epoch));
            }
        }
        match account(&answer, &mut effort) {
            Verdict::Done => return Ok(accepted(line, &answer)),
            Verdict::Task => {
                task::begin(line, call, &answer).await.map_err(|error| effort.judge(error))?;
                return Ok(accepted(line, &answer));
            }
            Verdict::NotInThisState => {
                if let Some(accepted) = already(line, call, &answer, Power::Off, &effort).await? {
                    return Ok(accepted);
                }
            }
            Verdict::Uncertain => {}
            _ => return Err(refused(line, "ForceOff", &answer, &effort)),
        }
        let next = Instant::now() + pause;
        if next >= until {
            return Err(refused(line, "ForceOff", &answer, &effort));
        }
        sleep_until(next).await;
        pause *= 2;
    }
}

/// A machine that somebody has to switch on by hand: a button is no on, nor is a restart (S9).
pub const NO_ON: &str =
    "the system's reset offers neither On nor ForceOn: once it is fenced it cannot be switched on here";

/// On, once, in the session in which power was read before; none is opened for it (S6, S8).
pub async fn on(line: &mut Line, session: Option<&str>, call: &Call) -> Result<Accepted, DriverError> {
    let mut effort = Effort::once().in_session(session);
    call.may_send()?;
    let Some(service) = line.service.clone() else {
        return Err(line.error(
            &effort,
            ErrorKind::Unreachable,
            "the system was not found yet: power is read first",
        ));
    };
    let Some(verb) = service.on else {
        return Err(DriverError::new(ErrorKind::Unsupported, Effect::DidNotHappen, NO_ON));
    };
    let answer = line
        .ask(&ServiceRequest::post(service.reset, json!({ "ResetType": verb })), call, &mut effort)
        .await?;
    match account(&answer, &mut effort) {
        Verdict::Done => return Ok(accepted(line, &answer)),
        Verdict::Task => {
            task::begin(line, call, &answer).await.map_err(|error| effort.judge(error))?;
            return Ok(accepted(line, &answer));
        }
        Verdict::NotInThisState => {
            if let Some(accepted) = already(line, call, &answer, Power::On, &effort).await? {
                return Ok(accepted);
            }
        }
        _ => {}
    }
    Err(refused(line, verb, &answer, &effort))
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use proptest::prelude::*;

    use super::*;

    fn says(status: u16, body: &str) -> Power {
        let mut answer = Answer::begun(status, &HeaderMap::new());
        answer.body = body.as_bytes().to_vec();
        interpret(&answer).0
    }

    #[test]
    fn only_exactly_off_is_off() {
        for (status, body, power) in [
            (200, r#"{"PowerState": "Off"}"#, Power::Off),
            (200, r#"{"PowerState": "On"}"#, Power::On),
            (200, r#"{"PowerState": "PoweringOff"}"#, Power::Unknown),
            (200, r#"{"PowerState": "PoweringOn"}"#, Power::Unknown),
            (200, r#"{"PowerState": "Paused"}"#, Power::Unknown),
            (200, r#"{"PowerState": "off"}"#, Power::Unknown),
            (200, r#"{"PowerState": "Off "}"#, Power::Unknown),
            (200, r#"{"PowerState": null}"#, Power::Unknown),
            (200, r#"{"PowerState": ["Off"]}"#, Power::Unknown),
            (200, r#"{"PowerState": "On", "PowerState": "Off"}"#, Power::Unknown),
            (200, r#"{"PowerState": "Off", "PowerState": "Off"}"#, Power::Unknown),
            (200, r#"{"PowerState": "On", "Power\u0053tate": "Off"}"#, Power::Unknown),
            (
                200,
                r#"{"PowerState": "Off", "Oem": {"PowerState": "On", "x": [{"PowerState": 7}]}}"#,
                Power::Off,
            ),
            (200, r#"{"PowerState": "Off"} {"PowerState": "On"}"#, Power::Unknown),
            (200, r#"{"Oem": {"PowerState": "Off"}}"#, Power::Unknown),
            (200, r#"{"PowerState": "Off""#, Power::Unknown),
            (200, r#"[{"PowerState": "Off"}]"#, Power::Unknown),
            (200, "", Power::Unknown),
            (304, r#"{"PowerState": "Off"}"#, Power::Unknown),
            (203, r#"{"PowerState": "Off"}"#, Power::Unknown),
            (404, r#"{"PowerState": "Off"}"#, Power::Unknown),
        ] {
            assert_eq!(says(status, body), power, "{status} {body}");
        }
    }

    /// Whose machine it is cannot be read of them either (S13).
    #[test]
    fn an_answer_of_which_but_a_part_can_be_read_says_nothing() {
        let deep = format!("{}7{}", "[".repeat(200), "]".repeat(200));
        let bodies: [&[u8]; 4] = [b"\"\xfc\"", br#""\ud83d""#, b"1e999", deep.as_bytes()];
        for odd in bodies {
            let mut answer = Answer::begun(200, &HeaderMap::new());
            answer.body = [br#"{"PowerState": "Off", "AssetTag": "#, odd, b"}"].concat();
            let read = String::from_utf8_lossy(&answer.body).into_owned();
            assert_eq!(
                interpret(&answer),
                (Power::Unknown, "an answer that is no JSON object".to_owned()),
                "{read}"
            );
        }
    }

    #[test]
    fn an_answer_that_was_cut_says_nothing() {
        let mut answer = Answer::begun(200, &HeaderMap::new());
        answer.body = br#"{"PowerState": "Off"}"#.to_vec();
        answer.cut = Some(TruncatedBody::Long);
        assert_eq!(interpret(&answer).0, Power::Unknown);
    }

    proptest! {
        #[test]
        fn any_word_but_two_is_unknown(word in "\\PC*", status in 100_u16..1_000) {
            let body = json!({ "PowerState": word }).to_string();
            let expected = match (status, word.as_str()) {
                (200, "On") => Power::On,
                (200, "Off") => Power::Off,
                _ => Power::Unknown,
            };
            prop_assert_eq!(says(status, &body), expected);
        }
    }
}
