//! The settings that are written.

use super::node_request::NodeRequest;
use super::probe::ProbeResult;
use super::settings_folder::SettingsFolder;

/// The file.
pub fn text(request: &NodeRequest, chosen: &ProbeResult, settings_folder: &SettingsFolder) -> String {
    let password = toml::Value::from(request.password_file.display().to_string());
    format!(
        "# Written by picket init. picket.example.toml has every\n\
         # setting. After a change: picketd --check.\n\
         {}\n{}password_file = {password}\n{}",
        settings_folder.settings(),
        request.device(chosen.driver, &chosen.more),
        identity(chosen)
    )
}

/// Nobody but the BMC has said so: a person compares it, and takes the marks away.
fn identity(chosen: &ProbeResult) -> String {
    let Some(said) = chosen.identity() else { return String::new() };
    let (tool, more) = match said.0 {
        "uuid" => ("system-uuid", "# The bytes of its first three groups may stand in the\n# other order.\n"),
        _ => ("system-serial-number", ""),
    };
    format!(
        "# The BMC says that it controls this machine. Compare it\n\
         # with what the node says: dmidecode -s {tool}\n\
         {more}\
         # Where both are the same take the # of the next line away:\n\
         # evidence is graded observed then, not learned.\n\
         # identity = {{ {} = {} }}\n",
        said.0,
        toml::Value::from(said.1)
    )
}
