//! How the gateway is now, as metrics tell it: looked at when somebody reads them.

use std::collections::BTreeMap;
use std::time::Duration;

use picket_core::election::Known;
use picket_core::record::{NodeRecord, Phase, ReleaseStage};
use picket_core::time::{WallTime, written};
use picket_engine::{Engine, NodeView, Part, Readiness, readiness};
use picket_metrics as metrics;
use picket_metrics::Metrics;
use picket_metrics::http::Answers;
use picket_server::AccessControl;

use crate::measured::Unanswered;

/// How long the store may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// A release that takes longer than this is stuck.
const STUCK: Duration = Duration::from_secs(300);

const PHASES: [&str; 8] =
    ["normal", "fencing", "fenced", "released", "unfencing", "power_on_failed", "needs_operator", "retired"];
const EFFECTS: [&str; 6] = ["off", "on", "hold", "unhold", "release", "receipt"];
const STAGES: [&str; 5] = ["pending", "requested", "accepted", "complete", "abandoned"];
const PARTS: [&str; 3] = ["leads", "stands_by", "aside"];
const READINESS: [&str; 4] = ["ready", "degraded", "not_ready", "unchecked"];

/// Looks at the engine and access control.
#[derive(Debug)]
pub(crate) struct Observer {
    pub(crate) metrics: Metrics,
    pub(crate) engine: Engine,
    pub(crate) access: AccessControl,
    pub(crate) unanswered: Unanswered,
}

/// What is added up over the nodes.
#[derive(Default)]
struct Sums {
    phases: BTreeMap<&'static str, (u32, f64)>,
    reasons: BTreeMap<&'static str, u32>,
    effects: BTreeMap<&'static str, (u32, u32, f64)>,
    stages: BTreeMap<&'static str, (u32, f64)>,
    devices: BTreeMap<&'static str, u32>,
    orphans: u32,
    not_back: u32,
    barred: u32,
    unreached: u32,
    holds: usize,
    troubles: Vec<(String, &'static str)>,
}

impl Answers for Observer {
    /// Everything, as it is now.
    fn metrics(&self) -> String {
        self.metrics.text(|metrics| {
            self.of_nodes(metrics);
            self.of_gateway(metrics);
        })
    }

    /// Whether it can be asked for fences: it leads, and its store answers. Else why not.
    async fn ready(&self) -> Result<String, String> {
        let term = self.engine.leading().map_err(|why| format!("does not lead: {why}"))?;
        if let Some(since) = self.hangs() {
            return Err(format!(
                "leads, and the store does not answer a write of {} ago",
                written(Duration::from_secs(since.as_secs()))
            ));
        }
        match tokio::time::timeout(PATIENCE, self.engine.revision()).await {
            Ok(Ok(_)) if self.engine.is_simulated() => {
                Ok(format!("leads, in term {}; simulated: it switches no real machine", term.0))
            }
            Ok(Ok(_)) => Ok(format!("leads, in term {}", term.0)),
            Ok(Err(error)) => Err(format!("leads, and the store does not answer: {error}")),
            Err(_) => Err(format!("leads, and the store does not answer within {PATIENCE:?}")),
        }
    }
}

impl Observer {
    /// For how long a write has not been answered, where that is longer than the store may take: reads may be answered all the same.
    fn hangs(&self) -> Option<Duration> {
        self.unanswered.oldest().filter(|since| *since > PATIENCE)
    }

