//! The resources that only tell, and their tags.

use picket_core::time::BootTime;
use picket_driver_sim::{Fault, RestorePolicy, Version, World};
use serde_json::{Value, json};

use super::{Answer, RedfishBmc, Request};

/// There is no such resource.
pub(super) fn not_found() -> Answer {
    Answer::error(404, "ResourceMissingAtURI", "There is no such resource.")
}

/// A resource's tag: it changes when the resource does (FNV-1a of its text).
fn tag(resource: &Value) -> String {
    let hash = resource.to_string().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("W/\"{hash:016x}\"")
}

/// A resource with its tag; nothing new to who has it already.
pub(super) fn tagged(request: &Request, resource: Value) -> Answer {
    under(tag(&resource), request, resource)
}

fn under(tag: String, request: &Request, resource: Value) -> Answer {
    if request.headers.get("if-none-match").is_some_and(|known| known.split(',').any(|one| one.trim() == tag))
    {
        return Answer::empty(304).with("ETag", tag);
    }
    Answer::ok(resource).with("ETag", tag)
}

/// How versions of the system are said, and by which of them a change is taken.
#[derive(Clone, Copy)]
pub(super) struct Versions(Option<Version>);

impl Versions {
    /// What is said of that version.
    fn said(self, tag: &str) -> Option<String> {
        match self.0 {
            None | Some(Version::Strong | Version::None) => Some(tag.to_owned()),
            Some(Version::QuotedOnce) => Some(format!("\"{}\"", strong(tag))),
            Some(Version::Any) => None,
        }
    }

    /// The same resource as [`tagged`] has it, under its version as it is said.
    pub(super) fn tagged(self, request: &Request, resource: Value) -> Answer {
        match self.said(&tag(&resource)) {
            None => Answer::ok(resource),
            Some(said) => under(said, request, resource),
        }
    }

    /// The status with which a change by this version is refused, where `system` is so; `None`: it is taken.
    pub(super) fn refuses(self, version: Option<&str>, system: &Value) -> Option<u16> {
        let tag = tag(system);
        match (self.0, version) {
            (Some(Version::Any), None) => Some(428),
            (Some(Version::Any), Some(version)) => (version != "*").then_some(412),
            (_, None) => None,
            (Some(Version::None), Some(_)) => Some(412),
            (None, Some(version)) => (version != tag).then_some(412),
            (Some(Version::Strong | Version::QuotedOnce), Some(version)) => {
                (version != strong(&tag)).then_some(412)
            }
        }
    }
}

/// A weak version made strong.
fn strong(tag: &str) -> &str {
    tag.trim_start_matches("W/")
}

fn link(path: &str) -> Value {
    json!({"@odata.id": format!("/redfish/v1/{path}")})
}

fn collection(path: &str, kind: &str, members: impl Iterator<Item = String>) -> Value {
    let members: Vec<Value> = members.map(|id| link(&format!("{path}/{id}"))).collect();
    json!({
        "@odata.id": format!("/redfish/v1/{path}"),
        "@odata.type": format!("#{kind}Collection.{kind}Collection"),
        "Name": format!("{kind} Collection"),
        "Members@odata.count": members.len(), "Members": members,
    })
}

impl RedfishBmc {
    /// How it says versions of its system.
    pub(super) fn version(&self, world: &World) -> Versions {
        Versions(world.faults(&self.options.device).iter().find_map(|fault| match fault {
            Fault::TakesVersion(version) => Some(*version),
            _ => None,
        }))
    }

    /// The settings of its BIOS, where they say what an iDRAC's do (Dell's attribute registry, `AcPwrRcvry`).
    fn bios(&self, world: &World) -> Option<Value> {
        let recovery = match world.hold(&self.options.machine).restore {
            _ if !world.suffers(&self.options.device, &Fault::HoldsAsIdrac) => return None,
            RestorePolicy::AlwaysOff => "Off",
            RestorePolicy::LastState => "Last",
            RestorePolicy::AlwaysOn => "On",
        };
        Some(json!({
            "@odata.id": "/redfish/v1/Systems/1/Bios", "@odata.type": "#Bios.v1_2_0.Bios",
            "Id": "Bios", "Name": "BIOS", "Attributes": {"AcPwrRcvry": recovery},
        }))
    }

