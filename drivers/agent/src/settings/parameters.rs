//! What an agent is told: checked against its own metadata.

use picket_driver::Secret;
use picket_driver::source::{self, Source};
use picket_driver::table::ReadTable;
use serde_json::Value;

use super::given_parameters::GivenParameters;
use super::naming;
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
/// Parameters that say which device it is.
pub(super) const ADDRESS: [&str; 12] = [
    "ip",
    "ipaddr",
    "ipport",
    "plug",
    "port",
    "uuid",
    "switch",
    "managed",
    "suborg",
    "target",
    "systems_uri",
    "drac_version",
];
/// Parameters that say how a device's answer is authenticated.
const SEEN: [&str; 9] =
    ["lanplus", "auth", "cipher", "ssh", "secure", "ssl", "ssl_insecure", "snmp_version", "snmp_sec_level"];
/// Parameters that are ours to set, or that make an off something else, with the reason.
pub(super) const REFUSED: [(&str, &str); 17] = [
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
    ("port_as_ip", "an address is given as ip"),
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
        agent: Option<&list::Agent>,
        metadata: Option<&Metadata>,
    ) -> Vec<(String, Secret)> {
        let mut secrets: Vec<(String, Secret)> = Vec::new();
        for (parameter, key) in sources {
            if let Some(why) = refused(&same(parameter), agent) {
                self.fault(key, format!("is not to be given: {why}"));
                continue;
            }
            if let Some(metadata) = metadata
                && !metadata.parameters.contains_key(&same(parameter))
            {
                let message = unknown(parameter, metadata);
                self.fault(key, message);
                continue;
            }
            if ADDRESS.iter().chain(&naming::ELSEWHERE).chain(&SEEN).any(|seen| *seen == same(parameter)) {
                let message = format!(
                    "{parameter} is no secret: what is switched, and how, stands in parameters, to be told from others"
                );
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
                Ok(_) if secrets.iter().any(|(known, _)| is_one(known, parameter, metadata)) => {
                    let message =
                        format!("{parameter} is given twice: name it once, by _file, _env or _credential");
                    self.fault(key, message);
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
            if let Some(why) = refused(&same_name, agent) {
                self.fault(&key, format!("is not to be given: {why}"));
                continue;
            }
            if secrets.iter().any(|(secret, _)| is_one(secret, name, metadata)) {
                self.fault(&key, "is given twice, here and as a secret");
                continue;
            }
            let mut before = given.iter().map(|(other, _)| other).take_while(|other| *other != name);
            if let Some(other) = before.find(|other| is_one(other, name, metadata)) {
                self.fault(&key, format!("is the same as {other}, which is given too: give one of them"));
                continue;
            }
            if matches!(same_name.as_str(), "plug" | "port") && value.contains(',') {
                let right = "names several: make a device for each, so that each is seen off and no other machine is switched";
                self.fault(&key, right);
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
            let told = GivenParameters { parameters: &told, secrets, metadata };
            if let Some(agent) = agent {
                self.names(agent, &told);
            }
            self.complete(given, agent, &told);
        }
        told
    }

    /// What must be given, and what the agent must be able to do.
    fn complete(
        &mut self,
        given: &[(String, String)],
        agent: Option<&list::Agent>,
        told: &GivenParameters<'_>,
    ) {
        let metadata = told.metadata;
        let has = |name: &str| given.iter().any(|(given, _)| same(given) == name) || told.has(&[name]);
        let is_needed = |name: &str, required: bool| match name {
            "action" => false,
            // What it says of these two is not all that is so.
            "ip" => required || agent.is_some(),
            "plug" | "port" => required && agent.is_none_or(|agent| naming::reads_plug(agent, told)),
            _ => required,
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
                is_needed(name, parameter.required)
                    && parameter.default.is_none()
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

/// Why a parameter, with `_`, is not to be given, in whatever way.
fn refused(name: &str, agent: Option<&list::Agent>) -> Option<&'static str> {
    let own = agent.map_or(&[][..], list::Agent::refused);
    REFUSED.iter().chain(own).find(|(refused, _)| *refused == name).map(|(_, why)| *why)
}

/// Whether an agent takes two names for the same.
fn is_one(a: &str, b: &str, metadata: Option<&Metadata>) -> bool {
    let (a, b) = (same(a), same(b));
    a == b || metadata.is_some_and(|metadata| metadata.is_one(&a, &b))
}

fn unknown(name: &str, metadata: &Metadata) -> String {
    let like = metadata.like(&same(name));
    let near = if like.is_empty() { String::new() } else { format!("; like it are {}", like.join(", ")) };
    format!("the agent does not know the parameter {name}{near}")
}

fn is_no(value: &str) -> bool {
    matches!(value.to_ascii_lowercase().as_str(), "0" | "no" | "off" | "false")
}

pub(super) fn is_yes(value: Option<&str>) -> bool {
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
