//! From what is written to what is right; all that is wrong is told at once.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use picket_driver_ipmi::crypto::Suite;
use picket_driver_sim::{Fault, Random};

use super::raw::{Group, Raw, Role as RawRole};
use super::table::Findings;
use super::{Event, Settings};
use crate::account::{Account, Role};
use crate::bmc::{BmcOptions, RedfishPlace};

/// How many machines there may be.
const MOST: u32 = 20_000;
/// What IPMI has room for (IPMI 2.0 tables 13-11 and 22-30).
const LONGEST_NAME: usize = 16;
const LONGEST_PASSWORD: usize = 20;

pub(super) fn check(whole: toml::Table) -> Result<Settings, Vec<String>> {
    let findings = Findings::default();
    let raw = Raw::read(whole, &findings);
    let accounts = accounts(&raw, &findings);
    let (bmcs, faults) = machines(&raw, &accounts, &findings);
    let events = events(&raw, &bmcs, &findings);
    let findings = findings.into_all();
    if findings.is_empty() {
        Ok(Settings { ca_file: raw.ca_file, bmcs, faults, events })
    } else {
        Err(findings)
    }
}

/// All machines, and what is wrong with them from the beginning; none, where there would be too many.
fn machines(
    raw: &Raw,
    accounts: &Arc<[Account]>,
    findings: &Findings,
) -> (Vec<BmcOptions>, Vec<(String, Fault)>) {
    let (mut bmcs, mut faults) = (Vec::new(), Vec::new());
    let Some(groups) = &raw.groups else { return (bmcs, faults) };
    let mut random = Random::new(raw.seed);
    let total: u64 = groups.values().filter_map(|group| group.count).map(u64::from).sum();
    if groups.is_empty() {
        findings.push("[groups]: there is none; add [groups.rack1] with count and ipmi".to_owned());
    }
    let too_many = total > u64::from(MOST);
    if too_many {
        findings.push(format!("[groups]: {total} machines are more than the {MOST} that one process takes"));
    }
    let mut taken = BTreeMap::new();
    for (name, group) in groups {
        let mut fault = |what: String| findings.push(format!("[groups.{name}]: {what}"));
        let suites = suites(group, &mut fault);
        limits(group, &mut fault);
        let (Some(count), Some(ipmi), false) = (group.count, group.ipmi, too_many) else { continue };
        for number in 0..count {
            let node = format!("{name}-{}", number + 1);
            let at = |first| nth(first, number);
            let (Some(ipmi), Some(redfish)) =
                (at(ipmi), group.redfish.map_or(Some(None), |first| at(first).map(Some)))
            else {
                fault(format!("{count} machines from there leave 127.0.0.0/8; begin lower"));
                break;
            };
            for (protocol, address) in [("udp", Some(ipmi)), ("tcp", redfish)] {
                let other = address.and_then(|address| taken.insert((protocol, address), node.clone()));
                if let (Some(other), Some(address)) = (other, address) {
                    fault(format!(
                        "{node} and {other} are both at {address}; give each group addresses of its own"
                    ));
                    break;
                }
            }
            faults.extend(group.faults.iter().map(|fault| (node.clone(), fault.clone())));
            bmcs.push(BmcOptions {
                name: node,
                ipmi,
                accounts: accounts.clone(),
                suites: suites.clone(),
                sessions: group.sessions,
                idle: group.idle,
                redfish: redfish.map(|address| RedfishPlace {
                    address,
                    sessions: group.redfish_sessions,
                    idle: group.redfish_idle,
                    tasks: group.tasks,
                }),
                seed: random.bits(),
            });
        }
    }
    (bmcs, faults)
}

fn events(raw: &Raw, bmcs: &[BmcOptions], findings: &Findings) -> Vec<Event> {
    let mut events = Vec::new();
    for (index, event) in raw.events.iter().enumerate() {
        let fault = |what: String| findings.push(format!("[[events]] number {}: {what}", index + 1));
        let Some(wanted) = event.nodes.as_deref() else { continue };
        let is_wanted = |name: &str| wanted == "all" || name == wanted || group_of(name) == wanted;
        let names = bmcs.iter().map(|bmc| &bmc.name);
        let nodes: Vec<String> = names.filter(|name| is_wanted(name)).cloned().collect();
        if nodes.is_empty() && wanted != "all" && !is_meant(raw, wanted) {
            fault(format!(
                "there is no machine or group {wanted:?}; give \"all\", a group, or a machine such as \"rack1-7\""
            ));
        }
        if let (Some(at), Some(what)) = (event.at, event.what.clone()) {
            events.push(Event { at, nodes, what });
        }
    }
    events.sort_by_key(|event| event.at);
    events
}

