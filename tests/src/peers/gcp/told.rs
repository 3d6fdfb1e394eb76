//! What a test tells the Compute Engine of the tests, and what it is told.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A data disk that an instance shall have.
#[derive(Clone, Debug, Serialize)]
pub struct GceDisk {
    device: String,
    mode: &'static str,
    regional: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    disk: Option<String>,
    labels: BTreeMap<String, String>,
}

impl GceDisk {
    /// A new one of this zone, which it may write to, by that device name.
    pub fn new(device: &str) -> Self {
        let labels = BTreeMap::new();
        Self { device: device.to_owned(), mode: "READ_WRITE", regional: false, disk: None, labels }
    }

    /// One that is of the whole region.
    #[must_use]
    pub fn regional(self) -> Self {
        Self { regional: true, ..self }
    }

    /// Read, and never written to: such a one may be at several instances.
    #[must_use]
    pub fn read_only(self) -> Self {
        Self { mode: "READ_ONLY", ..self }
    }

    /// With a label.
    #[must_use]
    pub fn labelled(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// One that there is already, by its name.
    #[must_use]
    pub fn of(self, disk: &str) -> Self {
        Self { disk: Some(disk.to_owned()), ..self }
    }
}

/// What instances shall be. What is left at its default does not count.
#[derive(Clone, Debug, Default, Serialize)]
pub struct GceMake {
    /// Besides the root.
    pub disks: Vec<GceDisk>,
    /// So many local SSDs.
    pub ssds: u32,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The managed group that made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<&'static str>,
    /// Of `scheduling`: `{"skipGuestOsShutdown": true}`.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub scheduling: Value,
    /// `europe-west3-a`, else another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<&'static str>,
}

/// An instance that there is.
#[derive(Clone, Debug, Deserialize)]
pub struct GceInstance {
    /// Its number, which no other one ever has.
    pub id: String,
    /// Its name, which another one may have after it.
    pub name: String,
    /// Where it is.
    pub zone: String,
    /// Its disks by their device names, without the root.
    pub disks: BTreeMap<String, String>,
}

impl GceInstance {
    /// As Kubernetes names it.
    pub fn provider_id(&self) -> String {
        format!("gce://{}/{}/{}", super::PROJECT, self.zone, self.name)
    }
}

/// How an instance is treated; what is left at none does not count. Seconds of each stage, and what is odd.
#[derive(Clone, Debug, Default, Serialize)]
pub struct GceTreatment {
    /// Before an operation of it is even begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<f64>,
    /// Before it is off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopping: Option<f64>,
    /// Before that, where a stop did not skip the graceful shutdown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graceful: Option<f64>,
    /// What its system gets, unless its scheduling says `skipGuestOsShutdown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acpi: Option<f64>,
    /// Before it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starting: Option<f64>,
    /// Before a disk is at it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attaching: Option<f64>,
    /// Before a disk is free.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detaching: Option<f64>,
    /// The stage that never ends: `stopping`, `pending`, `detaching`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stuck: Option<&'static str>,
    /// What its status is called, whatever it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub word: Option<&'static str>,
    /// `join`: another stop while it stops is taken, and ends with the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy: Option<&'static str>,
}

/// What an instance is.
#[derive(Clone, Debug, Deserialize)]
pub struct GceState {
    /// `RUNNING`, `TERMINATED`; `GONE` where there is none.
    pub status: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The device names of its disks, the root included.
    pub devices: Vec<String>,
    /// The operation that it is busy with: `stop`.
    pub busy: Option<String>,
}

/// What a disk is.
#[derive(Clone, Debug, Deserialize)]
pub struct GceDiskState {
    /// The instances that have it, by number, and their modes.
    pub users: BTreeMap<String, String>,
    /// When it was attached and detached last.
    pub attached: Option<f64>,
    /// The same of the detach.
    pub detached: Option<f64>,
}

/// Whose token a request bore.
#[derive(Clone, Debug, Deserialize)]
pub struct GceToken {
    /// Its number.
    pub serial: u64,
    /// How many seconds ago it was issued.
    pub age: f64,
    /// The service account.
    pub user: String,
    /// `assertion`, `self-signed`, `metadata`, `federated`, `impersonated`
    pub kind: String,
}

/// A request that came.
#[derive(Clone, Debug, Deserialize)]
pub struct GceRequest {
    /// When it came, and when it was heard: later, where a rule held it. Seconds since 1970.
    pub came: f64,
    /// See `came`.
    pub at: f64,
    /// `instances.stop`
    pub method: String,
    /// Its path, as it came.
    pub path: String,
    /// Its query, as it came.
    pub query: Vec<(String, String)>,
    /// Its body, where there was one.
    pub body: Value,
    /// What was answered; 0: nothing.
    pub status: u16,
    /// Whose it was, where it bore a token that is known.
    pub token: Option<GceToken>,
    /// What in it the discovery document does not allow.
    pub violation: Option<String>,
    /// Why it was refused, in Google's word.
    pub reason: Option<String>,
}

impl GceRequest {
    /// What its query says of that.
    pub fn field(&self, key: &str) -> Option<&str> {
        self.query.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }
}

/// What really became of an instance, and when.
#[derive(Clone, Debug, Deserialize)]
pub struct GceEvent {
    /// Seconds since 1970.
    pub at: f64,
    /// `off`, `on`, `suspended`, `reset`, `attached`, `detached`, `forced off`, `discarded` (local SSDs), `labelled`, `gone`
    pub what: String,
    /// Its number.
    pub instance: String,
    /// The device, of a disk.
    pub device: Option<String>,
    /// The disk.
    pub disk: Option<String>,
}

/// A service account.
#[derive(Clone, Debug, Deserialize)]
pub struct GceUser {
    /// Its name.
    pub email: String,
    /// A key file's content.
    pub key: Value,
    /// An external account's, without where its token is.
    pub external: Value,
    /// The token of the foreign identity that may be this account.
    pub subject: String,
}
