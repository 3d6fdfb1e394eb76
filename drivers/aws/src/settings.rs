//! The settings of one device.

use picket_driver::SettingFault;
use picket_driver::table::{ReadTable, shown};
use picket_reach::address;
use serde_json::{Map, Value};

use crate::cloud::Account;

const KEYS: [&str; 11] = [
    "instance",
    "region",
    "profile",
    "config_file",
    "credentials_file",
    "credential_env",
    "endpoint",
    "ca_file",
    "hold",
    "terminate",
    "terminate_deletes",
];

/// One instance of one account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// The instance's id, in lower case.
    pub(crate) instance: String,
    pub(crate) account: Account,
    pub(crate) hold: bool,
    /// Set: it is terminated instead of stopped, and only the volumes at these devices may go with it.
    pub(crate) terminate: Option<Vec<String>>,
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
        let instance = reader.instance();
        let region = reader.region();
        let profile = reader.text("profile");
        let config_file = reader.file("config_file");
        let credentials_file = reader.file("credentials_file");
        let credential_env = reader.credential_env();
        let endpoint = reader.endpoint();
        let ca_file = reader.file("ca_file");
        let hold = reader.flag("hold", true);
        let terminate = reader.terminate();
        match instance {
            Some((instance, of_it)) if reader.faults.is_empty() => {
                // What is set for the device goes before what its node's providerID says.
                let region = region.or(of_it);
                let account = Account {
                    region,
                    profile,
                    config_file,
                    credentials_file,
                    credential_env,
                    endpoint,
                    ca_file,
                };
                Ok(Self { instance, account, hold, terminate })
            }
            _ => Err(reader.faults),
        }
    }
}

impl Reader<'_> {
    /// The instance, and the region of the zone that its providerID names.
    fn instance(&mut self) -> Option<(String, Option<String>)> {
        let example =
            "\"i-0123456789abcdef0\", or a providerID, \"aws:///eu-central-1a/i-0123456789abcdef0\"";
        let given = self.needed("instance", example)?;
        let (zone, id) = match given.strip_prefix("aws://") {
            // cloud-provider-aws: aws:///ZONE/ID, and aws://ACCOUNT/ZONE/ID of old.
            Some(rest) => {
                let (before, id) = rest.rsplit_once('/').unwrap_or(("", rest));
                (before.rsplit('/').next().unwrap_or(""), id)
            }
            None => ("", given.as_str()),
        };
        let id = id.to_ascii_lowercase();
        if !is_instance(&id) {
            let value = Value::String(given.clone());
            let right = "is no instance's id: expected i- and 17 (of old 8) hexadecimal digits, or aws:///ZONE/ID (a name, or an \
                         address, may be another instance's tomorrow)";
            self.fault("instance", format!("{} {right}", shown(&value)));
            return None;
        }
        let region = region_of(zone);
        if region.is_none() && !zone.is_empty() {
            self.fault(
                "instance",
                format!("the providerID names {zone:?}, which is no zone: expected one as eu-central-1a"),
            );
        }
        Some((id, region))
    }

    fn region(&mut self) -> Option<String> {
        let region = self.text("region")?;
        if region_of(&region).as_deref() != Some(region.as_str()) {
            let value = Value::String(region);
            self.fault("region", format!("expected a region, as \"eu-central-1\", found {}", shown(&value)));
            return None;
        }
        Some(region)
    }

    fn credential_env(&mut self) -> Vec<String> {
        let Some(value) = self.table.get("credential_env") else { return Vec::new() };
        let name = |value: &Value| value.as_str().filter(|text| is_variable(text)).map(str::to_owned);
        let names: Option<Vec<String>> = value.as_array().and_then(|list| list.iter().map(name).collect());
        if names.is_none() {
            let right = "expected a list of names of variables, as [\"HOME\"], without their values";
            self.fault("credential_env", right);
        }
        names.unwrap_or_default()
    }

    fn endpoint(&mut self) -> Option<String> {
        let given = self.text("endpoint")?;
        let parsed = reqwest::Url::parse(&given);
        if parsed.as_ref().is_ok_and(|url| url.scheme() == "http" && !address::is_private(url)) {
            let why = "expected https: whoever is on the way could say that an instance is stopped (http is for this machine alone)";
            self.fault("endpoint", why);
            return None;
        }
        let fits = parsed.is_ok_and(|url| {
            matches!(url.scheme(), "https" | "http")
                && url.has_host()
                && url.username().is_empty()
                && url.password().is_none()
                && url.query().is_none()
                && url.fragment().is_none()
        });
        if !fits {
            // It may have a password in it: it is not repeated.
            self.fault(
                "endpoint",
                "expected a URL as \"https://ec2.eu-central-1.amazonaws.com\", without a user and a query",
            );
        }
        Some(given)
    }

    fn terminate(&mut self) -> Option<Vec<String>> {
        let terminate = self.flag("terminate", false);
        let Some(value) = self.table.get("terminate_deletes") else { return terminate.then(Vec::new) };
        let device = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let devices: Option<Vec<String>> =
            value.as_array().and_then(|list| list.iter().map(device).collect());
        match (devices, terminate) {
            (None, _) => {
                self.fault(
                    "terminate_deletes",
                    format!("expected a list of devices, as [\"/dev/xvda\"], found {}", shown(value)),
                );
                None
            }
            (Some(_), false) => {
                self.fault("terminate_deletes", "has a meaning only with terminate = true");
                None
            }
            (Some(devices), true) => Some(devices),
        }
    }
}

