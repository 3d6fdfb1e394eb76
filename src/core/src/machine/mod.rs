//! The state machine: `step(record, event) -> record + locked effects`.
//!
//! The functions are pure. The machine knows no time but the stamp that it writes for people.
//!
//! # Invariants
//!
//! - An event that the rules do not allow is [`Refused`] and changes nothing. Shown by
//!   `a_refusal_changes_nothing`.
//! - Every transition that opens an effect enters it into the ledger of the same record (S5). Shown by
//!   `what_is_opened_stands_in_the_ledger`.
//! - Numbers (generations, effects, versions) only grow. Shown by `numbers_only_grow`.
//! - From every reachable record some way leads back to Normal, or to Retired (S16). Shown by
//!   `some_way_leads_back`, `orphans_can_be_retired`.
//! - A record comes back from JSON as it was stored. Shown by `a_record_comes_back_as_it_was`.

mod children;
mod draft;
mod ending;
mod fence;
mod hand_over;
mod hold;
mod identity;
mod opening;
mod parts;
mod people;
mod proof;
mod receipts;
mod refused;
mod release;
mod restored;
mod retire;
#[cfg(test)]
mod tests;
mod unfence;

use draft::Draft;
pub use opening::{may_be_drilled, opened_by};
pub use refused::Refused;
pub(crate) use unfence::may_switch_on;

use crate::event::Event;
use crate::ids::{Term, Version};
use crate::ledger::describe;
use crate::record::NodeRecord;
use crate::step::Step;
use crate::time::WallTime;

/// Applies `event` to a record of version `version` under leadership `term`.
pub fn step(
    record: &NodeRecord,
    version: Version,
    event: Event<'_>,
    term: Term,
    at: WallTime,
) -> Result<Step, Refused> {
    let mut draft = Draft::new(record.clone(), term, at);
    change(&mut draft, event)?;
    release::note_turn(&mut draft);
    Ok(draft.finish(version))
}

