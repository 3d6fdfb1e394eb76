//! What the engine refuses, in the words of the wire.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use picket_core::election::{Known, Member};
use picket_core::ids::{DeviceId, NodeId};
use picket_core::machine::Refused;
use picket_core::outcome::Reason;
use picket_core::store::StoreError;
use picket_engine::{Absent, Engine, EngineError, ErrorKind, Part, Stale};
use picket_proto::v1::ErrorReason;

use crate::convert::words;
use crate::fault::{Fault, Fields};

/// A leader is found again within about this time.
const LEADER: Duration = Duration::from_secs(1);
/// A store that is away may be back after this time.
const STORE: Duration = Duration::from_secs(2);
/// An API server of Kubernetes that is away may be back after this time.
pub(crate) const KUBERNETES: Duration = Duration::from_secs(5);
/// Where the engine does not say when there is room for another receipt, it is asked again after this time.
const RECEIPT: Duration = Duration::from_secs(10);

/// What was asked, for the words of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// Fence.
    Fence,
    /// Unfence.
    Unfence,
    /// Retry.
    Retry,
    /// AbandonRelease.
    Abandon,
    /// StandDown.
    StandDown,
    /// Hold.
    Hold,
    /// Attest.
    Attest,
    /// Retire.
    Retire,
    /// AcceptIdentity.
    Accept,
    /// Drill.
    Drill,
    /// GetReceipt, ReturnReceipt.
    Receipt,
    /// Anything that only asks.
    Look,
}

impl Verb {
    /// The phases in which it is possible.
    fn wanted(self) -> &'static [&'static str] {
        match self {
            Verb::Fence | Verb::Receipt | Verb::Look => &[],
            Verb::Unfence => &["RELEASED", "POWER_ON_FAILED"],
            Verb::Retry => &["NEEDS_OPERATOR", "POWER_ON_FAILED"],
            Verb::Abandon => &["FENCED", "NEEDS_OPERATOR", "POWER_ON_FAILED"],
            Verb::StandDown => &["NEEDS_OPERATOR", "POWER_ON_FAILED"],
            Verb::Hold => &["FENCING", "FENCED", "RELEASED", "NEEDS_OPERATOR"],
            Verb::Attest => &["FENCING", "NEEDS_OPERATOR"],
            Verb::Retire => &["RELEASED", "NEEDS_OPERATOR", "POWER_ON_FAILED"],
            Verb::Accept => &["NORMAL", "NEEDS_OPERATOR"],
            Verb::Drill => &["NORMAL"],
        }
    }
}

/// Nobody leads here, and why: another gateway does, or none. Only of what surely did nothing: clients send it to who leads.
pub(crate) fn no_leader(engine: &Engine, why: &str) -> Fault {
    match engine.part() {
        Ok(Part::Follows { leader, .. }) if leader.gateway != engine.me().gateway => {
            not_leader(&leader, "ask it, with the same key")
        }
        Ok(_) => nobody(why),
        Err(absent) => self::absent(engine, &absent),
    }
}

/// Another gateway leads.
fn not_leader(leader: &Member, hint: &str) -> Fault {
    Fault::new(
        ErrorReason::NotLeader,
        format!("the gateway {} leads, and not this one: {hint}", leader.gateway),
    )
    .with("leader", &leader.gateway)
    .with_list("endpoint", &leader.endpoints)
    .retry_after(LEADER)
}

fn nobody(why: &str) -> Fault {
    let message = format!("no gateway leads at the moment: {why}; ask again with the same key");
    Fault::new(ErrorReason::NoLeader, message).retry_after(LEADER)
}

/// The leadership under which something was asked has ended. It may have been done, so that nobody is sent on with it.
pub(crate) fn ended(why: &str) -> Fault {
    let message = format!(
        "this gateway leads no more ({why}), and what was asked may have been done: ask again with the same key, and it is \
         done once; without one, look first"
    );
    Fault::new(ErrorReason::NoLeader, message).retry_after(LEADER)
}

