//! What an agent is told: checked against its own metadata.

use picket_core::device::DeviceClass;
use picket_driver::Secret;
use picket_driver::source::{self, Source};
use serde_json::Value;

use super::reader::Reader;
use crate::list;
use crate::metadata::{Content, Metadata, same};

/// Parameters of agents that hold secrets.
const SECRETS: [&str; 13] = [
    "password",
    "passwd",
    "snmp_priv_passwd",
    "community",
    "apikey",
    "token",
    "secret_key",
    "access_key",
    "hexadecimal_kg",
    "session",
    "ticket",
    "private_key",
    "key_value",
];
/// Parameters that are ours to set, or that make an off something else, with the reason.
pub(super) const REFUSED: [(&str, &str); 16] = [
    ("action", "Picket says what is to be done"),
    ("option", "Picket says what is to be done"),
    ("method", "Picket switches off and on, and never cycles"),
    ("retry_on", "Picket repeats what is to be repeated"),
    ("delay", "an off that waits is late"),
    ("missing_as_off", "what is not found is not off; agents take it as set whatever its value"),
    ("plug_separator", "a device is one outlet: make one for each"),
    ("separator", "no list is asked for"),
    ("verbose", "agents print their secrets then"),
    ("verbose_level", "agents print their secrets then"),
    ("debug", "agents write their secrets there"),
    ("debug_file", "agents write their secrets there"),
    ("quiet", "Picket shows what went wrong"),
    ("help", "nothing would be done"),
    ("version", "nothing would be done"),
    ("nodename", "agents do not read it"),
];

