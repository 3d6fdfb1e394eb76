//! The settings of one device.

use picket_driver::SettingFault;
use picket_driver::table::{ReadTable, shown};
use picket_reach::address;
use serde_json::{Map, Value};

use crate::cloud::Account;

const KEYS: [&str; 9] = [
    "instance",
    "id",
    "project",
    "zone",
    "credentials_file",
    "endpoint",
    "metadata",
    "ca_file",
    "discard_local_ssd",
];
const SCHEME: &str = "gce://";

/// One instance of one project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// The numeric id, which no other instance ever has.
    pub(crate) id: String,
    /// The name that it had when the settings were written.
    pub(crate) name: Option<String>,
    pub(crate) zone: String,
    pub(crate) account: Account,
    /// What becomes of local SSDs; `None`: an instance that has some is not stopped.
    pub(crate) discard_local_ssd: Option<bool>,
}

/// What `instance` says.
#[derive(Default)]
struct Given {
    project: Option<String>,
    zone: Option<String>,
    /// A name, or a numeric id.
    last: String,
}

impl Given {
    fn at(project: &str, zone: &str, last: &str) -> Self {
        Self { project: Some(project.to_owned()), zone: Some(zone.to_owned()), last: last.to_owned() }
    }
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
        let given = reader.given();
        let (id, name) = reader.identity(&given).unzip();
        let project = reader.part("project", given.project, is_project, "\"my-project\"");
        let zone = reader.part("zone", given.zone, is_zone, "\"europe-west1-b\"");
        let credentials_file = reader.file("credentials_file");
        let endpoint = reader.url("endpoint", "https://compute.googleapis.com");
        let url = endpoint.as_deref().and_then(|text| reqwest::Url::parse(text).ok());
        if url.is_some_and(|url| !address::is_private(&url)) {
            let why = "expected https: each request bears a token (http is for this machine alone)";
            reader.fault("endpoint", why);
        }
        let metadata = reader.url("metadata", "http://metadata.google.internal");
        let ca_file = reader.file("ca_file");
        let discards = table.contains_key("discard_local_ssd");
        let discard_local_ssd = discards.then(|| reader.flag("discard_local_ssd", false));
        match (id, name, project, zone) {
            (Some(id), Some(name), Some(project), Some(zone)) if reader.faults.is_empty() => {
                let account = Account { project, credentials_file, endpoint, metadata, ca_file };
                Ok(Self { id, name, zone, account, discard_local_ssd })
            }
            _ => Err(reader.faults),
        }
    }
}

impl Settings {
    /// Whether that providerID is of this instance; `None`: it has a name, and the settings have the number alone.
    pub(crate) fn is_provided_as(&self, provider_id: &str) -> Option<bool> {
        let parts: Vec<&str> = provider_id.strip_prefix(SCHEME).unwrap_or_default().split('/').collect();
        match parts[..] {
            [project, zone, last] if project == self.account.project && zone == self.zone => match &self.name
            {
                _ if last == self.id => Some(true),
                Some(name) => Some(name == last),
                None if is_id(last) => Some(false),
                None => None,
            },
            _ => Some(false),
        }
    }
}

