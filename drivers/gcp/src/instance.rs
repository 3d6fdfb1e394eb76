//! An instance as Compute Engine shows it, and what that says of power.
//!
//! # Invariants
//!
//! - [`Instance::status`] is a total function of what was answered: what is not said in the words of the
//!   API is Unknown (S1). Shown by `every_status_of_an_instance_is_on_terminated_or_unknown`.

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
    /// Each instance has some: [`Instance::disks`].
    #[serde(default)]
    pub(crate) disks: Option<Vec<AttachedDisk>>,
    #[serde(default)]
    pub(crate) scheduling: Scheduling,
    #[serde(default)]
    pub(crate) metadata: Metadata,
    /// Schedules are among them.
    #[serde(default)]
    pub(crate) resource_policies: Vec<String>,
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
    pub(crate) boot: Option<bool>,
    /// Its place among them; 0 is kept for the boot disk.
    #[serde(default)]
    pub(crate) index: Option<u32>,
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
pub(crate) enum PowerStatus {
    /// It runs.
    On,
    /// It was stopped, and its memory is gone.
    Terminated,
    /// Anything else.
    Unknown,
}

impl Instance {
    /// What it says of power. Whether what is under way at it could start it, its operations say.
    pub(crate) fn said(&self) -> PowerStatus {
        match self.status.as_deref() {
            Some("RUNNING") => PowerStatus::On,
            Some("TERMINATED") => PowerStatus::Terminated,
            _ => PowerStatus::Unknown,
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

    /// Its disks, where that was told in full: what is not said is not "none".
    ///
    /// # Errors
    /// What is missing, in words.
    pub(crate) fn disks(&self) -> Result<&[AttachedDisk], String> {
        let disks = self.disks.as_deref().unwrap_or_default();
        if disks.is_empty() {
            return Err("the answer does not say which disks the instance has".to_owned());
        }
        let told = |disk: &&AttachedDisk| !disk.is_local() && disk.boot.is_none();
        if let Some(disk) = disks.iter().find(told) {
            return Err(format!(
                "the answer does not say whether the disk at {:?} is the boot disk",
                disk.device_name
            ));
        }
        let has_boot = disks.iter().any(|disk| disk.boot == Some(true));
        if let Some(first) = disks.iter().find(|disk| disk.index == Some(0) && !disk.is_local() && !has_boot)
        {
            return Err(format!(
                "the answer has the disk at {:?} in the boot disk's place, and does not call it that",
                first.device_name
            ));
        }
        Ok(disks)
    }

    /// The devices of its local SSDs.
    pub(crate) fn local_ssds(&self) -> Vec<&str> {
        let disks = self.disks.as_deref().unwrap_or_default();
        disks.iter().filter(|disk| disk.is_local()).map(|disk| disk.device_name.as_str()).collect()
    }

    /// Whether it is sold at a lower price, and may be taken away.
    pub(crate) fn is_spot(&self) -> bool {
        self.scheduling.preemptible == Some(true)
            || self.scheduling.provisioning_model.as_deref() == Some("SPOT")
    }
}

impl AttachedDisk {
    /// Whether it is the boot disk. [`Instance::disks`] has none that does not say so.
    pub(crate) fn is_boot(&self) -> bool {
        self.boot != Some(false)
    }

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
    pub(crate) users: Option<Vec<String>>,
}

/// What a disk is said to be, in the words of the API.
const DISK_STATES: [&str; 6] = ["CREATING", "DELETING", "FAILED", "READY", "RESTORING", "UNAVAILABLE"];

impl Disk {
    /// Why the answer is not that disk's, which is asked for by its path. Its name and labels may say that it stays, and who is not among
    /// its users does not have it: neither is taken for said where it is not.
    pub(crate) fn wrong(&self, path: &str) -> Option<String> {
        let last = path.rsplit('/').next().unwrap_or_default();
        if self.name != last {
            return Some(format!("asked for the disk {last:?}, Compute Engine shows {:?}", self.name));
        }
        let known = |status: &str| DISK_STATES.contains(&status);
        if self.users.is_none() && !self.status.as_deref().is_some_and(known) {
            return Some("it says neither who uses the disk nor how that is".to_owned());
        }
        None
    }

    /// The links of the instances that have it.
    pub(crate) fn users(&self) -> &[String] {
        self.users.as_deref().unwrap_or_default()
    }
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
        let known = [("RUNNING", PowerStatus::On), ("TERMINATED", PowerStatus::Terminated)];
        for (status, said) in known.into_iter().chain(unknown.map(|word| (word, PowerStatus::Unknown))) {
            let instance = Instance { status: Some(status.to_owned()), ..Instance::default() };
            assert_eq!(instance.said(), said, "{status}");
        }
        assert_eq!(Instance::default().said(), PowerStatus::Unknown);
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
        let disks = read.disks().expect("told in full");
        assert_eq!(disks[0].path(), Some("projects/p/zones/z-1-a/disks/db-1"));
        let empty: Instance = serde_json::from_value(json!({ "id": "17" })).expect("an instance");
        assert_eq!((empty.group(), empty.words().as_str()), (None, "no status is told"));
        assert!(
            serde_json::from_value::<Instance>(json!({ "status": "TERMINATED" })).is_err(),
            "without an id it is nobody's"
        );
    }

    /// S1: a field that is missing says nothing.
    #[test]
    fn disks_that_are_not_told_in_full_are_not_none() {
        let boot = json!({ "deviceName": "boot", "boot": true, "index": 0, "type": "PERSISTENT" });
        let data = json!({ "deviceName": "data", "boot": false, "index": 1, "type": "PERSISTENT" });
        let ssd = json!({ "deviceName": "local-ssd-0", "type": "SCRATCH" });
        for (disks, wrong) in [
            (json!([boot, data, ssd]), None),
            (json!([data]), None),
            (json!(null), Some("which disks")),
            (json!([]), Some("which disks")),
            (json!([{}]), Some("whether the disk at \"\"")),
            (json!([boot, { "deviceName": "data" }]), Some("whether the disk at \"data\"")),
            (
                json!([{ "deviceName": "data", "boot": false, "index": 0 }]),
                Some("\"data\" in the boot disk's place"),
            ),
        ] {
            let told = json!({ "id": "17", "disks": disks });
            let read: Instance = serde_json::from_value(told).expect("an instance");
            match (read.disks(), wrong) {
                (Ok(told), None) => assert!(!told.is_empty()),
                (Err(why), Some(word)) => assert!(why.contains(word), "{disks}: {why}"),
                (told, _) => panic!("{disks}: {told:?}"),
            }
        }
        let without: Instance = serde_json::from_value(json!({ "id": "17" })).expect("an instance");
        assert!(without.disks().is_err() && without.local_ssds().is_empty());
    }

    #[test]
    fn a_disk_that_is_not_told_in_full_is_not_free() {
        let path = "projects/p/zones/z-1-a/disks/data-1";
        for (told, word) in [
            (json!({ "name": "data-1", "status": "READY" }), None),
            (json!({ "name": "data-1", "users": [] }), None),
            (json!({ "name": "data-1" }), Some("neither who uses")),
            (json!({ "name": "data-1", "status": "ODD" }), Some("neither who uses")),
            (json!({ "name": "data-2", "status": "READY" }), Some("shows \"data-2\"")),
            (json!({}), Some("shows \"\"")),
        ] {
            let disk: Disk = serde_json::from_value(told.clone()).expect("a disk");
            let wrong = disk.wrong(path);
            assert_eq!(wrong.is_some(), word.is_some(), "{told}: {wrong:?}");
            assert!(wrong.unwrap_or_default().contains(word.unwrap_or_default()), "{told}");
        }
    }
}
