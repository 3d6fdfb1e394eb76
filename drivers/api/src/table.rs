//! Reading the table of a device as its settings have it: what drivers have in common. Every fault is kept, none ends the reading.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use picket_core::time;
use serde_json::{Map, Value};

use crate::secret::Secret;
use crate::source::{self, Source};

/// The table of one device while a driver reads it. What a driver alone knows is its own reader's.
pub trait ReadTable {
    /// What is read.
    fn table(&self) -> &Map<String, Value>;

    /// Notes a fault at `key`. What stands there may be a secret that was put under the wrong key: the message does not repeat it.
    fn fault(&mut self, key: &str, message: impl Into<String>);

    /// Faults for the keys that are not among `known`.
    fn only(&mut self, known: &[&str]) {
        let unknown = |key: &&String| !known.contains(&key.as_str());
        let keys: Vec<String> = self.table().keys().filter(unknown).cloned().collect();
        for key in keys {
            self.fault(&key, format!("unknown key; known are {}", known.join(", ")));
        }
    }

    /// The text at `key`; a fault if it is none, or empty.
    fn text(&mut self, key: &str) -> Option<String> {
        let found = match self.table().get(key)? {
            Value::String(text) if !text.is_empty() => return Some(text.clone()),
            other => kind(other),
        };
        self.fault(key, format!("expected a text that is not empty, found {found}"));
        None
    }

    /// A text that must be there; `example` shows one.
    fn needed(&mut self, key: &str, example: &str) -> Option<String> {
        if !self.table().contains_key(key) {
            self.fault(key, format!("is missing, for example {example}"));
        }
        self.text(key)
    }

    /// The file that `key` names; a fault where it is not told from the root.
    fn file(&mut self, key: &str) -> Option<PathBuf> {
        let path = PathBuf::from(self.text(key)?);
        if !path.is_absolute() {
            self.fault(key, "expected an absolute path");
        }
        Some(path)
    }

    /// The address or name at `host`, in its one spelling ([`host`]).
    fn host(&mut self) -> Option<String> {
        let given = self.needed("host", "\"10.0.0.7\"")?;
        let host = host(&given);
        if host.is_none() {
            let right = "is neither an address (10.0.0.7, no zeros in front) nor a host name; it is no URL, and the port goes to the key port";
            self.fault("host", format!("{given:?} {right}"));
        }
        host
    }

    /// The number at `port`, 1 to 65535.
    fn port(&mut self, usual: u16) -> u16 {
        let Some(value) = self.table().get("port") else { return usual };
        let port = value.as_u64().and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
        if port.is_none() {
            let message = format!("expected a number from 1 to 65535, found {}", shown(value));
            self.fault("port", message);
        }
        port.unwrap_or(usual)
    }

    /// The password, from the one place that is named, and that place's key.
    fn password(&mut self) -> Option<(&'static str, Secret)> {
        let keys = ["password_file", "password_env", "password_credential"];
        let given: Vec<&'static str> =
            keys.into_iter().filter(|key| self.table().contains_key(*key)).collect();
        let [key] = given[..] else {
            let found = if given.is_empty() { "none".to_owned() } else { given.join(" and ") };
            let message = format!("exactly one of {} is needed, found {found}", keys.join(", "));
            self.fault(given.first().copied().unwrap_or("password_file"), message);
            return None;
        };
        let text = self.text(key)?;
        let source = match key {
            "password_file" => Source::File(text),
            "password_env" => Source::Variable(text),
            _ => Source::Credential(text),
        };
        match source::read(&source) {
            Ok(secret) => Some((key, secret)),
            Err(why) => {
                self.fault(key, why);
                None
            }
        }
    }

    /// A duration with its unit, within `range`; `right` says what it is and which are right.
    fn time(&mut self, key: &str, range: RangeInclusive<Duration>, right: &str) -> Option<Duration> {
        let value = self.table().get(key)?;
        let time = value.as_str().and_then(time::duration).filter(|time| range.contains(time));
        if time.is_none() {
            let message = format!("expected {right}, found {}", shown(value));
            self.fault(key, message);
        }
        time
    }

