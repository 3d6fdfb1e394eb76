//! An instance as DescribeInstances shows it, and what that says of power.
//!
//! # Invariants
//!
//! - [`Instance::power`] is a total function of what was answered: what is not said in the words of the API
//!   is Unknown (S1). Shown by `every_state_of_an_instance_is_on_off_or_unknown`.

use std::collections::BTreeMap;

use aws_sdk_ec2::types;

/// The tag that keeps an instance off, where an IAM policy denies to start what bears it.
pub(crate) const TAG: &str = "picket-fenced";
/// What the tag of ours says.
pub(crate) const OURS: &str = "picket";
/// Set by an auto-scaling group on what it launched.
const GROUP: &str = "aws:autoscaling:groupName";

/// What of an instance matters here. Everything else is let be; what is missing is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Instance {
    pub(crate) id: String,
    pub(crate) state: Option<String>,
    /// The state as a number; its low byte means the same as the word.
    pub(crate) code: Option<i32>,
    /// Why it is in that state: a code and a sentence.
    pub(crate) reason: Option<String>,
    /// Why it came into that state, as a sentence.
    pub(crate) transition: Option<String>,
    /// Whether it may be hibernated.
    pub(crate) hibernates: bool,
    pub(crate) root_device: Option<String>,
    pub(crate) root_is_ebs: bool,
    /// `spot`, `scheduled`, `capacity-block`; `None`: on demand.
    pub(crate) lifecycle: Option<String>,
    /// The spot request by which it was launched.
    pub(crate) spot_request: Option<String>,
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) volumes: Vec<Mapping>,
    /// It has a volume of which is not told which it is, or where.
    pub(crate) is_vague: bool,
}

/// A volume in an instance's block device mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) device: String,
    pub(crate) volume: String,
    pub(crate) status: Option<String>,
    /// Whether the volume is deleted with the instance; `None`: not said.
    pub(crate) goes_with_it: Option<bool>,
}

impl Mapping {
    pub(crate) fn is_vague(&self) -> bool {
        self.device.is_empty() || self.volume.is_empty()
    }
}

/// What an instance's state says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PowerStatus {
    /// It runs.
    On,
    /// It was stopped, and its memory is gone.
    Off,
    /// It was terminated, with that id: it never runs again.
    Terminated,
    /// Anything else.
    Unknown,
}

impl From<types::Instance> for Instance {
    fn from(told: types::Instance) -> Self {
        let state = told.state;
        let reason = told
            .state_reason
            .map(|reason| [reason.code, reason.message].into_iter().flatten().collect::<Vec<_>>().join(": "));
        let tag = |tag: types::Tag| Some((tag.key?, tag.value.unwrap_or_default()));
        let mapping = |mapping: types::InstanceBlockDeviceMapping| {
            let ebs = mapping.ebs?;
            Some(Mapping {
                device: mapping.device_name.unwrap_or_default(),
                volume: ebs.volume_id.unwrap_or_default(),
                status: ebs.status.map(|status| status.as_str().to_owned()),
                goes_with_it: ebs.delete_on_termination,
            })
        };
        let volumes: Vec<Mapping> =
            told.block_device_mappings.unwrap_or_default().into_iter().filter_map(mapping).collect();
        Self {
            id: told.instance_id.unwrap_or_default(),
            code: state.as_ref().and_then(|state| state.code),
            state: state.and_then(|state| state.name).map(|name| name.as_str().to_owned()),
            reason: reason.filter(|reason| !reason.is_empty()),
            transition: told.state_transition_reason.filter(|reason| !reason.is_empty()),
            hibernates: told.hibernation_options.and_then(|options| options.configured).unwrap_or(false),
            root_device: told.root_device_name,
            root_is_ebs: told.root_device_type.is_none_or(|kind| kind == types::DeviceType::Ebs),
            lifecycle: told.instance_lifecycle.map(|lifecycle| lifecycle.as_str().to_owned()),
            spot_request: told.spot_instance_request_id.filter(|id| !id.is_empty()),
            tags: told.tags.unwrap_or_default().into_iter().filter_map(tag).collect(),
            is_vague: volumes.iter().any(Mapping::is_vague),
            volumes,
        }
    }
}

/// The number of a state (InstanceState, `code`), whose high byte is to be ignored.
fn number(state: &str) -> Option<i32> {
    Some(match state {
        "pending" => 0,
        "running" => 16,
        "shutting-down" => 32,
        "terminated" => 48,
        "stopping" => 64,
        "stopped" => 80,
        _ => return None,
    })
}

