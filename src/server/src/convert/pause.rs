//! Pauses, on the wire.

use picket_core::budget::Bar;
use picket_core::budget::pause::{Pause, PauseScope};
use picket_proto::v1::{self, pause_scope};

use super::time::timestamp;

/// A pause.
pub(crate) fn pause(pause: &Pause) -> v1::Pause {
    v1::Pause {
        scope: Some(scope(&pause.scope)),
        reason: pause.reason.clone(),
        by: pause.by.clone(),
        since: Some(timestamp(pause.since)),
        expires_at: Some(timestamp(pause.expires_at)),
    }
}

/// The brake holds: nothing starts anywhere, until less of the fleet looks dead, or it is resumed.
pub(crate) fn brake(bar: &Bar) -> v1::Pause {
    v1::Pause {
        scope: Some(scope(&PauseScope::Everything)),
        reason: format!("the brake holds: {}", bar.text),
        by: picket_audit::GATEWAY.to_owned(),
        since: None,
        expires_at: None,
    }
}

fn scope(scope: &PauseScope) -> v1::PauseScope {
    let of = match scope {
        PauseScope::Everything => pause_scope::Of::Everything(true),
        PauseScope::Group(name) => pause_scope::Of::Group(name.clone()),
        PauseScope::Node(name) => pause_scope::Of::Node(name.to_string()),
    };
    v1::PauseScope { of: Some(of) }
}
