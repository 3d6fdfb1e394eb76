//! What must hold, always; and what must be seen to happen, so that the model is not empty.

use stateright::Property;

use super::Checked;
use super::world::State;
use crate::record::Phase;

/// Never a release effective while the node may be on and the volume its own.
pub(super) const RELEASE: &str = "no volume is let go while the node is on and the volume its own";
/// Never on after a confirmation that nobody unfenced.
pub(super) const UNWANTED_ON: &str = "no on of ours arrives after a confirmation that nobody unfenced";
/// Nothing is switched on that would come back without its volumes, or write to what is being let go.
pub(super) const STANDS: &str = "no on of ours arrives while what lets the volume go stands, or is acted on";
/// Another machine is let be.
pub(super) const ASTRAY: &str = "nothing of ours that changes something is sent to another machine";
/// The judge's proof is true.
pub(super) const LIT: &str = "what is confirmed is off";
/// Nobody relies on a receipt of a node that we switch on.
pub(super) const RECEIPT: &str = "no on of ours arrives while somebody relies on a receipt";
/// What the evidence calls held is held, and stays so.
pub(super) const HOLD: &str = "what is confirmed as held is held, and not undone by what was sent before";
/// A node that is back comes on by itself again where its power fails.
pub(super) const HELD_BACK: &str = "nothing that is back is held by what was sent before";
/// Nothing of a fence is left once its node is back.
pub(super) const OFF_BACK: &str = "no off of ours arrives at a node that is back";
/// Who was promised the node gets it.
pub(super) const OWED: &str = "what was unfenced is not left off and forgotten";
/// No volume is lost sight of.
pub(super) const KEPT: &str = "a node that is called released has no volume left that nobody gave up";
/// The phases ask only for what the rules allow.
pub(super) const REFUSED: &str = "no step of our own is refused";

fn wrong(state: &State, what: &str) -> bool {
    state.wrong == Some(what)
}

/// All of them. The rules and the model are one more check of each other by the last one.
pub(super) fn all() -> Vec<Property<Checked>> {
    vec![
        Property::always(RELEASE, |_, state: &State| !wrong(state, RELEASE)),
        Property::always(UNWANTED_ON, |_, state: &State| !wrong(state, UNWANTED_ON)),
        Property::always(STANDS, |_, state: &State| !wrong(state, STANDS)),
        Property::always(ASTRAY, |_, state: &State| !wrong(state, ASTRAY)),
        Property::always(LIT, |_, state: &State| !wrong(state, LIT)),
        Property::always(RECEIPT, |_, state: &State| !wrong(state, RECEIPT)),
        Property::always(HOLD, |_, state: &State| !wrong(state, HOLD)),
        Property::always(HELD_BACK, |_, state: &State| !wrong(state, HELD_BACK)),
        Property::always(OFF_BACK, |_, state: &State| !wrong(state, OFF_BACK)),
        Property::always(OWED, |_, state: &State| !wrong(state, OWED)),
        Property::always(REFUSED, |_, state: &State| !wrong(state, REFUSED)),
        Property::always(KEPT, |_, state: &State| !wrong(state, KEPT)),
        Property::sometimes("all volumes are let go", |_, state: &State| !state.world.owned.contains(&true)),
        Property::sometimes("a node that was fenced is back with its volumes", is_back),
    ]
}

fn is_back(checked: &Checked, state: &State) -> bool {
    let record = &state.stored.record;
    record.phase == Phase::Normal
        && record.generation.0 >= 2
        && state.world.power.is_some()
        && state.world.owned == checked.setup.volumes()
}

/// Where nothing need go on: the node is back, or it is dark and a person, or a caller, decides; nothing is under way.
pub(super) fn is_end(state: &State) -> bool {
    let record = &state.stored.record;
    // A gateway that watches a node keeps the session in which it sent its off, and so that off stays open.
    let rests = match record.phase {
        Phase::Normal => record.ledger.open().is_empty(),
        Phase::Released => state.left.unfences == 0,
        Phase::PowerOnFailed | Phase::NeedsOperator(_) => true,
        _ => false,
    };
    rests && state.world.messages.is_empty()
}
