//! What AWS says where it does not do what was asked, for people and for what comes next.

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_ec2::error::ProvideErrorMetadata;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use picket_cloud::one_line;
use picket_driver::{DriverError, Effect, ErrorKind};

use super::wire::{SendOutcome, Stamps};

/// After this, what cannot be read by people begins.
const ENCODED: &str = "Encoded authorization failure message";
const SHOWN: usize = 400;

/// Of whom and by whom something is asked, for people.
#[derive(Clone, Debug)]
pub(super) struct RequestContext {
    /// `EC2 in eu-central-1`
    pub(super) of: String,
    /// `AWS's standard chain, with the profile "picket"`
    pub(super) by: String,
    /// That a proxy is set, which is not asked.
    pub(super) proxy: Option<String>,
    /// Why whoever gives credentials was asked in vain last.
    pub(super) unheard: Option<String>,
}

/// Why one request did not do what it was sent for.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) kind: ErrorKind,
    /// It may have been done, or may yet be.
    pub(crate) unclear: bool,
    /// AWS's word for it; empty: it did not say.
    pub(crate) code: String,
    /// For people.
    pub(crate) words: String,
    /// When AWS said so; `None`: it did not come to an answer.
    pub(crate) stamps: Option<Stamps>,
    /// All that AWS said, which may name thousands.
    message: String,
}

impl Failure {
    pub(crate) fn into_error(self) -> DriverError {
        let effect = if self.unclear { Effect::Unknown } else { Effect::DidNotHappen };
        let is_final =
            matches!(self.kind, ErrorKind::Forbidden | ErrorKind::Unsupported) || is_forbidden(&self.code);
        DriverError::new(self.kind, effect, self.words).for_good(is_final)
    }

    /// The same of a question: it changes nothing.
    pub(crate) fn of_question(self) -> DriverError {
        Self { unclear: false, ..self }.into_error()
    }

    /// Told with where it was asked, or by whom, where that may be what is wrong.
    fn asked(mut self, asked: &RequestContext) -> Self {
        if self.is_not_found() {
            self.words += &format!(" (asked of {})", asked.of);
        } else if self.kind == ErrorKind::Authentication && !self.is_of_time() {
            self.words += &format!(" (asked by {})", asked.by);
        }
        self
    }

    /// AWS did not say why.
    fn untold(kind: ErrorKind, unclear: bool, words: String) -> Self {
        Self { kind, unclear, code: String::new(), words, stamps: None, message: String::new() }
    }

    /// Whether AWS names that id as the cause.
    pub(super) fn names(&self, id: &str) -> bool {
        names(&self.message, id)
    }

    pub(super) fn protocol(action: &str, what: &str) -> Self {
        let words = format!("{action}: {what}");
        Self::untold(ErrorKind::Protocol, true, words)
    }

    /// Whether it may be the fault of one id among many.
    pub(super) fn is_of_one(&self) -> bool {
        let unknown = matches!(self.code.as_str(), "UnknownParameter" | "InvalidAction");
        let kinds = [ErrorKind::Refused, ErrorKind::Forbidden, ErrorKind::Unsupported];
        !self.unclear && !unknown && kinds.contains(&self.kind)
    }

    /// Whether the signature's time was not AWS's.
    pub(super) fn is_of_time(&self) -> bool {
        self.code == "SignatureDoesNotMatch" && self.message.contains("not yet current")
            || is_of_time(&self.code)
    }

    /// Whether AWS says that there is no such thing.
    pub(crate) fn is_not_found(&self) -> bool {
        self.code.ends_with(".NotFound")
    }
}

