//! A cluster that is looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::super::*;
use crate::watch::SUSPECTS;

/// A cluster as it is, and the decider that looks at it.
pub struct Scene {
    pub nodes: BTreeMap<String, Node>,
    pub decider: Decider,
    pub now: Moment,
    /// Their leases stand still.
    pub silent: BTreeSet<String>,
    turns: u32,
    renewals: u32,
}

pub fn worker(name: &str, zone: &str) -> Node {
    let ready = Condition { status: "True".to_owned(), turned: "turn-0".to_owned() };
    let label = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    Node {
        name: name.to_owned(),
        uid: format!("uid-{name}"),
        boot_id: format!("boot-{name}"),
        conditions: BTreeMap::from([("Ready".to_owned(), ready)]),
        labels: BTreeMap::from([label("role", "worker"), label("topology.kubernetes.io/zone", zone)]),
        ..Node::default()
    }
}

pub fn member(name: &str) -> Node {
    let mut node = worker(name, "a");
    node.labels.remove("role");
    node.labels.insert("node-role.kubernetes.io/control-plane".to_owned(), String::new());
    node
}

/// A remediation of that UID for a Node, whose finalizer stands.
pub fn remediation(uid: &str, node: &str) -> RemediationRequest {
    let id = RemediationId {
        namespace: "ops".to_owned(),
        name: node.to_owned(),
        uid: uid.to_owned(),
        health_check: Some("workers".to_owned()),
    };
    RemediationRequest {
        id,
        created: None,
        generation: 1,
        node: node.to_owned(),
        then: AfterFence::PowerOn,
        grade: Grade::Claimed,
        deadline: None,
        timed_out: false,
        deleted: false,
        kept: true,
        freed: false,
        wrong: None,
        state: RemediationState::default(),
        status_claim: StatusClaim::default(),
    }
}

pub fn selector(label: &str, value: &str) -> Selector {
    Selector(vec![Requirement::In(label.to_owned(), vec![value.to_owned()])])
}

pub fn policy(name: &str) -> Policy {
    let unhealthy = |status: &str| Unhealthy {
        kind: "Ready".to_owned(),
        status: status.to_owned(),
        least: Duration::from_secs(20),
    };
    Policy {
        name: name.to_owned(),
        generation: 1,
        selector: selector("role", "worker"),
        every_node: false,
        control_plane: BTreeSet::new(),
        unhealthy: vec![unhealthy("False"), unhealthy("Unknown")],
        quiet: Duration::from_secs(60),
        then: AfterFence::StayOff,
        grade: Grade::Claimed,
        deadline: None,
        excluded: BTreeSet::new(),
        excluding: None,
        spare_cordoned: true,
        spare_rebooting: true,
        paused: false,
    }
}

impl Scene {
    pub fn new() -> Self {
        let zones = [("n1", "a"), ("n2", "a"), ("n3", "a"), ("n4", "b"), ("n5", "b")];
        let mut nodes: BTreeMap<String, Node> =
            zones.iter().map(|(name, zone)| ((*name).to_owned(), worker(name, zone))).collect();
        nodes.insert("m1".to_owned(), member("m1"));
        Self::with(nodes, vec![policy("workers")])
    }

    pub fn with(nodes: BTreeMap<String, Node>, policies: Vec<Policy>) -> Self {
        let mut decider = Decider::default();
        decider.lead(true);
        decider.policies(policies);
        let mut scene = Self {
            nodes,
            decider,
            now: Duration::from_secs(1_000),
            silent: BTreeSet::new(),
            turns: 0,
            renewals: 0,
        };
        scene.run(2);
        scene
    }

    pub fn policies(&mut self, policies: Vec<Policy>) {
        self.decider.policies(policies);
    }

    pub fn node(&mut self, name: &str) -> &mut Node {
        self.nodes.get_mut(name).expect("it is there")
    }