impl Reader<'_> {
    fn given(&mut self) -> Given {
        let example = "\"1234567890123456789\" (with project and zone), or \"gce://my-project/europe-west1-b/1234567890123456789\"";
        let Some(given) = self.needed("instance", example) else { return Given::default() };
        // As Compute Engine links to it (selfLink), whole or from the project on.
        if let Some((_, rest)) = format!("/{given}").split_once("/projects/") {
            if let [project, "zones", zone, "instances", last] = rest.split('/').collect::<Vec<_>>()[..] {
                return Given::at(project, zone, last);
            }
            let right = "is the link of no instance: expected projects/PROJECT/zones/ZONE/instances/NAME";
            self.fault("instance", right);
            return Given::default();
        }
        let Some(rest) = given.strip_prefix(SCHEME) else { return Given { last: given, ..Given::default() } };
        let parts: Vec<&str> = rest.split('/').collect();
        let [project, zone, last] = parts[..] else {
            self.fault("instance", "expected gce://PROJECT/ZONE/ID, or gce://PROJECT/ZONE/NAME with id");
            return Given::default();
        };
        Given::at(project, zone, last)
    }

    /// The numeric id, and the name where there is one.
    fn identity(&mut self, given: &Given) -> Option<(String, Option<String>)> {
        let set = self.id();
        if given.last.is_empty() {
            // It was said already what is wrong with it, or that it is missing.
            if self.faults.iter().all(|fault| fault.key != "instance") {
                self.fault("instance", "the providerID ends without a name or a numeric id");
            }
            return None;
        }
        if is_id(&given.last) {
            if set.as_ref().is_some_and(|id| *id != given.last) {
                self.fault("id", "instance says another numeric id: set one of them");
            }
            return Some((given.last.clone(), None));
        }
        if !is_name(&given.last) {
            let value = Value::String(given.last.clone());
            let right = "is no instance: expected its numeric id, or gce://PROJECT/ZONE/ID";
            self.fault("instance", format!("{} {right}", shown(&value)));
            return None;
        }
        match set {
            Some(id) => Some((id, Some(given.last.clone()))),
            None if self.table.contains_key("id") => None,
            None => {
                let why = "has a name, which may be another instance's tomorrow: set id beside it, the numeric id, as gcloud compute instances \
                           describe NAME --zone ZONE --format='value(id)' tells it";
                self.fault("instance", why);
                None
            }
        }
    }

    fn id(&mut self) -> Option<String> {
        let value = self.table.get("id")?;
        let text = value.as_str().map(str::to_owned).or_else(|| value.as_u64().map(|id| id.to_string()));
        if let Some(id) = text.filter(|id| is_id(id)) {
            return Some(id);
        }
        self.fault(
            "id",
            format!("expected a numeric id, as \"1234567890123456789\", found {}", shown(value)),
        );
        None
    }

    /// A part of the place: what is set for the device goes before what `instance` says.
    fn part(
        &mut self,
        key: &str,
        given: Option<String>,
        fits: fn(&str) -> bool,
        example: &str,
    ) -> Option<String> {
        let set = self.text(key);
        if set.is_none() && self.table.contains_key(key) {
            return None;
        }
        let Some(text) = set.or(given) else {
            // A wrong `instance` may have said it.
            if self.faults.iter().all(|fault| fault.key != "instance") {
                self.fault(key, format!("is missing, for example {example}"));
            }
            return None;
        };
        if !fits(&text) {
            let value = Value::String(text);
            self.fault(key, format!("expected one as {example}, found {}", shown(&value)));
            return None;
        }
        Some(text)
    }

    fn url(&mut self, key: &str, example: &str) -> Option<String> {
        let given = self.text(key)?;
        let fits = reqwest::Url::parse(&given).is_ok_and(|url| {
            let plain = url.username().is_empty() && url.password().is_none();
            let bare = url.query().is_none() && url.fragment().is_none() && url.path() == "/";
            matches!(url.scheme(), "https" | "http") && url.has_host() && plain && bare
        });
        if !fits {
            // It may have a password in it: it is not repeated.
            self.fault(key, format!("expected a URL as {example:?}, without a path, a user and a query"));
        }
        Some(given.trim_end_matches('/').to_owned())
    }
}

fn is_id(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
        && text.parse::<u64>().is_ok_and(|id| id > 0)
        && !text.starts_with('0')
}

/// RFC 1035, as Compute Engine names instances and zones.
fn is_name(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    text.len() <= 63
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.bytes().all(inner)
        && !text.ends_with('-')
}

fn is_zone(text: &str) -> bool {
    is_name(text) && text.split('-').count() >= 3
}

