//! An error as callers get it: a gRPC status with rich details, in the words of `ErrorReason`.

use std::collections::HashMap;
use std::time::Duration;

use picket_proto::DOMAIN;
use picket_proto::v1::ErrorReason;
use tonic::{Code, Status};
use tonic_types::{
    BadRequest, ErrorDetail, ErrorInfo, FieldViolation, PreconditionFailure, QuotaFailure, ResourceInfo,
    RetryInfo, StatusExt,
};

/// Of a list at most so many stand in a detail: details travel in headers, which are small.
const LISTED: usize = 8;

/// An error on its way to a caller.
#[derive(Debug)]
pub(crate) struct Fault {
    reason: ErrorReason,
    message: String,
    metadata: HashMap<String, String>,
    details: Vec<ErrorDetail>,
}

impl Fault {
    /// An error with this reason. `message` is for people: what was wrong, where, what would be right.
    pub(crate) fn new(reason: ErrorReason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), metadata: HashMap::new(), details: Vec::new() }
    }

    /// The reason.
    pub(crate) fn reason(&self) -> ErrorReason {
        self.reason
    }

    /// What it says to people.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Adds metadata, unless it says nothing.
    #[must_use]
    pub(crate) fn with(mut self, key: &str, value: impl Into<String>) -> Self {
        let value = value.into();
        if !value.is_empty() {
            self.metadata.insert(key.to_owned(), value);
        }
        self
    }

    /// Adds metadata that lists names, separated by commas.
    #[must_use]
    pub(crate) fn with_list<S: AsRef<str>>(self, key: &str, names: &[S]) -> Self {
        let names: Vec<&str> = names.iter().take(LISTED).map(AsRef::as_ref).collect();
        self.with(key, names.join(","))
    }

    /// Worth asking again after that time.
    #[must_use]
    pub(crate) fn retry_after(mut self, time: Duration) -> Self {
        self.details.push(RetryInfo::new(Some(time)).into());
        self
    }

    /// What is not there.
    #[must_use]
    pub(crate) fn resource(mut self, kind: &str, name: &str) -> Self {
        if self.details.len() < LISTED {
            self.details
                .push(ResourceInfo::new(kind, name, "", format!("there is no {kind} {name:?}")).into());
        }
        self
    }

    /// What must be otherwise first.
    #[must_use]
    pub(crate) fn precondition(mut self, kind: &str, subject: &str, description: &str) -> Self {
        self.details.push(PreconditionFailure::with_violation(kind, subject, description).into());
        self
    }

    /// Which limit is reached.
    #[must_use]
    pub(crate) fn quota(mut self, subject: &str, description: &str) -> Self {
        self.details.push(QuotaFailure::with_violation(subject, description).into());
        self
    }

    fn fields(mut self, violations: Vec<FieldViolation>) -> Self {
        self.details.push(BadRequest::new(violations).into());
        self
    }

    /// One field that is wrong, in an error of another reason than `BAD_REQUEST`.
    #[must_use]
    pub(crate) fn field(self, field: &str, description: &str) -> Self {
        self.fields(vec![FieldViolation::new(field, description)])
    }

    /// As a status.
    pub(crate) fn status(self) -> Status {
        let mut details = vec![ErrorInfo::new(self.reason.word(), DOMAIN, self.metadata).into()];
        details.extend(self.details);
        Status::with_error_details_vec(code(self.reason), self.message, details)
    }
}

impl From<Fault> for Status {
    fn from(fault: Fault) -> Self {
        fault.status()
    }
}

fn code(reason: ErrorReason) -> Code {
    match reason {
        ErrorReason::BadRequest | ErrorReason::KeyReused | ErrorReason::AmbiguousNode => {
            Code::InvalidArgument
        }
        ErrorReason::NodeNotFound
        | ErrorReason::FenceNotFound
        | ErrorReason::HoldNotFound
        | ErrorReason::ReleaseNotFound
        | ErrorReason::DeviceNotFound
        | ErrorReason::ReceiptNotFound
        | ErrorReason::PauseNotFound
        | ErrorReason::GroupNotFound => Code::NotFound,
        ErrorReason::WrongPhase
        | ErrorReason::FenceOpen
        | ErrorReason::GenerationMismatch
        | ErrorReason::NotAfterPassed
        | ErrorReason::HostReadsOn
        | ErrorReason::NotProven
        | ErrorReason::NotReleased
        | ErrorReason::OpenEffects
        | ErrorReason::DeviceFailed
        | ErrorReason::KubernetesNodeMismatch => Code::FailedPrecondition,
        ErrorReason::Unauthenticated => Code::Unauthenticated,
        ErrorReason::RoleMissing | ErrorReason::HolderNotAllowed => Code::PermissionDenied,
        ErrorReason::NotLeader
        | ErrorReason::NoLeader
        | ErrorReason::StoreUnavailable
        | ErrorReason::KubernetesAway
        | ErrorReason::ShuttingDown => Code::Unavailable,
        ErrorReason::Limit => Code::ResourceExhausted,
        ErrorReason::RevisionGone => Code::OutOfRange,
        ErrorReason::TooSlow => Code::DeadlineExceeded,
        ErrorReason::Conflict => Code::Aborted,
        ErrorReason::NotOffered => Code::Unimplemented,
        ErrorReason::Internal | ErrorReason::Unspecified => Code::Internal,
    }
}

/// The faults of a request's fields, gathered so that all are told at once.
#[derive(Debug, Default)]
pub(crate) struct Fields(Vec<FieldViolation>);

impl Fields {
    /// `field` is wrong: what, and what would be right.
    pub(crate) fn wrong(&mut self, field: &str, what: impl Into<String>) {
        self.0.push(FieldViolation::new(field, what));
    }

    /// Nothing was wrong, or `BAD_REQUEST` with all that was.
    pub(crate) fn done(self) -> Result<(), Fault> {
        if self.0.is_empty() {
            return Ok(());
        }
        let words: Vec<String> =
            self.0.iter().map(|fault| format!("{}: {}", fault.field, fault.description)).collect();
        Err(Fault::new(ErrorReason::BadRequest, words.join("; ")).fields(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_told_with_its_field() {
        let mut fields = Fields::default();
        fields.wrong("reason", "is empty: say why");
        fields.wrong("deadline", "3 s is too short");
        let status = fields.done().expect_err("two faults").status();
        assert_eq!(status.code(), Code::InvalidArgument);
        assert_eq!(status.message(), "reason: is empty: say why; deadline: 3 s is too short");
        let details = status.get_error_details();
        let bad = details.bad_request().expect("a bad request");
        assert_eq!(bad.field_violations.len(), 2);
        let info = details.error_info().expect("an info");
        assert_eq!((info.reason.as_str(), info.domain.as_str()), ("BAD_REQUEST", "picket"));
    }

    #[test]
    fn lists_are_short_and_empty_ones_are_left_out() {
        let many: Vec<String> = (0..1_000).map(|n| format!("n{n}")).collect();
        let fault = Fault::new(ErrorReason::NodeNotFound, "no")
            .with_list("near", &many)
            .with_list::<&str>("nodes", &[]);
        let status = fault.status();
        let info = status.get_error_details().error_info().cloned().expect("an info");
        assert_eq!(info.metadata.len(), 1);
        assert_eq!(info.metadata["near"].split(',').count(), LISTED);
    }
}
