//! `picketd --check`: what a start needs besides its settings, looked at as the user who runs the check, by
//! each room's own `check`.
//!
//! **Non-goals.** No port is bound: the gateway that runs may have it.
//!
//! # Invariants
//!
//! - Nothing is made, written or locked, so that a check can run beside a gateway. Nothing is sent but a
//!   question to a store in etcd.
//! - What another gateway holds now is no fault: it may be the one whose settings are checked. An etcd that
//!   is away is none either: a gateway starts, and waits for it.

use std::path::Path;

use picket_audit::Audit;
use picket_config::{Faults, Settings, StoreSettings};
use picket_driver::Context;
use picket_receipt::Keys;
use picket_store::EmbeddedStore;
use tokio::runtime::Runtime;

use crate::failure::{Failure, Need};
use crate::run::addresses;
use crate::store_choice;

/// What the systemd unit makes at each start, with its modes.
const BY_THE_UNIT: [(&str, u32); 2] = [("/var/lib/picket", 700), ("/run/picket", 750)];

/// Tells what is wrong with the settings and with what a start by them needs, all at once. `built`: how many nodes they
/// have and what their devices are remarked for, or their faults.
pub(crate) fn check(
    file: &Path,
    settings: &Settings,
    built: Result<(usize, Vec<String>), Faults>,
    runtime: &Runtime,
    context: &Context,
) -> Result<(), Failure> {
    let (nodes, remarks, faults) = match built {
        Ok((nodes, remarks)) => (nodes, remarks, None),
        Err(faults) => (0, Vec::new(), Some(faults)),
    };
    let (needs, notes) = look(settings, faults.as_ref(), runtime, context);
    match (faults, needs.is_empty()) {
        (Some(faults), true) => return Err(Failure::Settings(faults)),
        (settings, false) => return Err(Failure::Check { settings, needs }),
        (None, true) => {}
    }
    println!("{}: right, with {nodes} nodes", file.display());
    for note in notes.into_iter().chain(remarks) {
        println!("note: {note}");
    }
    Ok(())
}

/// What is missing, and what is worth a word. What stands in a table with faults is not looked at: it may be a default.
fn look(
    settings: &Settings,
    faults: Option<&Faults>,
    runtime: &Runtime,
    context: &Context,
) -> (Vec<Need>, Vec<String>) {
    let sound = |tables: &[&str]| {
        let told = faults.into_iter().flat_map(Faults::all);
        told.into_iter()
            .all(|fault| !tables.iter().any(|table| fault.place.key.split('.').next() == Some(table)))
    };
    let (mut needs, mut notes, mut absent) = (Vec::new(), Vec::new(), Vec::new());
    if let StoreSettings::Etcd(etcd) = &settings.store
        && sound(&["store"])
    {
        match runtime.block_on(store_choice::check(etcd, context)) {
            Ok(None) => {}
            Ok(Some(away)) => {
                notes.push(format!("the store cannot be asked now, and a gateway waits until it can: {away}"))
            }
            Err(why) => needs.push(Need { key: "store.prefix", why: Box::new(why) }),
        }
    }
    let mut need = |key: &'static str, path: &Path, found: Result<(), Failure>| {
        // What would be missing below it is made with it, or by the start.
        if let Some(made) =
            BY_THE_UNIT.iter().find(|(made, _)| path.starts_with(made) && !Path::new(made).exists())
        {
            absent.push(*made);
        } else if let Err(why) = found {
            needs.push(Need { key, why: Box::new(why) });
        }
    };
    if let StoreSettings::Embedded { path } = &settings.store
        && sound(&["store"])
    {
        need("store.path", path, EmbeddedStore::check(path).map_err(Failure::from));
    }
    if let Some(path) = settings.audit.path.as_ref().filter(|_| sound(&["store", "audit"])) {
        need("audit.path", path, Audit::check(path).map_err(Failure::from));
    }
    if let Some(path) = settings.receipts.key_file.as_ref().filter(|_| sound(&["store", "receipts"])) {
        need("receipts.key_file", path, Keys::check(path).map_err(Failure::from));
    }
    let addresses = addresses(settings);
    if let Some(path) = addresses.unix.as_ref().map(|file| file.path.clone()).filter(|_| sound(&["listen"])) {
        need("listen.unix", &path, addresses.check().map_err(Failure::from));
    }
    absent.sort_unstable();
    absent.dedup();
    let by_hand = |(path, mode): (&str, u32)| {
        format!(
            "{path} is not there: the systemd unit makes it at the start; by hand, for the user who runs picketd: install \
             -d -m {mode} {path}"
        )
    };
    notes.extend(absent.into_iter().map(by_hand));
    (needs, notes)
}