/// Also one within a domain of old (`example.com:project`), and a project's number.
fn is_project(text: &str) -> bool {
    let inner =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.' | b':');
    !text.is_empty() && text.len() <= 100 && text.bytes().all(inner)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(table: Value) -> Result<Settings, Vec<SettingFault>> {
        Settings::check(table.as_object().expect("a table"))
    }

    #[test]
    fn an_instance_is_told_by_its_numeric_id_alone() {
        let id = "1234567890123456789";
        for (table, name) in [
            (json!({ "instance": id, "project": "p-1", "zone": "europe-west1-b" }), None),
            (json!({ "instance": format!("gce://p-1/europe-west1-b/{id}") }), None),
            (json!({ "instance": "gce://p-1/europe-west1-b/db-1", "id": id }), Some("db-1")),
            (
                json!({ "instance": "gce://p-1/europe-west1-b/db-1", "id": 1_234_567_890_123_456_789_u64 }),
                Some("db-1"),
            ),
            (
                json!({ "instance": "db-1", "id": id, "project": "p-1", "zone": "europe-west1-b" }),
                Some("db-1"),
            ),
            // As Compute Engine links to it, whole or from the project on.
            (
                json!({ "instance": "https://www.googleapis.com/compute/v1/projects/p-1/zones/europe-west1-b/instances/db-1", "id": id }),
                Some("db-1"),
            ),
            (
                json!({ "instance": format!("https://compute.googleapis.com/compute/beta/projects/p-1/zones/europe-west1-b/instances/{id}") }),
                None,
            ),
            (
                json!({ "instance": "projects/p-1/zones/europe-west1-b/instances/db-1", "id": id }),
                Some("db-1"),
            ),
        ] {
            let settings = check(table.clone()).unwrap_or_else(|faults| panic!("{table}: {faults:?}"));
            let place = (settings.account.project.as_str(), settings.zone.as_str());
            assert_eq!(
                (settings.id.as_str(), settings.name.as_deref(), place),
                (id, name, ("p-1", "europe-west1-b"))
            );
        }
        let without =
            check(json!({ "instance": "gce://p-1/europe-west1-b/db-1" })).expect_err("a name alone");
        assert!(without[0].message.contains("set id beside it"), "{without:?}");
    }

    #[test]
    fn all_faults_are_told_at_once() {
        let table = json!({
            "instance": "Db 1", "project": "My Project", "zone": "europe", "credentials_file": "key.json", "endpoint": "compute",
            "metadata": "http://u:hunter2@m", "discard_local_ssd": "yes", "colour": "red",
        });
        let faults = check(table).expect_err("all of it is wrong");
        let keys: Vec<&str> = faults.iter().map(|fault| fault.key.as_str()).collect();
        let wanted = [
            "colour",
            "instance",
            "project",
            "zone",
            "credentials_file",
            "endpoint",
            "metadata",
            "discard_local_ssd",
        ];
        assert_eq!(keys, wanted);
        assert!(!format!("{faults:?}").contains("hunter2"));
        for (table, key, word) in [
            (json!({ "instance": "gce://p/europe-west1-b" }), "instance", "gce://PROJECT/ZONE/ID"),
            (
                json!({ "instance": "projects/p/zones/europe-west1-b/disks/db-1", "id": "17" }),
                "instance",
                "is the link of no instance: expected projects/PROJECT/zones/ZONE/instances/NAME",
            ),
            (
                json!({ "instance": "https://www.googleapis.com/compute/v1/projects/p/zones/europe-west1-b/instances/db-1" }),
                "instance",
                "set id beside it",
            ),
            (
                json!({ "instance": "https://u:hunter2@x/compute/v1/projects/p", "id": "17" }),
                "instance",
                "is the link of no instance",
            ),
            (json!({ "instance": "gce://p/europe-west1-b/" }), "instance", "without a name"),
            (json!({ "instance": "17" }), "project", "is missing"),
            (json!({ "instance": "gce://p/europe-west1-b/a", "id": "a" }), "id", "numeric id"),
            (json!({ "instance": "gce://p/europe-west1-b/17", "id": "18" }), "id", "another numeric id"),
            (json!({}), "instance", "is missing"),
            (
                json!({ "instance": "gce://p/europe-west1-b/17", "endpoint": "http://compute.example" }),
                "endpoint",
                "expected https",
            ),
        ] {
            let faults = check(table.clone()).expect_err("wrong");
            let found = faults.iter().any(|fault| fault.key == key && fault.message.contains(word));
            assert!(found && faults.len() <= 2, "{table}: {faults:?}");
        }
    }
}
