//! Commands whose end nobody saw (S8): what may be at work of them is not over with the connection on which they were sent.

use tokio::time::Instant;

/// When the last of each kind was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unclear {
    /// In a session: with that ends what is yet to come, and not what the service had begun.
    pub in_session: Option<Instant>,
    /// Since when that session is over.
    pub over: Option<Instant>,
    /// Without one, by name and password.
    pub without: Option<Instant>,
}

impl Unclear {
    /// One more is about to be sent.
    pub fn sending(&mut self, in_session: bool) {
        let now = Some(Instant::now());
        match in_session {
            true => (self.in_session, self.over) = (now, None),
            false => self.without = now,
        }
    }
}