/// What is stored cannot be told: since when, and how old what was last seen is.
pub(crate) fn absent(engine: &Engine, absent: &Absent) -> Fault {
    let since = absent.since.map(|since| since.to_string()).unwrap_or_default();
    let age = absent.age.map(|age| format!("{:.1}", age.as_secs_f64())).unwrap_or_default();
    let told = match engine.known() {
        Known::Leader(leader, _) => not_leader(&leader, &format!("{}; ask it", absent.why)),
        Known::Nobody(_) | Known::Away(..) => nobody(&absent.why),
    };
    told.with("since", since).with("seen_s_ago", age)
}

/// The gateway goes down.
pub(crate) fn shutting_down() -> Fault {
    let message = "the gateway is going down, or reads its roles anew; what was begun goes on, or is resumed by whoever leads next: ask again with the same key";
    Fault::new(ErrorReason::ShuttingDown, message).retry_after(LEADER)
}

/// The engine did not do `verb` for `node`.
pub(crate) fn engine(error: EngineError, verb: Verb, node: &NodeId, engine: &Engine) -> Fault {
    let message = error.to_string();
    match error {
        // It was there when it was asked for.
        EngineError::UnknownNode { name } => {
            let message = format!("there is no node {name:?} any more");
            Fault::new(ErrorReason::NodeNotFound, message).resource("node", &name)
        }
        EngineError::Refused(refusal) => refused(refusal, verb, node, engine),
        EngineError::Blocked { reason: Reason::Orphaned, .. } => {
            Fault::new(ErrorReason::WrongPhase, message.clone()).precondition("ORPHANED", node.as_str(), &message)
        }
        EngineError::Blocked { .. } | EngineError::Barred(_) => Fault::new(ErrorReason::NotOffered, message),
        EngineError::Stale(Stale::Generation { expected, found }) => {
            Fault::new(ErrorReason::GenerationMismatch, message.clone())
                .with("expected", expected.to_string())
                .with("found", found.to_string())
                .precondition("GENERATION", node.as_str(), &message)
        }
        EngineError::Stale(Stale::NotAfter) => {
            Fault::new(ErrorReason::NotAfterPassed, message.clone()).precondition("NOT_AFTER", node.as_str(), &message)
        }
        EngineError::Stale(Stale::FenceGone(fence)) => {
            Fault::new(ErrorReason::FenceNotFound, message).resource("fence", &fence.to_string())
        }
        EngineError::KeyTaken(taken) => taken
            .fence
            .iter()
            .fold(Fault::new(ErrorReason::KeyReused, message), |fault, id| fault.with("fence", id.to_string()))
            .field("idempotency_key", "was used for this node with other parameters: take a new key, or repeat the request as it was"),
        EngineError::NotProven(_) => Fault::new(ErrorReason::NotProven, message),
        EngineError::ReceiptsFull { own, room_in, .. } => {
            receipts_full(own, message).retry_after(room_in.max(Duration::from_secs(1)))
        }
        EngineError::NoKey(_) | EngineError::NotAllowed(_) => Fault::new(ErrorReason::NotOffered, message),
        EngineError::RoleLost(_) => Fault::new(ErrorReason::RoleMissing, message),
        EngineError::Store(error) => store(error),
        EngineError::NoLeader(why) => no_leader(engine, &why),
        EngineError::Unanswered => ended("it ended in the middle of it"),
        EngineError::Device { device, kind, detail } => failed(&device, kind, &detail, &message),
        EngineError::Field { field, what } => {
            let mut fields = Fields::default();
            fields.wrong(field, what);
            fields.done().err().unwrap_or_else(|| Fault::new(ErrorReason::BadRequest, message))
        }
        EngineError::Invalid(what) => Fault::new(ErrorReason::BadRequest, what),
    }
}

