//! Nodes as they are now.

use std::collections::{BTreeMap, BTreeSet};

use picket_core::device::{DeviceClass, Identity};
use picket_core::ledger::OpenEffect;
use picket_core::record::{Fence, Hold, Phase, ReleaseState};
use picket_core::time::WallTime;
use picket_engine::{LIVENESS_SOURCE, NodeView, Wait, whose_release};
use picket_proto::v1;

use super::device::{CurrentTime, devices};
use super::evidence;
use super::time::{between, duration, timestamp};
use super::words;

/// A node. `leading`: whether this gateway leads; without, it holds no proof.
pub(crate) fn node(view: &NodeView, now: CurrentTime, leading: bool) -> v1::Node {
    let record = &view.stored.record;
    let fence = record.fence.as_ref();
    let devices = devices(view, now);
    // With its retirement it is nobody's orphan any more; its task learns that a moment later.
    let orphaned = view.live.orphaned.as_ref().filter(|_| record.phase != Phase::Retired);
    let reason = match record.phase {
        _ if orphaned.is_some() => v1::Reason::Orphaned,
        Phase::NeedsOperator(reason) => words::reason(reason),
        _ => v1::Reason::Unspecified,
    };
    let unfencing = matches!(record.phase, Phase::Unfencing | Phase::PowerOnFailed);
    v1::Node {
        name: record.node.to_string(),
        generation: record.generation.0,
        phase: words::phase(&record.phase).into(),
        reason: reason.into(),
        detail: orphaned
            .cloned()
            .or_else(|| fence.and_then(|fence| fence.moments.last()).map(|moment| moment.what.clone()))
            .unwrap_or_default(),
        phase_since: phase_since(view).map(timestamp),
        power: Some(power(view, now)),
        readiness: readiness(&devices).into(),
        devices,
        holds: record.holds.iter().map(hold).collect(),
        fence_id: fence.map(|fence| fence.id.to_string()).unwrap_or_default(),
        fence_opened_at: fence.map(|fence| timestamp(fence.opened_at)),
        open_effects: record.ledger.open().iter().map(open_effect).collect(),
        bringing: if unfencing { words::bringing(record.bringing) } else { v1::Bringing::Unspecified }.into(),
        breaches: record.breaches,
        back_since: record.back_since.map(timestamp),
        groups: view.plan.groups.iter().cloned().collect(),
        identity: Some(identity(view)),
        pauses: Vec::new(),
        orphaned: orphaned.is_some(),
        wait: view.live.wait.as_ref().map(|waited| wait(waited, &record.phase)),
        proven: leading && view.live.proven,
        retired: record.retired.as_ref().map(|retired| v1::Retirement {
            by: retired.by.clone(),
            reason: retired.reason.clone(),
            at: Some(timestamp(retired.at)),
        }),
        releases: fence.map(|fence| releases(fence, view.live.wait.as_ref())).unwrap_or_default(),
        simulated: view.plan.topology.is_simulated(),
        // These are known of the whole fleet's books, and are filled in there.
        barred: None,
        refused_settings: String::new(),
    }
}

/// All releases of the fence. When one is due is known of the one that is waited for.
fn releases(fence: &Fence, wait: Option<&Wait>) -> Vec<v1::Release> {
    let due = |release: &ReleaseState| {
        let is_its = |wait: &&Wait| wait.whose == whose_release(&release.id.whole());
        // What waits for the parts says until when the last of them has time.
        wait.filter(is_its).filter(|_| !release.stage.is_over()).and_then(|wait| wait.until)
    };
    let told =
        |release| v1::Release { due_at: due(release).map(timestamp), ..evidence::release(fence, release) };
    fence.releases.iter().map(told).collect()
}

/// Since when the phase is as it is: the first of the last moments that share it.
fn phase_since(view: &NodeView) -> Option<WallTime> {
    let record = &view.stored.record;
    let here = record.phase.label();
    match &record.fence {
        None => record.retired.as_ref().map(|retired| retired.at).or(record.back_since),
        Some(Fence { moments, .. }) => {
            moments.iter().rev().take_while(|moment| moment.phase == here).last().map(|moment| moment.at)
        }
    }
}

/// The power of a node in one word: what its host devices say; without any, Off of all supplies.
fn power(view: &NodeView, now: CurrentTime) -> v1::NodePower {
    use picket_core::power::Power;
    let (mut power, mut asked) = view.power();
    if view.plan.topology.hosts().next().is_none() {
        let said: Vec<_> = view
            .plan
            .topology
            .devices()
            .map(|spec| view.live.devices.get(&spec.id).and_then(|live| live.power))
            .collect();
        let all_off = said.iter().all(|said| matches!(said, Some((Power::Off, _))));
        power = if all_off { Power::Off } else { Power::Unknown };
        asked = said.iter().flatten().map(|(_, at)| *at).min();
    }
    v1::NodePower {
        power: words::power(power).into(),
        asked_at: asked.map(timestamp),
        age: asked.map(|at| duration(between(at, now.wall))),
    }
}

