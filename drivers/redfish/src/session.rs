//! Sessions: a token that the service gave, and what it may have carried; and their names, by which a successor ends them.

use std::time::Duration;

use picket_driver::Secret;
use tokio::time::Instant;

use crate::answer::{Answer, path_of};
use crate::settings::Settings;

/// Between a session's place and whose it is.
const OF: &str = " of ";

/// One session at the service.
#[derive(Clone, Debug)]
pub struct Session {
    /// Where it is deleted. `None`: the service did not say it so that it can be believed. Then nothing but its idleness ends it.
    pub path: Option<String>,
    /// What shows that a request belongs to it.
    pub token: Secret,
    /// When something was last sent in it, or an answer came: a service counts from when it is done with a request.
    pub last_used: Instant,
    /// It carried a request that changes something.
    pub carried: bool,
    /// In it the system said last that it is ours.
    pub is_ours: bool,
    /// The certificate of the service that gave it.
    pub certificate: Option<String>,
}

impl Session {
    /// When the service has surely ended it, if nothing more is sent in it.
    pub fn dead_at(&self, longest_idle: Duration) -> Instant {
        self.last_used + longest_idle
    }
}

/// Where a new session may be by the service's words: its header first, also without the slash in front, and then what the body says of
/// itself. Where both say nothing, its id says it: the last part of a session's path is its `Id` (DSP2046, Session, "URIs").
pub fn places(collection: &str, answer: &Answer) -> Vec<String> {
    let slashless = |said: &&String| !said.starts_with('/') && !said.contains("://");
    let slashless =
        answer.said_location.as_ref().filter(slashless).and_then(|said| path_of(&format!("/{said}")));
    let object = answer.object();
    let own = answer.own_path();
    let is_silent = answer.said_location.is_none()
        && object.as_ref().is_none_or(|object| !object.contains_key("@odata.id"));
    let id = object.as_ref().and_then(|object| object.get("Id")?.as_str()).filter(|_| is_silent);
    let by_id = id.map(|id| format!("{}/{id}", collection.trim_end_matches('/')));
    [answer.location.clone(), slashless, own, by_id].into_iter().flatten().collect()
}

/// The place of a new session by the service's word: one step below the collection in which it was made, where none of `taken` is.
/// Anything else is no session, another one, or one that nobody can tell from another one: nothing is ever deleted there. The token
/// is no part of it, as it is stored, and shown (S18).
pub fn place_in<'a>(
    collection: &str,
    said: &str,
    token: &Secret,
    mut taken: impl Iterator<Item = &'a Session>,
) -> Option<String> {
    let below = said.strip_prefix(collection.trim_end_matches('/'))?.strip_prefix('/')?;
    let id = below.strip_suffix('/').unwrap_or(below);
    let is_id = !matches!(id, "" | "." | "..")
        && id.chars().all(|c| c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@".contains(c));
    let tells = said.as_bytes().windows(token.expose().len().max(1)).any(|part| part == token.expose());
    let is_taken = taken.any(|other| other.path.as_deref().is_some_and(|path| same_place(path, said)));
    (is_id && !tells && !is_taken).then(|| said.to_owned())
}

/// Whether two paths are of one resource.
pub fn same_place(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}

/// A session's name, for whoever leads later: at which service it is, where there, and whose (S8). It has no secret in it.
pub fn name_of(settings: &Settings, path: &str) -> String {
    format!("{}{path}{OF}{}", settings.authority(), settings.username)
}

/// The path of a session of that name.
///
/// # Errors
/// Words: it is of another service or account than these settings speak of. What is at the same path here is another session.
pub fn place_of<'a>(settings: &Settings, name: &'a str) -> Result<&'a str, String> {
    let here = settings.authority();
    let path = name.strip_prefix(here.as_str()).and_then(|rest| {
        // No path has a space in it.
        let (path, user) = rest.split_once(OF)?;
        (path.starts_with('/') && user == settings.username).then_some(path)
    });
    path.ok_or_else(|| {
        let user = &settings.username;
        format!("the session {name:?} was opened with other settings: expected one at {here} of {user}")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn settings(host: &str, username: &str) -> Settings {
        let (file, mode) = (
            tempfile::NamedTempFile::new().expect("a file"),
            std::os::unix::fs::PermissionsExt::from_mode(0o600),
        );
        std::fs::write(file.path(), "secret").expect("written");
        std::fs::set_permissions(file.path(), mode).expect("ours");
        let table = json!({ "host": host, "username": username, "password_file": file.path() });
        Settings::check(table.as_object().expect("a table")).expect("right settings")
    }

    #[test]
    fn a_name_is_of_one_service_and_one_account() {
        let here = settings("10.0.0.7", "a of b");
        let name = name_of(&here, "/redfish/v1/SessionService/Sessions/7");
        assert_eq!(name, "10.0.0.7:443/redfish/v1/SessionService/Sessions/7 of a of b");
        assert_eq!(place_of(&here, &name), Ok("/redfish/v1/SessionService/Sessions/7"));
        for other in
            [settings("10.0.0.71", "a of b"), settings("10.0.0.7", "b"), settings("10.0.0.7", "a of")]
        {
            let why = place_of(&other, &name).expect_err("another one");
            assert!(why.contains("other settings"), "{why}");
        }
        for odd in ["", "10.0.0.7:443", "10.0.0.7:4430/x of a of b", "10.0.0.7:443/x"] {
            place_of(&here, odd).expect_err(odd);
        }
    }
}
