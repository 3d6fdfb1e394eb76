//! What came back: status, the few headers that matter, and a bounded body.

use std::time::Duration;

use http::HeaderMap;
use http::header::{ETAG, LOCATION, RETRY_AFTER};
use picket_core::time::BootTime;
use picket_driver::Secret;
use serde_json::Value;

/// No service is left alone for longer, whatever it asks for.
const LONGEST_REST: u64 = 86_400;
/// The largest body that is read. A system's description is some ten kilobytes.
pub const LARGEST: usize = 1 << 20;

/// Why a body is not whole. The status counts all the same: it is what the service says first.
#[derive(Debug)]
pub enum TruncatedBody {
    /// It is longer than [`LARGEST`].
    Long,
    /// The connection broke.
    Broken(String),
    /// The call was over.
    Late,
    /// It is packed so, and cannot be unpacked here.
    Coded(String),
}

/// One answer.
#[derive(Debug)]
pub struct Answer {
    /// HTTP's status.
    pub status: u16,
    /// The path of `Location`, wherever else it points.
    pub location: Option<String>,
    /// `Location` as it stands.
    pub said_location: Option<String>,
    /// How long the service asks to be left alone.
    pub retry_after: Option<Duration>,
    /// A new session's token.
    pub token: Option<Secret>,
    /// The version of what was read.
    pub etag: Option<String>,
    /// It says that it is no answer of now.
    pub stored: bool,
    /// The body came packed, and is unpacked here.
    pub packed: bool,
    /// The body, as far as it was read.
    pub body: Vec<u8>,
    /// Why that is not all of it.
    pub cut: Option<TruncatedBody>,
    /// When the first copy of the request was sent.
    pub asked_at: BootTime,
    /// When the answer was whole, or broke off.
    pub answered_at: BootTime,
}

impl Answer {
    /// With nothing but what its headers say; times and body are filled in later.
    pub fn begun(status: u16, headers: &HeaderMap) -> Self {
        let text = |name| headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
        let token = headers.get("x-auth-token").map(|value| Secret::new(value.as_bytes()));
        Self {
            status,
            location: text(LOCATION).and_then(path_of),
            said_location: text(LOCATION).map(str::to_owned),
            // RFC 9110 §10.2.3 allows a date as well; no service is known to send one, and our own pauses are short.
            retry_after: text(RETRY_AFTER)
                .and_then(|text| text.trim().parse::<u64>().ok())
                .map(|seconds| Duration::from_secs(seconds.min(LONGEST_REST))),
            token,
            etag: text(ETAG).map(str::to_owned),
            stored: is_stored(headers),
            packed: false,
            body: Vec::new(),
            cut: None,
            asked_at: BootTime::default(),
            answered_at: BootTime::default(),
        }
    }

    /// Whether it was done, or taken.
    pub fn is_success(&self) -> bool {
        matches!(self.status, 200..=299)
    }

    /// The body as an object that is so now; `None` for anything else, also where a cache had kept it.
    pub fn fresh(&self) -> Option<serde_json::Map<String, Value>> {
        self.object().filter(|_| self.status == 200 && !self.stored)
    }

    /// The body as an object; `None` for anything else, also where it was cut.
    pub fn object(&self) -> Option<serde_json::Map<String, Value>> {
        if self.cut.is_some() {
            return None;
        }
        match serde_json::from_slice(&self.body) {
            Ok(Value::Object(object)) => Some(object),
            _ => None,
        }
    }

    /// Where the object says that it is.
    pub fn own_path(&self) -> Option<String> {
        self.object()?.get("@odata.id")?.as_str().and_then(path_of)
    }

    /// Whether its body names this message (`SessionLimitExceeded`), of whichever registry and version.
    pub fn names(&self, message: &str) -> bool {
        std::str::from_utf8(&self.body).is_ok_and(|text| text.contains(message))
    }

    /// For people: the status, the service's own first words where it has some, and where it is busy when it is to be asked again, if it
    /// says so.
    pub fn words(&self) -> String {
        let said = self.said().map(|said| tame(&said)).filter(|said| !said.is_empty());
        self.status_and(said)
    }

    fn status_and(&self, said: Option<String>) -> String {
        let said = said.map(|said| format!(" ({said})")).unwrap_or_default();
        let rest = self.retry_after.filter(|_| matches!(self.status, 429 | 503));
        let rest = rest.map(|rest| format!(", to be asked again in {} s", rest.as_secs()));
        format!("HTTP {}{said}{}", self.status, rest.unwrap_or_default())
    }

    /// The same of an answer to who told this secret: some messages of the Base registry (DSP8011) repeat the value that they do
    /// not like. Then the status alone is said (S18).
    pub fn words_without(&self, secret: &Secret) -> String {
        let repeats =
            |said: String| String::from_utf8(secret.expose().to_vec()).is_ok_and(|text| said.contains(&text));
        if self.said().is_some_and(repeats) { self.status_and(None) } else { self.words() }
    }

