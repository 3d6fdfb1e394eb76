//! Room in the queue: as much for one caller as is left for all others.

use picket_core::budget::{Bar, LimitKind};
use picket_core::roles::counts_as;

use super::{LOOK, Runner};
use crate::error::EngineError;
use crate::office::queue::{Enter, Entry};

impl Runner<'_> {
    /// A caller has no more requests waiting than there are places left: alone it has half of the queue, and whoever comes next finds
    /// room, however often it asks (S14).
    pub(super) fn expect_room(&self, enter: &Enter, most: u32) -> Result<(), EngineError> {
        let by = &enter.call.holder.by;
        let is_theirs = |entry: &&Entry| counts_as(&entry.call.holder.by) == counts_as(by);
        let theirs = self.entries.values().filter(is_theirs).count();
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let (theirs, left) = (number(theirs), most.saturating_sub(number(self.entries.len())));
        if theirs < left {
            return Ok(());
        }
        let (found, why) = match left {
            0 => (most, format!("the queue has its {most} requests, and no room for another")),
            _ => {
                let why = format!(
                    "{by} has {theirs} of the {most} requests that may wait in the queue, and the {left} that are left are for others"
                );
                (theirs, why)
            }
        };
        Err(EngineError::Barred(Box::new(Bar {
            kind: LimitKind::Queue,
            whose: "the queue".to_owned(),
            allowed: found,
            found,
            text: format!("{why}; {}", enter.bar.text),
            names: String::new(),
            retry_after: Some(LOOK),
        })))
    }
}