fn refused(refused: Refused, verb: Verb, node: &NodeId, engine: &Engine) -> Fault {
    let message = refused.to_string();
    let name = node.as_str();
    match refused {
        Refused::Phase { phase, .. } if verb == Verb::Unfence && matches!(phase, "fencing" | "fenced") => {
            let open = engine
                .node(node)
                .ok()
                .and_then(|view| view.stored.record.fence.clone())
                .map(|fence| fence.id);
            let words =
                "a fence is under way, and runs to its end: wait until the node is released, then unfence it";
            Fault::new(ErrorReason::FenceOpen, format!("{name} is {phase}: {words}"))
                .with("fence", open.map(|id| id.to_string()).unwrap_or_default())
                .with("phase", words::phase_word(phase))
                .precondition("PHASE", name, words)
        }
        Refused::Phase { phase, .. } if verb == Verb::Receipt => {
            Fault::new(ErrorReason::NotProven, message).with("phase", words::phase_word(phase))
        }
        Refused::Phase { phase, hint, .. } => Fault::new(ErrorReason::WrongPhase, message)
            .with("phase", words::phase_word(phase))
            .with_list("wanted", verb.wanted())
            .precondition("PHASE", name, hint),
        Refused::NoSuchHold { holder, holds } => Fault::new(ErrorReason::HoldNotFound, message)
            .resource("hold", &holder)
            .with_list("holders", &holds),
        Refused::NoSuch { what: "release", name, known } => Fault::new(ErrorReason::ReleaseNotFound, message)
            .resource("release", &name)
            .with_list("releases", &known),
        Refused::NoSuch { what: "receipt" | "open receipt", name, .. } => {
            Fault::new(ErrorReason::ReceiptNotFound, message).resource("receipt", &name)
        }
        Refused::TooManyReceipts(open) => {
            receipts_full(open < picket_core::receipt::MOST, message).retry_after(RECEIPT)
        }
        Refused::TooManyHolds { by, holds } => {
            let limit = if by.is_some() { "holds_each" } else { "holds" };
            let fault = Fault::new(ErrorReason::Limit, message.clone()).with("limit", limit);
            fault.with_list("holders", &holds).quota(limit, &message)
        }
        // Nobody asks for a survey.
        Refused::TooManyParts(..) => Fault::new(ErrorReason::WrongPhase, message),
        Refused::NotTheirs { of, .. } => {
            Fault::new(ErrorReason::HolderNotAllowed, message).with("holder", of)
        }
        Refused::NoSuch { what, name, known } => Fault::new(ErrorReason::DeviceNotFound, message)
            .resource(what, &name)
            .with_list("devices", &known),
        Refused::NotReleased(releases) => Fault::new(ErrorReason::NotReleased, message.clone())
            .with_list("releases", &releases)
            .precondition("RELEASE", name, &message),
        Refused::OpenEffects(effects) => Fault::new(ErrorReason::OpenEffects, message.clone())
            .with_list("effects", &effects)
            .precondition("EFFECT", name, &message),
        Refused::SaysOn { device, said } => Fault::new(ErrorReason::HostReadsOn, message.clone())
            .with("device", device)
            .with("said", said)
            .precondition("POWER", name, &message),
        Refused::WiringUnknown(supplies) => {
            Fault::new(ErrorReason::NotOffered, message).with_list("supplies", &supplies)
        }
        Refused::ForeignProof(_) if verb == Verb::Attest => {
            Fault::new(ErrorReason::WrongPhase, message.clone()).precondition("PHASE", name, &message)
        }
        Refused::ForeignProof(_) => Fault::new(ErrorReason::NotProven, message),
        Refused::Held(_) | Refused::OffSent => {
            Fault::new(ErrorReason::WrongPhase, message.clone()).precondition("PHASE", name, &message)
        }
    }
}

/// As many receipts are open as may be: of one caller, or of the node.
fn receipts_full(own: bool, message: String) -> Fault {
    let limit = if own { "receipts_each" } else { "receipts" };
    Fault::new(ErrorReason::Limit, message.clone()).with("limit", limit).quota(limit, &message)
}

/// A device that does not answer may answer later; one that refuses has to be put right.
fn failed(device: &DeviceId, kind: ErrorKind, detail: &str, message: &str) -> Fault {
    if matches!(kind, ErrorKind::TimedOut | ErrorKind::Unreachable | ErrorKind::Throttled | ErrorKind::NoTurn)
    {
        return Fault::new(ErrorReason::TooSlow, format!("{message}; nothing was changed"));
    }
    let problem = words::problem(kind).as_str_name().trim_start_matches("DEVICE_PROBLEM_KIND_").to_owned();
    Fault::new(ErrorReason::DeviceFailed, message)
        .with("device", device.as_str())
        .with("problem", problem)
        .precondition("DEVICE", device.as_str(), detail)
}

