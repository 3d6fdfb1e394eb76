//! Which device it is, by whatever agent: named in full, and under one name however it is spelled.

use picket_core::device::DeviceClass;
use picket_driver::table::{ReadTable, authority, host};

use super::given_parameters::GivenParameters;
use super::parameters::ADDRESS;
use super::reader::Reader;
use crate::list::Agent;
use crate::metadata::same;

/// Where devices are.
const IP: [&str; 2] = ["ip", "ipaddr"];
const PLUG: [&str; 2] = ["plug", "port"];
/// What names a device at an address, in this order.
const PARTS: [&[&str]; 7] =
    [&PLUG, &["uuid"], &["switch"], &["managed"], &["suborg"], &["target"], &["systems_uri"]];
/// What names one where there is no address. A region is not among them: what is in it has a name that no other region's has.
pub(super) const ELSEWHERE: [&str; 8] = [
    "project",
    "zone",
    "resourceGroup",
    "subscriptionId",
    "namespace",
    "kubeconfig",
    "auth_url",
    "session_url",
];
/// The BMC itself, beside those behind it (IPMI 2.0, 20h).
const ITSELF: u8 = 0x20;
/// What says how an agent asks, and not whom; beside what ends with `_timeout` or `_path`.
const MANNER: [&str; 21] = [
    "power_wait",
    "stonith_status_sleep",
    "username",
    "login",
    "cmd_prompt",
    "command_prompt",
    "password_script",
    "passwd_script",
    "identity_file",
    "inet4_only",
    "inet6_only",
    "ssh",
    "secure",
    "ssh_options",
    "ssl",
    "ssl_secure",
    "ssl_insecure",
    "notls",
    "tls1.0",
    "sudo",
    "use_sudo",
];

impl Reader<'_> {
    /// Faults for what leaves it to the agent which machine is switched, or names another one than it looks.
    pub(super) fn names(&mut self, agent: &Agent, told: &GivenParameters<'_>) {
        for (need, does) in agent.needs() {
            let names = if *need == "plug" { &PLUG[..] } else { std::slice::from_ref(need) };
            if !told.has(names) {
                self.fault("parameters", format!("the agent needs {need}: without it it {does}"));
            }
        }
        if agent.is_ipmi() && !told.is_set(&["lanplus"]) {
            let message = "the agent needs lanplus = true: without it it speaks IPMI 1.5, where an answer is not authenticated";
            self.fault("parameters", message);
        }
        for (name, value) in told.parameters {
            let parameter = same(name);
            let key = format!("parameters.{name}");
            if IP.contains(&parameter.as_str()) && bare(value).is_none() {
                let message = format!(
                    "{value:?} is neither an address (10.0.0.7, no zeros in front) nor a host name; a port goes to ipport"
                );
                self.fault(&key, message);
            }
            if PLUG.contains(&parameter.as_str()) && !reads_plug(agent, told) {
                self.fault(&key, "the agent does not read it: what is at ip is switched, whatever the plug");
            }
            if let Some(why) = agent.mistakes(&parameter, &value.trim().to_ascii_lowercase()) {
                self.fault(&key, why);
            }
        }
    }
}

/// Whether the plug says what this agent switches. Those that switch what is at an address alone know `port_as_ip`.
pub(super) fn reads_plug(agent: &Agent, told: &GivenParameters<'_>) -> bool {
    match agent.name {
        "fence_drac5" => told.given(&["drac_version"]).is_none_or(|version| version != "DRAC 5"),
        _ => !told.knows("port_as_ip") || agent.needs().iter().any(|(need, _)| *need == "plug"),
    }
}

/// The address in its one spelling, also of one that is told in brackets.
fn bare(ip: &str) -> Option<String> {
    let within = ip.strip_prefix('[').and_then(|ip| ip.strip_suffix(']'));
    match within {
        Some(address) => host(address).filter(|_| address.contains(':')),
        None => host(ip),
    }
}

