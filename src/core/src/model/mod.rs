//! The model: everything that two gateways, one node with two devices, their messages and somebody who relies on a receipt can
//! come to within bounds, explored to the end with [`stateright`].
//!
//! **Purpose.** The rules are the real ones: `machine::step`, `step::save` and `Step::open`, the judge, the ledger,
//! `gate::on_order` and `gate::release_permit`, `SeenOff`, `election::lead` and its lease. What is the model's own is what stands
//! around them: a store that answers at once, processes that crash, stand still or lose the election, devices, a volume, and
//! messages that are late, doubled, reordered or lost (`world`, `actions`, `arrivals`). What a gateway asks, and in which order,
//! mirrors `engine/node`: `fencing`, `releasing` (with `parts`, and receipts), `bringing` (unfencing), and the drains in `actions`.
//!
//! **Properties** stand in `properties`; none of them knows the rules, all of them compare with what is true. From every state an
//! end must be in reach as well (`reachable`). Each rule that the properties live by is taken away once (`weaken`), to see that
//! the model would notice.
//!
//! **Abstracted.**
//! - Time is ticks of a second; all of the rules' times are one to nine of them. Between two ticks everything happens that is
//!   due: a gateway is slow only where it is paused, and a message only where it strays. A stray arrives at any time until its
//!   bound, or never. All clocks run equally fast, and no wall clock jumps.
//! - A process stopped between its permit and its sending is a message under way. A question to a device is answered within the
//!   tick, late (with what was true when it was asked), or not at all; which of two devices is asked first is fixed.
//! - An off, an on, a hold and its undoing work at once where they arrive. A device that restarts does so under an off that it
//!   took, and never while its gateway dies: that is among what remains. Where the address of a device leads to another machine's,
//!   its session is lost, the next one is the other's, and what was sent in the one before may still arrive at the node.
//! - How long a level, a release and an on are waited for is not counted: `Overdue` may come at any time. A watched node is looked
//!   at when it is on, and at no other time.
//! - Whoever keeps the volume acts once per key, and for no older generation than it has seen, as `src/release/README.md` asks. Where
//!   its release is made of parts (`parts`), a cloud keeps two volumes, and acts whenever the node has the one that is named; a detach
//!   arrives once, as what goes by TCP does, what it took is done at once, and one part is attempted after the other.
//! - Where it sets something up (`standing`) the volume is let go at any moment while that stands, or stood just now, whoever leads.
//! - Host devices, in one level or in two; no supplies, no device that withholds its identity, no budget, no retirement; of the last look only a sign of
//!   life. The store always answers, and always says what became of a write. All that is `tests/properties`' and the engine's
//!   simulations' matter.
//!
//! **Non-goals.** No symmetry is used but that two processes that know nothing are one; no state is left out by chance. What a
//! state's number leaves out (`digest`) is compared once: states of one number go on to states of one number.

mod actions;
mod arrivals;
mod bringing;
mod callers;
mod digest;
mod doing;
mod explore;
mod fencing;
mod gateways;
mod parts;
mod possible;
mod properties;
mod reachable;
mod releasing;
mod standing;
mod store;
mod tests;
mod turn;
mod weaken;
mod world;

use std::sync::Arc;
use std::time::Duration;

use explore::Checked;

use self::gateways::Gateway;
use self::turn::Turn;
use self::weaken::Weak;
use self::world::{Board, Budget, Cause, DEVICES, State, VOLUMES, World};
use crate::device::{DeviceSpec, MaxInFlight};
use crate::event::{FenceRequest, PlannedRelease};
use crate::ids::{FenceId, Generation, Revision, Term, Version};
use crate::record::{NodeRecord, Then};
use crate::rules::Rules;
use crate::store::Stored;
use crate::support;
use crate::topology::Topology;

/// What a check explores: the shape of things, and its bounds.
#[derive(Debug)]
struct Setup {
    name: &'static str,
    /// Host devices.
    hosts: usize,
    /// Each of them is a level of its own.
    apart: bool,
    /// Fences are reboots: the node is to come back once its volume is let go.
    reboots: bool,
    /// It has two volumes, each a part of its release; else one.
    parts: bool,
    /// Its release sets something up, which lets the volume go for as long as it stands.
    stands: bool,
    /// Which of them know a hold.
    holds: [bool; DEVICES],
    /// They know no word for "it is off already": they take an off plainly then, and refuse it when they are told again.
    refuses: bool,
    /// The machine to which the first one's address may lead is on; nobody fences it.
    other_is_on: bool,
    /// Messages under way at once, at most.
    most: usize,
    budget: Budget,
    weak: Weak,
    /// How long a permit, and a lease, last unless they are renewed, in ticks.
    permit: u64,
    lease: u64,
    /// How long a message may live on the far side (S8), in ticks.
    life: u64,
    /// How long somebody's power cycle takes at most.
    cycle: u64,
    rules: Rules,
    topology: Topology,
}

