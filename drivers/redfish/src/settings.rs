//! The settings of one service and one system in it, checked; all faults at once.

use std::time::Duration;

use picket_driver::table::{self, ReadTable};
use picket_driver::{Secret, SettingFault};
use picket_trust::Believed;
use serde_json::{Map, Value};

/// How we show who we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authentication {
    /// By a session's token alone: the session bounds how late a command may land.
    Session,
    /// By a session where there is one to be had, else by name and password with each request.
    SessionOrBasic,
    /// By name and password with each request: nothing of the service's bounds a late command.
    Basic,
}

/// The checked settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Address or name, an address in its usual spelling, a name in lower case.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// The id of the computer system; `None`: the only one.
    pub system: Option<String>,
    /// Who logs in.
    pub username: String,
    /// With what.
    pub password: Secret,
    /// How.
    pub authentication: Authentication,
    /// After how long without a request the service ends a session, at the latest (S8).
    pub session_timeout: Duration,
    /// With basic authentication: how long after it was sent a command may land, in the operator's words.
    pub max_life: Option<Duration>,
    /// Whose certificate is taken.
    pub believed: Believed,
    /// Whether the manager's `LastResetTime` shows its restarts; `None`: where it says it, and two looks at checks agreed.
    pub last_reset_time: Option<bool>,
    /// Whether the service is told to keep the machine off.
    pub hold: bool,
}

const KEYS: [&str; 15] = [
    "host",
    "port",
    "system",
    "username",
    "password_file",
    "password_env",
    "password_credential",
    "authentication",
    "session_timeout",
    "max_life",
    "ca_file",
    "certificate_sha256",
    "accept_any_certificate",
    "last_reset_time",
    "hold",
];

impl Settings {
    /// Checks the settings and reads the secrets; all faults at once.
    pub fn check(table: &Map<String, Value>) -> Result<Self, Vec<SettingFault>> {
        let mut reader = Reader { table, faults: Vec::new() };
        reader.only(&KEYS);
        let host = reader.host();
        let port = reader.port(443);
        let system = reader.system();
        let username = reader.username();
        let password = reader.secret();
        let authentication = reader.authentication();
        let session_timeout = reader.session_timeout(authentication);
        let max_life = reader.max_life(authentication);
        let believed = reader.believed();
        let given = table.contains_key("last_reset_time");
        let last_reset_time = given.then(|| reader.flag("last_reset_time", false));
        let hold = reader.flag("hold", true);
        match (host, username, password) {
            (Some(host), Some(username), Some(password)) if reader.faults.is_empty() => Ok(Self {
                host,
                port,
                system,
                username,
                password,
                authentication,
                session_timeout,
                max_life,
                believed,
                last_reset_time,
                hold,
            }),
            _ => Err(reader.faults),
        }
    }

    /// `host:port`, an IPv6 address in brackets.
    pub fn authority(&self) -> String {
        table::authority(&self.host, self.port)
    }

    /// The longest that a service may keep an idle session: its limit, and five percent for its clock.
    pub fn longest_idle(&self) -> Duration {
        self.session_timeout + self.session_timeout / 20
    }