/// The store did not do it.
pub(crate) fn store(error: StoreError) -> Fault {
    let message = error.to_string();
    match error {
        // A store that was moved is one again once its mark is taken away; and another endpoint may have the new one.
        StoreError::Unavailable(_) | StoreError::Moved(_) => {
            Fault::new(ErrorReason::StoreUnavailable, message).retry_after(STORE)
        }
        StoreError::Unknown(_) => {
            Fault::new(ErrorReason::StoreUnavailable, format!("{message}; ask again with the same key"))
                .retry_after(STORE)
        }
        StoreError::Deposed(why) => nobody(&why),
        StoreError::Conflict { .. } | StoreError::NoteChanged { .. } => {
            Fault::new(ErrorReason::Conflict, format!("{message}; ask again"))
        }
        StoreError::KeyTaken(_) => Fault::new(ErrorReason::KeyReused, message)
            .field("idempotency_key", "was used with other parameters"),
        StoreError::Compacted(_) => {
            Fault::new(ErrorReason::RevisionGone, format!("{message}: list, and watch from there"))
        }
        StoreError::Damaged(_) => internal(&message),
    }
}

/// An error of a question that concerns no node.
pub(crate) fn asked(error: EngineError) -> Fault {
    match error {
        EngineError::Store(error) => store(error),
        EngineError::NoLeader(why) => nobody(&why),
        EngineError::Unanswered => ended("it ended in the middle of it"),
        EngineError::RoleLost(why) => Fault::new(ErrorReason::RoleMissing, why),
        other => internal(&other.to_string()),
    }
}

/// A defect, or a damaged store: told with what to look for in the log, where the rest stands.
pub(crate) fn internal(what: &str) -> Fault {
    static COUNT: AtomicU64 = AtomicU64::new(1);
    let trace = format!("internal-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    tracing::error!(trace, what, "an internal error was told to a caller");
    Fault::new(ErrorReason::Internal, format!("{what} (in the gateway's log: {trace})")).with("trace", trace)
}

#[cfg(test)]
mod tests {
    use picket_core::ids::{Revision, Version};
    use tonic::Code;
    use tonic_types::StatusExt;

    use super::*;

    #[test]
    fn each_failure_of_the_store_is_told_as_what_it_means_for_the_caller() {
        let node = NodeId::new("n1").expect("a good name");
        let conflict = StoreError::Conflict { node, expected: Version(1), found: Version(2) };
        for (error, code, word, again) in [
            (StoreError::Unavailable("disk full".to_owned()), Code::Unavailable, "STORE_UNAVAILABLE", true),
            (StoreError::Unknown("no answer".to_owned()), Code::Unavailable, "STORE_UNAVAILABLE", true),
            (StoreError::Moved("to b".to_owned()), Code::Unavailable, "STORE_UNAVAILABLE", true),
            (StoreError::Deposed("term 7".to_owned()), Code::Unavailable, "NO_LEADER", true),
            (conflict, Code::Aborted, "CONFLICT", false),
            (StoreError::KeyTaken("k".to_owned()), Code::InvalidArgument, "KEY_REUSED", false),
            (StoreError::Compacted(Revision(7)), Code::OutOfRange, "REVISION_GONE", false),
            (StoreError::Damaged("torn".to_owned()), Code::Internal, "INTERNAL", false),
        ] {
            let status = store(error.clone()).status();
            let details = status.get_error_details();
            assert_eq!(status.code(), code, "{error:?}");
            assert_eq!(details.error_info().map(|info| info.reason.as_str()), Some(word), "{error:?}");
            assert_eq!(details.retry_info().is_some(), again, "{error:?}");
        }
    }

    #[test]
    fn an_internal_error_names_what_to_look_for_in_the_log() {
        let status = internal("torn").status();
        let details = status.get_error_details();
        let trace = &details.error_info().expect("an info").metadata["trace"];
        assert!(status.message().contains(trace.as_str()));
    }
}
