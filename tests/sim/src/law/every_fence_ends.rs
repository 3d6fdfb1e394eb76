//! S16: once all misfortune is over, whatever is under way comes to an end, or waits for a person who is told why. Judged by
//! the healing, which is that person.

use picket_core::record::{NodeRecord, Phase};

/// Whether somebody must do something before it goes on.
pub(crate) fn waits_for_somebody(record: &NodeRecord) -> bool {
    matches!(
        record.phase,
        Phase::Normal | Phase::Released | Phase::PowerOnFailed | Phase::NeedsOperator(_) | Phase::Retired
    )
}
