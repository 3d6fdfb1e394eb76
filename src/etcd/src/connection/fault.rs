//! What an error of etcd's says of the request: surely without effect, or not known.

use picket_core::store::StoreError;
use picket_etcd_api::Error;
use tonic::{Code, ConnectError, Status};

/// What became of a request that was not answered well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Surely without effect; another member may do better.
    Elsewhere(String),
    /// Surely without effect, and no other member would do it.
    Refused(String),
    /// Surely without effect: who we are is not known there any more.
    Login(String),
    /// The same just after a login. The member answers, and another one may do better.
    Stranger(String),
    /// The lease is gone, and with it all that stood under it. Surely without effect.
    NoLease,
    /// What was asked for is of a revision that is no longer kept.
    Compacted,
    /// Whether it had an effect is not known.
    Unknown(String),
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Fault::Elsewhere(why)
            | Fault::Refused(why)
            | Fault::Login(why)
            | Fault::Stranger(why)
            | Fault::Unknown(why) => f.write_str(why),
            Fault::NoLease => f.write_str("the lease in etcd is over"),
            Fault::Compacted => f.write_str("that revision is no longer kept by etcd"),
        }
    }
}

impl Fault {
    /// Whether the member is at fault rather than the request.
    pub(super) fn is_the_members(&self) -> bool {
        self.may_go_elsewhere() || matches!(self, Fault::Unknown(_))
    }

    /// Whether another member may be asked for what surely had no effect here.
    pub(super) fn may_go_elsewhere(&self) -> bool {
        matches!(self, Fault::Elsewhere(_) | Fault::Stranger(_))
    }

    /// For a request that changes nothing: nothing was written, whatever happened.
    pub(crate) fn of_a_read(self) -> StoreError {
        StoreError::Unavailable(self.to_string())
    }

    /// For a request that may have changed something.
    pub(crate) fn of_a_write(self) -> StoreError {
        match self {
            Fault::Unknown(why) => StoreError::Unknown(why),
            other => StoreError::Unavailable(other.to_string()),
        }
    }

    /// The same, of this member.
    pub(super) fn at(self, url: &str) -> Self {
        let named = |why: String| format!("etcd at {url}: {why}");
        match self {
            Fault::Elsewhere(why) => Fault::Elsewhere(named(why)),
            Fault::Refused(why) => Fault::Refused(named(why)),
            Fault::Login(why) => Fault::Login(named(why)),
            Fault::Stranger(why) => Fault::Stranger(named(why)),
            Fault::Unknown(why) => Fault::Unknown(named(why)),
            other => other,
        }
    }
}

/// Judges an error. What is not known to be without effect may have had one.
pub(crate) fn judge(error: &Error) -> Fault {
    match error {
        Error::Status(status) => of_status(status),
        Error::Token => Fault::Refused(error.to_string()),
        Error::NoLease => Fault::NoLease,
        Error::Ended => Fault::Unknown(error.to_string()),
    }
}

/// Judges the refusal of a member's status: that of a key has other words. Before 3.5.28 etcd asked nobody for a role there (etcd's pull requests
/// 14663 and 21666, its issue 21663).
pub(super) fn judge_status(error: &Error) -> Fault {
    match error {
        Error::Status(status) if status.message() == "etcdserver: permission denied" => {
            Fault::Refused(format!(
                "it tells its version to the root role alone, as etcd 3.5.28 to 3.5.31 and 3.6.0 to 3.6.11 do where there are users, and without \
                 it nobody knows whether it renews leases rightly: upgrade it to 3.5.32, or to 3.6.12 or later ({})",
                status.message()
            ))
        }
        _ => judge(error),
    }
}

/// The words are those of etcd's `api/v3rpc/rpctypes/error.go`; each of these is said before a proposal is made, or by
/// the state machine when it refuses one.
fn of_status(status: &Status) -> Fault {
    if never_connected(status) {
        return Fault::Elsewhere(unconnected(status));
    }
    let said = status.message();
    let refused = |what: &str| Fault::Refused(format!("{what} ({said})"));
    let Some(word) = said.strip_prefix("etcdserver: ") else {
        return match (status.code(), said) {
            (Code::Unauthenticated, _) => Fault::Login(said.to_owned()),
            (_, "raft proposal dropped") => Fault::Elsewhere(said.to_owned()),
            // Said by etcd's server when it has read no more than the length; our own side says it in other words.
            (Code::ResourceExhausted, _) if said.starts_with("grpc: received message larger than max") => {
                refused("it is too large for etcd (--max-request-bytes)")
            }
            _ => Fault::Unknown(chain(status)),
        };
    };
    match word {
        "no leader" => Fault::Elsewhere("it has no leader: the quorum is lost, or it is cut off".to_owned()),
        "rpc not supported for learner" => Fault::Elsewhere(said.to_owned()),
        "invalid auth token" | "revision of auth store is old" | "user name is empty" => {
            Fault::Login(said.to_owned())
        }
        "requested lease not found" => Fault::NoLease,
        "mvcc: required revision has been compacted" => Fault::Compacted,
        "mvcc: database space exceeded" => refused(
            "it has no space left: compact and defragment it, or raise --quota-backend-bytes, then disarm its alarm",
        ),
        "authentication failed, invalid user ID or password" => {
            refused("it does not know this user with this password")
        }
        "authentication is not enabled" => {
            refused("it knows no users: enable its authentication, or remove user from [store]")
        }
        "permission denied" => refused("the user may not do this: grant it read and write of the prefix"),
        _ => match status.code() {
            Code::InvalidArgument
            | Code::FailedPrecondition
            | Code::PermissionDenied
            | Code::NotFound
            | Code::OutOfRange
            | Code::ResourceExhausted
            | Code::DataLoss => Fault::Refused(said.to_owned()),
            Code::Unauthenticated => Fault::Login(said.to_owned()),
            _ => Fault::Unknown(said.to_owned()),
        },
    }
}

