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
    /// `kind`: `webhook`, `command`, `volumes`, `none`, or `kubernetes` where the build has it; and what the kind checks.
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
        let how = Kinded::read(&mut table, "the kind of release, for example \"webhook\"");
        releases.insert(id.clone(), ReleaseSettings { id, how });
    }
    releases
}
