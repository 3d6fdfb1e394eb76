//! What a request to the API server came to, where it did not succeed.

/// A request that did not succeed. The words hold no secret.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{words}")]
pub struct Fault {
    /// The status that the API server answered; 0: it did not.
    pub code: u16,
    words: String,
}

impl Fault {
    /// One of this side.
    pub fn own(words: impl Into<String>) -> Self {
        Self { code: 0, words: words.into() }
    }

    /// It is not any more what was read.
    pub fn changed(words: impl Into<String>) -> Self {
        Self { code: 409, words: words.into() }
    }

    /// What the API server said of `what`, or what became of the connection.
    pub fn of(what: &str, error: &kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => {
                let said = if status.message.is_empty() { &status.reason } else { &status.message };
                Self { code: status.code, words: format!("{what}: {said} ({})", status.code) }
            }
            other => Self::own(format!("{what}: {}", picket_login::chain(other))),
        }
    }

    /// There is no such thing.
    pub fn is_not_found(&self) -> bool {
        self.code == 404
    }

    /// Somebody else was there first, or it is another one by now: a precondition, or a test of a patch, does not hold.
    pub fn is_changed(&self) -> bool {
        matches!(self.code, 409 | 422)
    }
}
