//! `[election]`: how gateways that share a store elect one of them.

use std::time::Duration;

use picket_core::time::written;

use crate::sections::StoreSettings;
use crate::table::Table;

/// `[election]`, with `kind = "etcd"` in `[store]`; any other store is one gateway's alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElectionSettings {
    /// `lease`: how long a leader that fell silent still counts as one; whole seconds, 3 s to 60 s. Default: 5 s.
    pub lease: Duration,
    /// `advertise`: where callers reach this gateway, for those who ask another one: `https://g1:7070`. Default: none.
    pub advertise: Vec<String>,
    /// `take_over_settings`: stands also where the last leader had other nodes, devices, rules or roles in its settings than this one.
    /// Default: false.
    pub take_over_settings: bool,
}

const LEAST: Duration = Duration::from_secs(3);
const MOST: Duration = Duration::from_secs(60);

pub(crate) fn read(mut table: Table<'_>, given: bool, store: &StoreSettings) -> ElectionSettings {
    if given && !matches!(store, StoreSettings::Etcd(_)) {
        let place = table.place.clone();
        table.log().push(place.fault("nobody is elected: this store is one gateway's alone. Remove it, or set kind = \"etcd\" in [store]"));
    }
    let lease = table.duration("lease").unwrap_or(Duration::from_secs(5));
    if !(LEAST..=MOST).contains(&lease) || lease.subsec_nanos() != 0 {
        table.fault("lease", format!("expected whole seconds, {} to {}", written(LEAST), written(MOST)));
    }
    let mut advertise = Vec::new();
    for (place, text) in table.texts("advertise").unwrap_or_default() {
        let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        let host = rest.and_then(|rest| rest.rsplit_once(':')).filter(|(host, port)| {
            !host.is_empty() && !host.contains('/') && port.parse::<u16>().is_ok_and(|port| port > 0)
        });
        match host {
            Some(_) => advertise.push(text),
            None => table.log().push(place.fault(format!(
                "expected a URL with a host and a port (\"https://g1:7070\"), found {text:?}"
            ))),
        }
    }
    let take_over_settings = table.flag("take_over_settings").unwrap_or(false);
    table.done();
    ElectionSettings { lease, advertise, take_over_settings }
}