/// Whether the connection never came to be, so that the request was never sent.
fn never_connected(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<ConnectError>() {
            return true;
        }
        next = error.source();
    }
    false
}

/// Why no connection came to be.
fn unconnected(error: &(dyn std::error::Error + 'static)) -> String {
    // What cuts a connection off need not speak TLS: etcd's address may be one of plain http.
    let tls = picket_trust::failure(error).filter(|why| !why.is_cut());
    tls.map_or_else(|| chain(error), |why| why.to_string())
}

/// The error with its sources.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut said = match error.downcast_ref::<Status>() {
        Some(status) => status.message().to_owned(),
        None => error.to_string(),
    };
    let mut next = error.source();
    while let Some(source) = next {
        let more = source.to_string();
        if !said.contains(&more) {
            said = format!("{said}: {more}");
        }
        next = source.source();
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(code: Code, said: &str) -> Fault {
        judge(&Error::Status(Status::new(code, said)))
    }

    #[test]
    fn only_what_is_known_to_be_without_effect_is_said_to_be() {
        for (code, said) in [
            (Code::Unavailable, "etcdserver: request timed out"),
            (Code::Unavailable, "etcdserver: request timed out, possibly due to previous leader failure"),
            (Code::Unavailable, "etcdserver: request timed out, possibly due to connection lost"),
            (Code::Unavailable, "etcdserver: server stopped"),
            (Code::Unavailable, "etcdserver: leader changed"),
            (Code::Unavailable, "transport error"),
            (Code::DeadlineExceeded, "context deadline exceeded"),
            (Code::Unknown, "context deadline exceeded"),
            (Code::Cancelled, "operation was canceled"),
            (Code::Internal, "h2 protocol error"),
            (
                Code::OutOfRange,
                "Error, decoded message length too large: found 9 bytes, the limit is: 8 bytes",
            ),
        ] {
            assert!(matches!(judged(code, said), Fault::Unknown(_)), "{said}");
            assert!(matches!(judged(code, said).of_a_write(), StoreError::Unknown(_)));
            assert!(matches!(judged(code, said).of_a_read(), StoreError::Unavailable(_)));
        }
    }

    #[test]
    fn what_etcd_refuses_says_what_would_be_right() {
        let full = judged(Code::ResourceExhausted, "etcdserver: mvcc: database space exceeded");
        assert!(full.to_string().contains("--quota-backend-bytes"), "{full}");
        assert!(matches!(full, Fault::Refused(_)));
        let large = judged(Code::InvalidArgument, "etcdserver: request is too large");
        assert!(matches!(large.of_a_write(), StoreError::Unavailable(_)));
        for (code, said) in [
            (Code::Unauthenticated, "etcdserver: invalid auth token"),
            (Code::InvalidArgument, "etcdserver: revision of auth store is old"),
            (Code::InvalidArgument, "etcdserver: user name is empty"),
        ] {
            assert!(matches!(judged(code, said), Fault::Login(_)), "{said}");
        }
        assert!(matches!(judged(Code::Unavailable, "etcdserver: no leader"), Fault::Elsewhere(_)));
        assert_eq!(judged(Code::NotFound, "etcdserver: requested lease not found"), Fault::NoLease);
        let gone = "etcdserver: mvcc: required revision has been compacted";
        assert_eq!(judged(Code::OutOfRange, gone), Fault::Compacted);
    }

    #[test]
    fn what_the_client_says_itself_is_judged_as_what_etcd_says() {
        assert_eq!(judge(&Error::NoLease), Fault::NoLease);
        assert!(matches!(judge(&Error::Ended), Fault::Unknown(_)));
        assert!(matches!(judge(&Error::Token), Fault::Refused(_)));
    }

    #[test]
    fn a_connection_that_never_came_to_be_carried_nothing() {
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let status = Status::from_error(Box::new(ConnectError(Box::new(refused))));
        assert!(matches!(judge(&Error::Status(status)), Fault::Elsewhere(_)));
        // Over plain http, too, there is nobody's handshake to blame.
        let reset = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        let status = Status::from_error(Box::new(ConnectError(Box::new(reset))));
        let told = judge(&Error::Status(status));
        let Fault::Elsewhere(why) = &told else { panic!("{told:?}") };
        assert!(why.contains("reset") && !why.contains("TLS"), "{why}");
        let broken = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        let status = Status::from_error(Box::new(broken));
        assert!(matches!(judge(&Error::Status(status)), Fault::Unknown(_)));
    }
}
