//! A store as a quorum of servers shows it: linearizable, with one leadership under a lease that runs on
//! its own clock.
//!
//! # Invariants
//!
//! - A write is taken only while the writer's lease lives and its term is the newest. Shown by
//!   `stale_writers_that_are_heard_are_seen`.
//! - A lease never ends before its life has passed since it was last renewed *here*; it may end later.
//!   Shown by `leases_that_end_early_are_seen`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use parking_lot::{Mutex, MutexGuard};
use picket_core::ids::{Incarnation, NodeId, Term, Version};
use picket_core::store::{Guard, Store, StoreError, Write, Written};
use picket_core::time::{BootTime, WallTime};
use picket_driver_sim::Random;
use picket_receipt::{ListedKey, NOTES};
use picket_store::MemoryStore;
use tokio::sync::Notify;

use crate::scene::{Scene, ms};
use crate::shape::Weakness;
use crate::trace::{GatewayId, What};

/// A lease's life.
pub(crate) const LIFE: Duration = Duration::from_secs(5);

/// The store's servers.
#[derive(Debug)]
pub(crate) struct Quorum {
    scene: Arc<Scene>,
    memory: MemoryStore,
    state: Mutex<State>,
    /// Somebody gave leadership up.
    vacant: Notify,
}

#[derive(Debug)]
struct State {
    random: Random,
    leader: Option<Leader>,
    term: Term,
    away_until: BootTime,
    /// Gateways that were heard of lately, and why they do not stand.
    members: BTreeMap<GatewayId, (BootTime, Option<String>)>,
}

/// What the store says of the election.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standing {
    pub(crate) leader: Option<Leader>,
    pub(crate) term: Term,
    /// Everybody who takes part, and why they do not stand.
    pub(crate) members: Vec<(GatewayId, Option<String>)>,
}

/// Who leads, as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leader {
    pub(crate) gateway: GatewayId,
    pub(crate) campaign: u64,
    pub(crate) term: Term,
    pub(crate) ends: BootTime,
}

impl Quorum {
    pub(crate) fn new(scene: Arc<Scene>, seed: u64) -> Arc<Self> {
        let incarnation = Incarnation::mint(WallTime::from_millis(1), [7; 10]);
        let memory = MemoryStore::new(incarnation).expect("an empty store");
        let state = State {
            random: Random::new(seed),
            leader: None,
            term: Term(0),
            away_until: BootTime::default(),
            members: BTreeMap::new(),
        };
        Arc::new(Self { scene, memory, state: Mutex::new(state), vacant: Notify::new() })
    }

