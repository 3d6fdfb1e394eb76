//! The words of errors: `google.rpc.ErrorInfo.reason` is the name of an [`ErrorReason`] without its prefix.

use crate::v1::ErrorReason;

/// `google.rpc.ErrorInfo.domain` of every error.
pub const DOMAIN: &str = "picket";

const PREFIX: &str = "ERROR_REASON_";

impl ErrorReason {
    /// The word that stands in `ErrorInfo.reason`: `NODE_NOT_FOUND`.
    pub fn word(self) -> &'static str {
        let name = self.as_str_name();
        name.strip_prefix(PREFIX).unwrap_or(name)
    }

    /// The reason behind a word; [`ErrorReason::Unspecified`] for one that is not known.
    pub fn of_word(word: &str) -> Self {
        Self::from_str_name(&format!("{PREFIX}{word}")).unwrap_or(Self::Unspecified)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_and_its_word_are_one() {
        assert_eq!(ErrorReason::NodeNotFound.word(), "NODE_NOT_FOUND");
        assert_eq!(ErrorReason::of_word("NODE_NOT_FOUND"), ErrorReason::NodeNotFound);
    }

    #[test]
    fn an_unknown_word_is_unspecified() {
        assert_eq!(ErrorReason::of_word("INVENTED"), ErrorReason::Unspecified);
    }
}
