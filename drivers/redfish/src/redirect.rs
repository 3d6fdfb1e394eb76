//! Redirects: to the same place with or without its last slash, and to no other.
//!
//! # Invariants
//!
//! - What is sent on goes to the same service, by the same name. Shown by
//!   `a_redirect_to_another_place_host_port_or_scheme_is_not_followed`.
//! - A redirect did nothing (RFC 9110 §15.4): a command is sent on as a copy of its own, with a permit of
//!   its own, in the session in which it may go (S6). Shown by `who_leads_no_more_sends_nothing_on`.

use crate::answer::{Answer, path_of};
use crate::line::Line;
use crate::settings::Settings;

/// How many are kept in mind. A service has few places that are asked again and again.
const KNOWN: usize = 64;
/// How an address of HTTPS begins.
const HTTPS: &str = "https://";

/// Where an answer to `path` sends on to, if that is the same place with or without its last slash. With 301 some clients make a
/// GET of a POST; who redirects to the same place means the same request.
pub(crate) fn to(settings: &Settings, path: &str, answer: &Answer) -> Option<String> {
    if answer.stored || !matches!(answer.status, 301 | 307 | 308) {
        return None;
    }
    let said = answer.said_location.as_deref()?;
    let other = match said.get(..HTTPS.len()) {
        Some(scheme) if scheme.eq_ignore_ascii_case(HTTPS) => {
            let rest = &said[HTTPS.len()..];
            let (authority, other) = rest.split_at(rest.find('/')?);
            is_ours(settings, authority).then_some(other)?
        }
        _ => said,
    };
    let differs = |long: &str, short: &str| long.strip_suffix('/') == Some(short);
    let is_same = differs(other, path) || differs(path, other);
    // Whatever has a host, a query or a fragment is no such path.
    (is_same && path_of(other).as_deref() == Some(other)).then(|| other.to_owned())
}

/// Whether that is the host and port of the settings.
fn is_ours(settings: &Settings, authority: &str) -> bool {
    let ours = settings.authority();
    let names_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
    match names_port {
        true => authority.eq_ignore_ascii_case(&ours),
        false => format!("{authority}:443").eq_ignore_ascii_case(&ours),
    }
}

impl Line {
    /// Where what is at `path` was answered last in this session.
    pub(crate) fn answered_at(&self, path: &str) -> String {
        self.learned.moved.get(path).map_or(path, String::as_str).to_owned()
    }

    /// What is at `path` is asked for at `other` from now on.
    pub(crate) fn note_moved(&mut self, path: &str, other: &str) {
        let moved = &mut self.learned.moved;
        if path == other {
            moved.remove(path);
        } else if moved.len() < KNOWN {
            moved.insert(path.to_owned(), other.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use http::header::LOCATION;
    use serde_json::json;

    use super::*;

    fn settings(host: &str, port: u16) -> Settings {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "secret12").expect("written");
        let table = json!({
            "host": host, "port": port, "username": "u", "password_file": file.path(), "accept_any_certificate": true,
        });
        Settings::check(table.as_object().expect("a table")).expect("right settings")
    }

    fn answer(status: u16, location: &str) -> Answer {
        let headers = HeaderMap::from_iter([(LOCATION, location.parse().expect("a header"))]);
        Answer::begun(status, &headers)
    }

    #[test]
    fn the_same_place_is_the_same_path_at_the_same_host_and_port() {
        let (plain, other) = (settings("bmc.example", 443), settings("fd00::7", 8443));
        for (settings, location, expected) in [
            (&plain, "/s/1/", true),
            (&plain, "https://bmc.example/s/1/", true),
            (&plain, "HTTPS://BMC.example:443/s/1/", true),
            (&plain, "https://bmc.example:8443/s/1/", false),
            (&plain, "http://bmc.example/s/1/", false),
            (&plain, "https://bmc.example.org/s/1/", false),
            (&plain, "https://u@bmc.example/s/1/", false),
            (&plain, "https:///s/1/", false),
            (&plain, "//bmc.example/s/1/", false),
            (&plain, "/s/1", false),
            (&plain, "/s/1//", false),
            (&plain, "/s/2/", false),
            (&plain, "/s/1/?x", false),
            (&plain, "/s/1/#x", false),
            (&plain, "1/", false),
            (&plain, "", false),
            (&other, "https://[fd00::7]:8443/s/1/", true),
            (&other, "https://[fd00::7]/s/1/", false),
            (&other, "https://fd00::7:8443/s/1/", false),
        ] {
            let there = to(settings, "/s/1", &answer(308, location));
            assert_eq!(there.as_deref(), expected.then_some("/s/1/"), "{location}");
        }
        let v6 = settings("fd00::7", 443);
        assert_eq!(to(&v6, "/s/1/", &answer(307, "https://[fd00::7]/s/1")).as_deref(), Some("/s/1"));
    }

    #[test]
    fn only_what_redirects_the_request_itself_is_followed() {
        let here = settings("bmc.example", 443);
        for (status, expected) in
            [(301, true), (307, true), (308, true), (300, false), (302, false), (303, false), (201, false)]
        {
            assert_eq!(to(&here, "/s", &answer(status, "/s/")).is_some(), expected, "{status}");
        }
        let kept = Answer { stored: true, ..answer(308, "/s/") };
        assert_eq!(
            to(&here, "/s", &kept),
            None,
            "nobody knows what became of a command that a cache answered"
        );
        assert_eq!(to(&here, "/s", &Answer::begun(308, &HeaderMap::new())), None);
    }
}
