//! What Compute Engine says where it does not do what was asked, for people and for what comes next.

use picket_cloud::{Unanswered, one_line};
use picket_driver::{DriverError, Effect, ErrorKind};
use picket_reach::excerpt;
use picket_reach::web::{Answer, NoAnswer};
use serde::Deserialize;

const SHOWN: usize = 400;

/// What `details` may say more plainly than `errors`.
const PLAIN: [&str; 6] = [
    "RATE_LIMIT_EXCEEDED",
    "SERVICE_DISABLED",
    "BILLING_DISABLED",
    "ACCESS_TOKEN_SCOPE_INSUFFICIENT",
    "SECURITY_POLICY_VIOLATED",
    "IAM_PERMISSION_DENIED",
];

/// Google's form of an error (JSON API, Standard error responses).
#[derive(Default, Deserialize)]
struct Body {
    #[serde(default)]
    error: ErrorDetails,
}

#[derive(Default, Deserialize)]
struct ErrorDetails {
    #[serde(default)]
    message: String,
    #[serde(default)]
    errors: Vec<Why>,
    #[serde(default)]
    details: Vec<Why>,
}

#[derive(Default, Deserialize)]
struct Why {
    #[serde(default)]
    reason: String,
}

/// Why one request did not do what it was sent for.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) kind: ErrorKind,
    /// It may have been done, or may yet be.
    pub(crate) unclear: bool,
    /// The status; 0: there was no answer.
    pub(crate) status: u16,
    /// Google's word for it; empty: it did not say.
    pub(crate) reason: String,
    /// For people.
    pub(crate) words: String,
}

impl Failure {
    pub(crate) fn into_error(self) -> DriverError {
        let effect = if self.unclear { Effect::Unknown } else { Effect::DidNotHappen };
        DriverError::new(self.kind, effect, self.words).for_good(self.kind == ErrorKind::Forbidden)
    }

    /// The same of a question: it changes nothing.
    pub(crate) fn of_question(self) -> DriverError {
        Self { unclear: false, ..self }.into_error()
    }

    /// Whether Compute Engine says that there is no such thing. Whoever stands in between may say 404, too, and knows nothing of it.
    pub(crate) fn is_not_found(&self) -> bool {
        self.status == 404 && self.reason == "notFound"
    }

    /// Whether its words name what is at the end of that path.
    pub(crate) fn names(&self, path: &str) -> bool {
        let end = path.rsplitn(3, '/').take(2).collect::<Vec<_>>();
        matches!(end[..], [last, kind] if self.words.contains(&format!("/{kind}/{last}'")))
    }

    /// Whether who asks for less is told the same.
    pub(super) fn is_everybody_s(&self) -> bool {
        matches!(self.kind, ErrorKind::Authentication | ErrorKind::Throttled)
            || self.status == 0
            || self.status >= 500
    }

    /// Whether something else is under way there.
    pub(crate) fn is_busy(&self) -> bool {
        self.reason == "resourceNotReady" || self.reason == "resourceInUseByAnotherOperation"
    }

    /// There was an answer, and it cannot be what was asked for.
    pub(crate) fn senseless(method: &str, status: u16, why: &str) -> Self {
        let words = format!("{method}: the answer makes no sense: {why}");
        Self { kind: ErrorKind::Protocol, unclear: true, status, reason: String::new(), words }
    }

    /// There was none.
    pub(super) fn unanswered(method: &str, endpoint: &str, failed: NoAnswer) -> Self {
        let Unanswered { kind, unclear, why } = Unanswered::of(failed, endpoint);
        let words = format!("{method}, {endpoint}: {why}");
        Self { kind, unclear, status: 0, reason: String::new(), words }
    }

    /// It was answered, and with no success.
    pub(super) fn of(method: &str, answer: &Answer) -> Self {
        let status = answer.code.as_u16();
        let body: Body = serde_json::from_slice(&answer.body).unwrap_or_default();
        let ErrorDetails { message, errors, details } = body.error;
        let said = |why: &Why| Some(why.reason.clone()).filter(|reason| !reason.is_empty());
        // Beside a word for many things details may have the one that is meant.
        let plain = details.iter().filter_map(said).find(|reason| PLAIN.contains(&reason.as_str()));
        let reason = plain.or_else(|| errors.iter().chain(&details).find_map(said)).unwrap_or_default();
        let (kind, unclear) = meaning(status, &reason);
        let message = if message.is_empty() { excerpt(&answer.body) } else { one_line(&message, SHOWN) };
        let hint = hint(method, kind, &reason, &message);
        let told = if reason.is_empty() { String::new() } else { format!("{reason}: ") };
        let words = format!("{method}: {hint}{status} {told}{message}");
        Self { kind, unclear, status, reason, words }
    }
}

