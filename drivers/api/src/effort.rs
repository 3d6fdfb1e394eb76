//! What a call has sent so far, and what its failure would therefore mean (S10).

use picket_answers::device::{DriverError, Effect, ErrorKind};

use crate::call::Call;

/// Whether, and how often, a request may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Changes nothing.
    Reading,
    /// Ends a session that somebody else opened: changes no power, and is sent by whoever leads alone.
    Ending,
    /// Changes something, and may be sent again in another session.
    Repeatable,
    /// The same, but never in an epoch that began after a loss and in which power was not read yet: who asks must see,
    /// and store, the loss before an off is sent in it (S2, S5).
    InSight,
    /// Changes something; it belongs to the session that is there, and ends with it: no other session carries it.
    Once,
}

/// The account of one call.
#[derive(Debug)]
pub struct Effort {
    kind: Kind,
    copies: u32,
    refused: u32,
    /// The name of the session that is stored with it: it goes in no other (S8).
    session: Option<String>,
}

impl Effort {
    fn of(kind: Kind) -> Self {
        Self { kind, copies: 0, refused: 0, session: None }
    }

    /// In the session of that name and in no other; `None`: in whichever.
    pub fn in_session(self, name: Option<&str>) -> Self {
        Self { session: name.map(str::to_owned), ..self }
    }

    /// The session in which alone it may be sent.
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Of the end of a session that somebody else opened.
    pub fn ending() -> Self {
        Self::of(Kind::Ending)
    }

    /// Of a call that changes nothing.
    pub fn reading() -> Self {
        Self::of(Kind::Reading)
    }

    /// Of a call that changes something and is idempotent.
    pub fn repeatable() -> Self {
        Self::of(Kind::Repeatable)
    }

    /// Of a power-off.
    pub fn in_sight() -> Self {
        Self::of(Kind::InSight)
    }

    /// Whether it may be sent only where power was read since the last loss.
    pub fn wants_sight(&self) -> bool {
        self.kind == Kind::InSight
    }

    /// Of a power-on.
    pub fn once() -> Self {
        Self::of(Kind::Once)
    }

    /// Whether it changes something.
    pub fn is_control(&self) -> bool {
        !matches!(self.kind, Kind::Reading | Kind::Ending)
    }

    /// Whether it changes nothing at the far side, no session either.
    pub fn is_reading(&self) -> bool {
        self.kind == Kind::Reading
    }

    /// Asked before each copy (S6).
    pub fn may_send(&self, call: &Call) -> Result<(), DriverError> {
        if self.is_reading() { Ok(()) } else { call.may_send() }
    }

    /// A copy left this machine.
    pub fn sent(&mut self) {
        if self.is_control() {
            self.copies += 1;
        }
    }

    /// What was to be sent never left this process.
    pub fn unsent(&mut self) {
        self.copies = self.copies.saturating_sub(1);
    }

    /// The device refused one copy, and surely did not do what it asks.
    pub fn refused(&mut self) {
        if self.is_control() {
            self.refused += 1;
        }
    }

    /// Whether it must be sent in the session that is there, and in no other.
    pub fn is_bound(&self) -> bool {
        self.kind == Kind::Once
    }

    /// Whether it goes in one session, and not in another that could be opened for it.
    pub fn is_tied(&self) -> bool {
        self.is_bound() || self.session.is_some()
    }

    /// What a failure means now: every copy that was not refused may have had its effect, or may have it yet.
    pub fn effect(&self) -> Effect {
        if self.copies > self.refused { Effect::Unknown } else { Effect::DidNotHappen }
    }

    /// An error, with what it means.
    pub fn error(&self, kind: ErrorKind, detail: impl Into<String>) -> DriverError {
        DriverError::new(kind, self.effect(), detail)
    }

    /// `error`, with what it means for all that was sent.
    pub fn judge(&self, error: DriverError) -> DriverError {
        DriverError { effect: self.effect(), ..error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effect_is_unknown_as_soon_as_one_copy_was_not_refused() {
        let mut off = Effort::repeatable();
        assert_eq!(off.effect(), Effect::DidNotHappen);
        off.sent();
        assert_eq!(off.effect(), Effect::Unknown);
        off.refused();
        assert_eq!(off.effect(), Effect::DidNotHappen);
        off.sent();
        off.sent();
        off.refused();
        assert_eq!(off.effect(), Effect::Unknown);
        assert!(!off.is_bound());
    }

    #[test]
    fn an_on_is_bound_to_its_session_and_a_reading_has_no_effect() {
        let mut on = Effort::once();
        assert!(on.is_bound());
        assert_eq!(on.effect(), Effect::DidNotHappen);
        on.sent();
        assert!(on.is_bound());
        assert_eq!(on.effect(), Effect::Unknown);
        let mut reading = Effort::reading();
        reading.sent();
        assert_eq!(reading.effect(), Effect::DidNotHappen);
    }
}
