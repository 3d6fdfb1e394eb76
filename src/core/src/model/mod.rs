//! The model: everything that two gateways, one node with two devices, their messages and somebody who relies on a receipt can
//! come to within bounds, explored to the end with [`stateright`].
//!
//! **Purpose.** The rules are the real ones: `machine::step`, `step::save` and `Step::open`, the judge, the ledger,
//! `gate::on_order` and `gate::release_permit`, `SeenOff`, `election::lead` and its lease. What is the model's own is what stands
//! around them: a store that answers at once, processes that crash, stand still or lose the election, devices, a volume, and
//! messages that are late, doubled, reordered or lost (`world`, `next`, `arrivals`). What a gateway asks, and in which order,
//! mirrors `engine/node`: `fencing`, `releasing` (with `parts`, and receipts), `bringing` (unfencing), and the drains in `doing`.
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
pub(crate) mod bytes;
mod callers;
mod checked;
mod digest;
mod doing;
mod explore;
mod fencing;
mod gateways;
mod next;
mod parts;
mod possible;
mod properties;
mod reachable;
mod releasing;
mod setup;
mod standing;
mod state;
mod store;
mod tasks;
mod tests;
mod turn;
mod weaken;
mod world;

use std::sync::Arc;

use self::gateways::Gateway;
use self::setup::Setup;
use self::state::State;
use self::turn::Turn;
use self::world::{Board, Cause, DEVICES, World};
use crate::ids::{Revision, Term, Version};
use crate::record::NodeRecord;
use crate::store::Stored;
use crate::support;

impl Setup {
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
