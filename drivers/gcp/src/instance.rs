//! An instance as Compute Engine shows it, and what that says of power.
//!
//! **Invariant.** [`Instance::status`] is a total function of what was answered: what is not said in the words of the API is Unknown.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Set in the metadata of what a managed instance group made.
const CREATED_BY: &str = "created-by";
const GROUP: &str = "/instanceGroupManagers/";

/// What of an instance matters here. Everything else is let be; what is missing is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Instance {
    /// The numeric id, as a text.
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) status: Option<String>,
    #[serde(default)]
    pub(crate) status_message: Option<String>,
    #[serde(default)]
    pub(crate) disks: Vec<AttachedDisk>,
    #[serde(default)]
    pub(crate) scheduling: Scheduling,
    #[serde(default)]
    pub(crate) metadata: Metadata,
}

/// One of its disks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AttachedDisk {
    #[serde(default)]
    pub(crate) device_name: String,
    /// The disk's link; local SSDs may have none.
    #[serde(default)]
    pub(crate) source: Option<String>,
    #[serde(default)]
    pub(crate) boot: bool,
    /// `PERSISTENT` or `SCRATCH`.
    #[serde(default, rename = "type")]
    pub(crate) kind: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Scheduling {
    #[serde(default)]
    pub(crate) skip_guest_os_shutdown: Option<bool>,
    #[serde(default)]
    pub(crate) preemptible: Option<bool>,
    #[serde(default)]
    pub(crate) provisioning_model: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Metadata {
    #[serde(default)]
    items: Vec<Item>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Item {
    #[serde(default)]
    key: String,
    #[serde(default)]
    value: Option<String>,
}

/// What an instance's status says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// It runs.
    On,
    /// It was stopped, and its memory is gone.
    Terminated,
    /// Anything else.
    Unknown,
}

impl Instance {
    /// What it says of power. Whether what is under way at it could start it, its operations say.
    pub(crate) fn said(&self) -> Said {
        match self.status.as_deref() {
            Some("RUNNING") => Said::On,
            Some("TERMINATED") => Said::Terminated,
            _ => Said::Unknown,
        }
    }

    /// In words, for people.
    pub(crate) fn words(&self) -> String {
        let status = self.status.as_deref().unwrap_or("no status is told");
        let message = self.status_message.as_deref().filter(|message| !message.is_empty());
        message.map_or_else(|| status.to_owned(), |message| format!("{status} ({message})"))
    }

    /// The managed instance group that made it.
    pub(crate) fn group(&self) -> Option<&str> {
        let by = self.metadata.items.iter().find(|item| item.key == CREATED_BY)?.value.as_deref()?;
        by.split_once(GROUP).map(|(_, name)| name)
    }

    /// The devices of its local SSDs.
    pub(crate) fn local_ssds(&self) -> Vec<&str> {
        self.disks.iter().filter(|disk| disk.is_local()).map(|disk| disk.device_name.as_str()).collect()
    }

    /// Whether it is sold at a lower price, and may be taken away.
    pub(crate) fn is_spot(&self) -> bool {
        self.scheduling.preemptible == Some(true)
            || self.scheduling.provisioning_model.as_deref() == Some("SPOT")
    }
}

impl AttachedDisk {
    /// Whether it is a local SSD.
    pub(crate) fn is_local(&self) -> bool {
        self.kind.as_deref() == Some("SCRATCH")
    }

    /// Where its disk is, as a path (`projects/P/zones/Z/disks/N`).
    pub(crate) fn path(&self) -> Option<&str> {
        path_of(self.source.as_deref()?)
    }
}

/// A resource's path, without the place that serves it, which has several names.
pub(crate) fn path_of(link: &str) -> Option<&str> {
    link.find("projects/").map(|at| &link[at..])
}

/// A disk as Compute Engine shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Disk {
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) status: Option<String>,
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, String>,
    /// The links of the instances that have it, by their names.
    #[serde(default)]
    pub(crate) users: Vec<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// S1: only what is said in full is on or off.
    #[test]
    fn every_status_of_an_instance_is_on_terminated_or_unknown() {
        let unknown = [
            "PROVISIONING",
            "STAGING",
            "STOPPING",
            "PENDING_STOP",
            "PENDING",
            "SUSPENDING",
            "SUSPENDED",
            "REPAIRING",
            "DEPROVISIONING",
            "STOPPED",
            "Terminated",
            "RUNNING ",
            "a word of tomorrow",
            "",
        ];
        let known = [("RUNNING", Said::On), ("TERMINATED", Said::Terminated)];
        for (status, said) in known.into_iter().chain(unknown.map(|word| (word, Said::Unknown))) {
            let instance = Instance { status: Some(status.to_owned()), ..Instance::default() };
            assert_eq!(instance.said(), said, "{status}");
        }
        assert_eq!(Instance::default().said(), Said::Unknown);
    }

    #[test]
    fn an_answer_is_read_with_what_is_missing_in_it() {
        let told = json!({
            "id": "17", "name": "db-1", "status": "STOPPING", "statusMessage": "by a user", "kind": "compute#instance",
            "disks": [
                { "deviceName": "boot", "boot": true, "type": "PERSISTENT", "mode": "READ_WRITE",
                  "source": "https://www.googleapis.com/compute/v1/projects/p/zones/z-1-a/disks/db-1" },
                { "deviceName": "local-ssd-0", "type": "SCRATCH" },
            ],
            "metadata": { "fingerprint": "x", "items": [
                { "key": "startup-script" },
                { "key": "created-by", "value": "projects/5/zones/z-1-a/instanceGroupManagers/web" },
            ] },
            "scheduling": { "provisioningModel": "SPOT" },
        });
        let read: Instance = serde_json::from_value(told).expect("an instance");
        assert_eq!(
            (read.words().as_str(), read.group(), read.is_spot()),
            ("STOPPING (by a user)", Some("web"), true)
        );
        assert_eq!(read.local_ssds(), ["local-ssd-0"]);
        assert_eq!(read.disks[0].path(), Some("projects/p/zones/z-1-a/disks/db-1"));
        let empty: Instance = serde_json::from_value(json!({ "id": "17" })).expect("an instance");
        assert_eq!((empty.group(), empty.words().as_str()), (None, "no status is told"));
        assert!(
            serde_json::from_value::<Instance>(json!({ "status": "TERMINATED" })).is_err(),
            "without an id it is nobody's"
        );
    }
}