/// Whether an answer leaves open what became of a command. What came from in between, and what a service says that failed on its way
/// or gave up waiting, does; and no success but the one that is known is one.
pub(super) fn is_unclear(status: u16) -> bool {
    !matches!(status, 200 | 400..=407 | 409..=499)
}

fn meaning(status: u16, reason: &str) -> (ErrorKind, bool) {
    let kind = match (status, reason) {
        (401, _) => ErrorKind::Authentication,
        (429, _) => ErrorKind::Throttled,
        (
            403,
            "rateLimitExceeded"
            | "userRateLimitExceeded"
            | "quotaExceeded"
            | "dailyLimitExceeded"
            | "concurrentLimitExceeded"
            | "RATE_LIMIT_EXCEEDED",
        ) => ErrorKind::Throttled,
        (403, _) => ErrorKind::Forbidden,
        (400..=407 | 409..=499, _) => ErrorKind::Refused,
        _ => ErrorKind::Protocol,
    };
    (kind, is_unclear(status))
}

fn hint(method: &str, kind: ErrorKind, reason: &str, message: &str) -> String {
    let lower = message.to_ascii_lowercase();
    match (kind, reason) {
        (ErrorKind::Forbidden, "accessNotConfigured" | "SERVICE_DISABLED") => {
            "the Compute Engine API is not enabled in the project: ".to_owned()
        }
        (ErrorKind::Forbidden, _) if lower.contains("authentication scopes") => {
            "the scopes of who asks have no Compute Engine in them, as those of an instance that was made with the usual ones: "
                .to_owned()
        }
        (ErrorKind::Forbidden, "insufficientPermissions" | "ACCESS_TOKEN_SCOPE_INSUFFICIENT") => {
            "the scopes of who asks are too small: ".to_owned()
        }
        (ErrorKind::Forbidden, reason) => match missing(message) {
            Some(missing) => format!("{missing} is missing in the roles of who asks: "),
            None if ["forbidden", "IAM_PERMISSION_DENIED"].contains(&reason) => {
                format!("{} may be missing in the roles of who asks: ", permission(method))
            }
            // A perimeter, a policy, the bill: its own words say it.
            None => String::new(),
        },
        (ErrorKind::Refused, _) if lower.contains("discard-local-ssd") => {
            "it has a local SSD, and discard_local_ssd is not set: ".to_owned()
        }
        _ => String::new(),
    }
}

/// What a method wants, by its name; disks of a region have no permissions of their own.
fn permission(method: &str) -> String {
    format!("compute.{}", method.replace("regionDisks.", "disks."))
}

