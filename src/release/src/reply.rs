//! What a receiver says: a small JSON object, the same from a webhook and a program.

use picket_reach::excerpt;
use serde::Deserialize;

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
}