    /// How long after its sending a command may land; `None`: nothing bounds it.
    pub fn bound(&self) -> Option<Duration> {
        match self.authentication {
            Authentication::Session => Some(self.longest_idle()),
            Authentication::SessionOrBasic => self.max_life.map(|life| life.max(self.longest_idle())),
            Authentication::Basic => self.max_life,
        }
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
    fn system(&mut self) -> Option<String> {
        let id = self.text("system")?;
        let is_id = id.len() <= 255 && id.chars().all(|c| c.is_ascii_graphic() && !"/?#%\"\\".contains(c));
        if !is_id {
            let right = "is no id: expected what stands last in the system's path (\"System.Embedded.1\")";
            self.fault("system", format!("{id:?} {right}"));
            return None;
        }
        Some(id)
    }

    fn username(&mut self) -> Option<String> {
        let name = self.needed("username", "\"picket\"")?;
        // RFC 7617 §2: in basic authentication a colon ends the name.
        if name.contains(|c: char| c == ':' || c.is_control()) {
            self.fault("username", "has a colon or a control character in it, which HTTP cannot carry");
            return None;
        }
        Some(name)
    }

    fn secret(&mut self) -> Option<Secret> {
        let (key, secret) = self.password()?;
        if std::str::from_utf8(secret.expose()).is_err() {
            self.fault(key, "the password is not UTF-8, and JSON cannot carry it");
            return None;
        }
        Some(secret)
    }

    fn authentication(&mut self) -> Authentication {
        match self.table.get("authentication").map(|value| (value, value.as_str())) {
            None | Some((_, Some("session"))) => Authentication::Session,
            Some((_, Some("session_or_basic"))) => Authentication::SessionOrBasic,
            Some((_, Some("basic"))) => Authentication::Basic,
            Some((value, _)) => {
                self.fault(
                    "authentication",
                    format!("expected session, session_or_basic or basic, found {}", table::shown(value)),
                );
                Authentication::Session
            }
        }
    }

    fn session_timeout(&mut self, authentication: Authentication) -> Duration {
        // DSP2046, SessionService: SessionTimeout is 30 to 86400 s. Half an hour is what many services come with.
        let default = Duration::from_secs(1_800);
        let range = Duration::from_secs(1)..=Duration::from_secs(86_400);
        let right = "the time after which the service ends an idle session, from \"1s\" to \"24h\" \
                     (SessionTimeout of its SessionService)";
        let time = self.time("session_timeout", range, right);
        if authentication == Authentication::Basic && self.table.contains_key("session_timeout") {
            self.fault(
                "session_timeout",
                "is of no use with authentication = \"basic\": there is no session",
            );
        }
        time.unwrap_or(default)
    }

    fn max_life(&mut self, authentication: Authentication) -> Option<Duration> {
        let range = Duration::from_secs(5)..=Duration::from_secs(86_400);
        let right = "how long after it was sent a command without a session may land, from \"5s\" to \"24h\"";
        let time = self.time("max_life", range, right);
        if authentication == Authentication::Session && self.table.contains_key("max_life") {
            self.fault(
                "max_life",
                "is of no use with sessions alone: session_timeout bounds a command there",
            );
        }
        time
    }

    fn believed(&mut self) -> Believed {
        let keys = ["ca_file", "certificate_sha256", "accept_any_certificate"];
        let given: Vec<&str> = keys.into_iter().filter(|key| self.table.contains_key(*key)).collect();
        if let [first, _, ..] = given[..] {
            self.fault(
                first,
                format!("at most one of {} may be given, found {}", keys.join(", "), given.join(" and ")),
            );
        }
        if let Some(path) = self.text("ca_file") {
            if let Err(why) = picket_trust::verifier(path.as_ref()) {
                self.fault("ca_file", why);
            }
            return Believed::Authorities(path.into());
        }
        if let Some(text) = self.text("certificate_sha256") {
            if let Some(digest) = digest(&text) {
                return Believed::Pinned(digest);
            }
            let right = "expected the 64 hexadecimal digits of the certificate's SHA-256, with or without colons \
                         (openssl x509 -noout -fingerprint -sha256)";
            self.fault("certificate_sha256", format!("{right}, found {text:?}"));
        }
        if self.flag("accept_any_certificate", false) { Believed::Anyone } else { Believed::System }
    }
}

/// 32 bytes as hexadecimal digits, as openssl prints them.
fn digest(text: &str) -> Option<[u8; 32]> {
    let digits: String = text.chars().filter(|c| *c != ':').collect();
    let byte = |i: usize| u8::from_str_radix(digits.get(2 * i..2 * i + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..32).map(byte).collect();
    bytes.filter(|_| digits.len() == 64)?.try_into().ok()
}

#[cfg(test)]
mod tests;
