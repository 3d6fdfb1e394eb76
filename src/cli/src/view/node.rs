//! Nodes, for scripts.

use picket_proto::v1::{
    Device, DeviceReading, Hold, Identity, Node, NodeIdentity, OpenEffect, Pause, PauseScope, Wait,
    pause_scope,
};
use serde::Serialize;

use super::evidence::ReleaseView;
use super::outcome::LimitView;
use super::{filled, seconds, stamp, words};

/// A node.
#[derive(Debug, Serialize)]
pub struct NodeView {
    name: String,
    phase: Option<String>,
    reason: Option<String>,
    detail: Option<String>,
    phase_since: Option<String>,
    generation: u64,
    power: PowerView,
    proven: bool,
    readiness: Option<String>,
    barred: Option<LimitView>,
    refused_settings: Option<String>,
    holds: Vec<HoldView>,
    fence_id: Option<String>,
    fence_opened_at: Option<String>,
    releases: Vec<ReleaseView>,
    wait: Option<WaitView>,
    open_effects: Vec<EffectView>,
    bringing: Option<String>,
    breaches: u32,
    back_since: Option<String>,
    groups: Vec<String>,
    identity: NodeIdentityView,
    pauses: Vec<PauseView>,
    orphaned: bool,
    retired: Option<RetiredView>,
    devices: Vec<DeviceView>,
    /// The gateway is simulated, and switches no real machine.
    simulated: bool,
}

/// That its hardware is gone for good.
#[derive(Debug, Serialize)]
struct RetiredView {
    by: String,
    reason: String,
    at: Option<String>,
}

#[derive(Debug, Serialize)]
struct PowerView {
    state: Option<String>,
    asked_at: Option<String>,
    age_s: Option<f64>,
}

#[derive(Debug, Serialize)]
struct HoldView {
    holder: String,
    reason: String,
    by: String,
    by_shown: Option<String>,
    since: Option<String>,
    drop_when_released: bool,
}

/// What is waited for.
#[derive(Debug, Serialize)]
pub struct WaitView {
    what: String,
    whose: Option<String>,
    until: Option<String>,
    otherwise: Option<String>,
}

#[derive(Debug, Serialize)]
struct EffectView {
    id: u64,
    kind: Option<String>,
    target: String,
    generation: u64,
    term: u64,
    opened_at: Option<String>,
    life_s: Option<f64>,
}

#[derive(Debug, Default, Serialize)]
struct NodeIdentityView {
    provider_id: Option<String>,
    system_uuid: Option<String>,
    others: Vec<String>,
}

/// A pause.
#[derive(Debug, Serialize)]
pub struct PauseView {
    scope: String,
    reason: String,
    by: String,
    since: Option<String>,
    expires_at: Option<String>,
}

/// A device.
#[derive(Debug, Serialize)]
pub struct DeviceView {
    id: String,
    class: Option<String>,
    driver: String,
    address: Option<String>,
    level: u32,
    grade: Option<String>,
    has_epochs: bool,
    wiring_verified: bool,
    readiness: Option<String>,
    problems: Vec<ProblemView>,
    checked_at: Option<String>,
    expected_identity: IdentityView,
    said_identity: IdentityView,
    identity: Option<String>,
    reading: Option<ReadingView>,
}

#[derive(Debug, Serialize)]
struct ProblemView {
    kind: Option<String>,
    text: String,
}

#[derive(Debug, Default, Serialize)]
struct IdentityView {
    uuid: Option<String>,
    serial: Option<String>,
}

#[derive(Debug, Serialize)]
struct ReadingView {
    power: Option<String>,
    said: Option<String>,
    asked_at: Option<String>,
    answered_at: Option<String>,
    age_s: Option<f64>,
    epoch: Option<u64>,
}