fn change(draft: &mut Draft, event: Event<'_>) -> Result<(), Refused> {
    match event {
        Event::Fence(request) => opening::open(draft, *request)?,
        Event::Drill(request) => opening::drill(draft, *request)?,
        Event::Join(request) => opening::join(draft, *request)?,
        Event::NextLevel { why, gives_way } => fence::next_level(draft, &why, gives_way)?,
        Event::HandOver { gateway, why, stays } => hand_over::hand_over(draft, gateway, &why, stays)?,
        Event::HoldIntent { found } => fence::hold_intent(draft, found)?,
        Event::HoldEnded { results, known } => fence::hold_ended(draft, results, &known)?,
        Event::OffIntent { devices, identified } => fence::off_intent(draft, &devices, identified)?,
        Event::NotSent { effects, why } => fence::not_sent(draft, &effects, &why)?,
        Event::Boot(boot) => fence::boot(draft, boot)?,
        Event::Recovered { boot, why } => ending::recovered(draft, &boot, &why)?,
        Event::Lost { device } => fence::lost(draft, device)?,
        Event::Said { device, said } => fence::said(draft, device, said)?,
        Event::SeenOn { device } => fence::seen_on(draft, device)?,
        Event::Silent { device, silent } => fence::silent(draft, device, silent)?,
        Event::Confirmed(proof) => proof::confirmed(draft, proof)?,
        Event::Unproven { why, seen } => proof::unproven(draft, &why, seen)?,
        Event::Breach { id, device } => proof::breach(draft, id, &device)?,
        Event::GiveUp { reason, detail } => ending::give_up(draft, reason, &detail)?,
        Event::Abort { why } => ending::abort(draft, &why)?,
        Event::Bar { reason, why } => ending::bar(draft, reason, &why)?,
        Event::ReleaseSurveyed { release, found } => parts::surveyed(draft, &release, found)?,
        Event::ReleaseIntent { release, life, lingers, sets_up } => {
            release::intent(draft, &release, life, lingers, sets_up)?;
        }
        Event::StandsFound { release, lingers } => release::stands_found(draft, &release, lingers)?,
        Event::Barred { release, is } => release::barred(draft, &release, is)?,
        Event::ReleaseSubject { release, subject } => release::subject(draft, &release, subject)?,
        Event::ReleaseProgress { release, stage, detail, known } => {
            release::progress(draft, &release, stage, detail, known)?;
        }
        Event::PassedOn { release, to, why } => release::passed_on(draft, &release, &to, &why)?,
        Event::Withdrawn { effects } => release::withdrawn(draft, &effects),
        Event::Hold { holder, person } => hold::hold(draft, &holder, &person)?,
        Event::EndChildsHold { holder, fence, person } => children::end(draft, &holder, fence, &person)?,
        Event::LetGo { holder, person } => children::let_go(draft, &holder, &person)?,
        Event::Unfence { holder, person } => unfence::drop_hold(draft, &holder, &person)?,
        Event::UnholdIntent => unfence::unhold_intent(draft)?,
        Event::Unheld { devices, detail } => unfence::unheld(draft, &devices, &detail)?,
        Event::OnIntent { devices } => unfence::on_intent(draft, &devices)?,
        Event::SuppliesOn { devices } => unfence::supplies_on(draft, &devices)?,
        Event::Back { detail } => unfence::back(draft, &detail)?,
        Event::CameOn { device } => unfence::came_on(draft, &device)?,
        Event::OnFailed { detail } => unfence::on_failed(draft, &detail)?,
        Event::Attest { person, looks } => people::attest(draft, person, looks)?,
        Event::Marked(mark) => restored::mark(draft, mark)?,
        Event::Adopt { topology, releases, receipts } => {
            restored::adopt(draft, &topology, &releases, receipts)?;
        }
        Event::Read { id, topology, looks } => restored::read(draft, id, topology, &looks)?,
        Event::DropRestored(person) => restored::drop_hold(draft, &person)?,
        Event::RetrySeenOff { person, looks } => people::retry_seen_off(draft, &person, looks)?,
        Event::Retry(person) => people::retry(draft, &person)?,
        Event::TryAgain { why } => people::try_again(draft, why)?,
        Event::OtherSettings(words) => draft.moment(words),
        Event::NewTopology(topology) => fence::new_topology(draft, topology)?,
        Event::AskedForLess { grade, person } => people::ask_for_less(draft, grade, &person)?,
        Event::SetAside(overrides) => opening::set_aside(draft, overrides)?,
        Event::Abandon { release, person, orphan } => people::abandon(draft, &release, &person, orphan)?,
        Event::StandDown(person) => people::stand_down(draft, &person)?,
        Event::ReceiptIntent(request) => receipts::issue(draft, *request)?,
        Event::ReceiptReturned { id, by } => receipts::hand_back(draft, id, &by)?,
        Event::Retire { person, settings, left } => retire::retire(draft, person, settings, left)?,
        Event::Resettled { settings } => retire::resettled(draft, settings)?,
        Event::Accepted { device, identity, person } => {
            identity::accept(draft, device, identity, &person)?;
        }
        Event::Drilled { verified, identities, findings } => {
            identity::drilled(draft, verified, identities, &findings)?;
        }
        Event::Closed { effects, why } => {
            let mut words = Vec::new();
            for id in effects {
                // Receipts come and go, and would push out of the history what matters; the audit has them.
                let told = draft.record.ledger.get(id).filter(|open| !open.kind.is_receipt());
                words.extend(told.map(|open| describe(&open.kind)));
                draft.record.ledger.close(id);
            }
            receipts::forget(draft);
            if !words.is_empty() {
                draft.moment(format!("closed {}: {why}", words.join(", ")));
            }
        }
        Event::Keyed { event, key, by } => {
            let renews = hold::renews(draft, &event);
            let before = draft.record.clone();
            change(draft, *event)?;
            // A caller may do that as often as it likes: its keys are bounded.
            match renews || draft.record == before {
                true => draft.bind_idle(key, &by),
                false => draft.bind(Some(key)),
            }
        }
        Event::InSessions { event, sessions, lives } => {
            (draft.sessions, draft.lives) = (sessions, lives);
            change(draft, *event)?;
        }
        Event::After { found, event } => {
            for one in found {
                change(draft, one)?;
            }
            change(draft, *event)?;
        }
        Event::SoAlready => unfence::so_already(draft)?,
        Event::Learned { device, identity } => identity::learn(draft, device, identity)?,
        Event::IdentityTold { device, identity, by } => identity::tell(draft, device, identity, by)?,
        Event::IdentityProven { device, identity, by } => identity::prove(draft, device, &identity, by)?,
    }
    Ok(())
}
