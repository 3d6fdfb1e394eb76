//! What must hold in every history, checked against the truth, the store's log and what the devices heard.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use picket_core::device::{DeviceClass, Grade};
use picket_core::ledger::EffectKind;
use picket_core::record::{NodeRecord, Phase};
use picket_core::time::{BootTime, Clock};
use picket_driver_sim::{Edge, Heard, SharedWorld, SimClock, Verb};

use super::shape::Shape;
use crate::lab::{NODE, node, s};
use crate::weather::{Entry, Weather};

/// A moment is looked up with so much around it: what is sent takes half a millisecond to arrive.
const MOMENT: Duration = Duration::from_millis(1);
/// The longest that a rise takes after its on.
const RISE: Duration = Duration::from_secs(31);

#[derive(Debug)]
pub struct Law {
    pub world: SharedWorld,
    pub clock: Arc<SimClock>,
    pub store: Arc<Weather>,
    pub shape: Shape,
    seen: Mutex<(usize, usize)>,
    jumps: Mutex<Vec<BootTime>>,
    broken: Mutex<Vec<String>>,
    diary: Mutex<Vec<String>>,
}

impl Law {
    pub fn new(world: SharedWorld, clock: Arc<SimClock>, store: Arc<Weather>, shape: Shape) -> Self {
        Self {
            world,
            clock,
            store,
            shape,
            seen: Mutex::default(),
            jumps: Mutex::default(),
            broken: Mutex::default(),
            diary: Mutex::default(),
        }
    }

    /// Writes into the diary that is printed when the law was broken.
    pub fn say(&self, words: impl Into<String>) {
        let at = self.clock.boot().since_boot();
        self.diary.lock().expect("whole").push(format!("{at:?} {}", words.into()));
    }

    pub fn broken(&self, words: String) {
        self.say(format!("BROKEN: {words}"));
        self.broken.lock().expect("whole").push(words);
    }

    pub fn jumped(&self) {
        self.jumps.lock().expect("whole").push(self.clock.boot());
    }

    /// Ends the history where the law was broken.
    pub fn hold(&self) {
        self.look();
        let broken = self.broken.lock().expect("whole").clone();
        if !broken.is_empty() {
            panic!("{}", self.story(&broken.join("\n")));
        }
    }

    pub fn story(&self, end: &str) -> String {
        let diary = self.diary.lock().expect("whole").join("\n");
        let mut world = self.world.lock().expect("whole");
        let edges = world.edges(NODE, self.clock.boot()).to_vec();
        let reason = end.lines().next().unwrap_or_default();
        format!("\nREASON {reason}\n{:#?}\n{diary}\nedges: {edges:#?}\n{end}", self.shape)
    }

    /// The edge that switched it on; `None`: it is off. A machine that never was off has no edge, and is said to be on
    /// since the beginning.
    pub fn on_since(&self, at: BootTime) -> Option<Edge> {
        let mut world = self.world.lock().expect("whole");
        if !world.truth(NODE, at) {
            return None;
        }
        let before = world.edges(NODE, at).iter().rev().find(|edge| edge.at <= at).cloned();
        Some(before.unwrap_or(Edge { at: BootTime::default(), on: true, by: "its birth".to_owned() }))
    }

    /// Whether an on of ours made the edge.
    pub fn is_ours(&self, edge: &Edge) -> bool {
        if edge.by == "its birth" {
            return true;
        }
        let mut world = self.world.lock().expect("whole");
        let heard = world.heard(self.clock.boot());
        heard.iter().any(|heard| {
            heard.device == edge.by
                && heard.verb == Verb::On
                && heard.executed
                && heard.at <= edge.at
                && edge.at.since(heard.at) <= RISE
        })
    }

    /// Looks at all that is new.
    pub fn look(&self) {
        let now = self.clock.boot();
        let (heard, log) = {
            let heard = self.world.lock().expect("whole").heard(now).to_vec();
            (heard, self.store.log.lock().expect("whole").clone())
        };
        let mut seen = self.seen.lock().expect("whole");
        for index in seen.1..log.len() {
            let before = index.checked_sub(1).map(|before| &log[before]);
            self.written(before, &log[index]);
        }
        for one in &heard[seen.0..] {
            self.arrived(one, &heard);
        }
        *seen = (heard.len(), log.len());
    }