impl From<&Node> for NodeView {
    fn from(node: &Node) -> Self {
        let power = node.power.unwrap_or_default();
        Self {
            name: node.name.clone(),
            phase: words::phase(node.phase),
            reason: words::reason(node.reason),
            detail: filled(&node.detail),
            phase_since: stamp(&node.phase_since),
            generation: node.generation,
            power: PowerView {
                state: words::power(power.power),
                asked_at: stamp(&power.asked_at),
                age_s: seconds(&power.age),
            },
            proven: node.proven,
            readiness: words::readiness(node.readiness),
            barred: node.barred.as_ref().map(LimitView::from),
            refused_settings: filled(&node.refused_settings),
            holds: node.holds.iter().map(HoldView::from).collect(),
            fence_id: filled(&node.fence_id),
            fence_opened_at: stamp(&node.fence_opened_at),
            releases: node.releases.iter().map(ReleaseView::from).collect(),
            wait: node.wait.as_ref().map(WaitView::from),
            open_effects: node.open_effects.iter().map(EffectView::from).collect(),
            bringing: words::bringing(node.bringing),
            breaches: node.breaches,
            back_since: stamp(&node.back_since),
            groups: node.groups.clone(),
            identity: node.identity.as_ref().map(NodeIdentityView::from).unwrap_or_default(),
            pauses: node.pauses.iter().map(PauseView::from).collect(),
            orphaned: node.orphaned,
            simulated: node.simulated,
            retired: node.retired.as_ref().map(|retired| RetiredView {
                by: retired.by.clone(),
                reason: retired.reason.clone(),
                at: stamp(&retired.at),
            }),
            devices: node.devices.iter().map(DeviceView::from).collect(),
        }
    }
}

impl From<&Hold> for HoldView {
    fn from(hold: &Hold) -> Self {
        Self {
            holder: hold.holder.clone(),
            reason: hold.reason.clone(),
            by: hold.by.clone(),
            by_shown: filled(&hold.by_shown),
            since: stamp(&hold.since),
            drop_when_released: hold.drop_when_released,
        }
    }
}

impl From<&Wait> for WaitView {
    fn from(wait: &Wait) -> Self {
        Self {
            what: wait.what.clone(),
            whose: filled(&wait.whose),
            until: stamp(&wait.until),
            otherwise: filled(&wait.otherwise),
        }
    }
}

impl From<&OpenEffect> for EffectView {
    fn from(effect: &OpenEffect) -> Self {
        Self {
            id: effect.id,
            kind: words::effect(effect.kind),
            target: effect.target.clone(),
            generation: effect.generation,
            term: effect.term,
            opened_at: stamp(&effect.opened_at),
            life_s: seconds(&effect.life),
        }
    }
}

impl From<&NodeIdentity> for NodeIdentityView {
    fn from(identity: &NodeIdentity) -> Self {
        Self {
            provider_id: filled(&identity.provider_id),
            system_uuid: filled(&identity.system_uuid),
            others: identity.others.clone(),
        }
    }
}

/// A pause's scope in words: `everything`, `group rack1`, `node r1n01`.
pub fn scope(scope: Option<&PauseScope>) -> String {
    match scope.and_then(|scope| scope.of.as_ref()) {
        Some(pause_scope::Of::Everything(_)) => "everything".to_owned(),
        Some(pause_scope::Of::Group(name)) => format!("group {name}"),
        Some(pause_scope::Of::Node(name)) => format!("node {name}"),
        None => "unknown".to_owned(),
    }
}

impl From<&Pause> for PauseView {
    fn from(pause: &Pause) -> Self {
        Self {
            scope: scope(pause.scope.as_ref()),
            reason: pause.reason.clone(),
            by: pause.by.clone(),
            since: stamp(&pause.since),
            expires_at: stamp(&pause.expires_at),
        }
    }
}

impl From<&Device> for DeviceView {
    fn from(device: &Device) -> Self {
        let identity = |said: &Option<Identity>| said.as_ref().map(IdentityView::from).unwrap_or_default();
        Self {
            id: device.id.clone(),
            class: words::device_class(device.device_class),
            driver: device.driver.clone(),
            address: filled(&device.address),
            level: device.level,
            grade: words::grade(device.grade),
            has_epochs: device.has_epochs,
            wiring_verified: device.wiring_verified,
            readiness: words::readiness(device.readiness),
            problems: device
                .problems
                .iter()
                .map(|problem| ProblemView { kind: words::problem(problem.kind), text: problem.text.clone() })
                .collect(),
            checked_at: stamp(&device.checked_at),
            expected_identity: identity(&device.expected_identity),
            said_identity: identity(&device.said_identity),
            identity: words::identity_match(device.identity_match),
            reading: device.reading.as_ref().map(ReadingView::from),
        }
    }
}

impl From<&Identity> for IdentityView {
    fn from(identity: &Identity) -> Self {
        Self { uuid: filled(&identity.uuid), serial: filled(&identity.serial) }
    }
}

impl From<&DeviceReading> for ReadingView {
    fn from(reading: &DeviceReading) -> Self {
        Self {
            power: words::power(reading.power),
            said: filled(&reading.said),
            asked_at: stamp(&reading.asked_at),
            answered_at: stamp(&reading.answered_at),
            age_s: seconds(&reading.age),
            epoch: reading.epoch,
        }
    }
}