/// Levels of host devices: a tick is a second, and every time as short as the rules go on to tell it from others.
fn topology(hosts: usize, apart: bool, life: u64, cycle: u64) -> Topology {
    let second = Duration::from_secs(1);
    let bound = Some(Duration::from_secs(life));
    let spec = |name| DeviceSpec {
        longest_cycle: Duration::from_secs(cycle),
        call: second,
        dwell: second,
        max_in_flight: MaxInFlight { off: bound, on: bound },
        ..support::host(name)
    };
    let level: Vec<DeviceSpec> = ["a", "b"].into_iter().take(hosts).map(spec).collect();
    let levels: Vec<&[DeviceSpec]> = level.chunks(if apart { 1 } else { hosts }).collect();
    support::topology(&levels)
}

impl Setup {
    fn new(name: &'static str, hosts: usize, budget: Budget) -> Self {
        let second = Duration::from_secs(1);
        let rules = Rules {
            contradiction: second * 3,
            receipt_life: second,
            receipt_margin: second,
            ..Rules::default()
        };
        // A late message outlives a confirmation, also one by the long window.
        let (cycle, life) = (1, 4);
        let topology = topology(hosts, false, life, cycle);
        let (holds, weak) = ([false; DEVICES], Weak::Nothing);
        Self {
            name,
            hosts,
            apart: false,
            reboots: false,
            parts: false,
            stands: false,
            holds,
            refuses: false,
            other_is_on: true,
            most: 2,
            budget,
            weak,
            permit: 1,
            lease: 2,
            life,
            cycle,
            rules,
            topology,
        }
    }

    /// The longest power cycle that anybody may have under way, as the devices' settings say, in ticks.
    fn with_cycle(self, cycle: u64) -> Self {
        let topology = topology(self.hosts, self.apart, self.life, cycle);
        Self { cycle, topology, ..self }
    }

    /// Each device is a level of its own.
    fn apart(self) -> Self {
        let topology = topology(self.hosts, true, self.life, self.cycle);
        Self { apart: true, topology, ..self }
    }

    /// The volumes that the node has while it runs.
    fn volumes(&self) -> [bool; VOLUMES] {
        [true, self.parts]
    }

    fn without(self, weak: Weak) -> Self {
        Self { weak, ..self }
    }

    fn bounds(&self) -> String {
        let levels = if self.apart { "levels" } else { "host devices" };
        let (hosts, most, left) = (self.hosts, self.most, self.budget.words());
        let times =
            format!("permit {}, lease {}, life {}, cycle {}", self.permit, self.lease, self.life, self.cycle);
        let volumes = match (self.parts, self.stands) {
            (true, _) => "2 volumes, ",
            (false, true) => "a volume that is let go while something stands, ",
            (false, false) => "",
        };
        format!("{hosts} {levels}, {volumes}{most} messages under way, {times}; {left}")
    }

    fn fence_id(&self, generation: Generation) -> FenceId {
        support::fence_id(u8::try_from(generation.0 % 200).unwrap_or(0) + 1)
    }

    fn request(&self, id: FenceId) -> FenceRequest {
        let max_in_flight = Some(Duration::from_secs(self.life));
        FenceRequest {
            id,
            holder: support::holder("ops", if self.reboots { Then::PowerOn } else { Then::StayOff }),
            topology: self.topology.clone(),
            releases: vec![PlannedRelease {
                id: world::detach(),
                max_in_flight,
                lingers: self.stands.then(standing::lingers),
                by_name: false,
            }],
            ..support::request(1, &[&[support::host("a")]], &[])
        }
    }

    /// One gateway leads, and nothing happened yet.
    fn beginning(&self) -> State {
        let record = NodeRecord::new(support::node());
        let stored = Arc::new(Stored { version: Version(0), revision: Revision(0), record });
        let gateway = Gateway::new(stored.clone());
        let mut state = State {
            tick: 0,
            stored,
            term: Term(0),
            elected: None,
            gateways: [gateway.clone(), gateway],
            world: World {
                power: Some(Cause::Known),
                cycle: None,
                owned: self.volumes(),
                acted: None,
                stands: false,
                acts_until: 0,
                kept_off: false,
                owed: false,
                boards: [Board::default(); DEVICES],
                messages: Vec::new(),
                reliance: None,
                astray: false,
            },
            left: self.budget,
            wrong: None,
            digest: 0,
        };
        Turn { setup: self, state: &mut state, who: 0 }.campaign();
        state.digest = digest::of(self, &state);
        state
    }
}
