//! What is counted of a node: fences and what became of them, how long their parts took, and calls to devices.

use parking_lot::Mutex;
use picket_core::ids::FenceId;
use picket_core::record::{Cause, Fence, NodeRecord, Phase};
use picket_core::time::{BootTime, WallTime};
use picket_driver::DriverError;
use picket_metrics::{self as metrics, Metrics};

/// Counts for one node.
#[derive(Debug)]
pub(crate) struct Measures {
    metrics: Metrics,
    /// Since when it is being brought back.
    unfencing: Mutex<Option<BootTime>>,
}

/// What is compared of a record with the next one.
#[derive(Debug)]
pub(super) struct Standing {
    phase: &'static str,
    fence: Option<FenceId>,
    off_sent: bool,
    round: u32,
    proven: bool,
    released: bool,
    outcome: Option<&'static str>,
}

impl Standing {
    pub(super) fn of(record: &NodeRecord) -> Self {
        let fence = record.fence.as_ref();
        Self {
            phase: record.phase.label(),
            fence: fence.map(|fence| fence.id),
            off_sent: fence.is_some_and(|fence| fence.off_sent),
            round: fence.map_or(0, |fence| fence.round),
            proven: fence.is_some_and(|fence| fence.evidence.is_some()),
            released: matches!(record.phase, Phase::Released),
            outcome: fence.and_then(outcome),
        }
    }
}

/// An outcome that callers wait for; that a node is proven off is none yet.
fn outcome(fence: &Fence) -> Option<&'static str> {
    let label = fence.outcome.as_ref()?.label();
    (label != "fenced" || fence.all_released()).then_some(label)
}

fn cause(fence: &Fence) -> &'static str {
    match fence.cause {
        Cause::Asked => "asked",
        Cause::Breach => "breach",
        Cause::Drill => "drill",
        Cause::Restored => "restored",
    }
}

impl Measures {
    pub(crate) fn new(metrics: &Metrics) -> Self {
        Self { metrics: metrics.clone(), unfencing: Mutex::default() }
    }

    /// A step was stored.
    pub(super) fn moved(&self, before: &Standing, record: &NodeRecord, wall: WallTime, now: BootTime) {
        let phase = record.phase.label();
        let mut unfencing = self.unfencing.lock();
        match record.phase {
            Phase::Unfencing if before.phase != phase => *unfencing = Some(now),
            Phase::Normal => {
                if let Some(since) = unfencing.take() {
                    self.metrics.took(&metrics::FENCE_PART, &["back"], now.since(since));
                }
            }
            Phase::Unfencing | Phase::PowerOnFailed | Phase::NeedsOperator(_) => {}
            _ => *unfencing = None,
        }
        drop(unfencing);
        let Some(fence) = &record.fence else { return };
        let is_new = before.fence != Some(fence.id);
        let was = |known: bool| known && !is_new;
        if is_new {
            self.metrics.count(&metrics::FENCES_OPENED, &[cause(fence)]);
            if fence.cause == Cause::Breach {
                self.metrics.count(&metrics::BREACHES, &[]);
            }
        }
        let part = |part: &'static str, until: WallTime| {
            let time = until.millis().saturating_sub(fence.opened_at.millis());
            self.metrics.took(&metrics::FENCE_PART, &[part], std::time::Duration::from_millis(time));
        };
        if fence.off_sent && !was(before.off_sent) {
            part("off_sent", wall);
        }
        if let Some(evidence) = fence.evidence.as_ref().filter(|_| fence.round == 0 && !was(before.proven)) {
            part("off_seen", evidence.off_since);
            part("confirmed", evidence.confirmed_at);
        }
        if !is_new && fence.round > before.round {
            self.metrics.count(&metrics::UNPROVEN, &[]);
        }
        if record.phase == Phase::Released && !was(before.released) {
            part("released", wall);
        }
        let became = outcome(fence);
        if let Some(became) = became.filter(|_| is_new || became != before.outcome) {
            self.metrics.count(&metrics::FENCE_OUTCOMES, &[cause(fence), became]);
        }
    }

    /// A call to a device ended, or nobody waited for it any more.
    pub(super) fn call(&self, driver: &str, verb: &str, result: &str, took: std::time::Duration) {
        self.metrics.count(&metrics::DEVICE_CALLS, &[driver, verb, result]);
        self.metrics.took(&metrics::DEVICE_CALL, &[driver, verb], took);
    }
}

/// How a call ended, in one word.
pub(super) fn result<T>(result: &Result<T, DriverError>) -> &'static str {
    result.as_ref().map_or_else(|error| error.kind.metric_label(), |_| "ok")
}
