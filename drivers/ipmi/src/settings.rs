//! The settings of one BMC, checked; all faults at once.

use std::net::IpAddr;
use std::time::Duration;

use picket_driver::source::{self, Source};
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
        for key in table.keys().filter(|key| !KEYS.contains(&key.as_str())) {
            reader.fault(key, format!("unknown key; known are {}", KEYS.join(", ")));
        }
        let host = reader.host();
        let port = reader.port();
        let username = reader.username();
        let password = reader.password();
        let bmc_key = reader.bmc_key();
        let suites = reader.suites();
        let privilege = reader.privilege();
        let idle_limit = reader.idle_limit();
        let hold = reader.hold();
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
        match self.host.parse() {
            Ok(IpAddr::V6(address)) => format!("[{address}]:{}", self.port),
            _ => format!("{}:{}", self.host, self.port),
        }
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

impl Reader<'_> {
    fn fault(&mut self, key: &str, message: impl Into<String>) {
        self.faults.push(SettingFault::new(key, message));
    }

    /// The text at `key`; a fault if it is none, or empty.
    fn text(&mut self, key: &str) -> Option<String> {
        match self.table.get(key)? {
            Value::String(text) if !text.is_empty() => Some(text.clone()),
            // What stands there may be a secret that was put under the wrong key: it is not repeated.
            other => {
                self.fault(key, format!("expected a text that is not empty, found {}", kind(other)));
                None
            }
        }
    }

    fn needed(&mut self, key: &str, example: &str) -> Option<String> {
        if !self.table.contains_key(key) {
            self.fault(key, format!("is missing, for example {example}"));
        }
        self.text(key)
    }

    fn host(&mut self) -> Option<String> {
        let host = self.needed("host", "\"10.0.0.7\"")?;
        if let Ok(address) = host.parse::<IpAddr>() {
            return Some(address.to_string());
        }
        let is_name = host.len() <= 253
            && !host.starts_with(['-', '.'])
            && host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_'));
        if !is_name {
            self.fault(
                "host",
                format!("{host:?} is neither an address nor a host name; the port goes to the key port"),
            );
            return None;
        }
        Some(host.to_ascii_lowercase())
    }

    fn port(&mut self) -> u16 {
        let Some(value) = self.table.get("port") else { return 623 };
        match value.as_u64().and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0) {
            Some(port) => port,
            None => {
                self.fault("port", format!("expected a number from 1 to 65535, found {value}"));
                623
            }
        }
    }

    fn username(&mut self) -> Option<String> {
        let name = self.needed("username", "\"picket\"")?;
        if name.len() > LONGEST_NAME {
            self.fault("username", format!("is longer than the {LONGEST_NAME} bytes that IPMI allows"));
            return None;
        }
        Some(name)
    }

    fn password(&mut self) -> Option<Secret> {
        let keys = ["password_file", "password_env", "password_credential"];
        let given: Vec<&str> = keys.into_iter().filter(|key| self.table.contains_key(*key)).collect();
        let [key] = given[..] else {
            let found = if given.is_empty() { "none".to_owned() } else { given.join(" and ") };
            self.fault(
                given.first().copied().unwrap_or("password_file"),
                format!("exactly one of {} is needed, found {found}", keys.join(", ")),
            );
            return None;
        };
        let text = self.text(key)?;
        let source = match key {
            "password_file" => Source::File(text),
            "password_env" => Source::Variable(text),
            _ => Source::Credential(text),
        };
        self.secret(key, source)
    }

    fn bmc_key(&mut self) -> Option<Secret> {
        let path = self.text("kg_file")?;
        self.checked("kg_file", source::read_key(&Source::File(path)))
    }

    fn secret(&mut self, key: &str, source: Source) -> Option<Secret> {
        self.checked(key, source::read(&source))
    }

    fn checked(&mut self, key: &str, read: Result<Secret, String>) -> Option<Secret> {
        match read {
            Ok(secret) if secret.expose().len() > LONGEST_SECRET => {
                self.fault(
                    key,
                    format!("the secret is longer than the {LONGEST_SECRET} bytes that IPMI allows"),
                );
                None
            }
            Ok(secret) => Some(secret),
            Err(why) => {
                self.fault(key, why);
                None
            }
        }
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
        let default = Duration::from_secs(60);
        let Some(value) = self.table.get("idle_limit") else { return default };
        let range = Duration::from_secs(1)..=Duration::from_secs(3600);
        match value.as_str().and_then(duration).filter(|limit| range.contains(limit)) {
            Some(limit) => limit,
            None => {
                self.fault(
                    "idle_limit",
                    format!(
                        "expected the time after which the BMC ends a silent session, \
                         from \"1s\" to \"60m\" (IPMI 2.0 asks for \"60s\"), found {value}"
                    ),
                );
                default
            }
        }
    }

    fn hold(&mut self) -> bool {
        match self.table.get("hold") {
            None => true,
            Some(Value::Bool(hold)) => *hold,
            Some(other) => {
                self.fault("hold", format!("expected true or false, found {}", kind(other)));
                true
            }
        }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(text) if text.is_empty() => "an empty text",
        Value::String(_) => "another text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a table",
    }
}

/// A duration with its unit (`250ms`, `60s`, `2m`).
fn duration(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    match unit {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" => number.checked_mul(60).map(Duration::from_secs),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
