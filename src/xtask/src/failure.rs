//! Why a task did not succeed, in words for the person at the terminal.

use std::fmt::Display;

/// The message. Nobody tells one from another, so there is one kind.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure(pub String);

impl Failure {
    /// From anything that reads well.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// Names what was tried when something else failed.
    pub fn of<E: Display>(what: impl Display) -> impl FnOnce(E) -> Self {
        move |error| Self(format!("{what}: {error}"))
    }
}
