//! Issuing receipts, and taking them back (S19).

use super::draft::Draft;
use super::proof::expect_present;
use super::refused::Refused;
use crate::ids::ReceiptId;
use crate::ledger::EffectKind;
use crate::receipt::{MOST, MOST_EACH, ReceiptRequest};
use crate::record::{Ended, Issued, NodeRecord};
use crate::roles::counts_as;

pub(super) fn issue(draft: &mut Draft, request: ReceiptRequest<'_>) -> Result<(), Refused> {
    draft.expect_phase(
        "a receipt",
        &["fenced", "released"],
        "only a node that is proven off is receipted",
    )?;
    draft.bars(EffectKind::bars_proof)?;
    let ReceiptRequest { id, seen, by, audience, system_uuid, renews, life, margin } = request;
    expect_present(draft, seen.proof())?;
    let fence = draft.fence()?;
    if fence.evidence.as_ref() != Some(seen.proof().evidence()) || fence.attestation.is_some() {
        return Err(Refused::ForeignProof("it is not the one that is stored"));
    }
    let (simulated, grade) = (fence.topology.is_simulated(), seen.proof().evidence().grade);
    let (fence, round) = (fence.id, fence.round);
    // The new one stands in the ledger in the same write in which the old one leaves it.
    let life_open = life.saturating_add(margin);
    if let Some(old) = renews {
        renew(draft, old, id, &by, life_open)?;
    }
    forget(draft);
    expect_room(&draft.record, &by)?;
    let effect = draft.enter_new(EffectKind::Receipt(id.to_string()), Some(life_open));
    draft.record.receipts.push(Issued {
        id,
        effect,
        fence,
        generation: draft.record.generation,
        round,
        by,
        audience,
        system_uuid,
        grade,
        simulated,
        off_at: seen.off_at(),
        issued_at: draft.at,
        expires_at: draft.at.after(life),
        ended: None,
    });
    Ok(())
}

pub(super) fn hand_back(draft: &mut Draft, id: ReceiptId, by: &str) -> Result<(), Refused> {
    let old = theirs(draft, id, by)?;
    if old.ended.is_none() {
        let effect = old.effect;
        old.ended = Some(Ended::Returned);
        draft.close_if(effect, EffectKind::is_receipt);
    }
    forget(draft);
    Ok(())
}

fn renew(
    draft: &mut Draft,
    old: ReceiptId,
    new: ReceiptId,
    by: &str,
    life_open: std::time::Duration,
) -> Result<(), Refused> {
    let known = open_of(&draft.record, by);
    let issued = theirs(draft, old, by)?;
    if issued.ended.is_some() {
        return Err(Refused::NoSuch { what: "open receipt", name: old.to_string(), known });
    }
    let effect = issued.effect;
    issued.ended = Some(Ended::Renewed(new));
    // Whoever reads the old one offline counts on its time: it stays in the ledger where the new one would end before it.
    let outlived = draft.record.ledger.get(effect).is_none_or(|open| open.life <= Some(life_open));
    if outlived {
        draft.close_if(effect, EffectKind::is_receipt);
    }
    Ok(())
}

fn theirs<'d>(draft: &'d mut Draft, id: ReceiptId, by: &str) -> Result<&'d mut Issued, Refused> {
    let known = open_of(&draft.record, by);
    let Some(issued) = draft.record.receipts.iter_mut().find(|issued| issued.id == id) else {
        return Err(Refused::NoSuch { what: "receipt", name: id.to_string(), known });
    };
    if issued.by != by {
        return Err(Refused::NotTheirs { receipt: id.to_string(), of: issued.by.clone() });
    }
    Ok(issued)
}

/// The open receipts of one caller, as words.
fn open_of(record: &NodeRecord, by: &str) -> Vec<String> {
    let open = record.receipts.iter().filter(|issued| issued.ended.is_none() && issued.by == by);
    open.map(|issued| issued.id.to_string()).collect()
}

fn expect_room(record: &NodeRecord, by: &str) -> Result<(), Refused> {
    let open = |issued: &&Issued| record.ledger.get(issued.effect).is_some();
    let own =
        record.receipts.iter().filter(open).filter(|issued| counts_as(&issued.by) == counts_as(by)).count();
    if own >= MOST_EACH {
        return Err(Refused::TooManyReceipts(own));
    }
    let all = record.receipts.iter().filter(open).count();
    if all >= MOST { Err(Refused::TooManyReceipts(all)) } else { Ok(()) }
}

/// What is not open any more is kept only to tell why it ended early, as long as it would have lived, and no more of it
/// than may be open.
pub(super) fn forget(draft: &mut Draft) {
    let (ledger, at) = (&draft.record.ledger, draft.at);
    let is_open = |issued: &Issued| ledger.get(issued.effect).is_some();
    draft
        .record
        .receipts
        .retain(|issued| is_open(issued) || issued.ended.is_some() && issued.expires_at > at);
    let mut closed = draft.record.receipts.iter().filter(|issued| !is_open(issued)).count();
    draft.record.receipts.retain(|issued| {
        let goes = closed > MOST && !is_open(issued);
        closed -= usize::from(goes);
        !goes
    });
}