    /// Its condition Ready turns. Unknown is what nobody has heard.
    pub fn turn(&mut self, name: &str, status: &str) {
        self.turns += 1;
        match status {
            "Unknown" => drop(self.silent.insert(name.to_owned())),
            _ => drop(self.silent.remove(name)),
        }
        let turned = format!("turn-{}", self.turns);
        let ready = Condition { status: status.to_owned(), turned };
        self.node(name).conditions.insert("Ready".to_owned(), ready);
    }

    /// It boots, and says that.
    pub fn boot(&mut self, name: &str, status: &str) {
        self.turn(name, status);
        let boot_id = format!("boot-{name}-{}", self.turns);
        self.node(name).boot_id = boot_id;
    }

    pub fn note(&mut self, name: &str, phase: Phase, key: &str) {
        self.note_of(name, "workers", phase, key);
    }

    /// As whoever of that name noted it.
    pub fn note_of(&mut self, name: &str, policy: &str, phase: Phase, key: &str) {
        let note = Note {
            phase,
            text: "a test".to_owned(),
            policy: policy.to_owned(),
            key: key.to_owned(),
            at: String::new(),
        };
        let text = serde_json::to_string(&note).expect("JSON");
        self.node(name).annotations.insert(STATUS.to_owned(), text);
    }

    /// So many seconds pass, in which everything is looked at every second; what was asked for.
    pub fn run(&mut self, seconds: u32) -> Vec<FenceOrder> {
        let mut orders = Vec::new();
        for _ in 0..seconds {
            self.now += Duration::from_secs(1);
            self.renewals += 1;
            for (name, node) in &self.nodes {
                self.decider.see(node.clone(), self.now);
                if !self.silent.contains(name) {
                    self.decider.lease(name, &self.renewals.to_string(), self.now);
                }
            }
            let verdicts = self.decider.judge(self.now).verdicts;
            orders.extend(verdicts.into_values().filter_map(|verdict| match verdict {
                Verdict::Fence(order) => Some(*order),
                _ => None,
            }));
        }
        orders
    }

    /// So many seconds pass as they do where the API tells of turns alone: what failed is looked at as far as there is room for it, every other
    /// second. What was asked for.
    pub fn watch(&mut self, seconds: u32) -> Vec<String> {
        let mut asked = Vec::new();
        for _ in 0..seconds {
            self.now += Duration::from_secs(1);
            self.renewals += 1;
            let looked_at = match self.now.as_secs() % 2 {
                0 => self.decider.suspects(self.now),
                _ => Vec::new(),
            };
            let looked_at: BTreeSet<String> = looked_at.into_iter().take(SUSPECTS).collect();
            for (name, node) in &self.nodes {
                if looked_at.contains(name) || self.decider.node(name) != Some(node) {
                    self.decider.see(node.clone(), self.now);
                }
                if !self.silent.contains(name) {
                    self.decider.lease(name, &self.renewals.to_string(), self.now);
                }
            }
            let verdicts = self.decider.judge(self.now).verdicts;
            asked.extend(
                verdicts
                    .into_iter()
                    .filter_map(|(name, verdict)| matches!(verdict, Verdict::Fence(_)).then_some(name)),
            );
        }
        asked
    }

    pub fn suspects(&self) -> Vec<String> {
        self.decider.suspects(self.now)
    }

    pub fn verdict(&mut self, name: &str) -> Verdict {
        self.decider.judge(self.now).verdicts.remove(name).expect("it is there")
    }

    pub fn update(&mut self, uid: &str) -> RemediationUpdate {
        let tidings = self.decider.judge(self.now).tidings;
        tidings.into_iter().find(|update| update.id.uid == uid).expect("it is there")
    }

    pub fn report(&mut self, policy: &str) -> PolicyReport {
        let reports = self.decider.judge(self.now).reports;
        reports.into_iter().find(|report| report.policy == policy).expect("it is there")
    }
}
