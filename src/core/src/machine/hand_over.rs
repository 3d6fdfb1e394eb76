//! A leader that reaches no device of a fence lets another one try (S17).

use super::draft::Draft;
use super::refused::Refused;
use crate::record::HandedOver;

/// Each gateway at most once a fence. The levels are tried from the first one again: what this gateway does not reach says
/// nothing of what another one does.
pub(super) fn hand_over(draft: &mut Draft, gateway: String, why: &str, stays: bool) -> Result<(), Refused> {
    draft.expect_phase(
        "to let another gateway try",
        &["fencing"],
        "only a fence that is not confirmed is handed over",
    )?;
    let fence = draft.fence()?;
    if fence.handed_over.contains(&gateway) {
        return Err(Refused::ForeignProof("this gateway has let others try already"));
    }
    if stays {
        draft.moment(format!("{gateway} reaches none of its devices either ({why})"));
    } else {
        fence.level = fence.first_level;
        draft.moment(format!("{gateway} reaches none of its devices ({why}): another gateway tries"));
    }
    let at = draft.at;
    let fence = draft.fence()?;
    fence.handed_over.insert(gateway);
    if !fence.by_person && !stays {
        let fence = fence.id;
        draft.record.handed_over = Some(HandedOver { fence, at });
    }
    Ok(())
}