    fn of_gateway(&self, metrics: &Metrics) {
        // A permit that is over leads no more, also where the engine has not yet looked at it.
        let over = self.engine.permit_left() == Some(Duration::ZERO);
        let term = self.engine.leading().ok().filter(|_| !over);
        metrics.set(&metrics::LEADING, &[], f64::from(u8::from(term.is_some())));
        metrics.set(&metrics::SIMULATED, &[], f64::from(u8::from(self.engine.is_simulated())));
        metrics.set(&metrics::TERM, &[], term.map_or(0.0, |term| term.0 as f64));
        self.of_several(metrics, term.is_some());
        let audit = self.engine.audit().state();
        metrics.stands_at(&metrics::AUDIT_WRITTEN, audit.written);
        metrics.stands_at(&metrics::AUDIT_LOST, audit.lost);
        metrics.set(&metrics::AUDIT_FAILING, &[], f64::from(u8::from(audit.failing.is_some())));
        let office = self.engine.office_numbers();
        metrics.set(&metrics::BUDGETED, &[], office.open as f64);
        metrics.set(&metrics::WAITING, &[], office.waiting as f64);
        metrics.set(&metrics::PAUSES, &[], office.pauses as f64);
        metrics.set(&metrics::BRAKED, &[], f64::from(u8::from(office.braked)));
        let (streams, calls) = self.access.open();
        metrics.set(&metrics::STREAMS, &[], streams as f64);
        metrics.set(&metrics::CALLS, &[], calls as f64);
        for (of, end) in self.access.certificates() {
            metrics.set(&metrics::CERTIFICATE, &[of], end as f64);
        }
    }

    /// What one gateway knows of itself and the others.
    fn of_several(&self, metrics: &Metrics, leads: bool) {
        let engine = &self.engine;
        let flag = |is: bool| f64::from(u8::from(is));
        let follows = !leads && matches!(engine.part(), Ok(Part::Follows { .. }));
        let aside = engine.aside().is_some();
        metrics.set(&metrics::FOLLOWING, &[], flag(follows));
        metrics.set(&metrics::STANDING, &[], flag(leads || !aside));
        metrics.set(&metrics::SETTINGS_DIFFER, &[], flag(engine.digests().differ()));
        metrics.clear(&metrics::PERMIT);
        if let Some(left) = engine.permit_left() {
            metrics.set(&metrics::PERMIT, &[], left.as_secs_f64());
        }
        let (now, away) = (engine.clock().wall(), engine.store_away_since());
        let hangs = self.hangs().map_or(0.0, |since| since.as_secs_f64());
        metrics.set(&metrics::STORE_AWAY, &[], away.map_or(0.0, |then| since(then, now)).max(hangs));
        metrics.clear(&metrics::SHOWN_AGE);
        let age = if leads { Some(Duration::ZERO) } else { engine.age() };
        if let Some(age) = age {
            metrics.set(&metrics::SHOWN_AGE, &[], age.as_secs_f64());
        }
        let leader = match engine.known() {
            Known::Leader(leader, _) => Some(leader.gateway),
            Known::Nobody(_) | Known::Away(..) => None,
        };
        let me = engine.me().gateway;
        let others = engine.others().into_iter().filter(|other| other.gateway != me);
        let others = others.map(|other| (leader.as_ref() == Some(&other.gateway), other.aside.is_some()));
        let mut parts = BTreeMap::from(PARTS.map(|part| (part, 0_u32)));
        for (leads, aside) in std::iter::once((leads, aside)).chain(others) {
            let part = if leads {
                "leads"
            } else if aside {
                "aside"
            } else {
                "stands_by"
            };
            *parts.entry(part).or_default() += 1;
        }
        for (part, count) in parts {
            metrics.set(&metrics::GATEWAYS, &[part], f64::from(count));
        }
    }

