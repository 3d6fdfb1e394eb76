//! No secret stands in the settings (S18): files, variables and credentials are named instead.

use crate::entry::{Entry, Raw};
use crate::hidden::HIDDEN;
use crate::table::Findings;

/// How keys end that hold a secret itself. `password_file`, `token_env` and the like only name where it is.
const SECRETS: [&str; 8] =
    ["password", "passphrase", "secret", "token", "api_key", "private_key", "kg", "credentials"];

/// A fault for each key, at any depth, that holds a secret itself. What stands there is not repeated.
pub(crate) fn refuse(key: &str, entry: &Entry, log: &Findings) {
    match &entry.raw {
        Raw::Table(entries) => entries.iter().for_each(|(key, entry)| refuse(key, entry, log)),
        Raw::List(items) => items.iter().for_each(|item| refuse(key, item, log)),
        _ => {
            let lower = key.to_ascii_lowercase();
            let holds = |secret: &&&str| lower == **secret || lower.ends_with(&format!("_{secret}"));
            if let Some(secret) = SECRETS.iter().find(holds) {
                log.push(entry.place.fault(format!(
                    "a {secret} does not stand in the settings: put it into a file that only picketd may read, and \
                     name that by {key}_file (or a variable by {key}_env, or a credential of systemd by {key}_credential, \
                     where the driver takes them)"
                )));
            }
        }
    }
}

/// A fault for each value, at any depth, that `picketd --print-settings` hid: it is not taken for what stood there.
pub(crate) fn refuse_hidden(entry: &Entry, log: &Findings) {
    match &entry.raw {
        Raw::Table(entries) => entries.iter().for_each(|(_, entry)| refuse_hidden(entry, log)),
        Raw::List(items) => items.iter().for_each(|item| refuse_hidden(item, log)),
        Raw::Text(text) | Raw::Variable(text) if text.contains(HIDDEN) => log.push(entry.place.fault(format!(
            "{HIDDEN} stands where picketd --print-settings hid a secret: write what the settings had there that were printed"
        ))),
        _ => {}
    }
}
