//! Named reasons to keep a node off, placed without a fence (S7).
//!
//! # Invariants
//!
//! - While a hold stands no on is opened. Shown by `a_hold_keeps_the_node_off`.
//! - What was found before the first hold stays in the record until the hold is undone (S11). Shown by
//!   `what_was_found_stays_until_it_is_put_back`.

use super::draft::{Draft, bounded};
use super::refused::Refused;
use super::restored::expect_other_name;
use crate::event::{Event, Person};
use crate::parent::child_of;
use crate::record::Hold;
use crate::restore::HOLD;
use crate::roles::counts_as;

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
    expect_room(draft, holder, &person.name)?;
    let new = Hold {
        reason: bounded(person.reason.clone()),
        by: person.name.clone(),
        since: draft.at,
        drop_when_released: false,
        breached: false,
        ended: false,
        placed_alone: true,
        kept: false,
        askers: Vec::new(),
    };
    let new = match draft.record.holds.get(holder).cloned() {
        Some(held) => {
            let Hold { since, breached, ended, askers, .. } = held.clone();
            let renewed = Hold { since, breached, ended, askers, ..new };
            if renewed == held {
                // It stands so already, and whoever says it again adds nothing to the history.
                return Ok(());
            }
            renewed
        }
        None => new,
    };
    draft.record.holds.insert(holder.to_owned(), new);
    draft.moment(format!("held for {holder} by {}: {}", person.name, person.reason));
    Ok(())
}

/// Whether an event gives another word for a hold that stands.
pub(super) fn renews(draft: &Draft, event: &Event<'_>) -> bool {
    matches!(event, Event::Hold { holder, .. } if draft.record.holds.contains_key(holder))
}

/// A node has at most this many holds of callers: its record is one request to etcd.
const MOST: usize = 64;
/// One caller has at most this many of them, and so leaves room for others.
const EACH: usize = 16;

/// One more hold of a caller has room. A child's hold always has: without it the child is not proven off (S22).
pub(super) fn expect_room(draft: &Draft, holder: &str, by: &str) -> Result<(), Refused> {
    let holds = &draft.record.holds;
    if holds.contains_key(holder) || child_of(holder).is_some() {
        return Ok(());
    }
    let is_caller_s = |name: &str| name != HOLD && child_of(name).is_none();
    let of_callers = || holds.iter().filter(|(name, _)| is_caller_s(name));
    let own = of_callers().filter(|(_, hold)| counts_as(&hold.by) == counts_as(by));
    let own: Vec<String> = own.map(|(name, _)| name.clone()).collect();
    if own.len() >= EACH {
        return Err(Refused::TooManyHolds { by: Some(by.to_owned()), holds: own });
    }
    if of_callers().count() >= MOST {
        let holds = of_callers().map(|(name, _)| name.clone()).collect();
        return Err(Refused::TooManyHolds { by: None, holds });
    }
    Ok(())
}
