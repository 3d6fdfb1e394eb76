//! The settings of one BMC, checked; all faults at once.

use std::time::Duration;

use picket_driver::source::{self, Source};
use picket_driver::table::{self, ReadTable};
use picket_driver::{Secret, SettingFault};
use serde_json::{Map, Value};

use crate::crypto::Suite;
use crate::handshake::Login;

/// How far a session may go (IPMI 2.0 table 6-12).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Privilege {
    /// Suffices for power, restore policy and watchdog.
    Operator,
    /// The front panel's buttons want it.
    Administrator,
}

impl Privilege {
    /// Its number on the wire.
    pub fn level(self) -> u8 {
        match self {
            Privilege::Operator => 3,
            Privilege::Administrator => 4,
        }
    }

    /// Its word in the settings.
    pub fn word(self) -> &'static str {
        match self {
            Privilege::Operator => "operator",
            Privilege::Administrator => "administrator",
        }
    }
}

/// The checked settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Address or name, an address in its usual spelling, a name in lower case.
    pub host: String,
    /// UDP port.
    pub port: u16,
    /// Who logs in.
    pub login: Login,
    /// Allowed cipher suites, in the order in which they are tried.
    pub suites: Vec<Suite>,
    /// After how long without a packet the BMC ends a session (S8).
    pub idle_limit: Duration,
    /// Whether the BMC is told to stay off.
    pub hold: bool,
}

const KEYS: [&str; 11] = [
    "host",
    "port",
    "username",
    "password_file",
    "password_env",
    "password_credential",
    "kg_file",
    "cipher_suites",
    "privilege",
    "idle_limit",
    "hold",
];

/// IPMI 2.0 table 22-27: user names have at most 16 bytes. §22.30: passwords, and K_G (§13.33), at most 20.
const LONGEST_NAME: usize = 16;
const LONGEST_SECRET: usize = 20;

impl Settings {
    /// Checks the settings and reads the secrets; all faults at once.
    pub fn check(table: &Map<String, Value>) -> Result<Self, Vec<SettingFault>> {
        let mut reader = Reader { table, faults: Vec::new() };
        reader.only(&KEYS);
        let host = reader.host();
        let port = reader.port(623);
        let username = reader.username();
        let password = reader.secret();
        let bmc_key = reader.bmc_key();
        let suites = reader.suites();
        let privilege = reader.privilege();
        let idle_limit = reader.idle_limit();
        let hold = reader.flag("hold", true);
        match (host, username, password) {
            (Some(host), Some(username), Some(password)) if reader.faults.is_empty() => Ok(Self {
                host,
                port,
                login: Login { username, password, bmc_key, privilege },
                suites,
                idle_limit,
                hold,
            }),
            _ => Err(reader.faults),
        }
    }

    /// `host:port`, an IPv6 address in brackets.
    pub fn authority(&self) -> String {
        table::authority(&self.host, self.port)
    }

    /// The longest that a BMC may keep a silent session: the limit and the five percent that IPMI 2.0 §6.12.15
    /// allows it (60 s, give or take 3).
    pub fn longest_idle(&self) -> Duration {
        self.idle_limit + self.idle_limit / 20
    }

    /// The shortest, by the same.
    pub fn shortest_idle(&self) -> Duration {
        self.idle_limit - self.idle_limit / 20
    }
}

struct Reader<'a> {
    table: &'a Map<String, Value>,
    faults: Vec<SettingFault>,
}

impl ReadTable for Reader<'_> {
    fn table(&self) -> &Map<String, Value> {
        self.table
    }

    fn fault(&mut self, key: &str, message: impl Into<String>) {
        self.faults.push(SettingFault::new(key, message));
    }
}

impl Reader<'_> {
    fn username(&mut self) -> Option<String> {
        let name = self.needed("username", "\"picket\"")?;
        if name.len() > LONGEST_NAME {
            self.fault("username", format!("is longer than the {LONGEST_NAME} bytes that IPMI allows"));
            return None;
        }
        Some(name)
    }

    fn secret(&mut self) -> Option<Secret> {
        let (key, secret) = self.password()?;
        self.fitting(key, secret)
    }

    fn bmc_key(&mut self) -> Option<Secret> {
        let path = self.text("kg_file")?;
        match source::read_key(&Source::File(path)) {
            Ok(secret) => self.fitting("kg_file", secret),
            Err(why) => {
                self.fault("kg_file", why);
                None
            }
        }
    }

    fn fitting(&mut self, key: &str, secret: Secret) -> Option<Secret> {
        if secret.expose().len() > LONGEST_SECRET {
            let message = format!("the secret is longer than the {LONGEST_SECRET} bytes that IPMI allows");
            self.fault(key, message);
            return None;
        }
        Some(secret)
    }

    fn suites(&mut self) -> Vec<Suite> {
        let Some(value) = self.table.get("cipher_suites") else { return vec![Suite::Sha256] };
        let suites: Option<Vec<Suite>> = value
            .as_array()
            .and_then(|list| list.iter().map(|id| id.as_u64().and_then(Suite::from_id)).collect());
        match suites.as_deref() {
            Some([Suite::Sha256]) | Some([Suite::Sha256, Suite::Sha1]) | Some([Suite::Sha1]) => {
                suites.unwrap_or_default()
            }
            _ => {
                self.fault(
                    "cipher_suites",
                    format!(
                        "expected [17], or [17, 3] or [3] for a BMC that has no 17, found {value}; \
                         no other suite authenticates and encrypts well enough"
                    ),
                );
                Vec::new()
            }
        }
    }

    fn privilege(&mut self) -> Privilege {
        let Some(value) = self.table.get("privilege") else { return Privilege::Operator };
        match value.as_str() {
            Some("operator") => Privilege::Operator,
            Some("administrator") => Privilege::Administrator,
            _ => {
                self.fault("privilege", format!("expected operator or administrator, found {value}"));
                Privilege::Operator
            }
        }
    }

    fn idle_limit(&mut self) -> Duration {
        let range = Duration::from_secs(1)..=Duration::from_secs(3600);
        let right = "the time after which the BMC ends a silent session, from \"1s\" to \"60m\" (IPMI 2.0 asks for \"60s\")";
        self.time("idle_limit", range, right).unwrap_or(Duration::from_secs(60))
    }
}

#[cfg(test)]
mod tests;
