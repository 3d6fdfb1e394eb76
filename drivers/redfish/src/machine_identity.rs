//! Whose machine answers (S13): another may stand in the system's slot, or another service at its address,
//! by now.
//!
//! # Invariants
//!
//! - What changes something goes where the system last said whose machine it is, or is asked there first.
//!   Shown by `no_on_and_no_hold_goes_to_another_machine`.
//! - A token dies with the manager that gave it: a session is one place. Without a session each connection
//!   is a place of its own. Shown by `without_a_session_nothing_goes_to_whoever_is_at_the_address_now`.
//! - If a system does not say whose machine it is, the service's certificate has to stay the same. Shown by
//!   `where_nobody_knows_whose_machine_it_is_its_certificate_stays_the_same`.

use std::net::SocketAddr;

use picket_core::device::{Identity, IdentityMatch};
use picket_driver::{Call, DriverError, Effort, ErrorKind};
use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::connection::Connection;
use crate::line::Line;
use crate::service::{Later, Service};
use crate::service_request::ServiceRequest;

/// What a system, and its service, said of themselves when `identify` asked them last.
#[derive(Clone, Debug, Default)]
pub(crate) struct LearnedIdentity {
    /// By the system's own words; empty: it has none.
    pub(crate) identity: Identity,
    /// By the certificate of whoever answered; `None`: that was not asked yet.
    pub(crate) certificate: Option<String>,
}

/// Where a connection leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionTarget {
    pub(crate) address: Option<SocketAddr>,
    certificate: Option<String>,
}

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

/// The identity that a system says of itself.
pub(crate) fn said_by(system: &Map<String, Value>) -> Identity {
    let text = |key: &str| system.get(key).and_then(Value::as_str);
    Identity {
        uuid: text("UUID").and_then(Identity::usable_uuid),
        serial: text("SerialNumber").and_then(Identity::usable_serial),
    }
}

fn compare(line: &Line, system: &Map<String, Value>) -> Result<Slot, DriverError> {
    let state = system.get("Status").and_then(|status| status.get("State")).and_then(Value::as_str);
    if state == Some("Absent") {
        return Ok(Slot::Unknown("its slot is empty (Status.State Absent)".to_owned()));
    }
    let (before, now) = (&line.known_as.identity, said_by(system));
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
        IdentityMatch::Unknown => line.expect_certificate().map(|()| Slot::Ours),
        IdentityMatch::Match | IdentityMatch::Learned => Ok(Slot::Ours),
    }
}

impl Line {
    fn here(&self) -> Option<u64> {
        self.connection.as_ref().map(Connection::id)
    }

    fn place(&self) -> ConnectionTarget {
        let address = self.connection.as_ref().and_then(Connection::address);
        ConnectionTarget { address, certificate: self.certificate.clone() }
    }

    /// Notes whether the system is ours in the session that is there, or on this connection.
    fn note_whose(&mut self, is_ours: bool) {
        match &mut self.session {
            Some(session) => session.is_ours = is_ours,
            None if is_ours => (self.ours_on, self.ours_at) = (self.here(), Some(self.place())),
            None => self.ours_on = None,
        }
    }

    fn is_ours_here(&self) -> bool {
        match &self.session {
            Some(session) => session.is_ours,
            None => self.ours_on.is_some() && self.ours_on == self.here(),
        }
    }

    /// What is about to be sent goes where the system said that it is ours: on that connection, or where each is closed after an answer,
    /// on a new one to the same address, at which the same certificate is shown.
    ///
    /// # Errors
    /// It leads elsewhere: nothing may be sent.
    pub(crate) fn expect_same_place(&self) -> Result<(), DriverError> {
        if self.known_as.identity.is_empty() {
            return self.expect_certificate();
        }
        let here = self.place();
        match &self.ours_at {
            Some(place) if !self.is_ours_here() && *place != here => {
                let shows =
                    |place: &ConnectionTarget| place.certificate.clone().unwrap_or_else(|| "none".to_owned());
                let why = format!(
                    "its service shows certificate {} on a new connection, and certificate {} a moment ago, when the system said whose \
                     machine it is: its address leads to two services",
                    shows(&here),
                    shows(place)
                );
                Err(self.error(&Effort::reading(), ErrorKind::IdentityMismatch, why))
            }
            _ => Ok(()),
        }
    }

    /// Where the machine does not say whose it is, the service's certificate stays the same.
    ///
    /// # Errors
    /// It is another one: nothing may be sent, and nothing counts.
    pub(crate) fn expect_certificate(&self) -> Result<(), DriverError> {
        let LearnedIdentity { identity, certificate } = &self.known_as;
        let (Some(before), Some(now)) = (certificate, &self.certificate) else { return Ok(()) };
        if !identity.is_empty() || before == now {
            return Ok(());
        }
        let why = format!(
            "the system does not say whose machine it is, and its service shows certificate {now}, where it was \
             certificate {before}: another may be in its place"
        );
        Err(self.error(&Effort::reading(), ErrorKind::IdentityMismatch, why))
    }

    /// Asks the system whose machine it is, unless it said so here, or never says it: then who answers is told
    /// by its certificate. Where each connection is closed after an answer, this comes right before what is sent.
    ///
    /// # Errors
    /// It is another machine, does not say which, or does not answer: nothing may be sent.
    pub(crate) fn expect_ours<'a>(&'a mut self, call: &'a Call, until: Instant) -> Later<'a, ()> {
        // Boxed: it is itself a request, of the kind that needs no look.
        Box::pin(async move {
            self.connect(call, until).await?;
            if self.known_as.identity.is_empty() {
                return self.expect_certificate();
            }
            if self.is_ours_here() {
                return Ok(());
            }
            let slot = match self.service.clone() {
                Some(service) => {
                    let read =
                        Service::read(self, call, ServiceRequest::get(service.system), "the system").await?;
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
