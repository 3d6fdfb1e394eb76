//! What happened in a cloud, as its services' doors and its hypervisors wrote it down.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::OpenStack;
use crate::error::{PeerError, Result};

/// A request that a service got.
#[derive(Clone, Debug)]
pub struct Request {
    /// When it had arrived.
    pub at: SystemTime,
    /// `identity`, `compute` or `volumes`.
    pub service: String,
    /// `POST`
    pub method: String,
    /// With its query.
    pub path: String,
    /// Its body in JSON; null where there is none. Of requests to Keystone only the methods of a login.
    pub body: Value,
    /// Its User-Agent.
    pub agent: String,
    /// What was answered.
    pub answer: Option<RequestAnswer>,
}

/// What a service answered, whether or not it came through.
#[derive(Clone, Debug)]
pub struct RequestAnswer {
    /// When.
    pub at: SystemTime,
    /// Its status.
    pub status: u16,
    /// Its X-Openstack-Request-Id.
    pub request: String,
    /// The id of the user who asked.
    pub user: String,
    /// What a rule did to it.
    pub did: Value,
}

/// What the hypervisor did.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// When it was done.
    pub at: SystemTime,
    /// `spawn`, `destroy`, `power_off`, `power_on`, `attach`, `detach`, `migrate`; with `: begins`, `: fails` or `: lies` behind.
    pub did: String,
    /// The compute host.
    pub host: String,
    /// The volume of `attach` and `detach`; empty elsewhere.
    pub volume: String,
}

impl OpenStack {
    /// All requests until now, of anybody: the services ask one another, too.
    pub fn requests(&self) -> Result<Vec<Request>> {
        let lines = self.journal()?;
        let answers = lines.iter().filter(|line| line["what"] == "answered");
        let answers: std::collections::HashMap<_, _> =
            answers.map(|line| (line["n"].as_str(), line)).collect();
        let asked = lines.iter().filter(|line| line["what"] == "asked");
        Ok(asked
            .map(|line| Request {
                at: moment(line),
                service: word(line, "service"),
                method: word(line, "method"),
                path: word(line, "path"),
                body: line["body"].clone(),
                agent: word(line, "agent"),
                answer: answers.get(&line["n"].as_str()).map(|line| RequestAnswer {
                    at: moment(line),
                    status: line["status"]
                        .as_u64()
                        .and_then(|status| status.try_into().ok())
                        .unwrap_or_default(),
                    request: word(line, "request"),
                    user: word(line, "user"),
                    did: line["did"].clone(),
                }),
            })
            .collect())
    }

    /// What the hypervisor did with a server, in order.
    pub fn effects(&self, server: &str) -> Result<Vec<Effect>> {
        let lines = self.journal()?;
        let of_it = lines.iter().filter(|line| line["what"] == "effect" && line["server"] == server);
        Ok(of_it
            .map(|line| Effect {
                at: moment(line),
                did: word(line, "did"),
                host: word(line, "host"),
                volume: word(line, "volume"),
            })
            .collect())
    }

    /// On which hosts a server's guest runs in truth, whatever Nova says.
    pub fn runs_on(&self, server: &str) -> Result<Vec<String>> {
        let mut hosts = Vec::new();
        for Effect { did, host, .. } in self.effects(server)? {
            let runs = matches!(did.as_str(), "spawn" | "power_on");
            if runs || matches!(did.as_str(), "destroy" | "power_off") {
                hosts.retain(|other| *other != host);
            }
            if runs {
                hosts.push(host);
            }
        }
        Ok(hosts)
    }

    /// The servers whose guests run in truth, anywhere.
    pub fn running(&self) -> Result<BTreeSet<String>> {
        let mut running = BTreeSet::new();
        for line in self.journal()?.iter().filter(|line| line["what"] == "effect") {
            match line["did"].as_str() {
                Some("spawn" | "power_on") => running.insert(word(line, "server")),
                Some("destroy" | "power_off") => running.remove(&word(line, "server")),
                _ => false,
            };
        }
        Ok(running)
    }

    fn journal(&self) -> Result<Vec<Value>> {
        let place = self.directory.path().join("journal.jsonl");
        let text =
            std::fs::read_to_string(&place).map_err(PeerError::io(format!("read {}", place.display())))?;
        let lines: serde_json::Result<_> = text.lines().map(serde_json::from_str).collect();
        lines.map_err(|error| PeerError::Malformed { path: place, what: error.to_string() })
    }
}

fn word(line: &Value, key: &str) -> String {
    line[key].as_str().unwrap_or_default().to_owned()
}

fn moment(line: &Value) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs_f64(line["at"].as_f64().unwrap_or_default())
}