    fn said(&self) -> Option<String> {
        let object = self.object()?;
        let error = object.get("error")?;
        let extended = error.get("@Message.ExtendedInfo").and_then(|list| list.get(0));
        let message = extended.and_then(|one| one.get("Message")).or_else(|| error.get("message"))?;
        message.as_str().map(str::to_owned)
    }
}

/// Whether a cache gave an answer that it had kept, whatever it was asked. An `Age`, also of 0, says that the service did neither make
/// nor confirm the answer for this request (RFC 9111 §5.1). `Cache-Status` with a `hit` (RFC 9211 §2.1), `X-Cache` with a `HIT`,
/// and `Warning` 110 and 113 (RFC 7234 §5.5) say so of caches that know no better. Not `Via`: every proxy has to write it,
/// whether it keeps anything or not (RFC 9110 §7.6.3).
fn is_stored(headers: &HeaderMap) -> bool {
    let says = |name: &str, words: &[&str]| {
        headers.get_all(name).iter().any(|value| {
            let text = String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase();
            text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| words.contains(&word))
        })
    };
    headers.contains_key(http::header::AGE)
        || says("cache-status", &["hit"])
        || says("x-cache", &["hit"])
        || says("warning", &["110", "113"])
}

/// Foreign words, short and without what could forge a line of a log.
pub fn tame(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(120).collect::<String>().trim().to_owned()
}

/// The path of a link: what stands after the host, if one is named. Nothing is ever sent to another host than ours.
/// `None` for what is no path.
pub fn path_of(link: &str) -> Option<String> {
    let path = match link.split_once("://") {
        Some(("http" | "https", rest)) => rest.find('/').map(|at| &rest[at..])?,
        Some(_) => return None,
        None => link,
    };
    let is_path = path.starts_with('/')
        && !path.starts_with("//")
        && path.len() <= 2_048
        && path.chars().all(|c| c.is_ascii_graphic());
    // What follows a # is the client's own matter (RFC 9110 §4.2.5).
    let path = path.split('#').next().unwrap_or_default();
    is_path.then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_a_path_of_our_own_host_or_nothing() {
        for (link, path) in [
            ("/redfish/v1/Systems/1", Some("/redfish/v1/Systems/1")),
            ("https://elsewhere.example/redfish/v1/S/1", Some("/redfish/v1/S/1")),
            ("/redfish/v1/Managers/1#/x", Some("/redfish/v1/Managers/1")),
            ("//elsewhere.example/x", None),
            ("ftp://elsewhere/x", None),
            ("Systems/1", None),
            ("/a b", None),
            ("/a\r\nHost: x", None),
            ("", None),
        ] {
            assert_eq!(path_of(link).as_deref(), path, "{link:?}");
        }
    }

    #[test]
    fn a_rest_is_never_longer_than_time_itself() {
        for (text, rest) in
            [("7", Some(7)), (" 7 ", Some(7)), ("18446744073709551615", Some(86_400)), ("-1", None)]
        {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, text.parse().expect("a header"))]);
            assert_eq!(Answer::begun(503, &headers).retry_after, rest.map(Duration::from_secs), "{text}");
        }
    }

    #[test]
    fn what_a_cache_kept_says_so() {
        for (name, value, stored) in [
            ("age", "7", true),
            ("age", "0", true),
            ("age", "x", true),
            ("x-cache", "HIT from proxy.example", true),
            ("x-cache", "MISS from proxy.example", false),
            ("cache-status", "Example; hit; ttl=376", true),
            ("cache-status", "Example; fwd=uri-miss; stored", false),
            ("warning", "110 - \"Response is Stale\"", true),
            ("via", "1.1 proxy.example", false),
            ("date", "Sun, 22 Nov 2026 08:00:00 GMT", false),
        ] {
            let headers = HeaderMap::from_iter([(
                http::header::HeaderName::from_static(name),
                value.parse().expect("a header"),
            )]);
            assert_eq!(Answer::begun(200, &headers).stored, stored, "{name}: {value}");
        }
    }

    #[test]
    fn words_are_tame() {
        let mut answer = Answer::begun(409, &HeaderMap::new());
        answer.body = br#"{"error": {"message": "no\u001b[31m\nway", "code": "x"}}"#.to_vec();
        assert_eq!(answer.words(), "HTTP 409 (no[31mway)");
        let secret = |text: &str| Secret::new(text.as_bytes());
        assert_eq!(answer.words_without(&secret("nono")), "HTTP 409 (no[31mway)");
        answer.body =
            br#"{"error": {"message": "The value \"hunter2\\\" of Password is too short"}}"#.to_vec();
        assert_eq!(answer.words_without(&secret("hunter2\\")), "HTTP 409");
        answer.body = b"<html>".to_vec();
        assert_eq!(answer.words(), "HTTP 409");
        // There it is no word of when to ask again.
        answer.retry_after = Some(Duration::from_secs(60));
        assert_eq!(answer.words(), "HTTP 409");
        answer.status = 503;
        assert_eq!(answer.words(), "HTTP 503, to be asked again in 60 s");
    }
}