/// What a failed request means, by what its sender saw and what the SDK made of the answer. Where it was asked, and by whom, is told as far
/// as that may be what is wrong.
pub(super) fn failure<E>(
    action: &str,
    asked: &RequestContext,
    fate: SendOutcome,
    error: Option<Box<SdkError<E, HttpResponse>>>,
) -> Failure
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    let unheard = |words: &str| {
        let why = asked.unheard.as_ref().filter(|why| !words.contains(*why));
        why.map(|why| format!(" (asked last: {why})")).unwrap_or_default()
    };
    let made = |kind, unclear, why: &str| Failure::untold(kind, unclear, format!("{action}: {why}"));
    match fate {
        SendOutcome::NotBegun => match &error {
            None => made(
                ErrorKind::TimedOut,
                false,
                &format!("no credentials were to be had in time{}", unheard("")),
            ),
            Some(error) => {
                let failure = not_begun(action, error);
                Failure { words: format!("{}{}", failure.words, unheard(&failure.words)), ..failure }
            }
        },
        SendOutcome::Barred(_) => made(ErrorKind::NotLeader, false, "it may not be sent"),
        SendOutcome::NeverSent(why) => {
            let proxy = asked.proxy.as_ref().map(|proxy| format!(" ({proxy})")).unwrap_or_default();
            made(ErrorKind::Unreachable, false, &format!("{}: {why}{proxy}", asked.of))
        }
        SendOutcome::Broken(why) => {
            made(ErrorKind::Protocol, true, &format!("{}: the answer broke off: {why}", asked.of))
        }
        SendOutcome::Late => made(ErrorKind::TimedOut, true, &format!("no answer in time from {}", asked.of)),
        SendOutcome::Answered(stamps) => {
            let status =
                error.as_ref().and_then(|error| error.raw_response()).map(|raw| raw.status().as_u16());
            let service = error.as_ref().and_then(|error| error.as_service_error());
            let code = service.and_then(|said| said.code());
            let failure = match code {
                Some(code) => {
                    let message = service.and_then(|said| said.message()).unwrap_or_default();
                    refusal(action, code, message, status.unwrap_or_default()).asked(asked)
                }
                None => wordless(action, status),
            };
            Failure { stamps: Some(stamps), ..failure }
        }
    }
}

/// What answered is not what AWS's services answer: something before it, maybe.
fn wordless(action: &str, status: Option<u16>) -> Failure {
    let (kind, unclear) = match status {
        Some(429) => (ErrorKind::Throttled, false),
        Some(503) => (ErrorKind::Throttled, true),
        _ => (ErrorKind::Protocol, true),
    };
    let status = status.map(|status| format!(", status {status}")).unwrap_or_default();
    Failure::untold(kind, unclear, format!("{action}: its answer makes no sense{status}"))
}

/// Nothing was sent: there are no credentials, or the request cannot be made.
fn not_begun<E>(action: &str, error: &SdkError<E, HttpResponse>) -> Failure
where
    E: std::error::Error + Send + Sync + 'static,
{
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    let (mut kind, mut words) = (ErrorKind::Settings, Vec::new());
    while let Some(error) = source {
        if error.is::<CredentialsError>() {
            kind = ErrorKind::Authentication;
        }
        // What is meant for people alone: what is meant for programmers has whole answers in it, and so secrets (S18).
        words.push(error.to_string());
        source = error.source();
    }
    words.dedup();
    let what = if kind == ErrorKind::Authentication { "no credentials: " } else { "" };
    let why = tame(&words.join(": "));
    Failure::untold(kind, false, format!("{action}: {what}{why}"))
}

/// AWS refused in its own words.
pub(super) fn refusal(action: &str, code: &str, message: &str, status: u16) -> Failure {
    let kind = kind_of(code, status);
    // What a service says that failed on its way, or gave up waiting, leaves open what became of it.
    let unclear = (status >= 500 || status == 408) && kind != ErrorKind::Throttled && !is_short(code);
    let hint = match kind {
        ErrorKind::Forbidden => {
            let missing = missing(message).unwrap_or_else(|| format!("ec2:{action}"));
            match message.contains("explicit deny") {
                true => format!("a policy denies {missing} to who asks: "),
                false => format!("{missing} is missing in the policy of who asks: "),
            }
        }
        ErrorKind::Authentication if is_of_time(code) => {
            "the signature's time is over, or this machine's clock is wrong: ".to_owned()
        }
        ErrorKind::Unsupported if code == "UnknownParameter" => {
            "this endpoint does not know what is asked of it, and less is not asked: ".to_owned()
        }
        _ => String::new(),
    };
    let words = format!("{action}: {hint}{code}: {}", tame(message));
    Failure { kind, unclear, code: code.to_owned(), words, stamps: None, message: message.to_owned() }
}