    /// `true` or `false`.
    fn flag(&mut self, key: &str, usual: bool) -> bool {
        let found = match self.table().get(key) {
            None => return usual,
            Some(Value::Bool(flag)) => return *flag,
            Some(other) => kind(other),
        };
        self.fault(key, format!("expected true or false, found {found}"));
        usual
    }
}

/// An address or a host name in one spelling, whatever it is given in: an address as it is usually written, an IPv4 address as such; a
/// name in lower case, without the dot of the root. `None`: it is neither. A resolver takes what ends in a number for an address in a spelling of its own,
/// in which `010` is eight: that is none here.
pub fn host(text: &str) -> Option<String> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(address.to_canonical().to_string());
    }
    let name = text.strip_suffix('.').unwrap_or(text);
    let is_name = (1..=253).contains(&name.len())
        && !name.starts_with(['-', '.'])
        && !name.ends_with('.')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_'));
    let last = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    let is_number = last.chars().all(|c| c.is_ascii_digit()) || last.starts_with("0x");
    (is_name && !is_number).then(|| name.to_ascii_lowercase())
}

/// `host:port`, an IPv6 address in brackets.
pub fn authority(host: &str, port: u16) -> String {
    match host.parse() {
        Ok(IpAddr::V6(address)) => format!("[{address}]:{port}"),
        _ => format!("{host}:{port}"),
    }
}

/// What was found, where it can be no secret.
pub fn shown(value: &Value) -> String {
    match value {
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) if text.len() <= 24 => format!("{text:?}"),
        other => kind(other).to_owned(),
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

#[cfg(test)]
mod tests {
    use super::*;

    struct Read(Map<String, Value>, Vec<String>);

    impl ReadTable for Read {
        fn table(&self) -> &Map<String, Value> {
            &self.0
        }

        fn fault(&mut self, key: &str, message: impl Into<String>) {
            self.1.push(format!("{key}: {}", message.into()));
        }
    }

    #[test]
    fn a_time_has_any_unit_that_the_settings_have() {
        let day = Duration::from_secs(86_400);
        let read = |text: &str| {
            let mut table =
                Read([("max_life".to_owned(), Value::from(text))].into_iter().collect(), Vec::new());
            let time = table.time("max_life", Duration::from_millis(250)..=day, "how long it may live");
            (time, table.1)
        };
        for (text, millis) in [("1d", 86_400_000), ("24h", 86_400_000), ("2m", 120_000), ("250ms", 250)] {
            assert_eq!(read(text), (Some(Duration::from_millis(millis)), Vec::new()), "{text}");
        }
        let wrong = "max_life: expected how long it may live, found \"2d\"".to_owned();
        assert_eq!(read("2d"), (None, vec![wrong]));
    }

    #[test]
    fn a_host_has_one_spelling() {
        for (text, is) in [
            ("10.0.0.7", "10.0.0.7"),
            ("::ffff:10.0.0.7", "10.0.0.7"),
            ("FD00:0:0::0001", "fd00::1"),
            ("BMC7.Example.ORG", "bmc7.example.org"),
            ("bmc7.example.org.", "bmc7.example.org"),
            ("bmc_7.", "bmc_7"),
        ] {
            assert_eq!(host(text).as_deref(), Some(is), "{text}");
        }
        for bad in
            ["", ".", "..", "a..", "-a", ".a", "a:623", "[fd00::1]", "https://a", "a b", "fe80::1%eth0"]
        {
            assert_eq!(host(bad), None, "{bad}");
        }
    }

    /// To a resolver they are 10.1.0.8, 10.0.0.7, 10.0.0.1 and 192.168.1.1.
    #[test]
    fn what_a_resolver_takes_for_another_address_is_no_host() {
        for bad in ["10.1.0.010", "10.7", "0x0a.0x01", "3232235777", "10.1.0.08", "bmc.7"] {
            assert_eq!(host(bad), None, "{bad}");
        }
        assert_eq!(host("r1.0xa7.example").as_deref(), Some("r1.0xa7.example"));
    }

    #[test]
    fn what_may_be_a_secret_is_not_shown() {
        for value in
            [Value::from("a text that is longer than any word of a setting"), Value::from(vec!["hidden"])]
        {
            assert!(!shown(&value).contains("hidden") && !shown(&value).contains("longer"), "{value}");
        }
        assert_eq!(shown(&Value::from(60)), "60");
    }
}