impl Reader<'_> {
    /// The parameters as texts.
    pub(super) fn parameters(&mut self) -> Vec<(String, String)> {
        let entries = match self.table.get("parameters") {
            None => return Vec::new(),
            Some(Value::Object(entries)) => entries,
            Some(_) => {
                self.fault("parameters", "expected a table, for example { ip = \"10.0.0.7\", plug = \"3\" }");
                return Vec::new();
            }
        };
        let mut given = Vec::new();
        for (name, value) in entries {
            let text = match value {
                Value::String(text) if !text.is_empty() && !text.chars().any(char::is_control) => {
                    text.clone()
                }
                Value::Number(number) => number.to_string(),
                Value::Bool(flag) => if *flag { "1" } else { "0" }.to_owned(),
                _ => {
                    self.fault(
                        &format!("parameters.{name}"),
                        "expected a text of one line that is not empty, a number, or true or false",
                    );
                    continue;
                }
            };
            given.push((name.clone(), text));
        }
        given
    }

    pub(super) fn secrets(
        &mut self,
        sources: &[(String, String)],
        metadata: Option<&Metadata>,
    ) -> Vec<(String, Secret)> {
        let mut secrets: Vec<(String, Secret)> = Vec::new();
        for (parameter, key) in sources {
            if let Some(metadata) = metadata
                && !metadata.parameters.contains_key(&same(parameter))
            {
                let message = unknown(parameter, metadata);
                self.fault(key, message);
                continue;
            }
            let Some(text) = self.text(key) else { continue };
            let source = if key.ends_with("_file") {
                Source::File(text)
            } else if key.ends_with("_env") {
                Source::Variable(text)
            } else {
                Source::Credential(text)
            };
            match source::read(&source) {
                Ok(secret) if secret.expose().iter().any(|byte| matches!(byte, b'\n' | b'\r' | 0)) => {
                    self.fault(key, "the secret has several lines, which no agent can be told");
                }
                Ok(_) if secrets.iter().any(|(known, _)| known == parameter) => {
                    self.fault(
                        key,
                        format!("{parameter} is given twice: one of _file, _env and _credential"),
                    );
                }
                Ok(secret) => secrets.push((parameter.clone(), secret)),
                Err(why) => self.fault(key, why),
            }
        }
        secrets
    }

    /// What the agent is told, as far as it knows it.
    pub(super) fn checked(
        &mut self,
        given: &[(String, String)],
        secrets: &[(String, Secret)],
        agent: Option<&list::Agent>,
        metadata: Option<&Metadata>,
        class: Option<DeviceClass>,
    ) -> Vec<(String, String)> {
        let mut told = Vec::new();
        for (name, value) in given {
            let (key, same_name) = (format!("parameters.{name}"), same(name));
            if SECRETS.contains(&same_name.as_str()) {
                let message = format!(
                    "a secret does not stand in the settings: put it into a file that only picketd may read, and name that by \
                     {name}_file beside parameters (or a variable by {name}_env, or a credential of systemd by {name}_credential)"
                );
                self.fault(&key, message);
                continue;
            }
            let refused = REFUSED.iter().copied().chain(agent.and_then(list::Agent::refused));
            if let Some((_, why)) = refused.into_iter().find(|(refused, _)| *refused == same_name) {
                self.fault(&key, format!("is not to be given: {why}"));
                continue;
            }
            if secrets.iter().any(|(secret, _)| same(secret) == same_name) {
                self.fault(&key, "is given twice, here and as a secret");
                continue;
            }
            if class == Some(DeviceClass::Supply)
                && matches!(same_name.as_str(), "plug" | "port")
                && value.contains(',')
            {
                self.fault(&key, "names several outlets: make a device for each, so that each is seen off");
                continue;
            }
            let Some(metadata) = metadata else { continue };
            let Some(parameter) = metadata.parameters.get(&same_name) else {
                let message = unknown(name, metadata);
                self.fault(&key, message);
                continue;
            };
            match fits(&parameter.content, value) {
                // Agents ask whether it is there, not what it is.
                Ok(())
                    if parameter.content == Content::Flag
                        && is_no(value)
                        && !is_yes(parameter.default.as_deref()) => {}
                Ok(()) => told.push((name.clone(), value.clone())),
                Err(right) => self.fault(&key, right),
            }
        }
        if let Some(metadata) = metadata {
            self.complete(given, secrets, metadata);
        }
        told
    }

    /// What must be given, and what the agent must be able to do.
    fn complete(&mut self, given: &[(String, String)], secrets: &[(String, Secret)], metadata: &Metadata) {
        let has = |name: &str| {
            given.iter().any(|(given, _)| same(given) == name)
                || secrets.iter().any(|(given, _)| same(given) == name)
        };
        let lacks: Vec<&str> = metadata
            .parameters
            .iter()
            .filter(|(name, parameter)| {
                let older = parameter.obsoletes.as_deref();
                let newer = metadata
                    .parameters
                    .iter()
                    .find(|(_, other)| other.obsoletes.as_deref() == Some(name.as_str()));
                parameter.required
                    && parameter.default.is_none()
                    && name.as_str() != "action"
                    && newer.is_none()
                    && !has(name)
                    && !older.is_some_and(has)
            })
            .map(|(name, _)| name.as_str())
            .collect();
        if !lacks.is_empty() {
            self.fault("parameters", format!("the agent needs also {}", lacks.join(", ")));
        }
        for action in ["off", "on", "status"].into_iter().filter(|action| !metadata.can(action)) {
            self.fault("agent", format!("its metadata has no action {action}: it cannot be a device"));
        }
    }
}

fn unknown(name: &str, metadata: &Metadata) -> String {
    let like = metadata.like(&same(name));
    let near = if like.is_empty() { String::new() } else { format!("; like it are {}", like.join(", ")) };
    format!("the agent does not know the parameter {name}{near}")
}

fn is_no(value: &str) -> bool {
    matches!(value.to_ascii_lowercase().as_str(), "0" | "no" | "off" | "false")
}

fn is_yes(value: Option<&str>) -> bool {
    value.is_some_and(|value| matches!(value.to_ascii_lowercase().as_str(), "1" | "yes" | "on" | "true"))
}

fn fits(content: &Content, value: &str) -> Result<(), String> {
    match content {
        Content::Number if value.parse::<i64>().is_err() => {
            Err(format!("expected a whole number, found {value:?}"))
        }
        Content::Flag if !is_no(value) && !is_yes(Some(value)) => {
            Err(format!("expected true or false, found {value:?}"))
        }
        Content::Choice(choices) if !choices.iter().any(|choice| choice == value) => {
            Err(format!("expected one of {}, found {value:?}", choices.join(", ")))
        }
        _ => Ok(()),
    }
}
