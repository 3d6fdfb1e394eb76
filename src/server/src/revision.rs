//! From where a watch goes on: a position in the store's changes, and the store's life that it belongs to.

use picket_core::ids::{Incarnation, Revision};
use picket_engine::{Engine, EngineError};
use picket_proto::v1::ErrorReason;

use crate::errors;
use crate::fault::{Fault, Fields};

/// A position. Its text is opaque to callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// The store's life.
    pub(crate) incarnation: Incarnation,
    /// The newest change that was told.
    pub(crate) revision: Revision,
}

impl Position {
    /// A position such that every change up to it can be seen in the nodes' views from now on. A change that is stored
    /// and not yet shown comes after it.
    pub(crate) async fn settled(engine: &Engine) -> Result<Self, EngineError> {
        let revision = engine.settled().await?;
        Ok(Self { incarnation: engine.incarnation(), revision })
    }

    /// As a caller gets it.
    pub(crate) fn text(self) -> String {
        format!("{}.{}", self.incarnation, self.revision)
    }

    /// What a caller gave back in the request's field `at`.
    pub(crate) fn of(text: &str, at: &str, fields: &mut Fields) -> Option<Self> {
        let read = text.rsplit_once('.').and_then(|(life, revision)| {
            Some(Self { incarnation: life.parse().ok()?, revision: Revision(revision.parse().ok()?) })
        });
        if read.is_none() {
            fields.wrong(at, "is no revision of this gateway's: give one back as it came, or leave it empty");
        }
        read
    }

    /// Whether a watch can go on from here.
    pub(crate) async fn is_known(self, engine: &Engine) -> Result<(), Fault> {
        let gone = |why: &str| {
            let message = format!("the revision is {why}: start again without one");
            Fault::new(ErrorReason::RevisionGone, message)
        };
        let (incarnation, newest) = engine.revision().await.map_err(errors::asked)?;
        if self.incarnation != incarnation {
            return Err(gone("of another life of the store"));
        }
        if self.revision > newest {
            return Err(gone("newer than the store"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use picket_core::time::WallTime;

    use super::*;

    #[test]
    fn a_position_comes_back_as_it_went() {
        let incarnation = Incarnation::mint(WallTime::from_millis(7), [3; 10]);
        let position = Position { incarnation, revision: Revision(42) };
        let mut fields = Fields::default();
        assert_eq!(Position::of(&position.text(), "revision", &mut fields), Some(position));
        assert!(fields.done().is_ok());
    }

    #[test]
    fn what_is_no_position_is_told_as_a_fault_of_its_field() {
        for text in
            ["7", "x.7", "01890a5d-ac96-774b-bcce-b302099a8057", "01890a5d-ac96-774b-bcce-b302099a8057.-1"]
        {
            let mut fields = Fields::default();
            assert_eq!(Position::of(text, "revision", &mut fields), None, "{text}");
            assert!(fields.done().is_err());
        }
    }
}
