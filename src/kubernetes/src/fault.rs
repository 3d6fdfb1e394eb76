//! What a request to the API server came to, where it did not succeed.

use kube::core::Status;
use picket_release::ReleaseError;

/// What a failed request means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// There is no such object, in the API server's own words: a proxy, or an API that does not know its kind, says nothing of it.
    NotFound,
    /// It is another object by now, or was changed since it was read.
    Conflict,
    /// What was asked for is not valid there: a test of a JSON patch that fails, or a policy that denies it.
    Invalid,
    /// Refused, and nothing else will be said.
    Refused,
    /// A webhook of the cluster fails closed, and did not answer the API server: other objects may be none of its matter.
    Webhook,
    /// Its permit was over before anything of it was sent.
    Unpermitted,
    /// It may be said otherwise soon: too many requests, a server that is starting, nobody who answers.
    Away,
}

/// A request that did not succeed. The words hold no secret.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) kind: Kind,
    /// It may have been done, or may yet.
    pub(crate) unknown: bool,
    /// The login is refused.
    login: bool,
    words: String,
}

impl Fault {
    pub(crate) fn refused(words: impl Into<String>) -> Self {
        Self { kind: Kind::Refused, unknown: false, login: false, words: words.into() }
    }

    pub(crate) fn not_found(words: String) -> Self {
        Self { kind: Kind::NotFound, ..Self::refused(words) }
    }

    pub(crate) fn unpermitted(words: &str) -> Self {
        Self { kind: Kind::Unpermitted, ..Self::refused(words) }
    }

    pub(crate) fn away(words: String) -> Self {
        Self { kind: Kind::Away, unknown: true, login: false, words }
    }

    pub(crate) fn late(what: &str) -> Self {
        Self::away(format!("{what}: the API server did not answer in time"))
    }

    /// What the API server said, or what became of the connection. What was refused (4xx) did not happen; whatever else was said
    /// tells nothing of what is stored.
    pub(crate) fn of(what: &str, error: kube::Error) -> Self {
        let words = |said: &str| format!("{what}: {said}");
        match error {
            kube::Error::Api(status) => {
                let said = if status.message.is_empty() { &status.reason } else { &status.message };
                let unknown = !(400..500).contains(&status.code);
                Self {
                    kind: kind(&status),
                    unknown,
                    login: status.code == 401,
                    words: words(&format!("{said} ({})", status.code)),
                }
            }
            // Of a login that there is not: nobody was there to send it.
            kube::Error::Service(error) => {
                if let Some(wrong) = error.downcast_ref::<picket_login::Wrong>() {
                    return match wrong.is_answered() {
                        true => Self::refused(words(&wrong.to_string())),
                        false => Self { unknown: false, ..Self::away(words(&wrong.to_string())) },
                    };
                }
                let http = error.downcast_ref::<hyper_util::client::legacy::Error>();
                let unknown = !http.is_some_and(hyper_util::client::legacy::Error::is_connect);
                Self { unknown, ..Self::away(words(&picket_login::chain(&*error))) }
            }
            kube::Error::SerdeError(error) => {
                Self::away(words(&format!("the answer is not what the API says: {error}")))
            }
            kube::Error::Auth(error) => {
                Self::refused(words(&format!("the kubeconfig's credentials: {error}")))
            }
            other => Self::away(words(&picket_login::chain(&other))),
        }
    }

    /// A look that failed says nothing of what is there.
    pub(crate) fn of_a_look(self) -> ReleaseError {
        ReleaseError::Unknown(self.words)
    }

    /// Who asks is not known there (any more).
    pub(crate) fn is_of_login(&self) -> bool {
        self.login
    }

    /// It is refused for what it is: the next object may be let through.
    pub(crate) fn is_of_one_object(&self) -> bool {
        matches!(self.kind, Kind::Refused | Kind::Invalid | Kind::Webhook) && !self.login
    }

    /// Of a patch that tests what was read: it is not so any more.
    pub(crate) fn is_changed(&self) -> bool {
        matches!(self.kind, Kind::Conflict | Kind::Invalid)
    }

    pub(crate) fn is(&self, kind: Kind) -> bool {
        self.kind == kind
    }
}

/// An API server that looked for an object says which one it did not find.
fn names_what_is_not_there(status: &Status) -> bool {
    status.reason == "NotFound" && status.details.as_ref().is_some_and(|details| !details.name.is_empty())
}

fn kind(status: &Status) -> Kind {
    match status.code {
        404 if names_what_is_not_there(status) => Kind::NotFound,
        409 => Kind::Conflict,
        422 => Kind::Invalid,
        // Of admission the API server says so in words alone. Part of what was asked may have been stored before it was asked again.
        500 if status.message.contains("failed calling webhook") => Kind::Webhook,
        429 | 500.. => Kind::Away,
        _ => Kind::Refused,
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.words)
    }
}

impl From<Fault> for ReleaseError {
    fn from(fault: Fault) -> Self {
        match fault.unknown {
            true => ReleaseError::Unknown(fault.words),
            false => ReleaseError::DidNotHappen(fault.words),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(code: u16) -> Fault {
        let status = Status { code, message: "no".to_owned(), ..Status::failure("no", "Because") };
        Fault::of("patch Node n1", kube::Error::Api(Box::new(status)))
    }

    #[test]
    fn only_what_was_refused_surely_did_not_happen() {
        for (code, kind, unknown) in [
            (400, Kind::Refused, false),
            (401, Kind::Refused, false),
            (403, Kind::Refused, false),
            (404, Kind::Refused, false),
            (409, Kind::Conflict, false),
            (422, Kind::Invalid, false),
            (429, Kind::Away, false),
            (500, Kind::Away, true),
            (503, Kind::Away, true),
            (504, Kind::Away, true),
        ] {
            let fault = of(code);
            assert_eq!((fault.kind, fault.unknown), (kind, unknown), "{code}");
            assert!(fault.to_string().starts_with("patch Node n1: no"), "{fault}");
        }
    }

    #[test]
    fn what_nobody_was_there_to_send_did_not_happen() {
        let home = tempfile::tempdir().expect("a directory");
        let login = picket_login::Login::new(Some(home.path().join("none")), None, None, Vec::new());
        let wrong = login.look().expect_err("it is missing");
        let fault = Fault::of("patch Node n1", kube::Error::Service(Box::new(wrong)));
        assert_eq!((fault.kind, fault.unknown), (Kind::Away, false), "{fault}");
    }

    /// With a Node its taints are gone, and with its name its pods: no page of a proxy says that.
    #[test]
    fn an_object_is_not_there_where_the_api_server_names_it() {
        for (status, kind) in [
            (json!({ "reason": "NotFound", "details": { "name": "n1", "kind": "nodes" } }), Kind::NotFound),
            (json!({ "reason": "NotFound", "details": {} }), Kind::Refused),
            (json!({ "reason": "NotFound" }), Kind::Refused),
            (json!({ "reason": "", "details": { "name": "n1" } }), Kind::Refused),
            (json!({ "message": "<html>", "reason": "Failed to parse error data" }), Kind::Refused),
        ] {
            let whole = Status { code: 404, ..serde_json::from_value(status.clone()).expect("a status") };
            let fault = Fault::of("get Node n1", kube::Error::Api(Box::new(whole)));
            assert_eq!((fault.kind, fault.unknown), (kind, false), "{status}");
        }
    }
}
