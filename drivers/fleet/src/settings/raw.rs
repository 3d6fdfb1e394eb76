//! The settings as they are written. What is wrong was told, and is not there.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use picket_driver_sim::{Fault, Verb, span};
use serde::Deserialize;
use toml::Value;

use super::table::{Findings, Table};

pub(super) struct Raw {
    pub(super) seed: u64,
    pub(super) ca_file: Option<PathBuf>,
    pub(super) accounts: Option<BTreeMap<String, Account>>,
    pub(super) groups: Option<BTreeMap<String, Group>>,
    pub(super) events: Vec<Event>,
}

pub(super) struct Account {
    pub(super) password: Option<String>,
    pub(super) role: Option<Role>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Role {
    User,
    Operator,
    Administrator,
}

pub(super) struct Group {
    pub(super) count: Option<u32>,
    pub(super) ipmi: Option<SocketAddr>,
    pub(super) redfish: Option<SocketAddr>,
    pub(super) suites: Option<Vec<u64>>,
    pub(super) sessions: usize,
    pub(super) idle: Duration,
    pub(super) redfish_sessions: usize,
    pub(super) redfish_idle: Duration,
    pub(super) tasks: bool,
    pub(super) faults: Vec<Fault>,
}

pub(super) struct Event {
    pub(super) at: Option<Duration>,
    pub(super) nodes: Option<String>,
    pub(super) what: Option<What>,
}

/// A text that is not repeated in a fault.
#[derive(Deserialize)]
#[serde(try_from = "Value")]
struct Hidden(String);

impl TryFrom<Value> for Hidden {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        value.as_str().map(|text| Self(text.to_owned())).ok_or("is no text")
    }
}

#[derive(Deserialize)]
struct Span(#[serde(with = "span")] Duration);

impl Raw {
    pub(super) fn read(whole: toml::Table, findings: &Findings) -> Self {
        let mut table = Table::new("", Value::Table(whole), findings);
        let seed = table.read("seed", "seed = 7").unwrap_or_default();
        let ca_file = table.read("ca_file", "ca_file = \"ca.pem\"");
        let accounts = table.named("accounts").map(|accounts| {
            let read = |(name, value)| {
                let account = Account::read(Table::new(&format!("[accounts.{name}]"), value, findings));
                (name, account)
            };
            accounts.into_iter().map(read).collect()
        });
        let groups = table.named("groups").map(|groups| {
            let read = |(name, value)| {
                let group = Group::read(Table::new(&format!("[groups.{name}]"), value, findings));
                (name, group)
            };
            groups.into_iter().map(read).collect()
        });
        let events = table.list("events").into_iter().enumerate().map(|(index, value)| {
            Event::read(Table::new(&format!("[[events]] number {}", index + 1), value, findings))
        });
        let events = events.collect();
        table.done();
        Self { seed, ca_file, accounts, groups, events }
    }
}

impl Account {
    fn read(mut table: Table<'_>) -> Self {
        let password = table.needed("password", "password = \"secret12\"").map(|Hidden(text)| text);
        let role = table.needed("role", "role = \"administrator\"");
        table.done();
        Self { password, role }
    }
}

impl Group {
    fn read(mut table: Table<'_>) -> Self {
        let count = table.needed("count", "count = 3");
        let ipmi = table.needed("ipmi", "ipmi = \"127.6.1.1:623\"");
        let redfish = table.read("redfish", "redfish = \"127.6.1.1:443\"");
        let suites = table.read("suites", "suites = [3, 17]");
        let sessions = table.read("sessions", "sessions = 4").unwrap_or(4);
        let mut idle = |key, usual| {
            let Span(idle) = table.read(key, &format!("{key} = \"60s\"")).unwrap_or(Span(usual));
            idle
        };
        let (a_minute, five_minutes) = (Duration::from_secs(60), Duration::from_secs(300));
        let (idle, redfish_idle) = (idle("idle", a_minute), idle("redfish_idle", five_minutes));
        let redfish_sessions = table.read("redfish_sessions", "redfish_sessions = 16").unwrap_or(16);
        let tasks = table.read("tasks", "tasks = true").unwrap_or_default();
        let faults = table.each("faults", "one of docs/rehearse-settings.md", Fault::wrong);
        table.done();
        Self { count, ipmi, redfish, suites, sessions, idle, redfish_sessions, redfish_idle, tasks, faults }
    }
}

impl Event {
    fn read(mut table: Table<'_>) -> Self {
        let at = table.needed("at", "at = \"30s\"").map(|Span(at)| at);
        let nodes = table.needed("nodes", "nodes = \"all\"");
        let what = table.needed("what", "one of docs/rehearse-settings.md");
        if let Some(wrong) = what.as_ref().and_then(What::wrong) {
            table.fault("what", wrong);
        }
        table.done();
        Self { at, nodes, what }
    }
}

/// What happens to a machine or its BMC.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum What {
    /// Its BMC begins to misbehave so, too.
    Fault(Fault),
    /// Its BMC works as it should again.
    Mend,
    /// Its BMC restarts, and the machine goes on.
    RestartBmc {
        /// How long it is silent.
        #[serde(with = "span")]
        down: Duration,
        /// Afterwards it believes that its machine is off, until it switches on.
        #[serde(default)]
        estranged: bool,
    },
    /// Its BMC forgets its sessions.
    LoseSessions,
    /// Its BMC has another certificate.
    ChangeCertificate,
    /// Somebody else's power cycle.
    ForeignCycle {
        /// How long it stays off.
        #[serde(with = "span")]
        off_for: Duration,
    },
    /// Somebody else switches it.
    Foreign(Verb),
    /// Its watchdog bites, if it runs.
    Watchdog {
        /// How long it stays off.
        #[serde(with = "span")]
        off_for: Duration,
    },
    /// Its power button is pressed.
    PressButton,
    /// Its mains fail.
    LoseMains,
    /// Its mains come back, and its restore policy decides.
    RestoreMains,
}