    /// The state as it is now, or that there is no quorum. A lease that is over is gone.
    fn state(&self) -> Result<MutexGuard<'_, State>, StoreError> {
        let now = self.scene.now();
        let mut state = self.state.lock();
        if now < state.away_until {
            return Err(StoreError::Unavailable("there is no quorum".to_owned()));
        }
        let early = self.scene.shape.weakness == Weakness::LeasesEndEarly;
        let now = if early { now + LIFE / 2 } else { now };
        if let Some(over) = state.leader.take_if(|leader| leader.ends <= now) {
            self.scene.note(What::Lapsed { term: over.term });
        }
        Ok(state)
    }

    pub(crate) fn incarnation(&self) -> Incarnation {
        self.memory.incarnation()
    }

    /// No quorum for so long. Leases do not end meanwhile, and begin anew afterwards.
    pub(crate) fn away(&self, time: Duration) {
        let Ok(mut state) = self.state() else { return };
        let until = self.scene.now() + time;
        state.away_until = until;
        if let Some(leader) = &mut state.leader {
            leader.ends = leader.ends.max(until + LIFE);
        }
    }

    /// Its servers are back.
    pub(crate) fn back(&self) {
        let now = self.scene.now();
        let mut state = self.state.lock();
        if now < state.away_until {
            state.away_until = BootTime::default();
            if let Some(leader) = &mut state.leader {
                leader.ends = now + LIFE;
            }
        }
    }

    /// How the election stands; whoever asks takes part.
    pub(crate) fn standing(&self, me: GatewayId, aside: &Option<String>) -> Result<Standing, StoreError> {
        let mut state = self.state()?;
        let now = self.scene.now();
        state.members.insert(me, (now + LIFE * 2, aside.clone()));
        state.members.retain(|_, (until, _)| *until > now);
        let members = state.members.iter().map(|(id, (_, aside))| (*id, aside.clone())).collect();
        Ok(Standing { leader: state.leader, term: state.term, members })
    }

    /// Takes leadership and the next term, if nobody leads and no term came since.
    pub(crate) fn win(
        &self,
        gateway: GatewayId,
        campaign: u64,
        read: Term,
    ) -> Result<Option<Term>, StoreError> {
        let mut state = self.state()?;
        if state.leader.is_some() || state.term != read {
            return Ok(None);
        }
        let term = now(self.memory.take_term())?;
        let ends = self.scene.now() + LIFE + grace(&mut state);
        state.term = term;
        state.leader = Some(Leader { gateway, campaign, term, ends });
        self.scene.note(What::Won { gateway, term });
        Ok(Some(term))
    }

    /// Renews the lease of a campaign; false: there is none any more.
    pub(crate) fn keep_alive(&self, campaign: u64) -> Result<bool, StoreError> {
        let mut state = self.state()?;
        let ends = self.scene.now() + LIFE + grace(&mut state);
        let leader = state.leader.as_mut().filter(|leader| leader.campaign == campaign);
        let Some(leader) = leader else { return Ok(false) };
        leader.ends = leader.ends.max(ends);
        Ok(true)
    }

    /// Ends the leadership of a campaign, if it has one.
    pub(crate) fn give_up(&self, campaign: u64) -> Result<(), StoreError> {
        let mut state = self.state()?;
        if let Some(over) = state.leader.take_if(|leader| leader.campaign == campaign) {
            self.scene.note(What::Lapsed { term: over.term });
            self.vacant.notify_waiters();
        }
        Ok(())
    }

    /// Waits until leadership is given up, or `until`.
    pub(crate) async fn vacant(&self, until: BootTime) {
        let left = until.since(self.scene.now());
        let _ = tokio::time::timeout(left, self.vacant.notified()).await;
    }

    /// Whether the writer leads. The caller keeps the state while it writes: nothing comes between.
    fn guarded(&self, guard: Guard) -> Result<MutexGuard<'_, State>, StoreError> {
        let state = self.state()?;
        let heard = self.scene.shape.weakness == Weakness::StaleWritersAreHeard;
        if heard || state.leader.is_some_and(|leader| leader.term == guard.term) {
            Ok(state)
        } else {
            Err(StoreError::Deposed(format!("term {} leads no more", guard.term)))
        }
    }

    fn as_newest(&self, guard: Guard, state: &State) -> Guard {
        match self.scene.shape.weakness {
            Weakness::StaleWritersAreHeard => Guard { term: state.term, ..guard },
            _ => guard,
        }
    }

    pub(crate) fn write(
        &self,
        gateway: GatewayId,
        guard: Guard,
        write: &Write,
        wall: WallTime,
    ) -> Result<Written, StoreError> {
        let state = self.guarded(guard)?;
        let newest = self.as_newest(guard, &state);
        let written = now(self.memory.write(newest, write.clone()))?;
        let (node, record) = (write.record.node.clone(), Arc::new(write.record.clone()));
        let (term, version) = (guard.term, written.version);
        let was = self.scene.past(|past| past.record(&node).clone());
        self.scene.note(What::Stored { gateway, term, version, record, was, wall });
        for (key, entry) in &write.keys {
            // What opens no fence has none.
            if let Some(fence) = entry.fence {
                self.scene.note(What::Bound { node: node.clone(), key: key.clone(), fence });
            }
        }
        Ok(written)
    }

    pub(crate) fn check(
        &self,
        gateway: GatewayId,
        guard: Guard,
        node: &NodeId,
        version: Version,
    ) -> Result<(), StoreError> {
        let state = self.guarded(guard)?;
        now(self.memory.check(self.as_newest(guard, &state), node, version))?;
        self.scene.note(What::Checked { gateway, node: node.clone() });
        Ok(())
    }

    pub(crate) fn put_note(
        &self,
        guard: Guard,
        name: &str,
        expected: Version,
        text: Option<String>,
    ) -> Result<Version, StoreError> {
        let _state = self.guarded(guard)?;
        now(self.memory.put_note(guard, name, expected, text))
    }

    pub(crate) fn forget(&self, guard: Guard, before: WallTime) -> Result<usize, StoreError> {
        let _state = self.guarded(guard)?;
        now(self.memory.forget(guard, before))
    }

    /// The public keys of receipts as they are listed: whoever verifies without asking anybody has them.
    pub(crate) fn listed(&self) -> Vec<ListedKey> {
        let notes = now(self.memory.notes(NOTES)).unwrap_or_default();
        notes.iter().filter_map(|(_, note)| ListedKey::read(&note.text).ok()).collect()
    }

    /// A linearizable read.
    pub(crate) fn read<T>(
        &self,
        read: impl FnOnce(&MemoryStore) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let _state = self.state()?;
        read(&self.memory)
    }
}

/// The servers look at leases now and then.
fn grace(state: &mut State) -> Duration {
    state.random.between(Duration::ZERO, ms(700))
}

/// The store in memory answers at once.
pub(crate) fn now<T>(answer: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    answer
        .now_or_never()
        .unwrap_or_else(|| Err(StoreError::Unavailable("it did not answer at once".to_owned())))
}