fn is_variable(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn is_instance(text: &str) -> bool {
    let digits = text.strip_prefix("i-").unwrap_or_default();
    matches!(digits.len(), 8 | 17) && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// The region of a zone: its beginning up to the number (`eu-central-1a`, `us-west-2-lax-1a`, `us-gov-east-1b`).
fn region_of(zone: &str) -> Option<String> {
    let mut parts = Vec::new();
    for part in zone.split('-') {
        let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
        if !digits.is_empty() && parts.len() >= 2 {
            parts.push(digits);
            return Some(parts.join("-"));
        }
        if part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_lowercase()) {
            return None;
        }
        parts.push(part.to_owned());
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(table: Value) -> Result<Settings, Vec<SettingFault>> {
        Settings::check(table.as_object().expect("a table"))
    }

    #[test]
    fn an_instance_is_told_by_its_id_or_by_its_provider_id() {
        let id = "i-0123456789abcdef0";
        for (instance, region, wanted) in [
            (id.to_owned(), None, None),
            (id.to_uppercase(), None, None),
            (format!("aws:///eu-central-1a/{id}"), None, Some("eu-central-1")),
            (format!("aws://123456789012/us-gov-east-1b/{id}"), None, Some("us-gov-east-1")),
            (format!("aws:///us-west-2-lax-1a/{id}"), None, Some("us-west-2")),
            (format!("aws:///{id}"), None, None),
            (format!("aws:///eu-central-1a/{id}"), Some("eu-west-3"), Some("eu-west-3")),
        ] {
            let mut table = json!({ "instance": instance });
            if let Some(region) = region {
                table["region"] = region.into();
            }
            let settings = check(table).expect("right");
            assert_eq!(
                (settings.instance.as_str(), settings.account.region.as_deref()),
                (id, wanted),
                "{instance}"
            );
        }
    }

    #[test]
    fn all_faults_are_told_at_once() {
        let table = json!({
            "instance": "db-1", "region": "Frankfurt", "profile": "", "config_file": "config", "credential_env": ["HOME=hunter2"], "endpoint": "ec2:4566", "hold": 1,
            "terminate_deletes": ["/dev/sda1"], "colour": "red",
        });
        let faults = check(table).expect_err("all of it is wrong");
        let keys: Vec<&str> = faults.iter().map(|fault| fault.key.as_str()).collect();
        let wanted = [
            "colour",
            "instance",
            "region",
            "profile",
            "config_file",
            "credential_env",
            "endpoint",
            "hold",
            "terminate_deletes",
        ];
        assert_eq!(keys, wanted);
        assert!(faults[1].message.contains("\"db-1\" is no instance's id"), "{}", faults[1].message);
        let plain =
            check(json!({ "instance": "i-01234567", "endpoint": "http://ec2.eu-central-1.amazonaws.com" }))
                .expect_err("a stranger could say off");
        assert!(plain[0].message.contains("expected https"), "{}", plain[0].message);
        let secret = check(json!({ "instance": "i-01234567", "endpoint": "https://u:hunter2@ec2" }))
            .expect_err("a password");
        assert!(!secret[0].message.contains("hunter2"), "{}", secret[0].message);
    }

    #[test]
    fn what_goes_with_a_terminated_instance_is_named() {
        let with = |more: Value| {
            let mut table = json!({ "instance": "i-01234567" });
            table.as_object_mut().expect("a table").extend(more.as_object().expect("a table").clone());
            check(table).map(|settings| settings.terminate).map_err(|faults| faults[0].message.clone())
        };
        assert_eq!(with(json!({})), Ok(None));
        assert_eq!(with(json!({ "terminate": true })), Ok(Some(Vec::new())));
        let devices = json!({ "terminate": true, "terminate_deletes": ["/dev/xvda"] });
        assert_eq!(with(devices), Ok(Some(vec!["/dev/xvda".to_owned()])));
        assert!(with(json!({ "terminate": true, "terminate_deletes": [1] })).is_err());
    }
}