/// The permission that a message says is required.
fn missing(message: &str) -> Option<String> {
    let is_permission = |word: &&str| {
        let parts: Vec<&str> = word.split('.').collect();
        let letters = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
        parts.len() == 3 && parts.iter().all(letters)
    };
    message.split(|c: char| !c.is_ascii_alphanumeric() && c != '.').find(is_permission).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use reqwest::StatusCode;
    use reqwest::header::HeaderMap;
    use serde_json::json;

    use super::*;

    fn failure(status: u16, body: String) -> Failure {
        let code = StatusCode::from_u16(status).expect("a status");
        let answer = Answer { code, headers: HeaderMap::new(), body: body.into_bytes(), cut: false };
        Failure::of("instances.stop", &answer)
    }

    fn told(status: u16, reason: &str, message: &str) -> Failure {
        let errors = json!([{ "domain": "global", "reason": reason, "message": message }]);
        failure(
            status,
            json!({ "error": { "code": status, "message": message, "errors": errors } }).to_string(),
        )
    }

    #[test]
    fn a_refusal_says_what_it_means() {
        use ErrorKind::{Authentication, Forbidden, Protocol, Refused, Throttled};
        for (status, reason, kind, unclear) in [
            (401, "authError", Authentication, false),
            (403, "forbidden", Forbidden, false),
            (403, "accessNotConfigured", Forbidden, false),
            (403, "rateLimitExceeded", Throttled, false),
            (403, "userRateLimitExceeded", Throttled, false),
            (403, "quotaExceeded", Throttled, false),
            (429, "", Throttled, false),
            (429, "RATE_LIMIT_EXCEEDED", Throttled, false),
            (404, "notFound", Refused, false),
            (400, "invalid", Refused, false),
            (400, "resourceNotReady", Refused, false),
            (400, "a word of tomorrow", Refused, false),
            (409, "alreadyExists", Refused, false),
            (412, "conditionNotMet", Refused, false),
            (408, "", Protocol, true),
            (500, "internalError", Protocol, true),
            (502, "", Protocol, true),
            (503, "backendError", Protocol, true),
            (504, "", Protocol, true),
            (202, "", Protocol, true),
            (302, "", Protocol, true),
        ] {
            let said = told(status, reason, "No.");
            assert_eq!((said.kind, said.unclear), (kind, unclear), "{status} {reason}");
            let shapeless = failure(status, "<html>hello</html>".to_owned());
            assert_eq!(shapeless.unclear, unclear, "{status}");
        }
    }

    #[test]
    fn only_compute_engine_says_that_there_is_no_such_thing() {
        let path = "projects/p/zones/z/disks/data-1";
        let words = |what: &str| format!("The resource 'projects/p/zones/z{what}' was not found");
        for (said, is_not_found, names) in [
            (told(404, "notFound", &words("/disks/data-1")), true, true),
            (told(404, "notFound", &words("/disks/data-10")), true, false),
            (told(404, "notFound", &words("")), true, false),
            (told(404, "", "No such page"), false, false),
            (failure(404, "<html>'/disks/data-1'</html>".to_owned()), false, true),
            (failure(404, "{}".to_owned()), false, false),
            (told(410, "notFound", "It is gone."), false, false),
        ] {
            assert_eq!((said.is_not_found(), said.names(path)), (is_not_found, names), "{}", said.words);
        }
    }

    #[test]
    fn the_permission_that_is_missing_is_named() {
        let words = "Required 'compute.instances.stop' permission for 'projects/p/zones/z/instances/17'";
        let said = told(403, "forbidden", words).words;
        assert!(said.starts_with("instances.stop: compute.instances.stop is missing in the roles"), "{said}");
        let said = told(403, "forbidden", "No.").words;
        assert!(said.starts_with("instances.stop: compute.instances.stop may be missing"), "{said}");
        assert_eq!(permission("regionDisks.get"), "compute.disks.get");
        let said = told(
            400,
            "badRequest",
            "VM has a Local SSD attached but an undefined value for `discard-local-ssd`.",
        )
        .words;
        assert!(said.contains("discard_local_ssd is not set"), "{said}");
        assert!(told(403, "SERVICE_DISABLED", "x").words.contains("not enabled in the project"));
        // What is no matter of roles does not speak of them.
        for (reason, message) in [
            ("insufficientPermissions", "Insufficient Permission"),
            ("forbidden", "Request had insufficient authentication scopes."),
            ("SECURITY_POLICY_VIOLATED", "Request is prohibited by organization's policy."),
            ("billingDisabled", "The billing account is disabled"),
        ] {
            let said = told(403, reason, message);
            assert_eq!((said.kind, said.unclear), (ErrorKind::Forbidden, false));
            assert!(!said.words.contains("in the roles") && said.words.contains(message), "{}", said.words);
            assert_eq!(
                said.words.contains("scopes of who asks"),
                message.starts_with(['I', 'R']) && reason != "SECURITY_POLICY_VIOLATED"
            );
        }
    }

    #[test]
    fn a_plain_word_in_the_details_goes_before_one_for_many_things() {
        for (plain, kind) in
            [("RATE_LIMIT_EXCEEDED", ErrorKind::Throttled), ("SERVICE_DISABLED", ErrorKind::Forbidden)]
        {
            let body = json!({ "error": { "message": "No.", "errors": [{ "reason": "forbidden" }], "details": [
                { "@type": "type.googleapis.com/google.rpc.Help" }, { "reason": plain },
            ] } });
            let said = failure(403, body.to_string());
            assert_eq!((said.reason.as_str(), said.kind), (plain, kind), "{}", said.words);
        }
        let body = json!({ "error": { "errors": [{ "reason": "notFound" }], "details": [{ "reason": "RESOURCE_NOT_FOUND" }] } });
        assert!(failure(404, body.to_string()).is_not_found());
    }
}