    fn written(&self, before: Option<&Entry>, entry: &Entry) {
        let record = &entry.record;
        let fresh = NodeRecord::new(node());
        let old = before.map_or(&fresh, |entry| &entry.record);
        let grows = before.is_none_or(|before| {
            before.version.next() == entry.version && before.term <= entry.term && before.at <= entry.at
        });
        if !grows || record.generation < old.generation {
            self.broken(format!("a number did not grow: {before:?} {entry:?}"));
        }
        if record.phase != old.phase || record.generation != old.generation {
            self.say(format!(
                "(at {:?}) {} -> {} generation {}, {}",
                entry.at.since_boot(),
                old.phase.label(),
                record.phase.label(),
                record.generation,
                record
                    .fence
                    .as_ref()
                    .and_then(|fence| fence.moments.last())
                    .map_or("", |moment| moment.what.as_str()),
            ));
        }
        let opened: Vec<_> =
            record.ledger.open().iter().filter(|open| old.ledger.get(open.id).is_none()).collect();
        if opened.iter().any(|open| matches!(open.kind, EffectKind::On(_))) && !may_send_on(record) {
            self.broken(format!("an on is opened: {record:#?}"));
        }
        if record.phase == Phase::Normal && old.phase != Phase::Normal && !record.ledger.open().is_empty() {
            self.broken(format!("back with open effects: {:#?}", record.ledger));
        }
        let proven = |record: &NodeRecord| record.fence.as_ref().and_then(|fence| fence.evidence.clone());
        let confirmed = proven(record).filter(|now| proven(old).as_ref() != Some(now));
        if let Some(evidence) = confirmed.filter(|evidence| evidence.grade != Grade::Attested) {
            if old.ledger.bars_proof() {
                self.broken(format!("confirmed while an on is open: {:#?}", old.ledger));
            }
            let level = record.fence.as_ref().and_then(|fence| fence.topology.level(evidence.level - 1));
            let supplies = level.is_some_and(|level| level.devices[0].class == DeviceClass::Supply);
            let ago = entry.wall.millis().saturating_sub(evidence.off_since.millis());
            let since = entry.at.since_boot().saturating_sub(Duration::from_millis(ago)) + MOMENT * 2;
            // A machine runs on for a moment when its last supply was cut.
            let since = BootTime::from_boot(if supplies { since + s(1) } else { since });
            let jumped = self.jumps.lock().expect("whole").iter().any(|at| entry.at.since(*at) < s(10));
            if let Some(edge) = self.on_since(since.min(entry.at)).filter(|_| !jumped) {
                self.broken(format!("confirmed off since {since:?} and it was on, {edge:?}: {evidence:#?}"));
            }
        }
    }

    fn arrived(&self, heard: &Heard, all: &[Heard]) {
        let at = heard.at;
        let stood: Vec<NodeRecord> = [at.since_boot().saturating_sub(MOMENT), at.since_boot()]
            .into_iter()
            .filter_map(|at| self.store.stood(&node(), BootTime::from_boot(at)))
            .collect();
        let open = |record: &NodeRecord, on: bool| {
            record.ledger.open().iter().any(|open| match &open.kind {
                EffectKind::On(device) => on && device.as_str() == heard.device,
                EffectKind::Off(device) => !on && device.as_str() == heard.device,
                _ => false,
            })
        };
        let sessionless = self.shape.sessionless.contains(&heard.device);
        let what = match (heard.verb, heard.late) {
            (Verb::On, false) => {
                let may = stood.iter().any(|record| may_send_on(record) && open(record, true));
                (!may).then_some("an on is sent")
            }
            (Verb::Off, false) => {
                let may = stood.iter().any(|record| open(record, false));
                (!may).then_some("an off is sent that is not in the ledger")
            }
            (Verb::On, true) if heard.executed => {
                // Of a device without sessions this is said by its long window; a person's word has none.
                let vouched = stood.iter().any(|r| r.fence.as_ref().is_some_and(|f| f.attestation.is_some()));
                let proven = stood.iter().all(|record| {
                    let current = record.fence.as_ref().filter(|fence| fence.generation == record.generation);
                    current.is_some_and(|fence| fence.evidence.is_some())
                });
                (proven && !(sessionless && vouched)).then_some("a late on hits a node that was proven off")
            }
            (Verb::Off, true) if heard.executed && !sessionless => {
                let after_on = stood.iter().all(|record| {
                    let generation_began = self.began(record);
                    record.phase == Phase::Normal
                        || record.phase == Phase::Unfencing
                            && all.iter().any(|on| {
                                on.verb == Verb::On
                                    && !on.late
                                    && on.device == heard.device
                                    && on.at >= generation_began
                                    && on.at < at
                            })
                });
                after_on.then_some("a late off hits a node that was brought back")
            }
            _ => None,
        };
        if let Some(what) = what {
            self.broken(format!("{what}: {heard:?} {stood:#?}"));
        }
    }

    /// When the generation of a record began.
    fn began(&self, record: &NodeRecord) -> BootTime {
        let log = self.store.log.lock().expect("whole");
        let first = log.iter().find(|entry| entry.record.generation == record.generation);
        first.map_or(BootTime::default(), |entry| entry.at)
    }
}

fn may_send_on(record: &NodeRecord) -> bool {
    record.phase == Phase::Unfencing && record.holds.is_empty() && !record.ledger.bars_on()
}
