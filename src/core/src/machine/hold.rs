//! Named reasons to keep a node off, placed without a fence (S7).

use super::Refused;
use super::draft::Draft;
use super::restored::expect_other_name;
use crate::event::Person;
use crate::record::Hold;

/// Places a hold, or renews the reason of the one of that name. Where its fence had placed it until the release alone, it
/// lasts from now on until it is dropped.
pub(super) fn hold(draft: &mut Draft, holder: &str, person: &Person) -> Result<(), Refused> {
    draft.expect_phase(
        "a hold",
        &["fencing", "fenced", "released", "needs_operator"],
        "a hold keeps off what is off or on its way there: fence the node",
    )?;
    expect_other_name(holder, draft.record.phase.label())?;
    if !draft.fence_is_current() {
        return Err(Refused::Phase {
            wanted: "a hold",
            phase: draft.record.phase.label(),
            hint: "its fence was ended by an unfence, and a person is asked about that: fence the node",
        });
    }
    let new = Hold {
        reason: person.reason.clone(),
        by: person.name.clone(),
        since: draft.at,
        drop_when_released: false,
        breached: false,
        ended: false,
        placed_alone: true,
        kept: false,
        askers: Vec::new(),
    };
    let held = draft.record.holds.entry(holder.to_owned()).or_insert_with(|| new.clone());
    let askers = std::mem::take(&mut held.askers);
    *held = Hold { since: held.since, breached: held.breached, ended: held.ended, askers, ..new };
    draft.moment(format!("held for {holder} by {}: {}", person.name, person.reason));
    Ok(())
}