fn is_of_time(code: &str) -> bool {
    matches!(code, "RequestExpired" | "RequestTimeTooSkewed")
}

/// An attribute of the instance bars it (`disableApiStop`), or a reservation does, until a person takes that away.
fn is_forbidden(code: &str) -> bool {
    code == "OperationNotPermitted"
}

/// EC2 has no room for it now, and says so as a fault of its own (status 500): nothing was started.
fn is_short(code: &str) -> bool {
    code.starts_with("Insufficient") && (code.ends_with("Capacity") || code.ends_with("CapacityOnHost"))
}

/// The kind of an error code (Error codes for the Amazon EC2 API; common errors of AWS).
fn kind_of(code: &str, status: u16) -> ErrorKind {
    match code {
        "RequestLimitExceeded"
        | "Throttling"
        | "ThrottlingException"
        | "RequestThrottled"
        | "RequestThrottledException"
        | "TooManyRequestsException"
        | "EC2ThrottledException"
        | "SlowDown"
        | "ResourceRequestLimitExceeded" => ErrorKind::Throttled,
        "AuthFailure"
        | "ExpiredToken"
        | "ExpiredTokenException"
        | "RequestExpired"
        | "RequestTimeTooSkewed"
        | "InvalidClientTokenId"
        | "UnrecognizedClientException"
        | "SignatureDoesNotMatch"
        | "IncompleteSignature"
        | "InvalidSignatureException"
        | "MissingAuthenticationToken"
        | "InvalidAccessKeyId"
        | "InvalidSecurity"
        | "OptInRequired"
        | "Blocked"
        | "PendingVerification" => ErrorKind::Authentication,
        "UnauthorizedOperation" | "AccessDenied" | "AccessDeniedException" => ErrorKind::Forbidden,
        "UnknownParameter"
        | "InvalidAction"
        | "UnsupportedOperation"
        | "Unsupported"
        | "UnsupportedProtocol"
        | "UnsupportedHibernationConfiguration"
        | "InvalidParameterCombination" => ErrorKind::Unsupported,
        _ if is_short(code) => ErrorKind::Refused,
        _ if status >= 500 || status == 408 => ErrorKind::Protocol,
        _ => ErrorKind::Refused,
    }
}

/// The action that a message says may not be performed.
fn missing(message: &str) -> Option<String> {
    let (_, after) = message.split_once("to perform: ")?;
    let is_action = |c: &char| c.is_ascii_alphanumeric() || matches!(c, ':' | '-');
    let action: String = after.chars().take_while(is_action).collect();
    action.contains(':').then_some(action)
}

/// Whether a message names that id, and not one that begins with it.
fn names(message: &str, id: &str) -> bool {
    message.match_indices(id).any(|(at, _)| {
        let ends = |c: Option<char>| c.is_none_or(|c| !c.is_ascii_alphanumeric() && c != '-');
        ends(message[..at].chars().next_back()) && ends(message[at + id.len()..].chars().next())
    })
}

/// One line, of a length that a log bears, without what only AWS can read.
fn tame(text: &str) -> String {
    one_line(text.split_once(ENCODED).map_or(text, |(before, _)| before), SHOWN)
}

