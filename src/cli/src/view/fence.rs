//! Fences as they were, for scripts.

use picket_proto::v1::{Exchange, Fence, FenceAsker, FenceTimings, Moment};
use serde::Serialize;

use super::evidence::{DeviceHoldView, EvidenceView, ReleaseView};
use super::outcome::OutcomeView;
use super::{filled, seconds, stamp, words};

/// One fence.
#[derive(Debug, Serialize)]
pub struct FenceView {
    id: String,
    node: String,
    generation: u64,
    cause: Option<String>,
    askers: Vec<AskerView>,
    opened_at: Option<String>,
    ended_at: Option<String>,
    deadline_s: Option<f64>,
    minimum_grade: Option<String>,
    levels: Vec<LevelView>,
    level: u32,
    off_sent: bool,
    switched_off: Vec<String>,
    lost_sessions: Vec<String>,
    holds: Vec<DeviceHoldView>,
    releases: Vec<ReleaseView>,
    evidence: Option<EvidenceView>,
    outcome: Option<OutcomeView>,
    timings: TimingsView,
    moments: Vec<MomentView>,
    exchanges: Vec<ExchangeView>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    exchanges_cut: bool,
}

#[derive(Debug, Serialize)]
struct AskerView {
    caller: String,
    caller_shown: Option<String>,
    holder: Option<String>,
    reason: Option<String>,
    at: Option<String>,
}

#[derive(Debug, Serialize)]
struct LevelView {
    devices: Vec<String>,
    class: Option<String>,
}

#[derive(Debug, Default, Serialize)]
struct TimingsView {
    off_sent_s: Option<f64>,
    off_seen_s: Option<f64>,
    confirmed_s: Option<f64>,
    released_s: Option<f64>,
    back_s: Option<f64>,
}

#[derive(Debug, Serialize)]
struct MomentView {
    at: Option<String>,
    phase: Option<String>,
    what: String,
}

#[derive(Debug, Serialize)]
struct ExchangeView {
    at: Option<String>,
    device: String,
    asked: String,
    answered: String,
    took_s: Option<f64>,
}

impl From<&Fence> for FenceView {
    fn from(fence: &Fence) -> Self {
        Self {
            id: fence.id.clone(),
            node: fence.node.clone(),
            generation: fence.generation,
            cause: words::cause(fence.cause),
            askers: fence.askers.iter().map(AskerView::from).collect(),
            opened_at: stamp(&fence.opened_at),
            ended_at: stamp(&fence.ended_at),
            deadline_s: seconds(&fence.deadline),
            minimum_grade: words::grade(fence.minimum_grade),
            levels: fence
                .levels
                .iter()
                .map(|level| LevelView {
                    devices: level.devices.clone(),
                    class: words::device_class(level.device_class),
                })
                .collect(),
            level: fence.level,
            off_sent: fence.off_sent,
            switched_off: fence.switched_off.clone(),
            lost_sessions: fence.lost_sessions.clone(),
            holds: fence.holds.iter().map(DeviceHoldView::from).collect(),
            releases: fence.releases.iter().map(ReleaseView::from).collect(),
            evidence: fence.evidence.as_ref().map(EvidenceView::from),
            outcome: fence.outcome.as_ref().map(OutcomeView::from),
            timings: fence.timings.as_ref().map(TimingsView::from).unwrap_or_default(),
            moments: fence.moments.iter().map(MomentView::from).collect(),
            exchanges: fence.exchanges.iter().map(ExchangeView::from).collect(),
            exchanges_cut: fence.exchanges_cut,
        }
    }
}

impl From<&FenceAsker> for AskerView {
    fn from(asker: &FenceAsker) -> Self {
        Self {
            caller: asker.caller.clone(),
            caller_shown: filled(&asker.caller_shown),
            holder: filled(&asker.holder),
            reason: filled(&asker.reason),
            at: stamp(&asker.at),
        }
    }
}

impl From<&FenceTimings> for TimingsView {
    fn from(timings: &FenceTimings) -> Self {
        Self {
            off_sent_s: seconds(&timings.off_sent),
            off_seen_s: seconds(&timings.off_seen),
            confirmed_s: seconds(&timings.confirmed),
            released_s: seconds(&timings.released),
            back_s: seconds(&timings.back),
        }
    }
}

impl From<&Moment> for MomentView {
    fn from(moment: &Moment) -> Self {
        Self { at: stamp(&moment.at), phase: words::phase(moment.phase), what: moment.what.clone() }
    }
}

impl From<&Exchange> for ExchangeView {
    fn from(exchange: &Exchange) -> Self {
        Self {
            at: stamp(&exchange.at),
            device: exchange.device.clone(),
            asked: exchange.asked.clone(),
            answered: exchange.answered.clone(),
            took_s: seconds(&exchange.took),
        }
    }
}
