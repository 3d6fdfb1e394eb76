//! A gateway: its leadership, and what its process remembers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::tasks::{Kinds, Task};
use super::world::{DEVICES, number};
use crate::ground::ReleaseGround;
use crate::ids::{EffectId, Term};
use crate::ledger::{EffectKind, OpenEffect};
use crate::record::NodeRecord;
use crate::store::Stored;

/// A leadership that this process holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lead {
    pub(super) term: Term,
    /// When its permit ends.
    pub(super) until: u64,
}

/// A session with a device: its number grows with each, and it belongs to one life of the device.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Session {
    pub(super) number: u64,
    pub(super) open: bool,
    pub(super) life: u64,
    /// Something was answered in it.
    pub(super) heard: bool,
    /// When the device fell silent in it, if it did.
    pub(super) silent: Option<u64>,
    /// Since when the one before was lost, if it was.
    pub(super) lost: Option<u64>,
    /// It is another machine's, to whose device the address led.
    pub(super) astray: bool,
    /// When something was said last in one that was lost as the address led elsewhere: nobody can close it, and it ends by itself.
    pub(super) orphan: Option<u64>,
}

/// One process, and what it remembers.
#[derive(Clone, Debug)]
pub(super) struct Gateway {
    pub(super) lead: Option<Lead>,
    pub(super) paused: bool,
    /// It does not reach the election.
    pub(super) cut: bool,
    /// The record as it knows it.
    pub(super) stored: Arc<Stored>,
    pub(super) own: BTreeSet<EffectId>,
    pub(super) counted: BTreeMap<EffectId, u64>,
    pub(super) unclosed: [Option<u64>; DEVICES],
    /// What stands is taken away again then.
    pub(super) withdraw_at: u64,
    pub(super) sessions: [Session; DEVICES],
    /// When the fence began; `None` where another process began it.
    pub(super) began: Option<u64>,
    pub(super) resumed: bool,
    pub(super) ground: Option<Arc<ReleaseGround>>,
    pub(super) task: Task,
}

impl Gateway {
    /// A process that has just begun.
    pub(super) fn new(stored: Arc<Stored>) -> Self {
        Self {
            lead: None,
            paused: false,
            cut: false,
            stored,
            own: BTreeSet::new(),
            counted: BTreeMap::new(),
            unclosed: [None; DEVICES],
            withdraw_at: 0,
            sessions: [Session::default(); DEVICES],
            began: None,
            resumed: false,
            ground: None,
            task: Task::Rest,
        }
    }

    pub(super) fn record(&self) -> &NodeRecord {
        &self.stored.record
    }

    /// When an open effect's life is over for this process; what it sent itself lives as long as its session.
    pub(super) fn expires_at(&self, open: &OpenEffect, tick: u64) -> Option<u64> {
        let life = open.life?.as_secs();
        if let Some(device) = open.kind.device().filter(|_| self.own.contains(&open.id)) {
            return Some(self.unclosed[number(device)]? + life);
        }
        Some(self.counted.get(&open.id).copied().unwrap_or(tick) + life)
    }

    /// What of these kinds has outlived its life.
    pub(super) fn expired(&self, tick: u64, has: impl Fn(&EffectKind) -> bool) -> Vec<EffectId> {
        let over = |open: &&OpenEffect| self.expires_at(open, tick).is_some_and(|at| at <= tick);
        let open = self.record().ledger.open().iter().filter(|open| has(&open.kind));
        open.filter(over).map(|open| open.id).collect()
    }

    pub(super) fn has_open(&self, kinds: Kinds) -> bool {
        self.record().ledger.open().iter().any(|open| kinds.has(&open.kind))
    }
}
