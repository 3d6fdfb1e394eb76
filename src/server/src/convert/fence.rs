//! Fences as they were.

use std::collections::BTreeMap;

use picket_core::machine::opened_by;
use picket_core::record::{Cause, Fence, Hold, Moment};
use picket_core::time::WallTime;
use picket_core::topology::Level;
use picket_proto::v1;

use super::time::{between, duration, timestamp};
use super::{evidence, outcome, words};

/// A fence; with its moments where `full`. `holds`: the node's, if the fence is open.
pub(crate) fn fence(fence: &Fence, full: bool, holds: Option<&BTreeMap<String, Hold>>) -> v1::Fence {
    v1::Fence {
        id: fence.id.to_string(),
        node: fence.node.to_string(),
        generation: fence.generation.0,
        cause: words::cause(fence.cause).into(),
        askers: askers(fence, holds),
        opened_at: Some(timestamp(fence.opened_at)),
        ended_at: fence.ended_at.map(timestamp),
        deadline: Some(duration(fence.deadline)),
        minimum_grade: words::grade(fence.min_grade).into(),
        levels: fence.topology.levels().iter().map(level).collect(),
        level: u32::try_from(fence.level + 1).unwrap_or(u32::MAX),
        off_sent: fence.off_sent,
        switched_off: fence.switched_off.iter().map(ToString::to_string).collect(),
        lost_sessions: fence.lost.iter().map(ToString::to_string).collect(),
        holds: fence.holds.iter().map(evidence::hold).collect(),
        releases: fence.releases.iter().map(|release| evidence::release(fence, release)).collect(),
        evidence: evidence::evidence(fence),
        outcome: outcome::of_fence(fence),
        timings: Some(timings(fence)),
        moments: if full { fence.moments.iter().map(moment).collect() } else { Vec::new() },
        exchanges: Vec::new(),
        exchanges_cut: false,
        audit_head: fence.audit.as_ref().map(|head| v1::AuditHead { seq: head.seq, hash: head.hash.clone() }),
    }
}

/// What was said to a device, and what it answered.
pub(crate) fn exchange(exchange: picket_audit::Exchange) -> v1::Exchange {
    v1::Exchange {
        at: Some(timestamp(WallTime::from_millis(exchange.at))),
        device: exchange.device,
        asked: exchange.asked,
        answered: exchange.answered,
        took: Some(duration(exchange.took)),
    }
}

/// The first is who opened it; who joined is known as long as their holds are. For a fence after a breach nobody asked.
fn askers(fence: &Fence, holds: Option<&BTreeMap<String, Hold>>) -> Vec<v1::FenceAsker> {
    let is_breach = fence.cause == Cause::Breach;
    // A hold that stood before was placed by an earlier call, of whoever was behind the same name then.
    let is_its = |hold: &&Hold| hold.by == fence.by && hold.since == fence.opened_at;
    let opener = holds.and_then(|holds| holds.get(&fence.holder)).filter(is_its);
    let first = v1::FenceAsker {
        caller: fence.by.clone(),
        holder: fence.holder.clone(),
        reason: fence.reason.clone(),
        at: Some(timestamp(fence.opened_at)),
        // With the unfence the hold is gone, and a name that was shown once stays.
        caller_shown: opener
            .and_then(Hold::shown)
            .or_else(|| opened_by(fence))
            .unwrap_or_default()
            .to_owned(),
    };
    let is_new = |hold: &Hold| !is_breach || hold.since >= fence.opened_at;
    let joined = holds.into_iter().flatten();
    let joined = joined.filter(|(holder, hold)| (is_breach || **holder != fence.holder) && is_new(hold));
    let joined = joined.map(|(holder, hold)| v1::FenceAsker {
        caller: hold.by.clone(),
        holder: holder.clone(),
        reason: hold.reason.clone(),
        at: Some(timestamp(hold.since)),
        caller_shown: hold.shown().unwrap_or_default().to_owned(),
    });
    Some(first).filter(|_| !is_breach).into_iter().chain(joined).collect()
}

fn level(level: &Level) -> v1::FenceLevel {
    let class = level.devices.first().map_or(v1::DeviceClass::Unspecified, |spec| words::class(spec.class));
    v1::FenceLevel {
        devices: level.devices.iter().map(|spec| spec.id.to_string()).collect(),
        device_class: class.into(),
    }
}

fn moment(moment: &Moment) -> v1::Moment {
    v1::Moment {
        at: Some(timestamp(moment.at)),
        phase: words::phase_of(&moment.phase).into(),
        what: moment.what.clone(),
    }
}

/// From the intent. What is not in the record stands in its moments, whose phases and first words are stable.
fn timings(fence: &Fence) -> v1::FenceTimings {
    let since = |at: WallTime| duration(between(fence.opened_at, at));
    let first =
        |is: &dyn Fn(&Moment) -> bool| fence.moments.iter().find(|moment| is(moment)).map(|moment| moment.at);
    let proven = fence.evidence.as_ref();
    v1::FenceTimings {
        off_sent: first(&|moment| moment.what.starts_with("off: ")).map(since),
        off_seen: proven.map(|evidence| since(evidence.off_since)),
        confirmed: proven.map(|evidence| since(evidence.confirmed_at)),
        released: proven
            .and_then(|evidence| {
                first(&|moment| moment.phase == "released" && moment.at >= evidence.confirmed_at)
            })
            .map(since),
        back: first(&|moment| moment.phase == "normal").map(since),
    }
}