/// The worst readiness within the best level.
fn readiness(devices: &[v1::Device]) -> v1::Readiness {
    let rank = |device: &v1::Device| match device.readiness() {
        v1::Readiness::Unspecified => 1,
        v1::Readiness::Ready => 3,
        v1::Readiness::Degraded => 2,
        v1::Readiness::NotReady => 0,
    };
    let mut levels: BTreeMap<u32, (u8, v1::Readiness)> = BTreeMap::new();
    for device in devices {
        let this = (rank(device), device.readiness());
        let worst = levels.entry(device.level).or_insert(this);
        *worst = (*worst).min(this);
    }
    levels.into_values().max().map_or(v1::Readiness::Unspecified, |(_, readiness)| readiness)
}

fn hold((holder, hold): (&String, &Hold)) -> v1::Hold {
    v1::Hold {
        holder: holder.clone(),
        reason: hold.reason.clone(),
        by: hold.by.clone(),
        since: Some(timestamp(hold.since)),
        drop_when_released: hold.drop_when_released,
        by_shown: hold.shown().unwrap_or_default().to_owned(),
    }
}

fn open_effect(open: &OpenEffect) -> v1::OpenEffect {
    let (kind, target) = words::effect(&open.kind);
    v1::OpenEffect {
        id: open.id.0,
        kind: kind.into(),
        target,
        generation: open.generation.0,
        term: open.term.0,
        opened_at: Some(timestamp(open.opened_at)),
        life: open.life.map(duration),
    }
}

/// What is waited for, and what comes if that is in vain.
pub(crate) fn wait(wait: &Wait, phase: &Phase) -> v1::Wait {
    let otherwise = match phase {
        _ if wait.until.is_none() => "",
        _ if wait.whose == LIVENESS_SOURCE => "the fence goes on",
        Phase::Fencing => "next level, or needs operator",
        Phase::Fenced => "needs operator",
        Phase::Unfencing => "power on failed, or needs operator",
        _ => "",
    };
    v1::Wait {
        what: wait.what.clone(),
        whose: wait.whose.clone(),
        until: wait.until.map(timestamp),
        otherwise: otherwise.to_owned(),
    }
}

/// What identifies the machine: what its host devices must say, else what they were heard to say at a check.
pub(crate) fn identities(view: &NodeView) -> impl Iterator<Item = &Identity> {
    let hosts = view.plan.topology.devices().filter(|spec| spec.class == DeviceClass::Host);
    hosts.filter_map(|spec| {
        if spec.identity.is_empty() {
            view.stored.record.learned.get(&spec.id).map(|known| &**known)
        } else {
            Some(&spec.identity)
        }
    })
}

fn identity(view: &NodeView) -> v1::NodeIdentity {
    let others: BTreeSet<String> = identities(view).filter_map(|identity| identity.serial.clone()).collect();
    v1::NodeIdentity {
        provider_id: view.plan.provider_id.clone().unwrap_or_default(),
        system_uuid: identities(view).find_map(|identity| identity.uuid.clone()).unwrap_or_default(),
        others: others.into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_as_ready_as_the_worst_device_of_its_best_level() {
        let device = |level, readiness: v1::Readiness| v1::Device {
            level,
            readiness: readiness.into(),
            ..Default::default()
        };
        use v1::Readiness::{Degraded, NotReady, Ready, Unspecified};
        assert_eq!(readiness(&[]), Unspecified);
        assert_eq!(readiness(&[device(1, Ready), device(1, NotReady)]), NotReady);
        assert_eq!(readiness(&[device(1, NotReady), device(2, Ready), device(2, Degraded)]), Degraded);
        assert_eq!(readiness(&[device(1, NotReady), device(2, Unspecified)]), Unspecified);
    }

    #[test]
    fn a_wait_without_an_end_has_nothing_that_comes_otherwise() {
        let waited = Wait { what: "a decision".to_owned(), whose: "an operator".to_owned(), until: None };
        assert_eq!(wait(&waited, &Phase::Fencing).otherwise, "");
        let bounded = Wait { until: Some(WallTime::from_millis(1)), ..waited };
        assert!(!wait(&bounded, &Phase::Fencing).otherwise.is_empty());
    }
}
