//! What a gateway's error says, in plain words and for scripts.

use std::collections::BTreeMap;
use std::fmt;

use picket_proto::DOMAIN;
use picket_proto::v1::ErrorReason;
use serde::Serialize;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use crate::duration;
use crate::exit::Exit;

/// An error of the gateway, with its rich details.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GatewayError {
    /// The gRPC code: `not_found`.
    pub code: String,
    /// The stable reason: `NODE_NOT_FOUND`. Null: none came, so the error is not the gateway's own.
    pub reason: Option<String>,
    /// For people.
    pub message: String,
    /// More for people, a line each, nothing twice.
    pub details: Vec<String>,
    /// What the reason's metadata says: who holds, which names are near, what limit.
    pub metadata: BTreeMap<String, String>,
    /// When it is worth asking again. A limit may end before: a person ends a pause, or sets it wider.
    pub retry_after_s: Option<f64>,
    #[serde(skip)]
    kind: Code,
    /// It arose here, not at the gateway.
    #[serde(skip)]
    local: bool,
}

impl GatewayError {
    /// The stable reason; unspecified where none came or it is not known.
    pub fn reason(&self) -> ErrorReason {
        self.reason.as_deref().map_or(ErrorReason::Unspecified, ErrorReason::of_word)
    }

    /// One that arose on this side.
    pub fn of_this_side(
        code: Code,
        message: String,
        details: Vec<String>,
        metadata: BTreeMap<String, String>,
    ) -> Self {
        GatewayError {
            code: code_word(code).to_owned(),
            reason: None,
            message,
            details,
            metadata,
            retry_after_s: None,
            kind: code,
            local: true,
        }
    }

    /// Whether it speaks of the way to the gateway, or of a gateway that goes away: the same may succeed soon, and
    /// whether the request arrived is not known.
    pub fn is_passing(&self) -> bool {
        match self.reason() {
            ErrorReason::ShuttingDown | ErrorReason::NoLeader | ErrorReason::NotLeader => true,
            _ if self.reason.is_some() => false,
            _ => self.is_of_the_way(),
        }
    }

    /// Whether the way to the gateway broke: what the gateway itself says has no cause on this side, and has details.
    pub fn is_of_the_way(&self) -> bool {
        self.reason.is_none() && (self.local || self.kind == Code::Unavailable)
    }

    /// The exit code.
    pub fn exit(&self) -> Exit {
        match self.kind {
            Code::InvalidArgument => Exit::Usage,
            Code::NotFound => Exit::NotFound,
            Code::PermissionDenied | Code::Unauthenticated => Exit::Denied,
            Code::FailedPrecondition | Code::Aborted => Exit::Overtaken,
            Code::ResourceExhausted => Exit::Blocked,
            Code::DeadlineExceeded => Exit::TimedOut,
            _ if self.is_of_the_way() => Exit::Unreachable,
            Code::Unavailable => Exit::Unreachable,
            _ => Exit::Failed,
        }
    }
}

/// What a metadata key means, in words; `None` for those that the message always says.
fn phrase(key: &str, value: &str) -> Option<String> {
    let list = value.replace(',', ", ");
    Some(match key {
        "near" => format!("did you mean {list}?"),
        "leader" => format!("the leader is {value}"),
        "endpoint" => format!("ask it at {value}"),
        "holders" => format!("held by {list}"),
        "releases" => format!("releases: {list}"),
        "devices" => format!("devices: {list}"),
        "effects" => format!("open: {list}"),
        "nodes" => format!("it fits {list}"),
        "role" => format!("the role {value} would do"),
        "groups" => format!("it is granted for {list}"),
        "limit" => format!("limit: {value}"),
        "wanted" => format!("possible in: {}", list.replace('_', " ")),
        "fence" => format!("see: picket history --fence {value}"),
        "trace" => format!("in the gateway's log: {value}"),
        _ => return None,
    })
}

fn lines(message: &str, details: &ErrorDetails, metadata: &BTreeMap<String, String>) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(bad) = details.bad_request() {
        all.extend(bad.field_violations.iter().map(|one| format!("{}: {}", one.field, one.description)));
    }
    if let Some(failed) = details.precondition_failure() {
        all.extend(failed.violations.iter().map(|one| one.description.clone()));
    }
    if let Some(quota) = details.quota_failure() {
        let new = quota.violations.iter().filter(|one| !message.contains(&one.description));
        all.extend(new.map(|one| format!("{}: {}", one.subject, one.description)));
    }
    if let Some(resource) = details.resource_info()
        && !message.contains(&resource.resource_name)
    {
        all.push(resource.description.clone());
    }
    let is_new =
        |(key, value): &(&String, &String)| key.as_str() != "limit" || !message.contains(value.as_str());
    all.extend(metadata.iter().filter(is_new).filter_map(|(key, value)| phrase(key, value)));
    if let Some(delay) = details.retry_info().and_then(|retry| retry.retry_delay)
        && !message.contains("ask again in")
    {
        all.push(format!("worth asking again in {}", duration::set(delay)));
    }
    let mut said: Vec<String> = Vec::new();
    for line in all {
        let known = line.trim().is_empty() || message.contains(line.trim_end_matches(['.', '?']));
        if !known && !said.contains(&line) {
            said.push(line);
        }
    }
    said
}

