//! What boards do that no specification says.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use super::Reply;

/// How it wants its paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slash {
    /// With a slash at their ends.
    Added,
    /// Without.
    Stripped,
}

/// What the answer to a login says of its session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Says {
    /// Its token, its place by an absolute link, and its id.
    #[default]
    All,
    /// Its place without the slash in front.
    Slashless,
    /// A place beside the collection, and its id.
    Beside,
    /// No place, but its id.
    Id,
    /// Its token and nothing else.
    Token,
    /// Its place, and no token.
    Place,
}

/// Versions of its system.
#[derive(Clone, Copy, Debug)]
pub struct Etag {
    /// In the header of an answer.
    pub header: Option<&'static str>,
    /// In its body.
    pub body: Option<&'static str>,
    /// What a change has to say of it; `None`: nothing.
    pub wants: Option<&'static str>,
    /// What is answered otherwise.
    pub refuses: u16,
}

impl Default for Etag {
    fn default() -> Self {
        Self { header: Some("W/\"7\""), body: None, wants: Some("W/\"7\""), refuses: 412 }
    }
}

/// What is odd; by default nothing is.
#[derive(Debug, Default)]
pub struct Odd {
    /// It starts: its list of systems is empty.
    pub names_no_system: bool,
    /// It starts: each GET is answered 503 with this `Retry-After`.
    pub starts_for: Option<&'static str>,
    /// It takes no basic authentication.
    pub no_basic: bool,
    /// A stranger who asks for the root hears this status.
    pub root_is_refused: Option<u16>,
    /// The root shows a stranger no link at all.
    pub root_is_bare: bool,
    /// Where sessions are made, if not where they mostly are.
    pub sessions_at: Option<&'static str>,
    /// Each login is answered with this status.
    pub refuses_logins: Option<u16>,
    /// What the answer to a login says.
    pub says: Says,
    /// And the roles of the session in it.
    pub roles: Option<Value>,
    /// Its versions.
    pub etag: Etag,
    /// Each body is packed by gzip.
    pub packs: bool,
    /// A path that is written otherwise is redirected with this status, to what begins so.
    pub slash: Option<(Slash, u16, String)>,
}

impl Odd {
    /// Where a request for that path is redirected to.
    pub fn redirects(&self, path: &str) -> Option<Reply> {
        let (slash, status, service) = self.slash.as_ref()?;
        let path = match (slash, path.strip_suffix('/')) {
            (Slash::Added, None) => format!("{path}/"),
            (Slash::Stripped, Some(path)) => path.to_owned(),
            _ => return None,
        };
        Some(Reply::raw(*status, "").with("Location", format!("{service}{path}")))
    }
}

/// The same, packed.
pub fn packed(reply: Reply) -> Reply {
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    packer.write_all(&reply.body).expect("packed");
    let body = packer.finish().expect("packed");
    Reply { body, ..reply }.with("Content-Encoding", "gzip")
}
