//! The holds of children on this node, and how they end (S22).
//!
//! # Invariants
//!
//! - A breach marks the children's holds in the same write, and so does a proof that something speaks
//!   against. A new leader then finds what is void. Shown by
//!   `what_is_not_proven_any_more_is_void_for_its_children_unless_its_prover_is_merely_gone`,
//!   `a_breach_of_the_parent_voids_what_it_proved_of_its_child`.
//! - A hold goes only once nothing of its child relies on it. A parent is neither stood down nor retired
//!   under it. Shown by `a_parent_is_not_stood_down_under_its_child_and_a_retired_child_lets_it_go`.

use super::draft::Draft;
use super::refused::Refused;
use super::unfence::drop_hold;
use crate::event::Person;
use crate::ids::FenceId;
use crate::parent::child_of;
use crate::record::{EndedHold, Phase};

/// An admin ends a child's hold. It voids what this node proves of the child; the hold itself stands while something of the child relies on it.
pub(super) fn end(
    draft: &mut Draft,
    holder: &str,
    of: Option<FenceId>,
    person: &Person,
) -> Result<(), Refused> {
    let within = draft.record.fence.as_ref().map(|fence| fence.id);
    let Some(hold) = draft.record.holds.get_mut(holder).filter(|_| child_of(holder).is_some()) else {
        return Err(no_such(draft, holder));
    };
    if !std::mem::replace(&mut hold.ended, true) {
        let refused = of.map(|of| (holder.to_owned(), EndedHold { of, within }));
        draft.record.refused.extend(refused);
        let Person { name, reason } = person;
        draft.moment(format!(
            "hold {holder} ended by {name}: {reason}; it proves nothing of its child any more"
        ));
    }
    Ok(())
}

/// While a person is asked only the hold goes, and the node waits on: nothing is switched on by that.
pub(super) fn let_go(draft: &mut Draft, holder: &str, person: &Person) -> Result<(), Refused> {
    if !matches!(draft.record.phase, Phase::NeedsOperator(_)) {
        return drop_hold(draft, holder, person);
    }
    if child_of(holder).is_none() || draft.record.holds.remove(holder).is_none() {
        return Err(no_such(draft, holder));
    }
    draft.moment(format!("hold {holder} dropped by {}: {}", person.name, person.reason));
    Ok(())
}

fn no_such(draft: &Draft, holder: &str) -> Refused {
    Refused::NoSuchHold { holder: holder.to_owned(), holds: draft.record.holds.keys().cloned().collect() }
}
