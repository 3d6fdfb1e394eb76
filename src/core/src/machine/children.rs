//! The holds of children on this node, and how they end (S22).

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
