//! The settings of one device.

use std::path::PathBuf;

use picket_driver::SettingFault;
use picket_driver::table::{ReadTable, shown};
use serde_json::{Map, Value};

const KEYS: [&str; 5] = ["server", "cloud", "clouds_file", "region", "hold"];
const CLOUDS: &str = "/etc/openstack/clouds.yaml";

/// One server of one cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// The server's UUID, as Nova writes it.
    pub(crate) server: String,
    pub(crate) cloud: String,
    pub(crate) clouds_file: PathBuf,
    pub(crate) region: Option<String>,
    pub(crate) hold: bool,
}

struct Reader<'a> {
    table: &'a Map<String, Value>,
    faults: Vec<SettingFault>,
}

impl ReadTable for Reader<'_> {
    fn table(&self) -> &Map<String, Value> {
        self.table
    }

    fn fault(&mut self, key: &str, message: impl Into<String>) {
        self.faults.push(SettingFault::new(key, message));
    }
}

impl Settings {
    /// Checks them; all faults at once.
    pub(crate) fn check(table: &Map<String, Value>) -> Result<Self, Vec<SettingFault>> {
        let mut reader = Reader { table, faults: Vec::new() };
        reader.only(&KEYS);
        let server = reader.server();
        let cloud = reader.needed("cloud", "\"production\", as clouds.yaml names it");
        let clouds_file = PathBuf::from(reader.text("clouds_file").unwrap_or_else(|| CLOUDS.to_owned()));
        if !clouds_file.is_absolute() {
            reader.fault("clouds_file", format!("expected an absolute path, as {CLOUDS:?} is"));
        }
        let region = reader.text("region");
        let hold = reader.flag("hold", true);
        match (server, cloud) {
            (Some((server, of_it)), Some(cloud)) if reader.faults.is_empty() => {
                // What is set for the device goes before what its node's providerID says.
                Ok(Self { server, cloud, clouds_file, region: region.or(of_it), hold })
            }
            _ => Err(reader.faults),
        }
    }
}

impl Reader<'_> {
    /// The server, and the region that its providerID names.
    fn server(&mut self) -> Option<(String, Option<String>)> {
        let given = self.needed("server", "\"5a1bd2c8-…\", or a providerID, \"openstack:///5a1bd2c8-…\"")?;
        let (region, id) = match given.strip_prefix("openstack://") {
            // cloud-provider-openstack: openstack:///ID, and with its region where it is told to, openstack://REGION/ID.
            Some(rest) => rest.split_once('/').unwrap_or(("", rest)),
            None => ("", given.as_str()),
        };
        let id = id.to_ascii_lowercase();
        if !is_uuid(&id) {
            let value = Value::String(given.clone());
            let right = "is no server's id: expected its UUID, 8-4-4-4-12 hexadecimal digits, or openstack:///UUID (names are not \
                         unique, and another server may have one tomorrow)";
            self.fault("server", format!("{} {right}", shown(&value)));
            return None;
        }
        Some((id, Some(region.to_owned()).filter(|region| !region.is_empty())))
    }
}

fn is_uuid(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    lengths == [8, 4, 4, 4, 12]
        && parts.iter().all(|part| part.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(table: Value) -> Result<Settings, Vec<SettingFault>> {
        Settings::check(table.as_object().expect("a table"))
    }

    #[test]
    fn a_server_is_told_by_its_id_or_by_its_provider_id() {
        let id = "5a1bd2c8-1111-4222-8333-444455556666";
        for (server, region, wanted) in [
            (id.to_owned(), None, None),
            (id.to_uppercase(), None, None),
            (format!("openstack:///{id}"), None, None),
            (format!("openstack://north/{id}"), None, Some("north")),
            (format!("openstack://north/{id}"), Some("south"), Some("south")),
        ] {
            let mut table = json!({ "server": server, "cloud": "c" });
            if let Some(region) = region {
                table["region"] = region.into();
            }
            let settings = check(table).expect("right");
            assert_eq!((settings.server.as_str(), settings.region.as_deref()), (id, wanted), "{server}");
        }
    }

    #[test]
    fn all_faults_are_told_at_once() {
        let table = json!({ "server": "db-1", "clouds_file": "clouds.yaml", "hold": 1, "colour": "red" });
        let faults = check(table).expect_err("all of it is wrong");
        let keys: Vec<&str> = faults.iter().map(|fault| fault.key.as_str()).collect();
        assert_eq!(keys, ["colour", "server", "cloud", "clouds_file", "hold"]);
        assert!(faults[1].message.contains("\"db-1\" is no server's id"), "{}", faults[1].message);
        assert!(faults[2].message.contains("as clouds.yaml names it"), "{}", faults[2].message);
    }
}
