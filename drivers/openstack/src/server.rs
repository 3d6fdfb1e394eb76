//! A server as Nova shows it (`GET /servers/{id}`), and what that says of power.
//!
//! Nova's states are its database's: they say what the compute host reported last, and nothing of a host
//! that is down.
//!
//! # Invariants
//!
//! - [`Server::power`] is a total function of what was answered: what is not said in the words of the API
//!   is Unknown (S1). Shown by `every_state_of_a_server_is_on_off_or_unknown`.

use serde::Deserialize;

/// Nova's number for a machine that runs (`nova.compute.power_state.RUNNING`).
const RUNNING: i64 = 1;
/// Nova's number for a machine that was shut down (`nova.compute.power_state.SHUTDOWN`).
const SHUTDOWN: i64 = 4;

/// What of a server matters here. Everything else is let be; what is missing is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Server {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) name: String,
    /// The id of the project whose it is.
    #[serde(default)]
    pub(crate) tenant_id: Option<String>,
    #[serde(default)]
    pub(crate) status: Option<String>,
    #[serde(default, rename = "OS-EXT-STS:task_state", deserialize_with = "present")]
    pub(crate) task_state: Field<String>,
    #[serde(default, rename = "OS-EXT-STS:power_state")]
    pub(crate) power_state: Option<i64>,
    /// Of the compute host, from 2.16 on, for who may see it: UP, UNKNOWN, DOWN, MAINTENANCE, or empty where there is none.
    #[serde(default)]
    pub(crate) host_status: Option<String>,
    /// The compute service's host, for who may see it.
    #[serde(default, rename = "OS-EXT-SRV-ATTR:host")]
    pub(crate) host: Option<String>,
    #[serde(default, rename = "OS-EXT-SRV-ATTR:hypervisor_hostname")]
    pub(crate) hypervisor: Option<String>,
    #[serde(default, rename = "OS-EXT-SRV-ATTR:root_device_name")]
    pub(crate) root_device: Option<String>,
    #[serde(default)]
    pub(crate) locked: Option<bool>,
    #[serde(default)]
    pub(crate) locked_reason: Option<String>,
    /// The image, with its properties from 2.98 on; an empty text where it was booted from a volume.
    #[serde(default)]
    pub(crate) image: serde_json::Value,
}

/// A field of an answer: not there, null, or a value. Null is a word, and absence is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Field<T> {
    #[default]
    Absent,
    Null,
    Is(T),
}

fn present<'de, D, T>(deserializer: D) -> Result<Field<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.map_or(Field::Null, Field::Is))
}

/// What a server's state says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PowerStatus {
    /// It runs.
    On,
    /// It was shut down, as whoever may see its host sees that it is up.
    Off,
    /// It was shut down as the database has it; whether its host lives is hidden from us. Our own stop's end decides.
    OffUnlessHostIsDown,
    /// Nova says that the server is gone, with that id. What its compute host did of that its actions say.
    Deleted,
    /// Anything else.
    Unknown,
}

impl Server {
    /// What it says of power.
    pub(crate) fn power(&self) -> PowerStatus {
        let idle = self.task_state == Field::Null;
        match (self.status.as_deref(), self.power_state) {
            // What a host said before it fell silent is no word of now, either way.
            (Some("ACTIVE"), Some(RUNNING)) if idle => match self.host_status.as_deref() {
                Some("UP") | None => PowerStatus::On,
                Some(_) => PowerStatus::Unknown,
            },
            (Some("SHUTOFF"), Some(SHUTDOWN)) if idle => match self.host_status.as_deref() {
                Some("UP") => PowerStatus::Off,
                None => PowerStatus::OffUnlessHostIsDown,
                Some(_) => PowerStatus::Unknown,
            },
            (Some("DELETED"), _) => PowerStatus::Deleted,
            _ => PowerStatus::Unknown,
        }
    }

    /// Whether a stop may be sent: a host that is down takes it when it is back, whatever was decided since.
    pub(crate) fn host_takes_orders(&self) -> Result<(), String> {
        match self.host_status.as_deref() {
            None | Some("UP") => Ok(()),
            Some(_) if self.is_without_host() => Err("it has no compute host".to_owned()),
            Some(other) => Err(format!(
                "its compute host is {}: it would do what it is told when it is back",
                other.to_lowercase()
            )),
        }
    }

    /// Whether Nova says that no compute host has it, as of one that was shelved.
    pub(crate) fn is_without_host(&self) -> bool {
        self.host_status.as_deref() == Some("")
    }

    /// Whether it was booted from a volume: then it has no image (Compute API, servers: image is an empty text).
    pub(crate) fn is_by_volume(&self) -> bool {
        self.image.as_str().is_some_and(str::is_empty) || self.image.is_null()
    }

