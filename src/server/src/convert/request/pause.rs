//! Pauses that are asked for.

use std::time::Duration;

use picket_core::budget::pause::{LONGEST, PauseScope, SHORTEST};
use picket_core::event::Person;
use picket_core::ids::NodeId;
use picket_proto::v1::{self, pause_scope};

use super::fields::{lost, printable, reason};
use crate::convert::time::span;
use crate::fault::{Fault, Fields};

/// The longest name of a group, in bytes.
const NAME: usize = 400;

/// A pause that is asked for, or its end.
#[derive(Debug)]
pub(crate) struct PauseParameters {
    /// What is paused.
    pub(crate) scope: PauseScope,
    /// Who asks, and why.
    pub(crate) person: Person,
}

/// Checks a pause of `caller`; with it, for how long.
pub(crate) fn pause(request: &v1::PauseRequest, caller: &str) -> Result<(PauseParameters, Duration), Fault> {
    let mut fields = Fields::default();
    let lasts = request.lasts.as_ref().and_then(span).filter(|time| (SHORTEST..=LONGEST).contains(time));
    if lasts.is_none() {
        fields.wrong("lasts", "is missing or out of range: 1 s to 30 days; a pause ends by itself");
    }
    let asked = asked(request.scope.as_ref(), &request.reason, caller, fields)?;
    Ok((asked, lasts.ok_or_else(|| lost("lasts"))?))
}

/// Checks the end of a pause by `caller`.
pub(crate) fn resume(request: &v1::ResumeRequest, caller: &str) -> Result<PauseParameters, Fault> {
    asked(request.scope.as_ref(), &request.reason, caller, Fields::default())
}

fn asked(
    scope: Option<&v1::PauseScope>,
    why: &str,
    caller: &str,
    mut fields: Fields,
) -> Result<PauseParameters, Fault> {
    let scope = scope_of(scope, &mut fields);
    let reason = reason(why, &mut fields);
    fields.done()?;
    let scope = scope.ok_or_else(|| lost("scope"))?;
    Ok(PauseParameters { scope, person: Person { name: caller.to_owned(), reason } })
}

fn scope_of(scope: Option<&v1::PauseScope>, fields: &mut Fields) -> Option<PauseScope> {
    match scope.and_then(|scope| scope.of.as_ref()) {
        Some(pause_scope::Of::Everything(true)) => Some(PauseScope::Everything),
        Some(pause_scope::Of::Everything(false)) => {
            fields.wrong("scope.everything", "is false: set it to true, or name a group or a node");
            None
        }
        Some(pause_scope::Of::Group(name)) if (1..=NAME).contains(&name.len()) => {
            printable("scope.group", name, NAME, fields);
            Some(PauseScope::Group(name.clone()))
        }
        Some(pause_scope::Of::Group(name)) => {
            fields.wrong("scope.group", format!("has {} bytes: 1 to {NAME}", name.len()));
            None
        }
        Some(pause_scope::Of::Node(name)) => match NodeId::new(name) {
            Ok(node) => Some(PauseScope::Node(node)),
            Err(error) => {
                fields.wrong("scope.node", error.to_string());
                None
            }
        },
        None => {
            fields.wrong("scope", "is missing: everything, a group or a node");
            None
        }
    }
}
