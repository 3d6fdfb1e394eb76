//! What a BIOS says it does when power comes back after a cut, for a remark. A change of it waits for a reboot, and that of an iDRAC for a
//! job beside: it is no hold, and is never changed here.

use picket_driver::{Call, Effort};
use serde_json::Value;

use crate::answer::tame;
use crate::line::Line;
use crate::service::{Object, link};
use crate::service_request::ServiceRequest;

/// A setting, and its words.
struct Setting {
    /// Its attribute; a board may number it (`RestoreonACPowerLoss_0051`).
    attribute: &'static str,
    /// The machine starts.
    starts: &'static str,
    /// It stays off.
    keeps_off: &'static str,
}

const SETTINGS: [Setting; 2] = [
    // Dell's BIOS attributes, iDRAC 7 and later.
    Setting { attribute: "AcPwrRcvry", starts: "On", keeps_off: "Off" },
    // Supermicro's, by its Redfish guide: the name that the setup shows, without spaces.
    Setting { attribute: "RestoreonACPowerLoss", starts: "Power On", keeps_off: "Stay Off" },
];

/// What is to be known of the BIOS of a system that has no hold. Where it cannot be read nothing is.
pub async fn remark(line: &mut Line, call: &Call, system: &Object) -> Option<String> {
    let path = link(system, "Bios")?;
    // Who may not see it is who it was.
    let answer = line.ask(&ServiceRequest::monitor(path), call, &mut Effort::reading()).await.ok()?;
    told(answer.fresh()?.get("Attributes")?.as_object()?)
}

fn told(attributes: &Object) -> Option<String> {
    let is_it = |name: &str, setting: &Setting| {
        name.strip_prefix(setting.attribute).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    };
    let found = |setting: &'static Setting| {
        let (name, value) = attributes.iter().find(|(name, _)| is_it(name, setting))?;
        Some((setting, name, Value::as_str(value)?))
    };
    let (setting, name, value) = SETTINGS.iter().find_map(found)?;
    (value == setting.starts).then(|| {
        format!(
            "the BIOS setting {} is {value:?}: the machine starts when power comes back after a cut, also while it is fenced; set it to \
             {:?}. A fence cannot, as the setting waits for a reboot",
            tame(name),
            setting.keeps_off
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_starts_the_machine_is_told_and_nothing_else() {
        for (attributes, told_of) in [
            (json!({ "AcPwrRcvry": "On", "AcPwrRcvryDelay": "Immediate" }), Some("AcPwrRcvry is \"On\"")),
            (json!({ "RestoreonACPowerLoss": "Power On" }), Some("set it to \"Stay Off\"")),
            (json!({ "RestoreonACPowerLoss_0051": "Power On" }), Some("RestoreonACPowerLoss_0051 is")),
            (json!({ "AcPwrRcvry": "Last" }), None),
            (json!({ "AcPwrRcvry": "Off" }), None),
            (json!({ "AcPwrRcvry": true }), None),
            (json!({ "AcPwrRcvryDelay": "On" }), None),
            (json!({ "RestoreonACPowerLoss": "Last State" }), None),
            (json!({}), None),
        ] {
            let told = told(attributes.as_object().expect("an object"));
            match told_of {
                Some(words) => assert!(told.as_deref().is_some_and(|told| told.contains(words)), "{told:?}"),
                None => assert_eq!(told, None, "{attributes}"),
            }
        }
    }
}