    /// Whether something is under way at it, or that is not told.
    pub(crate) fn is_busy(&self) -> bool {
        self.task_state != Field::Null
    }

    /// In words, for people.
    pub(crate) fn words(&self) -> String {
        let word = |field: Option<&str>| field.unwrap_or("not said").to_owned();
        let task = match &self.task_state {
            Field::Absent => "not said".to_owned(),
            Field::Null => "none".to_owned(),
            Field::Is(task) => task.clone(),
        };
        let power = self.power_state.map_or_else(|| "not said".to_owned(), |power| power.to_string());
        let host = self.host_status.as_deref().map(|host| format!(", host {host}")).unwrap_or_default();
        format!("{}, power_state {power}, task {task}{host}", word(self.status.as_deref()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn server(change: Value) -> Server {
        let mut whole = json!({
            "id": "5a1b", "status": "SHUTOFF", "OS-EXT-STS:task_state": null, "OS-EXT-STS:power_state": 4, "host_status": "UP",
        });
        let table = whole.as_object_mut().expect("a table");
        for (key, value) in change.as_object().expect("a table") {
            match value {
                Value::String(word) if word == "absent" => drop(table.remove(key)),
                value => drop(table.insert(key.clone(), value.clone())),
            }
        }
        serde_json::from_value(whole).expect("a server")
    }

    /// S1: only what is said in full is on or off.
    #[test]
    fn every_state_of_a_server_is_on_off_or_unknown() {
        for (change, said) in [
            (json!({}), PowerStatus::Off),
            (json!({ "host_status": "absent" }), PowerStatus::OffUnlessHostIsDown),
            (json!({ "host_status": "DOWN" }), PowerStatus::Unknown),
            (json!({ "host_status": "UNKNOWN" }), PowerStatus::Unknown),
            (json!({ "host_status": "MAINTENANCE" }), PowerStatus::Unknown),
            (json!({ "host_status": "" }), PowerStatus::Unknown),
            (json!({ "OS-EXT-STS:task_state": "powering-on" }), PowerStatus::Unknown),
            (json!({ "OS-EXT-STS:task_state": "absent" }), PowerStatus::Unknown),
            (json!({ "OS-EXT-STS:power_state": 1 }), PowerStatus::Unknown),
            (json!({ "OS-EXT-STS:power_state": 0 }), PowerStatus::Unknown),
            (json!({ "OS-EXT-STS:power_state": null }), PowerStatus::Unknown),
            (json!({ "OS-EXT-STS:power_state": "absent" }), PowerStatus::Unknown),
            (json!({ "status": "absent" }), PowerStatus::Unknown),
            (json!({ "status": "shutoff" }), PowerStatus::Unknown),
            (json!({ "status": "SUSPENDED" }), PowerStatus::Unknown),
            (json!({ "status": "ERROR" }), PowerStatus::Unknown),
            (json!({ "status": "SHELVED_OFFLOADED" }), PowerStatus::Unknown),
            (json!({ "status": "SOFT_DELETED" }), PowerStatus::Unknown),
            (json!({ "status": "DELETED" }), PowerStatus::Deleted),
            (json!({ "status": "ACTIVE" }), PowerStatus::Unknown),
            (json!({ "status": "ACTIVE", "OS-EXT-STS:power_state": 1 }), PowerStatus::On),
            (
                json!({ "status": "ACTIVE", "OS-EXT-STS:power_state": 1, "host_status": "absent" }),
                PowerStatus::On,
            ),
            (
                json!({ "status": "ACTIVE", "OS-EXT-STS:power_state": 1, "host_status": "DOWN" }),
                PowerStatus::Unknown,
            ),
            (
                json!({ "status": "ACTIVE", "OS-EXT-STS:power_state": 1, "host_status": "UNKNOWN" }),
                PowerStatus::Unknown,
            ),
            (
                json!({ "status": "ACTIVE", "OS-EXT-STS:power_state": 1, "OS-EXT-STS:task_state": "powering-off" }),
                PowerStatus::Unknown,
            ),
            (json!({ "status": "PAUSED", "OS-EXT-STS:power_state": 3 }), PowerStatus::Unknown),
        ] {
            assert_eq!(server(change.clone()).power(), said, "{change}");
        }
    }

    #[test]
    fn no_stop_is_sent_to_a_host_that_is_down() {
        for (status, takes) in [
            (json!("UP"), true),
            (json!("absent"), true),
            (json!("DOWN"), false),
            (json!("UNKNOWN"), false),
            (json!(""), false),
        ] {
            assert_eq!(
                server(json!({ "host_status": status })).host_takes_orders().is_ok(),
                takes,
                "{status}"
            );
        }
    }
}