/// What it may share with others, and what no two devices may share.
pub(super) fn endpoint(
    name: &str,
    agent: Option<&Agent>,
    class: DeviceClass,
    told: &GivenParameters<'_>,
) -> (Option<String>, String) {
    let of = |names: &[&str]| spelled(names[0], told.given(names)?, agent);
    let parts: Vec<String> = PARTS.iter().filter_map(|names| of(names)).collect();
    let Some(ip) = told.given(&IP) else {
        return (None, without_address(name, agent, told, parts));
    };
    let host = bare(ip).unwrap_or_else(|| ip.to_ascii_lowercase());
    // An outlet is the same whatever is spoken there, and so is what has an own name or a terminal; BMCs may be behind one address, each
    // at its port. Its own default and the same number given are one device.
    let terminal = told.knows("ssh_path") || told.knows("telnet_path");
    let one_port = class == DeviceClass::Supply || told.has(&PLUG) || terminal;
    let port = told.value("ipport").filter(|_| !one_port);
    let place = match port.map(str::parse::<u16>) {
        None => host,
        Some(Ok(port)) => authority(&host, port),
        Some(Err(_)) => format!("{host}:{}", port.unwrap_or_default()),
    };
    let endpoint = std::iter::once(format!("agent {place}")).chain(parts).collect::<Vec<_>>();
    (Some(place), endpoint.join(" "))
}

/// Of an agent that was read, what names a machine; of another, all but what surely does not.
fn without_address(
    name: &str,
    agent: Option<&Agent>,
    told: &GivenParameters<'_>,
    mut parts: Vec<String>,
) -> String {
    match agent {
        Some(_) => {
            let more = ELSEWHERE.iter().filter_map(|name| spelled(name, told.given(&[name])?, agent));
            parts.extend(more);
        }
        None => {
            let is_manner =
                |name: &str| MANNER.contains(&name) || name.ends_with("_timeout") || name.ends_with("_path");
            let more = told.parameters.iter().map(|(name, value)| (same(name), value));
            let more = more.filter(|(name, _)| !is_manner(name) && !ADDRESS.contains(&name.as_str()));
            parts.extend(more.map(|(name, value)| format!("{name}={value}")));
        }
    }
    std::iter::once(name.to_owned()).chain(parts).collect::<Vec<_>>().join(" ")
}

/// A part of a name in one spelling; `None`: it is what there is without it.
fn spelled(parameter: &str, value: &str, agent: Option<&Agent>) -> Option<String> {
    let lower = value.trim().to_ascii_lowercase();
    match parameter {
        "target" => match number(&lower) {
            Some(ITSELF) => None,
            Some(target) => Some(target.to_string()),
            None => Some(lower),
        },
        "systems_uri" | "suborg" | "auth_url" | "session_url" => {
            let path = lower.trim_end_matches('/');
            Some(if parameter == "suborg" { path.trim_start_matches('/') } else { path }.to_owned())
        }
        "plug" | "uuid" => {
            let plug = agent.map_or(lower.as_str(), |agent| agent.plug(&lower));
            let counts = agent.is_none_or(Agent::counts) && plug.bytes().all(|byte| byte.is_ascii_digit());
            let number = plug.trim_start_matches('0');
            Some(match uuid(plug) {
                Some(uuid) => uuid,
                None if counts => if number.is_empty() { "0" } else { number }.to_owned(),
                None => plug.to_owned(),
            })
        }
        _ => Some(lower),
    }
}

/// As `ipmitool` reads one: in C's notation.
fn number(text: &str) -> Option<u8> {
    match (text.strip_prefix("0x"), text.strip_prefix('0')) {
        (Some(hex), _) => u8::from_str_radix(hex, 16).ok(),
        (None, Some(octal)) if !octal.is_empty() => u8::from_str_radix(octal, 8).ok(),
        _ => text.parse().ok(),
    }
}

/// A UUID in lower case, with dashes nowhere, as agents take it with and without them, and in braces.
fn uuid(text: &str) -> Option<String> {
    let text = text.strip_prefix("urn:uuid:").unwrap_or(text);
    let digits: String = text.trim_matches(['{', '}']).chars().filter(|c| *c != '-').collect();
    (digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(digits)
}