impl Instance {
    /// What it says of power.
    pub(crate) fn power(&self) -> PowerStatus {
        let Some(state) = self.state.as_deref() else { return PowerStatus::Unknown };
        // A number beside the word that says otherwise is no clear word.
        if self.code.is_some_and(|code| number(state) != Some(code & 0xff)) {
            return PowerStatus::Unknown;
        }
        match state {
            "running" => PowerStatus::On,
            "terminated" => PowerStatus::Terminated,
            "stopped" if self.keeps_memory() => PowerStatus::Unknown,
            "stopped" => PowerStatus::Off,
            _ => PowerStatus::Unknown,
        }
    }

    /// Whether it was hibernated, or that cannot be told of one that may be: it goes on where it was.
    pub(crate) fn keeps_memory(&self) -> bool {
        let words = [self.reason.as_deref(), self.transition.as_deref()];
        let is_told = words.iter().flatten().any(|words| words.to_ascii_lowercase().contains("hibernat"));
        is_told || self.hibernates && self.reason.is_none()
    }

    /// Whether it is on its way to another state, or that is not told.
    pub(crate) fn is_busy(&self) -> bool {
        !matches!(self.state.as_deref(), Some("running" | "stopped" | "terminated"))
    }

    /// Which of these devices its root is; `None`: its root is no volume. `Err`: that cannot be told, in words.
    pub(crate) fn root<'a>(&self, volumes: &'a [Mapping]) -> Result<Option<&'a str>, String> {
        if !self.root_is_ebs {
            return Ok(None);
        }
        let name = self.root_device.as_deref().unwrap_or_default();
        let devices = || volumes.iter().map(|volume| volume.device.as_str());
        if let Some(device) = devices().find(|device| *device == name) {
            return Ok(Some(device));
        }
        // `/dev/sda1` may be the first partition of what is mapped as `/dev/sda`, or as `xvda`.
        let alike: Vec<_> =
            devices().filter(|device| disk(device).is_some() && disk(device) == disk(name)).collect();
        match alike[..] {
            [device] => Ok(Some(device)),
            _ => Err(format!(
                "EC2 says that its root is at {name:?}, and has volumes at {}: which of them is the root volume cannot be told",
                devices().collect::<Vec<_>>().join(", ")
            )),
        }
    }

    /// The auto-scaling group that launched it.
    pub(crate) fn group(&self) -> Option<&str> {
        self.tags.get(GROUP).map(String::as_str)
    }

    /// In words, for people.
    pub(crate) fn words(&self) -> String {
        let state = self.state.as_deref().unwrap_or("no state is told");
        let kept = match self.state.as_deref() {
            Some("stopped") if self.keeps_memory() => ", hibernated: its memory is kept",
            _ => "",
        };
        let reason = self.reason.as_deref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        format!("{state}{reason}{kept}")
    }
}