/// Whether there would be such a group or machine, were nothing else wrong.
fn is_meant(raw: &Raw, wanted: &str) -> bool {
    let Some(groups) = &raw.groups else { return true };
    let is_machine = |(group, number): (&str, &str)| {
        let count = groups.get(group).map(|group| group.count.unwrap_or(MOST));
        let known = number.parse::<u32>().is_ok_and(|known| Some(known) <= count && known > 0);
        known && !number.starts_with(['0', '+'])
    };
    groups.contains_key(wanted) || wanted.rsplit_once('-').is_some_and(is_machine)
}

fn group_of(node: &str) -> &str {
    node.rsplit_once('-').map_or(node, |(group, _)| group)
}

fn accounts(raw: &Raw, findings: &Findings) -> Arc<[Account]> {
    let Some(accounts) = &raw.accounts else { return [].into() };
    if accounts.is_empty() {
        findings
            .push("[accounts]: nobody may log in; add [accounts.admin] with password and role".to_owned());
    }
    let accounts = accounts.iter().map(|(name, account)| {
        let fault = |what: String| findings.push(format!("[accounts.{name}]: {what}"));
        if name.is_empty() || name.len() > LONGEST_NAME {
            fault(format!("a name has 1 to {LONGEST_NAME} bytes"));
        }
        if account.password.as_ref().is_some_and(|password| !(1..=LONGEST_PASSWORD).contains(&password.len()))
        {
            fault(format!("password: a password has 1 to {LONGEST_PASSWORD} bytes"));
        }
        let role = match account.role {
            Some(RawRole::User) | None => Role::User,
            Some(RawRole::Operator) => Role::Operator,
            Some(RawRole::Administrator) => Role::Administrator,
        };
        Account { name: name.clone(), password: account.password.clone().unwrap_or_default(), role }
    });
    accounts.collect()
}

fn suites(group: &Group, fault: &mut impl FnMut(String)) -> Vec<Suite> {
    let Some(wanted) = &group.suites else { return vec![Suite::Sha1, Suite::Sha256] };
    let known: Vec<Suite> = wanted.iter().filter_map(|id| Suite::from_id(*id)).collect();
    if known.len() != wanted.len() || known.is_empty() {
        fault(format!("suites: {wanted:?}: give 3, 17 or both"));
    }
    known
}

fn limits(group: &Group, fault: &mut impl FnMut(String)) {
    if group.count == Some(0) {
        fault("count: give at least 1".to_owned());
    }
    for (key, sessions) in [("sessions", group.sessions), ("redfish_sessions", group.redfish_sessions)] {
        if !(1..=63).contains(&sessions) {
            fault(format!("{key}: {sessions}: give 1 to 63"));
        }
    }
    for (key, idle) in [("idle", group.idle), ("redfish_idle", group.redfish_idle)] {
        if !(1..=86_400).contains(&idle.as_secs()) {
            fault(format!("{key}: {idle:?}: give \"1s\" to \"1440m\""));
        }
    }
}

/// The address so many after `first`, within 127.0.0.0/8, without those that end in 0 or 255: some tools take them for
/// networks.
fn nth(first: SocketAddr, number: u32) -> Option<SocketAddr> {
    let IpAddr::V4(ip) = first.ip() else { return None };
    let bits = u32::from(ip);
    let (net, host) = (bits >> 8, bits & 0xFF);
    let index = host.checked_sub(1).filter(|index| *index < 254)?.checked_add(number)?;
    let ip = Ipv4Addr::from(net.checked_add(index / 254)?.checked_mul(256)? + index % 254 + 1);
    ip.is_loopback().then(|| SocketAddr::from((ip, first.port())))
}

#[cfg(test)]
mod tests {
    use super::nth;

    #[test]
    fn addresses_are_counted_and_stay_on_loopback() {
        let first = "127.6.1.250:623".parse().expect("an address");
        let told = |number| nth(first, number).map(|address| address.to_string());
        assert_eq!(told(0).as_deref(), Some("127.6.1.250:623"));
        assert_eq!(told(4).as_deref(), Some("127.6.1.254:623"));
        assert_eq!(told(5).as_deref(), Some("127.6.2.1:623"));
        assert_eq!(told(10_000).as_deref(), Some("127.6.41.90:623"));
        for wrong in ["127.255.255.254:623", "127.6.1.0:623", "127.6.1.255:623", "10.0.0.1:623", "[::1]:623"]
        {
            assert_eq!(nth(wrong.parse().expect("an address"), 1), None, "{wrong}");
        }
    }
}