    fn of_nodes(&self, metrics: &Metrics) {
        let now = self.engine.clock().wall();
        let mut sums = Sums::default();
        self.engine.nodes().for_each(|view| sums.add(&view, now));
        for phase in PHASES {
            let (count, oldest) = sums.phases.get(phase).copied().unwrap_or_default();
            metrics.set(&metrics::NODES, &[phase], f64::from(count));
            metrics.set(&metrics::OLDEST_FENCE, &[phase], oldest);
        }
        metrics.clear(&metrics::NEEDS_OPERATOR);
        for (reason, count) in &sums.reasons {
            metrics.set(&metrics::NEEDS_OPERATOR, &[reason], f64::from(*count));
        }
        for kind in EFFECTS {
            let (count, unbounded, overdue) = sums.effects.get(kind).copied().unwrap_or_default();
            metrics.set(&metrics::EFFECTS, &[kind], f64::from(count));
            metrics.set(&metrics::EFFECTS_UNBOUNDED, &[kind], f64::from(unbounded));
            metrics.set(&metrics::EFFECT_OVERDUE, &[kind], overdue);
        }
        for stage in STAGES {
            let (count, oldest) = sums.stages.get(stage).copied().unwrap_or_default();
            metrics.set(&metrics::RELEASES, &[stage], f64::from(count));
            metrics.set(&metrics::RELEASE_OLDEST, &[stage], oldest);
        }
        for readiness in READINESS {
            let count = sums.devices.get(readiness).copied().unwrap_or_default();
            metrics.set(&metrics::DEVICES, &[readiness], f64::from(count));
        }
        metrics.set(&metrics::ORPHANED, &[], f64::from(sums.orphans));
        metrics.set(&metrics::BARRED, &[], f64::from(sums.barred));
        metrics.set(&metrics::UNREACHED, &[], f64::from(sums.unreached));
        metrics.set(&metrics::NOT_BACK, &[], f64::from(sums.not_back));
        metrics.set(&metrics::HOLDS, &[], sums.holds as f64);
        metrics.troubled(sums.troubles.iter().map(|(node, trouble)| (node.as_str(), *trouble)));
    }
}

/// Seconds from then until now.
fn since(then: WallTime, now: WallTime) -> f64 {
    now.millis().saturating_sub(then.millis()) as f64 / 1_000.0
}

impl Sums {
    fn add(&mut self, view: &NodeView, now: WallTime) {
        let record = &view.stored.record;
        let mut troubles: Vec<&'static str> = Vec::new();
        let open_for = match &record.fence {
            Some(fence) if record.phase != Phase::Normal => since(fence.opened_at, now),
            _ => 0.0,
        };
        let (count, oldest) = self.phases.entry(record.phase.label()).or_default();
        (*count, *oldest) = (*count + 1, oldest.max(open_for));
        match record.phase {
            Phase::NeedsOperator(reason) => {
                *self.reasons.entry(reason.label()).or_default() += 1;
                troubles.push("needs_operator");
            }
            Phase::PowerOnFailed => troubles.push("power_on_failed"),
            _ => {}
        }
        if view.live.unreached && record.phase == Phase::Fencing {
            self.unreached += 1;
            troubles.push("unreached");
        }
        if view.live.orphaned.is_some() {
            self.orphans += 1;
            troubles.push("orphaned");
        }
        if !view.live.not_back.is_empty() {
            self.not_back += 1;
            troubles.push("not_back");
        }
        if is_barred(view) {
            self.barred += 1;
            troubles.push("barred");
        }
        if record.breaches > 0 {
            troubles.push("breach");
        }
        self.holds += record.holds.len();
        self.add_effects(record, now, &mut troubles);
        if record.phase != Phase::Normal {
            self.add_releases(view, now, &mut troubles);
        }
        for spec in view.plan.levels_now(record).devices() {
            let live = view.live.devices.get(&spec.id);
            let readiness = live.map_or(Readiness::Unchecked, |live| readiness(spec, live, &record.phase));
            *self.devices.entry(readiness.label()).or_default() += 1;
            if readiness == Readiness::NotReady && !troubles.contains(&"device_not_ready") {
                troubles.push("device_not_ready");
            }
        }
        self.troubles.extend(troubles.into_iter().map(|trouble| (record.node.to_string(), trouble)));
    }