/// The letters of a disk by one of its names, without the number of a partition.
fn disk(name: &str) -> Option<&str> {
    let name = name.strip_prefix("/dev/").unwrap_or(name);
    let name = ["sd", "xvd", "hd"].iter().find_map(|beginning| name.strip_prefix(beginning))?;
    Some(name.trim_end_matches(|c: char| c.is_ascii_digit())).filter(|letters| !letters.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instance(state: Option<&str>, code: Option<i32>) -> Instance {
        Instance { state: state.map(str::to_owned), code, ..Instance::default() }
    }

    /// S1: only what is said in full is on or off.
    #[test]
    fn every_state_of_an_instance_is_on_off_or_unknown() {
        for (state, code, said) in [
            (Some("running"), Some(16), PowerStatus::On),
            (Some("running"), None, PowerStatus::On),
            (Some("stopped"), Some(80), PowerStatus::Off),
            (Some("stopped"), Some(0x0150), PowerStatus::Off),
            (Some("stopped"), None, PowerStatus::Off),
            (Some("stopped"), Some(64), PowerStatus::Unknown),
            (Some("stopped"), Some(0), PowerStatus::Unknown),
            (Some("terminated"), Some(48), PowerStatus::Terminated),
            (Some("terminated"), Some(32), PowerStatus::Unknown),
            (Some("stopping"), Some(64), PowerStatus::Unknown),
            (Some("shutting-down"), Some(32), PowerStatus::Unknown),
            (Some("pending"), Some(0), PowerStatus::Unknown),
            (Some("Stopped"), None, PowerStatus::Unknown),
            (Some("a word of tomorrow"), None, PowerStatus::Unknown),
            (Some(""), None, PowerStatus::Unknown),
            (None, Some(80), PowerStatus::Unknown),
            (None, None, PowerStatus::Unknown),
        ] {
            assert_eq!(instance(state, code).power(), said, "{state:?} {code:?}");
        }
    }

    #[test]
    fn what_was_hibernated_is_not_off() {
        let stopped = || instance(Some("stopped"), Some(80));
        let because = |reason: &str| Some(reason.to_owned());
        for (instance, said) in [
            (
                Instance {
                    reason: because("Client.UserInitiatedHibernate: User initiated hibernate"),
                    ..stopped()
                },
                PowerStatus::Unknown,
            ),
            (
                Instance { transition: because("User initiated hibernation (2026-11-22)"), ..stopped() },
                PowerStatus::Unknown,
            ),
            (
                Instance { reason: because("Client.UserInitiatedShutdown"), hibernates: true, ..stopped() },
                PowerStatus::Off,
            ),
            (Instance { hibernates: true, ..stopped() }, PowerStatus::Unknown),
            (Instance { reason: because("Client.UserInitiatedShutdown"), ..stopped() }, PowerStatus::Off),
        ] {
            assert_eq!(instance.power(), said, "{instance:?}");
        }
    }

    #[test]
    fn the_root_is_told_or_it_is_said_that_it_cannot_be() {
        let mapping = |device: &str| Mapping {
            device: device.to_owned(),
            volume: "vol-1".to_owned(),
            status: None,
            goes_with_it: None,
        };
        for (root, devices, wanted) in [
            (Some("/dev/sda1"), &["/dev/sdf", "/dev/sda1"][..], Some("/dev/sda1")),
            (Some("/dev/sda1"), &["/dev/sdf", "/dev/sda"], Some("/dev/sda")),
            (Some("/dev/xvda"), &["/dev/sdf", "xvda"], Some("xvda")),
            (Some("/dev/sda1"), &["/dev/xvda", "/dev/sdaa"], Some("/dev/xvda")),
            (Some("/dev/sda1"), &["/dev/sda2", "/dev/sda3"], None),
            (Some("/dev/sda1"), &["/dev/sdf"], None),
            (Some("/dev/xvda"), &["/dev/nvme0n1"], None),
            (None, &["/dev/sdf"], None),
        ] {
            let volumes: Vec<_> = devices.iter().map(|device| mapping(device)).collect();
            let root_device = root.map(str::to_owned);
            let instance = Instance { root_device, root_is_ebs: true, ..Instance::default() };
            let told = instance.root(&volumes);
            assert_eq!(told.as_ref().ok(), wanted.map(Some).as_ref(), "{root:?} {devices:?}: {told:?}");
            assert_eq!(Instance { root_is_ebs: false, ..instance }.root(&volumes), Ok(None));
        }
    }

    #[test]
    fn an_answer_is_read_with_what_is_missing_in_it() {
        let told = types::Instance::builder()
            .instance_id("i-01234567")
            .state(types::InstanceState::builder().name("stopped".into()).code(80).build())
            .root_device_name("/dev/xvda")
            .block_device_mappings(
                types::InstanceBlockDeviceMapping::builder()
                    .device_name("/dev/sdf")
                    .ebs(
                        types::EbsInstanceBlockDevice::builder()
                            .volume_id("vol-1")
                            .delete_on_termination(true)
                            .build(),
                    )
                    .build(),
            )
            .block_device_mappings(
                types::InstanceBlockDeviceMapping::builder().device_name("/dev/sdb").build(),
            )
            .tags(types::Tag::builder().key(GROUP).value("web").build())
            .build();
        let read = Instance::from(told);
        assert_eq!((read.power(), read.group(), read.is_busy()), (PowerStatus::Off, Some("web"), false));
        let mapping = Mapping {
            device: "/dev/sdf".to_owned(),
            volume: "vol-1".to_owned(),
            status: None,
            goes_with_it: Some(true),
        };
        assert_eq!((read.volumes, read.is_vague), (vec![mapping], false));
        for ebs in [(None, Some("/dev/sdf")), (Some("vol-1"), None)] {
            let (volume, device) = (ebs.0.map(str::to_owned), ebs.1.map(str::to_owned));
            let ebs = types::EbsInstanceBlockDevice::builder().set_volume_id(volume).build();
            let mapping =
                types::InstanceBlockDeviceMapping::builder().set_device_name(device).ebs(ebs).build();
            assert!(
                Instance::from(types::Instance::builder().block_device_mappings(mapping).build()).is_vague
            );
        }
        let empty = Instance::from(types::Instance::builder().build());
        assert_eq!(
            (empty.power(), empty.is_busy(), empty.words().as_str()),
            (PowerStatus::Unknown, true, "no state is told")
        );
    }
}
