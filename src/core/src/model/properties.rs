//! What must hold, always; and where nothing need go on.

use super::state::State;
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
