//! What boards do that no specification says.

/// What is odd; by default nothing is.
#[derive(Debug, Default)]
pub struct Odd {
    /// A stranger who asks for the root hears this status.
    pub root_is_refused: Option<u16>,
    /// The root shows a stranger no link at all.
    pub root_is_bare: bool,
    /// Where sessions are made, if not where they mostly are.
    pub sessions_at: Option<&'static str>,
    /// Each login is answered with this status.
    pub refuses_logins: Option<u16>,
}