impl From<&Status> for GatewayError {
    fn from(status: &Status) -> Self {
        let details = status.get_error_details();
        let info = details.error_info().filter(|info| info.domain == DOMAIN);
        let metadata: BTreeMap<String, String> =
            info.map(|info| info.metadata.clone().into_iter().collect()).unwrap_or_default();
        let cause = cause(status);
        let message = match (&cause, status.message()) {
            (Some(cause), _) => cause.clone(),
            (None, "") => status.code().description().to_owned(),
            (None, said) => said.to_owned(),
        };
        GatewayError {
            code: code_word(status.code()).to_owned(),
            reason: info.map(|info| info.reason.clone()),
            details: lines(&message, &details, &metadata),
            metadata,
            retry_after_s: details
                .retry_info()
                .and_then(|retry| retry.retry_delay)
                .map(|delay| delay.as_secs_f64()),
            message,
            kind: status.code(),
            local: cause.is_some(),
        }
    }
}

/// What lies at the bottom of a status that arose on this side; tonic's own words stop at "transport error".
fn cause(status: &Status) -> Option<String> {
    let mut innermost = std::error::Error::source(status)?;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    Some(innermost.to_string())
}

/// The code as a stable word.
fn code_word(code: Code) -> &'static str {
    match code {
        Code::Ok => "ok",
        Code::Cancelled => "cancelled",
        Code::Unknown => "unknown",
        Code::InvalidArgument => "invalid_argument",
        Code::DeadlineExceeded => "deadline_exceeded",
        Code::NotFound => "not_found",
        Code::AlreadyExists => "already_exists",
        Code::PermissionDenied => "permission_denied",
        Code::ResourceExhausted => "resource_exhausted",
        Code::FailedPrecondition => "failed_precondition",
        Code::Aborted => "aborted",
        Code::OutOfRange => "out_of_range",
        Code::Unimplemented => "unimplemented",
        Code::Internal => "internal",
        Code::Unavailable => "unavailable",
        Code::DataLoss => "data_loss",
        Code::Unauthenticated => "unauthenticated",
    }
}

impl fmt::Display for GatewayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&duration::spoken(&self.message))?;
        self.details.iter().try_for_each(|line| write!(f, "\n{}", duration::spoken(line)))?;
        // For people alone: a script has the reason.
        let has_near = self.metadata.get("near").is_some_and(|near| !near.is_empty());
        match self.reason() {
            ErrorReason::NodeNotFound if !has_near => {
                write!(f, "\npicket nodes lists the nodes that there are")
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn rich_details_are_told_in_words_and_nothing_twice() {
        let mut details = ErrorDetails::new();
        details
            .set_error_info("NODE_NOT_FOUND", DOMAIN, [("near".to_owned(), "r1n01,r1n10".to_owned())])
            .set_resource_info("node", "r1n1", "", "there is no node \"r1n1\"")
            .set_retry_info(Some(Duration::from_secs(5)));
        let status = Status::with_error_details(Code::NotFound, "there is no node \"r1n1\"", details);
        let told = GatewayError::from(&status);
        assert_eq!(
            told.to_string(),
            "there is no node \"r1n1\"\ndid you mean r1n01, r1n10?\nworth asking again in 5 s"
        );
        assert_eq!((told.reason(), told.exit()), (ErrorReason::NodeNotFound, Exit::NotFound));
        assert!(!told.is_passing());
    }

    #[test]
    fn what_the_message_says_is_not_said_again() {
        let message = "this gateway takes 50 requests a second of each caller: ask again in 100 ms";
        let mut details = ErrorDetails::new();
        details
            .set_error_info("LIMIT", DOMAIN, [("limit".to_owned(), "50 requests a second".to_owned())])
            .add_quota_failure_violation("requests a second", message)
            .set_retry_info(Some(Duration::from_millis(100)));
        let told = GatewayError::from(&Status::with_error_details(Code::ResourceExhausted, message, details));
        assert_eq!(told.to_string(), message);
        assert_eq!(
            (told.metadata["limit"].as_str(), told.retry_after_s),
            ("50 requests a second", Some(0.1))
        );

        let message = "there are no nodes n1, n2 and 3 more";
        let mut details = ErrorDetails::new();
        details.set_error_info("NODE_NOT_FOUND", DOMAIN, []).set_resource_info(
            "node",
            "n1",
            "",
            "there is no node \"n1\"",
        );
        let told = GatewayError::from(&Status::with_error_details(Code::NotFound, message, details));
        assert!(told.details.is_empty(), "{:?}", told.details);
    }

    #[test]
    fn a_node_that_is_like_no_other_gets_a_hint_too() {
        let mut details = ErrorDetails::new();
        details.set_error_info("NODE_NOT_FOUND", DOMAIN, []);
        let told = GatewayError::from(&Status::with_error_details(
            Code::NotFound,
            "there is no node \"x\"",
            details,
        ));
        assert_eq!(told.to_string(), "there is no node \"x\"\npicket nodes lists the nodes that there are");
        assert!(told.details.is_empty(), "scripts have the reason: {:?}", told.details);
    }

    #[test]
    fn every_wrong_field_is_told() {
        let mut details = ErrorDetails::new();
        details
            .set_error_info("BAD_REQUEST", DOMAIN, [])
            .add_bad_request_violation("reason", "is empty: say why")
            .add_bad_request_violation("deadline", "3 s is less than 10 s");
        let told =
            GatewayError::from(&Status::with_error_details(Code::InvalidArgument, "bad request", details));
        assert_eq!(
            told.to_string(),
            "bad request\nreason: is empty: say why\ndeadline: 3 s is less than 10 s"
        );
        assert_eq!(told.exit(), Exit::Usage);
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        assert!(GatewayError::from(&Status::unavailable("connection reset")).is_passing());
        let mut details = ErrorDetails::new();
        details.set_error_info("STORE_UNAVAILABLE", DOMAIN, []);
        let told = GatewayError::from(&Status::with_error_details(Code::Unavailable, "disk full", details));
        assert!(!told.is_passing());
        assert_eq!(told.exit(), Exit::Unreachable, "asked again later it may be done");
    }
}
