//! The liveness sources of the groups, and of each node its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use picket_config::{Fault, Grouping, Kinded, NodeSettings, Place};
use picket_liveness::{Liveness, Source};

use crate::drivers;

/// The sources, by where they stand: what a label says of each of its values stands once.
pub(crate) struct Sources {
    by_place: BTreeMap<Place, Source>,
    by_group: BTreeMap<String, Kinded>,
}

/// Makes them; asks nobody.
pub(crate) fn read(groups: &Grouping, faults: &mut Vec<Fault>) -> Sources {
    let named = groups.settings().iter();
    let by_group: BTreeMap<String, Kinded> =
        named.filter_map(|(name, group)| Some((name.clone(), group.rules.liveness.clone()?))).collect();
    let mut by_place = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for settings in by_group.values().filter(|settings| seen.insert(settings.place().clone())) {
        match drivers::source(&settings.kind, &settings.settings) {
            Ok(source) => drop(by_place.insert(settings.place().clone(), source)),
            // That a kind is missing was told.
            Err(_) if settings.kind.is_empty() => {}
            Err(wrong) => {
                faults.extend(wrong.into_iter().map(|fault| settings.fault(&fault.key, fault.message)));
            }
        }
    }
    Sources { by_place, by_group }
}

impl Sources {
    /// The source of a node in these groups.
    pub(crate) fn of(
        &self,
        node: &NodeSettings,
        groups: &BTreeSet<String>,
        faults: &mut Vec<Fault>,
    ) -> Option<Arc<dyn Liveness>> {
        let settings = groups.iter().find_map(|group| self.by_group.get(group))?;
        let source = self.by_place.get(settings.place())?;
        match source.of(&node.id, node.provider_id.as_deref(), &node.labels) {
            Ok(source) => Some(source),
            Err(fault) => {
                faults.push(settings.fault(&fault.key, format!("{}: {}", node.id, fault.message)));
                None
            }
        }
    }
}
