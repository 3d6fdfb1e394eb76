//! What a gateway's answer says of who leads.

use http::HeaderMap;
use tonic::Status;
use tonic_types::StatusExt;

use crate::DOMAIN;
use crate::v1::ErrorReason;

/// Another gateway leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Redirect {
    /// Where it answers.
    pub(super) endpoints: Vec<String>,
}

impl Redirect {
    /// What the headers of an answer that has nothing else say; `None`: it is an answer, or another error.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let status = Status::from_header_map(headers)?;
        let details = status.get_error_details();
        let info = details.error_info().filter(|info| info.domain == DOMAIN)?;
        if ErrorReason::of_word(&info.reason) != ErrorReason::NotLeader {
            return None;
        }
        let endpoints = info.metadata.get("endpoint").map(String::as_str).unwrap_or_default();
        let endpoints = endpoints.split(',').map(str::trim).filter(|name| !name.is_empty());
        Some(Self { endpoints: endpoints.map(str::to_owned).collect() })
    }
}

#[cfg(test)]
mod tests {
    use tonic::Code;
    use tonic_types::ErrorDetails;

    use super::*;

    fn redirect(reason: &str, metadata: &[(&str, &str)]) -> Option<Redirect> {
        let metadata = metadata.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let details = ErrorDetails::with_error_info(
            reason,
            DOMAIN,
            metadata.collect::<std::collections::HashMap<_, _>>(),
        );
        let status = Status::with_error_details(Code::Unavailable, "no", details);
        let answer = status.into_http::<tonic::body::Body>();
        Redirect::of(answer.headers())
    }

    #[test]
    fn only_who_does_not_lead_sends_us_on() {
        let all = redirect("NOT_LEADER", &[("endpoint", "https://a:1, https://b:2"), ("leader", "a")]);
        let all = all.expect("it sends us on");
        assert_eq!(all.endpoints, ["https://a:1", "https://b:2"]);
        assert_eq!(redirect("NOT_LEADER", &[]), Some(Redirect { endpoints: vec![] }));
        assert_eq!(redirect("NO_LEADER", &[("endpoint", "https://a:1")]), None);
        assert_eq!(Redirect::of(&HeaderMap::new()), None);
    }
}
