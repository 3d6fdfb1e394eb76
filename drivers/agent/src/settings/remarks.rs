//! What is no fault and worth a word.

use super::given_parameters::GivenParameters;
use crate::list::{self, Agent, SecretExposure};
use crate::metadata::same;

/// Secrets that others see, an agent that is not the one that was read, and what nobody authenticates.
pub(super) fn remarks(agent: Option<&Agent>, told: &GivenParameters<'_>) -> Vec<String> {
    let Some(agent) = agent else { return Vec::new() };
    let mut remarks = Vec::new();
    remarks.extend(shown(agent, told));
    if !list::was_read(&told.metadata.version) {
        let version = told.metadata.version.as_str();
        let version = if version.is_empty() { "tells no version" } else { version };
        remarks.push(format!(
            "{} here is another than the one that was read ({version}, and {} was read): its Off counts as claimed",
            agent.name,
            list::READ_IN,
        ));
    }
    remarks.extend(spoken(agent, told).map(|how| {
        format!(
            "{} {how}: whoever is in that network can say off in the device's place, and its Off counts as claimed (docs/agents.md, Authenticated)",
            agent.name
        )
    }));
    remarks
}

fn shown(agent: &Agent, told: &GivenParameters<'_>) -> Option<String> {
    let scripts = told.parameters.iter().map(|(name, _)| name.as_str()).filter(|name| is_script(name));
    let names: Vec<&str> = told.secrets.iter().map(|(name, _)| name.as_str()).chain(scripts).collect();
    let where_to = match agent.shows() {
        SecretExposure::Arguments => {
            "into the arguments of a program that it runs, where every user of this machine can read that while it runs"
        }
        SecretExposure::Environment => {
            "into the environment of a program that it runs, where this user and root can read that while it runs"
        }
        SecretExposure::Nothing => return None,
    };
    (!names.is_empty()).then(|| {
        format!(
            "{} puts what it is told as {} {where_to} (docs/agents.md, Secrets, says what can be done)",
            agent.name,
            names.join(" and "),
        )
    })
}

/// Whether a program is named by it whose output is a secret.
fn is_script(parameter: &str) -> bool {
    same(parameter).ends_with("_script")
}

/// How it asks, where the answer is not authenticated.
pub(super) fn spoken(agent: &Agent, told: &GivenParameters<'_>) -> Option<String> {
    if told.knows("snmp_version") {
        return snmp(told);
    }
    if told.is_set(&["ssl_insecure"]) {
        return Some("believes every certificate (ssl_insecure)".to_owned());
    }
    let is_plain = |value: &str| value.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http://"));
    if let Some((name, _)) = told.parameters.iter().find(|(_, value)| is_plain(value)) {
        return Some(format!("asks by HTTP ({name})"));
    }
    let is_ssh = told.knows("ssh_path") && told.is_set(&["ssh", "secure"]);
    let by = match agent.name {
        "fence_eps" => "asks by HTTP",
        "fence_powerman" => "asks powermand, which proves itself to nobody",
        _ if told.knows("telnet_path") && !told.is_set(&["ssh", "secure"]) => "asks by telnet",
        _ if is_ssh && !checks_host_keys(told) => {
            "believes each host key that it has not seen before, unless ssh_options has -o StrictHostKeyChecking=yes"
        }
        _ if told.is_set(&["disable_ssl"]) => "asks without TLS (disable_ssl)",
        _ if told.knows("ssl") && !told.is_set(&["ssl"]) && !told.is_set(&["ssl_secure"]) => "asks by HTTP",
        _ => return None,
    };
    Some(by.to_owned())
}

/// Whether ssh refuses a host whose key it does not know: the first value of an option holds (ssh_config(5)). Else fencing.py answers
/// `yes` to the question whether to go on, and sends the password.
fn checks_host_keys(told: &GivenParameters<'_>) -> bool {
    let options = told.value("ssh_options").unwrap_or_default().to_ascii_lowercase();
    let value =
        options.split_once("stricthostkeychecking").map(|(_, after)| after.trim_start_matches(['=', ' ']));
    // A command among them (ProxyCommand) may have such words of its own.
    let has_commands = options.contains("command");
    !has_commands
        && value.is_some_and(|value| value.split(|c: char| !c.is_ascii_alphabetic()).next() == Some("yes"))
}

/// The rule of `complete_missed_params` in fencing_snmp.py: a community alone is 2c, and two passphrases are authPriv.
fn snmp(told: &GivenParameters<'_>) -> Option<String> {
    let has_passphrases = told.has(&["snmp_priv_passwd"]) && told.has(&["password", "passwd"]);
    let level = told.given(&["snmp_sec_level"]).or(has_passphrases.then_some("authPriv"));
    let is_alone = || told.has(&["community"]) && !told.has(&["username", "login"]);
    match told.value("snmp_version").or_else(|| is_alone().then_some("2c")) {
        Some(version @ ("1" | "2c")) => Some(format!("asks by SNMP {version}, which authenticates nothing")),
        _ if matches!(level, Some("authNoPriv" | "authPriv")) => None,
        _ => Some(
            "asks by SNMP 3 without snmp_sec_level = \"authPriv\": unless net-snmp's own settings say more nothing is authenticated"
                .to_owned(),
        ),
    }
}