    /// An off stays open on purpose while its node is kept off: only on the way back does somebody wait for its end.
    fn add_effects(&mut self, record: &NodeRecord, now: WallTime, troubles: &mut Vec<&'static str>) {
        let awaited = record.phase == Phase::Unfencing;
        for open in record.ledger.open() {
            let (count, unbounded, overdue) = self.effects.entry(open.kind.label()).or_default();
            *count += 1;
            match open.life {
                None => *unbounded += 1,
                Some(life) if awaited => {
                    let late = since(open.opened_at, now) - life.as_secs_f64();
                    *overdue = overdue.max(late);
                    if late > 0.0 && !troubles.contains(&"effect_overdue") {
                        troubles.push("effect_overdue");
                    }
                }
                Some(_) => {}
            }
        }
    }

    fn add_releases(&mut self, view: &NodeView, now: WallTime, troubles: &mut Vec<&'static str>) {
        let Some(fence) = &view.stored.record.fence else { return };
        let since_proof = fence
            .evidence
            .as_ref()
            .map(|evidence| evidence.confirmed_at)
            .or(fence.attestation.as_ref().map(|word| word.at))
            .map_or(0.0, |then| since(then, now));
        for release in &fence.releases {
            let (count, oldest) = self.stages.entry(stage(release.stage)).or_default();
            *count += 1;
            if !release.stage.is_over() {
                *oldest = oldest.max(since_proof);
                if since_proof > STUCK.as_secs_f64() && !troubles.contains(&"release_stuck") {
                    troubles.push("release_stuck");
                }
            }
        }
    }
}

/// Whether somebody else's keeps a release of the node, or its way back (K7). What was abandoned, or is let go, waits for nobody.
fn is_barred(view: &NodeView) -> bool {
    let record = &view.stored.record;
    let comes_back = matches!(record.phase, Phase::Unfencing | Phase::PowerOnFailed);
    let releases = record.fence.iter().flat_map(|fence| &fence.releases);
    releases.filter(|release| release.barred).any(|release| comes_back || !release.stage.is_over())
}

fn stage(stage: ReleaseStage) -> &'static str {
    match stage {
        ReleaseStage::Pending => "pending",
        ReleaseStage::Requested => "requested",
        ReleaseStage::Accepted => "accepted",
        ReleaseStage::Complete => "complete",
        ReleaseStage::Abandoned => "abandoned",
    }
}

#[cfg(test)]
mod tests {
    use picket_core::ids::NodeId;

    use super::*;

    /// A record with an off that was opened at 1000 s and lives for 60 s.
    fn record(phase: &serde_json::Value) -> NodeRecord {
        let node = NodeId::new("r1n07").expect("a name");
        let mut fields = serde_json::to_value(NodeRecord::new(node)).expect("it can be written");
        fields["phase"] = phase.clone();
        fields["ledger"] = serde_json::json!({"next": 1, "open": [{
            "id": 1, "kind": {"off": "bmc"}, "generation": 1, "term": 1, "opened_at": 1_000_000,
            "life": {"secs": 60, "nanos": 0},
        }]});
        serde_json::from_value(fields).expect("a record")
    }

    fn effects(phase: &serde_json::Value, now: u64) -> (u32, f64, Vec<&'static str>) {
        let (mut sums, mut troubles) = (Sums::default(), Vec::new());
        sums.add_effects(&record(phase), WallTime::from_millis(now), &mut troubles);
        let (count, _, overdue) = sums.effects["off"];
        (count, overdue, troubles)
    }

    #[test]
    fn an_effect_is_overdue_only_where_somebody_waits_for_its_end() {
        for kept in ["fencing", "fenced", "released"] {
            assert_eq!(effects(&kept.into(), 2_000_000), (1, 0.0, vec![]), "{kept}");
        }
        assert_eq!(effects(&"unfencing".into(), 1_050_000), (1, 0.0, vec![]), "it still lives");
        assert_eq!(effects(&"unfencing".into(), 1_090_000), (1, 30.0, vec!["effect_overdue"]));
    }
}
