//! Whose machine answers (S13): another may stand in the system's slot, or another service at its address, by now.
//!
//! **Invariant.** What changes something goes where the system last said whose machine it is, or is asked there first. A token dies
//! with the manager that gave it: a session is one place. Without a session each connection is a place of its own.

use picket_core::device::{Identity, IdentityMatch};
use picket_driver::{Call, DriverError, Effort, ErrorKind};
use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::ask::Ask;
use crate::connection::Connection;
use crate::line::Line;
use crate::service::{Later, Service};

/// What stands in a system's slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// The machine of which it was asked last whose it is, or whatever is there where nobody knew.
    Ours,
    /// None, or nobody knows which, in words: it says nothing of ours.
    Unknown(String),
}

/// What was read of the system now says whose it is (S13): another may stand in its slot by now. Where it is ours, this place is known
/// to be its, so it is asked before anything else is.
///
/// # Errors
/// Another does.
pub(crate) fn slot(line: &mut Line, system: &Map<String, Value>) -> Result<Slot, DriverError> {
    let slot = compare(line, system);
    line.note_whose(matches!(slot, Ok(Slot::Ours)));
    slot
}

/// Whose machine the system says that it is.
pub(crate) fn said_by(system: &Map<String, Value>) -> Identity {
    let text =
        |key: &str| system.get(key).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
    Identity {
        uuid: text("UUID").and_then(Identity::usable_uuid),
        serial: text("SerialNumber").map(str::to_owned),
    }
}

fn compare(line: &Line, system: &Map<String, Value>) -> Result<Slot, DriverError> {
    let state = system.get("Status").and_then(|status| status.get("State")).and_then(Value::as_str);
    if state == Some("Absent") {
        return Ok(Slot::Unknown("its slot is empty (Status.State Absent)".to_owned()));
    }
    let (before, now) = (&line.said, said_by(system));
    match before.compare(&now) {
        IdentityMatch::Mismatch => {
            let (before, now) = (before.words(), now.words());
            let why = format!(
                "the system says that it is {now}, and was {before}: another machine is in its place"
            );
            Err(line.error(&Effort::reading(), ErrorKind::IdentityMismatch, why))
        }
        IdentityMatch::Unknown if !before.is_empty() => Ok(Slot::Unknown(format!(
            "it was {}, and says nothing of that now: nobody knows which machine it is",
            before.words()
        ))),
        IdentityMatch::Unknown | IdentityMatch::Match | IdentityMatch::Learned => Ok(Slot::Ours),
    }
}

impl Line {
    fn here(&self) -> Option<u64> {
        self.connection.as_ref().map(Connection::id)
    }

    /// Notes whether the system is ours in the session that is there, or on this connection.
    fn note_whose(&mut self, is_ours: bool) {
        match &mut self.session {
            Some(session) => session.is_ours = is_ours,
            None => self.ours_on = self.here().filter(|_| is_ours),
        }
    }

    fn is_ours_here(&self) -> bool {
        match &self.session {
            Some(session) => session.is_ours,
            None => self.ours_on.is_some() && self.ours_on == self.here(),
        }
    }

    /// Asks the system whose machine it is, unless it said so here, or never says it. Where each connection is closed after an
    /// answer, this comes right before what is sent.
    ///
    /// # Errors
    /// It is another machine, does not say which, or does not answer: nothing may be sent.
    pub(crate) fn expect_ours<'a>(&'a mut self, call: &'a Call, until: Instant) -> Later<'a, ()> {
        // Boxed: it is itself a request, of the kind that needs no look.
        Box::pin(async move {
            if self.said.is_empty() {
                return Ok(());
            }
            self.connect(call, until).await?;
            if self.is_ours_here() {
                return Ok(());
            }
            let slot = match self.service.clone() {
                Some(service) => {
                    let read = Service::read(self, call, Ask::get(service.system), "the system").await?;
                    slot(self, &read.1)
                }
                None => Service::discover(self, call).await?.slot,
            };
            match slot? {
                Slot::Ours => Ok(()),
                Slot::Unknown(why) => Err(self.error(&Effort::reading(), ErrorKind::Unreachable, why)),
            }
        })
    }
}
