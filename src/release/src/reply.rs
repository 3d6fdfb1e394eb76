//! What a receiver says: a small JSON object, the same from a webhook and a program.

use serde::Deserialize;

/// How much of an answer is kept, in bytes.
pub(crate) const KEPT: usize = 64 * 1024;
/// How much of it is shown to people, in characters.
const SHOWN: usize = 200;

/// The receiver's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    /// It works on it.
    Accepted,
    /// It has finished: the node's attachments are gone.
    Complete,
    /// It knows nothing of it.
    Unknown,
}

/// The receiver's answer; other fields are ignored.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Reply {
    pub(crate) status: Status,
    /// For people.
    #[serde(default)]
    pub(crate) detail: String,
    /// Of a webhook: where to ask how far it is.
    #[serde(default)]
    pub(crate) status_url: Option<String>,
    /// Of a program: given back with the question how far it is.
    #[serde(default)]
    pub(crate) reference: Option<String>,
}

impl Reply {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        if !bytes.trim_ascii_start().starts_with(b"{") {
            // Without this a list of the fields in their order would do, too.
            return Err(serde::de::Error::custom("it is no JSON object"));
        }
        serde_json::from_slice(bytes)
    }

    /// The detail in one line, or `otherwise` where there is none.
    pub(crate) fn detail_or(&self, otherwise: &str) -> String {
        let detail = excerpt(self.detail.as_bytes());
        if detail.is_empty() { otherwise.to_owned() } else { detail }
    }
}

/// The beginning of an answer, fit for one line of a log: no control characters, at most 200 characters.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line = line.trim();
    match line.char_indices().nth(SHOWN) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_three_words_are_a_status() {
        let reply = Reply::parse(br#"{"status": "accepted", "status_url": "/jobs/1", "more": [1]}"#)
            .expect("a reply");
        assert_eq!((reply.status, reply.status_url.as_deref()), (Status::Accepted, Some("/jobs/1")));
        for bad in [
            "",
            "ok",
            "{}",
            r#"{"status":"done"}"#,
            r#"{"status":"COMPLETE"}"#,
            r#"["complete"]"#,
            r#"{"status":null}"#,
            r#"{"status":"accepted","status":"complete"}"#,
        ] {
            assert!(Reply::parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_excerpt_is_one_short_line() {
        assert_eq!(excerpt(b" a\x1b[31m\r\nb \xff"), "a [31m  b \u{fffd}");
        let long = "ä".repeat(300);
        assert_eq!(excerpt(long.as_bytes()).chars().count(), 201);
    }
}
