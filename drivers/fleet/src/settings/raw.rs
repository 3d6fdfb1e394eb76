//! The settings as they are written.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use picket_driver_sim::{Fault, Verb, span};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Raw {
    #[serde(default)]
    pub(super) seed: u64,
    pub(super) ca_file: Option<PathBuf>,
    #[serde(default)]
    pub(super) accounts: BTreeMap<String, Account>,
    #[serde(default)]
    pub(super) groups: BTreeMap<String, Group>,
    #[serde(default)]
    pub(super) events: Vec<Event>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Account {
    pub(super) password: String,
    pub(super) role: Role,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Role {
    User,
    Operator,
    Administrator,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Group {
    pub(super) count: u32,
    pub(super) ipmi: SocketAddr,
    pub(super) redfish: Option<SocketAddr>,
    #[serde(default)]
    pub(super) suites: Option<Vec<u64>>,
    #[serde(default = "four")]
    pub(super) sessions: usize,
    #[serde(default = "a_minute", with = "span")]
    pub(super) idle: Duration,
    #[serde(default = "sixteen")]
    pub(super) redfish_sessions: usize,
    #[serde(default = "five_minutes", with = "span")]
    pub(super) redfish_idle: Duration,
    #[serde(default)]
    pub(super) tasks: bool,
    #[serde(default)]
    pub(super) faults: Vec<Fault>,
}

fn four() -> usize {
    4
}

fn sixteen() -> usize {
    16
}

fn a_minute() -> Duration {
    Duration::from_secs(60)
}

fn five_minutes() -> Duration {
    Duration::from_secs(300)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Event {
    #[serde(with = "span")]
    pub(super) at: Duration,
    pub(super) nodes: String,
    pub(super) what: What,
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