    /// The service's root, which everybody may read; without links where they are hidden.
    pub(super) fn root(&self, world: &World, is_hidden: bool) -> Value {
        let mut root = json!({
            "@odata.id": "/redfish/v1/", "@odata.type": "#ServiceRoot.v1_9_0.ServiceRoot",
            "Id": "RootService", "Name": "Root Service", "RedfishVersion": "1.9.0",
            "Product": "Simulated BMC",
            "UUID": world.identity(&self.options.machine).uuid,
        });
        if !is_hidden {
            for (name, path) in [
                ("Systems", "Systems"),
                ("Managers", "Managers"),
                ("SessionService", "SessionService"),
                ("Tasks", "TaskService"),
            ] {
                root[name] = link(path);
            }
            root["Links"] = json!({"Sessions": link("SessionService/Sessions")});
        }
        root
    }

    /// Whatever only tells; `None`: there is no such thing.
    pub(super) fn resource(&self, now: BootTime, world: &World, path: &[&str]) -> Option<Value> {
        let one = || std::iter::once("1".to_owned());
        Some(match path {
            ["Systems"] => collection("Systems", "ComputerSystem", one()),
            ["Systems", "1", "ResetActionInfo"] => json!({
                "@odata.id": "/redfish/v1/Systems/1/ResetActionInfo",
                "@odata.type": "#ActionInfo.v1_1_2.ActionInfo",
                "Id": "ResetActionInfo", "Name": "Reset Action Info",
                "Parameters": [{
                    "Name": "ResetType", "Required": true, "DataType": "String", "AllowableValues": self.offered,
                }],
            }),
            ["Systems", "1", "Bios"] => self.bios(world)?,
            ["Managers"] => collection("Managers", "Manager", one()),
            ["Managers", "1"] => json!({
                "@odata.id": "/redfish/v1/Managers/1", "@odata.type": "#Manager.v1_11_0.Manager",
                "Id": "1", "Name": "Manager", "ManagerType": "BMC", "FirmwareVersion": "1.0",
                "PowerState": "On", "Status": {"State": "Enabled", "Health": "OK"},
                "DateTime": self.wall(now).to_string(),
                "LastResetTime": self.wall(world.device_born(&self.options.device)).to_string(),
                "Links": {"ManagerForServers": [link("Systems/1")]},
                "Actions": {"#Manager.Reset": {
                    "target": "/redfish/v1/Managers/1/Actions/Manager.Reset",
                    "ResetType@Redfish.AllowableValues": ["ForceRestart"],
                }},
            }),
            ["SessionService"] => {
                let (_, idle) = world.session_limits(&self.options.device);
                json!({
                    "@odata.id": "/redfish/v1/SessionService",
                    "@odata.type": "#SessionService.v1_1_8.SessionService",
                    "Id": "SessionService", "Name": "Session Service", "ServiceEnabled": true,
                    "SessionTimeout": idle.as_secs(), "Sessions": link("SessionService/Sessions"),
                })
            }
            ["SessionService", "Sessions"] => {
                collection("SessionService/Sessions", "Session", self.sessions.keys().cloned())
            }
            ["SessionService", "Sessions", name] => self.session(name)?,
            ["TaskService"] => json!({
                "@odata.id": "/redfish/v1/TaskService", "@odata.type": "#TaskService.v1_1_6.TaskService",
                "Id": "TaskService", "Name": "Task Service", "ServiceEnabled": true,
                "Tasks": link("TaskService/Tasks"),
            }),
            ["TaskService", "Tasks"] => collection("TaskService/Tasks", "Task", self.task_ids()),
            ["TaskService", "Tasks", id] => self.task(now, id)?,
            _ => return None,
        })
    }
}
