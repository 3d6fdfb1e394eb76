//! What an engine's refusal means for a child's device.

use picket_core::budget::LimitKind;
use picket_core::ids::NodeId;
use picket_driver::{DriverError, Effect, ErrorKind};

use crate::error::EngineError;

pub(super) fn refused(kind: ErrorKind, detail: impl Into<String>) -> DriverError {
    DriverError::new(kind, Effect::DidNotHappen, detail)
}

/// What an engine's refusal means for a child's device. Nothing was stored but where nobody knows.
pub(super) fn failed(parent: &NodeId, error: &EngineError) -> DriverError {
    let (kind, effect) = match error {
        EngineError::NoLeader(_) => (ErrorKind::NotLeader, Effect::DidNotHappen),
        EngineError::Unanswered | EngineError::Store(_) => (ErrorKind::Unreachable, Effect::Unknown),
        EngineError::Barred(_) | EngineError::Blocked { .. } => (ErrorKind::Refused, Effect::DidNotHappen),
        EngineError::UnknownNode { .. } | EngineError::NotAllowed(_) => {
            (ErrorKind::Settings, Effect::DidNotHappen)
        }
        _ => (ErrorKind::Refused, Effect::DidNotHappen),
    };
    // These do not pass by themselves.
    let way = match error {
        EngineError::Barred(bar) if matches!(bar.kind, LimitKind::MinNotFenced | LimitKind::Brake) => {
            format!(
                "; what was set aside for a child is not for {parent}: an admin of it can `picket fence {parent} --override-budget REASON`"
            )
        }
        _ => String::new(),
    };
    // A role is given by a person.
    let is_final = matches!(error, EngineError::RoleLost(_));
    DriverError::new(kind, effect, format!("{parent}: {error}{way}")).for_good(is_final)
}