#[cfg(test)]
mod untold;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_it_means() {
        for (code, status, kind, unclear) in [
            ("RequestLimitExceeded", 503, ErrorKind::Throttled, false),
            ("UnauthorizedOperation", 403, ErrorKind::Forbidden, false),
            ("AccessDenied", 403, ErrorKind::Forbidden, false),
            ("ExpiredToken", 400, ErrorKind::Authentication, false),
            ("RequestExpired", 400, ErrorKind::Authentication, false),
            ("AuthFailure", 401, ErrorKind::Authentication, false),
            ("UnknownParameter", 400, ErrorKind::Unsupported, false),
            ("UnsupportedOperation", 400, ErrorKind::Unsupported, false),
            ("InvalidInstanceID.NotFound", 400, ErrorKind::Refused, false),
            ("IncorrectInstanceState", 400, ErrorKind::Refused, false),
            ("a word of tomorrow", 400, ErrorKind::Refused, false),
            ("InternalError", 500, ErrorKind::Protocol, true),
            ("Unavailable", 503, ErrorKind::Protocol, true),
            ("RequestTimeout", 408, ErrorKind::Protocol, true),
            ("a word of tomorrow", 502, ErrorKind::Protocol, true),
            ("InsufficientInstanceCapacity", 500, ErrorKind::Refused, false),
            ("InsufficientHostCapacity", 500, ErrorKind::Refused, false),
            ("InsufficientCapacityOnHost", 500, ErrorKind::Refused, false),
        ] {
            let said = refusal("StopInstances", code, "", status);
            assert_eq!((said.kind, said.unclear), (kind, unclear), "{code} {status}");
        }
    }

    #[test]
    fn the_action_that_is_missing_is_named_and_what_nobody_can_read_is_not_shown() {
        let message = "You are not authorized to perform this operation. User: arn:aws:iam::1:user/p is not authorized to perform: \
                       ec2:StopInstances on resource: arn:aws:ec2:eu-central-1:1:instance/i-01234567 because no identity-based policy \
                       allows the ec2:StopInstances action. Encoded authorization failure message: kR3xZ";
        let said = refusal("StopInstances", "UnauthorizedOperation", message, 403).words;
        assert!(said.starts_with("StopInstances: ec2:StopInstances is missing in the policy"), "{said}");
        assert!(said.contains("instance/i-01234567") && !said.contains("kR3xZ"), "{said}");
        let said = refusal("DetachVolume", "UnauthorizedOperation", "You are not authorized.", 403).words;
        assert!(said.starts_with("DetachVolume: ec2:DetachVolume is missing"), "{said}");
    }

    #[test]
    fn what_is_denied_is_told_from_what_is_not_allowed() {
        let message = "User: arn:aws:iam::1:user/p is not authorized to perform: ec2:StartInstances on resource: \
                       arn:aws:ec2:eu-central-1:1:instance/i-01234567 with an explicit deny in a service control policy";
        let said = refusal("StartInstances", "UnauthorizedOperation", message, 403).words;
        assert!(said.starts_with("StartInstances: a policy denies ec2:StartInstances"), "{said}");
        assert!(!said.contains("missing"), "{said}");
    }

    #[test]
    fn where_and_by_whom_it_was_asked_is_told_where_that_may_be_wrong() {
        let asked = RequestContext {
            of: "EC2 in us-west-2".to_owned(),
            by: "the profile \"picket\"".to_owned(),
            proxy: None,
            unheard: None,
        };
        for (code, words) in [
            ("InvalidInstanceID.NotFound", Some("(asked of EC2 in us-west-2)")),
            ("ExpiredToken", Some("(asked by the profile \"picket\")")),
            ("RequestExpired", None),
            ("IncorrectInstanceState", None),
        ] {
            let said = refusal("StopInstances", code, "No.", 400).asked(&asked).words;
            assert_eq!(said.split_once("No. ").map(|(_, after)| after), words, "{said}");
        }
    }

    #[test]
    fn what_stands_before_aws_may_be_too_busy_as_well() {
        for (status, kind, unclear) in [
            (Some(429), ErrorKind::Throttled, false),
            (Some(503), ErrorKind::Throttled, true),
            (Some(502), ErrorKind::Protocol, true),
            (Some(200), ErrorKind::Protocol, true),
            (None, ErrorKind::Protocol, true),
        ] {
            let said = wordless("StopInstances", status);
            assert_eq!((said.kind, said.unclear), (kind, unclear), "{status:?}");
        }
    }

    #[test]
    fn an_id_is_named_only_as_a_whole() {
        let message = "The instance IDs 'i-0123456789abcdef0, i-aaaaaaaa' do not exist";
        for (id, is_named) in [
            ("i-0123456789abcdef0", true),
            ("i-aaaaaaaa", true),
            ("i-01234567", false),
            ("i-bbbbbbbb", false),
        ] {
            assert_eq!(names(message, id), is_named, "{id}");
        }
    }
}
