//! What whoever runs an instance ought to know of it, found out by a check.

use parking_lot::{Mutex, MutexGuard};
use picket_reach::proxy;

use crate::instance::Instance;
use crate::settings::Settings;

/// What the last check found.
#[derive(Debug, Default)]
pub(crate) struct Remarks(Mutex<RemarkFindings>);

#[derive(Debug, Default)]
struct RemarkFindings {
    remarks: Vec<String>,
    obstacle: Option<String>,
}

impl Remarks {
    fn found(&self) -> MutexGuard<'_, RemarkFindings> {
        self.0.lock()
    }

    pub(crate) fn told(&self) -> Vec<String> {
        self.found().remarks.clone()
    }

    pub(crate) fn obstacles(&self) -> Vec<String> {
        self.found().obstacle.iter().cloned().collect()
    }

    /// Looks at what bars an off, makes it slow, or undoes one.
    pub(crate) fn look_around(&self, instance: &Instance, settings: &Settings, endpoint: &str) {
        let mut remarks = of(instance, settings);
        remarks.extend(endpoint.parse().ok().and_then(|url| proxy::unused(&url)));
        *self.found() = RemarkFindings { remarks, obstacle: no_stop(instance, settings) };
    }
}

/// The names of its local SSDs, in words; `None`: it has none.
fn local_ssds(instance: &Instance) -> Option<String> {
    let ssds = instance.local_ssds();
    (!ssds.is_empty()).then(|| ssds.join(", "))
}

fn no_stop(instance: &Instance, settings: &Settings) -> Option<String> {
    let ssds = local_ssds(instance).filter(|_| settings.discard_local_ssd.is_none())?;
    Some(format!(
        "it has local SSDs ({ssds}), and discard_local_ssd is not set: it is not stopped, and a fence of it does not come to an end; set \
         discard_local_ssd"
    ))
}

fn of(instance: &Instance, settings: &Settings) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(name) = settings.name.as_deref().filter(|name| *name != instance.name) {
        remarks.push(format!(
            "the instance {} is called {:?}, and not {name:?} as its settings have it: look whether id is the right one",
            instance.id, instance.name
        ));
    }
    if let Some(group) = instance.group() {
        remarks.push(format!(
            "it is of the managed instance group {group:?}, which recreates or starts what is stopped: take it out of the group, turn its \
             repairs off (default-action-on-failure do-nothing), or let the group alone handle it"
        ));
    }
    if let Some((ssds, discards)) = local_ssds(instance).zip(settings.discard_local_ssd) {
        remarks.push(match discards {
            true => format!("a fence of it discards what is on its local SSDs ({ssds})"),
            false => format!(
                "a fence of it asks to keep what is on its local SSDs ({ssds}), which Compute Engine refuses of most machine types"
            ),
        });
    }
    if instance.scheduling.skip_guest_os_shutdown != Some(true) {
        let longest = if instance.is_spot() { "30 s" } else { "120 s" };
        remarks.push(format!(
            "its scheduling.skipGuestOsShutdown is not set: a stop waits for a guest that is dead as long as Compute Engine lets it ({longest})"
        ));
    }
    if !instance.resource_policies.is_empty() {
        let names = instance.resource_policies.iter().filter_map(|link| link.rsplit('/').next());
        let names = names.collect::<Vec<_>>().join(", ");
        remarks
            .push(format!("it has resource policies ({names}): an instance schedule starts what is stopped"));
    }
    if instance.is_spot() {
        remarks.push("it is a spot (or preemptible) instance: Compute Engine may take it away, and refuse to start it again".to_owned());
    }
    remarks
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_bars_an_off_or_undoes_one_is_said() {
        let settings = |more: serde_json::Value| {
            let mut table = json!({ "instance": "gce://p/europe-west1-b/db-1", "id": "17" });
            table.as_object_mut().expect("a table").extend(more.as_object().expect("a table").clone());
            Settings::check(table.as_object().expect("a table")).expect("right")
        };
        let plain = json!({ "id": "17", "name": "db-1", "scheduling": { "skipGuestOsShutdown": true } });
        let instance = |value: &serde_json::Value| {
            serde_json::from_value::<Instance>(value.clone()).expect("an instance")
        };
        assert_eq!(of(&instance(&plain), &settings(json!({}))), [] as [&str; 0]);
        let odd = json!({
            "id": "17", "name": "db-2", "scheduling": { "preemptible": true },
            "resourcePolicies": ["https://x/projects/p/regions/r/resourcePolicies/mornings"],
            "disks": [{ "deviceName": "local-ssd-0", "type": "SCRATCH" }],
            "metadata": { "items": [{ "key": "created-by", "value": "projects/5/zones/z/instanceGroupManagers/web" }] },
        });
        let said = of(&instance(&odd), &settings(json!({}))).join("\n");
        for word in [
            "called \"db-2\"",
            "group \"web\"",
            "skipGuestOsShutdown",
            "(30 s)",
            "spot",
            "policies (mornings)",
        ] {
            assert!(said.contains(word), "{word}: {said}");
        }
        let unset = no_stop(&instance(&odd), &settings(json!({}))).expect("it is not stopped");
        assert!(unset.contains("(local-ssd-0), and discard_local_ssd is not set"), "{unset}");
        assert_eq!(no_stop(&instance(&odd), &settings(json!({ "discard_local_ssd": true }))), None);
        assert_eq!(no_stop(&instance(&plain), &settings(json!({}))), None);
        let said = of(&instance(&odd), &settings(json!({ "discard_local_ssd": true }))).join("\n");
        assert!(said.contains("discards what is on its local SSDs (local-ssd-0)"), "{said}");
        let said = of(&instance(&odd), &settings(json!({ "discard_local_ssd": false }))).join("\n");
        assert!(said.contains("asks to keep"), "{said}");
    }
}
