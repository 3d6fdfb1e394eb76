//! The digest of a request's parameters, to which its idempotency key is bound (S20).
//!
//! SHA-256 over what a request *does*: the call, the holder, the reason, what comes after, the least grade,
//! the deadline. Not over what only says until when it counts or is followed (`until`, `not_after`,
//! `expected_generation`): a repetition may name these anew. Not over the node: keys are kept for each node
//! apart.
//!
//! # Invariants
//!
//! - Digests are stored: a request has the same one in every version. Shown by
//!   `a_stored_digest_is_the_same_in_every_version`.
//! - A field that is added later is fed only where it is set, so that a request that does not know it keeps
//!   its digest.

use std::fmt::Write;

use sha2::{Digest as _, Sha256};

/// A digest that is being made.
#[derive(Debug)]
pub(crate) struct Digest(Sha256);

impl Digest {
    /// Of a call, by its name.
    pub(crate) fn of(call: &str) -> Self {
        Self(Sha256::new()).with("call", call)
    }

    /// Feeds one parameter. Lengths go first, so that no two lists of parameters read the same.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        for text in [name, value] {
            self.0.update((text.len() as u64).to_be_bytes());
            self.0.update(text.as_bytes());
        }
        self
    }

    /// In hexadecimal digits.
    pub(crate) fn hex(self) -> String {
        let mut text = String::with_capacity(64);
        for byte in self.0.finalize() {
            // Writing into a string does not fail.
            let _ = write!(text, "{byte:02x}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_digest_is_the_same_in_every_version() {
        let digest = Digest::of("fence").with("holder", "db").with("reason", "why").hex();
        assert_eq!(digest, Digest::of("fence").with("holder", "db").with("reason", "why").hex());
        assert_eq!(digest, "73d2b79ce229e05babffa27813d9b7862860a1dd0a76aee01a9fe8fb902404b9");
    }

    #[test]
    fn no_two_lists_of_parameters_read_the_same() {
        let ab = Digest::of("x").with("a", "b").hex();
        for other in
            [Digest::of("x").with("ab", ""), Digest::of("xa").with("", "b"), Digest::of("x").with("", "ab")]
        {
            assert_ne!(ab, other.hex());
        }
    }
}
