//! The releases that nodes may name.

use std::collections::BTreeMap;

use picket_core::ids::ReleaseId;

use crate::kinded::Kinded;
use crate::table::Table;

/// One release.
#[derive(Clone, Debug)]
pub struct ReleaseSettings {
    /// Its name.
    pub id: ReleaseId,
    /// `kind`: `webhook`, `command`, `volumes`, `kubernetes` or `none`; and what the kind checks.
    pub how: Kinded,
}

pub(crate) fn releases(top: &mut Table<'_>) -> BTreeMap<ReleaseId, ReleaseSettings> {
    let mut releases = BTreeMap::new();
    for (name, entry) in top.named("releases") {
        let id = match ReleaseId::new(&name) {
            Ok(id) => id,
            Err(error) => {
                top.log().push(entry.place.fault(error.to_string()));
                continue;
            }
        };
        let mut table = Table::of(top.log(), entry);
        let how =
            Kinded::read(&mut table, "\"webhook\", \"command\", \"volumes\", \"kubernetes\" or \"none\"");
        releases.insert(id.clone(), ReleaseSettings { id, how });
    }
    releases
}
