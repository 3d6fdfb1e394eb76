//! What the controller takes: of the machine, and of the API server.

use std::fmt;
use std::time::Duration;

use picket_tests::Result;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::thousand::nodes::ALL;
use crate::thousand::scene::Scene;

/// The FlowSchema under which the API server counts the controller's requests, and no others.
pub const COUNTED_AS: &str = "the-controller";

const BREAKS: &str = "picket_controller_watch_breaks_total";

/// What it has taken since it began.
#[derive(Clone, Debug)]
pub struct Cost {
    at: Instant,
    /// Of the processor.
    pub cpu: Duration,
    /// The most memory that was resident, in bytes.
    pub memory: u64,
    /// Requests, as the API server counts them.
    pub requests: u64,
    /// Bytes that came from the API server over connections that stand.
    pub received: u64,
    /// What watches told of leases.
    pub leases: u64,
    /// What watches, and looks, told of Nodes.
    pub nodes: u64,
    /// Watches that broke.
    pub broken: u64,
    /// Of these, of leases and of Nodes: each tells all anew.
    pub broken_leases: u64,
    pub broken_nodes: u64,
    /// Rounds of looks at Nodes that are not healthy.
    pub looks: u64,
    /// Leases that were written, by whomever.
    pub renewals: u64,
    /// Nodes that were written, by whomever.
    pub changes: u64,
}

impl Cost {
    pub async fn now(scene: &Scene) -> Result<Self> {
        // What was written is counted before what was told of it, or after it: who compares takes the right one of both.
        let said = scene.controller.http("/metrics").await?;
        let at = Instant::now();
        let pid = scene.controller.id();
        let api = scene.cluster.kubectl(&["get", "--raw", "/metrics"]).await?;
        let written = |resource: &str| {
            let verbs = ["POST", "PUT", "PATCH", "APPLY"];
            let of = |verb| format!("verb=\"{verb}\"");
            verbs.map(of).iter().map(|verb| sum(&api, "apiserver_request_total{", &[verb, resource])).sum()
        };
        let own = |name: &str| sum(&said, name, &[]);
        let told =
            |what: &str| sum(&said, "picket_controller_watch_events_total", &[&format!("what=\"{what}\"")]);
        Ok(Self {
            at,
            cpu: cpu(pid),
            memory: memory(pid),
            requests: sum(
                &api,
                "apiserver_flowcontrol_dispatched_requests_total{",
                &[&format!("flow_schema=\"{COUNTED_AS}\"")],
            ),
            received: received(scene, pid).await?,
            leases: told("leases"),
            nodes: told("nodes"),
            broken: own(BREAKS),
            broken_leases: sum(&said, BREAKS, &["what=\"leases\""]),
            broken_nodes: sum(&said, BREAKS, &["what=\"nodes\""]),
            looks: own("picket_controller_looks_total"),
            renewals: written("resource=\"leases\""),
            changes: written("resource=\"nodes\""),
        })
    }

    /// What was taken since then.
    pub fn since(&self, then: &Self) -> Took {
        Took {
            time: self.at - then.at,
            cpu: self.cpu.saturating_sub(then.cpu),
            requests: self.requests - then.requests,
            // A connection that was lost took its count along.
            received: self.received.saturating_sub(then.received),
            leases: self.leases - then.leases,
            nodes: self.nodes - then.nodes,
            broken: self.broken - then.broken,
            broken_leases: self.broken_leases - then.broken_leases,
            broken_nodes: self.broken_nodes - then.broken_nodes,
            looks: self.looks - then.looks,
            renewals: self.renewals - then.renewals,
            changes: self.changes - then.changes,
        }
    }
}

/// What was taken in a time.
#[derive(Clone, Debug)]
pub struct Took {
    pub time: Duration,
    pub cpu: Duration,
    pub requests: u64,
    pub received: u64,
    pub leases: u64,
    pub nodes: u64,
    pub broken: u64,
    pub broken_leases: u64,
    pub broken_nodes: u64,
    pub looks: u64,
    pub renewals: u64,
    pub changes: u64,
}

/// The controller looks every two seconds at Nodes that are not healthy, at so many at most, and renews its lease as often.
const EVERY: u64 = 2;
const LOOKED_AT: u64 = 128;
/// Requests for each of these turns, and as many for what happens rarely.
const REQUESTS: u64 = 4;
/// Requests for each Node that is asked for: to tell its phases by Events and notes, its lease.
const ASKED: u64 = 30;
/// And for one that fails and is not: an Event, and as many again.
const WITHHELD: u64 = 2;
/// And for a watch that broke: the list, the watch, each once more.
const BEGUN_ANEW: u64 = 4;
/// Bytes of an answer that is neither a Node nor a lease, with what carries it.
const ANSWER: u64 = 4_096;

/// What a Node and its lease weigh, in bytes, as the API server sends them.
#[derive(Clone, Copy, Debug)]
pub struct Weights {
    node: u64,
    lease: u64,
}

impl Weights {
    pub async fn of(scene: &Scene, node: &str) -> Result<Self> {
        let weight = async |path: String| -> Result<u64> {
            let raw = scene.cluster.kubectl(&["get", "--raw", &path]).await?;
            Ok(u64::try_from(raw.len()).unwrap_or(u64::MAX))
        };
        let lease = format!("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{node}");
        Ok(Self { node: weight(format!("/api/v1/nodes/{node}")).await?, lease: weight(lease).await? })
    }
}

impl Took {
    /// Nothing is asked again and again, and nothing is told twice: of what was written each is heard once, of Nodes that are not healthy
    /// (`suspects`) each is looked at once a turn, of those that failed some are asked for (`asked`) and of the rest (`withheld`) it is told
    /// why not; and what came over the wire weighs no more than that. (Of connections that were lost the bytes are not known.)
    pub fn is_bounded(&self, weights: Weights, suspects: usize, asked: usize, withheld: usize) {
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let turns = self.time.as_secs() / EVERY + 1;
        assert!(self.looks <= if suspects == 0 { 0 } else { turns }, "rounds of looks: {self:?}");
        let looked = self.looks * count(suspects).min(LOOKED_AT);
        let told = ASKED * count(asked) + WITHHELD * count(withheld) + BEGUN_ANEW * self.broken;
        let requests = REQUESTS * turns + looked + told;
        assert!(self.requests <= requests, "at most {requests} requests: {self:?}");
        // What was written before may be told after, and who is asked first has counted less.
        let anew = |broken: u64| count(*ALL + 1) * (broken + 1);
        assert!(self.leases <= self.renewals + anew(self.broken_leases), "{self:?}");
        assert!(self.nodes <= self.changes + looked + anew(self.broken_nodes), "{self:?}");
        // Twice: Nodes that fail weigh more, and the wire has its own.
        let bytes = 2 * (self.leases * weights.lease + self.nodes * weights.node) + ANSWER * self.requests;
        assert!(self.received <= bytes, "at most {bytes} bytes, {weights:?}: {self:?}");
    }

    /// Of one core, in percent.
    pub fn share(&self) -> f64 {
        100.0 * self.cpu.as_secs_f64() / self.time.as_secs_f64().max(1.0)
    }
}

impl fmt::Display for Took {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let a_second = |count: u64| count as f64 / self.time.as_secs_f64().max(1.0);
        write!(
            f,
            "{:.0} s: {:.1} % of a core, {} requests ({:.1} a second), {:.1} KB a second received; told of {} leases ({} were written) and {} \
             Nodes ({} were written), {} rounds of looks, {} watches broke",
            self.time.as_secs_f64(),
            self.share(),
            self.requests,
            a_second(self.requests),
            a_second(self.received) / 1e3,
            self.leases,
            self.renewals,
            self.nodes,
            self.changes,
            self.looks,
            self.broken,
        )
    }
}

/// The sum of all lines that begin so and have these words.
pub fn sum(text: &str, begin: &str, words: &[&str]) -> u64 {
    let lines = text.lines().filter(|line| line.starts_with(begin));
    let of = lines.filter(|line| words.iter().all(|word| line.contains(word)));
    of.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum::<f64>() as u64
}

/// proc_pid_stat(5): the 14th and the 15th word, of which the name is the second and may hold anything.
fn cpu(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let ticks =
        rest.split_whitespace().skip(11).take(2).filter_map(|word| word.parse::<f64>().ok()).sum::<f64>();
    // Of 10 ms, wherever Linux runs.
    Duration::from_secs_f64(ticks / 100.0)
}

/// proc_pid_status(5).
fn memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// As the kernel counts for each of its connections to the API server.
async fn received(scene: &Scene, pid: u32) -> Result<u64> {
    let told = scene.beside("ss", &["-tinpHO", "dport", "=", ":6443"]).await?;
    let own = format!("pid={pid},");
    let of = told.lines().filter(|line| line.contains(&own)).flat_map(str::split_whitespace);
    Ok(of.filter_map(|word| word.strip_prefix("bytes_received:")?.parse::<u64>().ok()).sum())
}

/// A measurement of nothing shows nothing.
pub fn is_something(cost: &Cost) -> bool {
    cost.memory > 0
        && !cost.cpu.is_zero()
        && [cost.requests, cost.received, cost.leases, cost.nodes, cost.renewals, cost.changes]
            .iter()
            .all(|count| *count > 0)
}

/// The FlowSchema.
pub fn counting() -> Value {
    let whom = json!({
        "kind": "ServiceAccount",
        "serviceAccount": { "name": "picket-controller", "namespace": "picket" },
    });
    let what = json!({
        "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": true,
    });
    json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "FlowSchema",
        "metadata": { "name": COUNTED_AS },
        "spec": {
            "matchingPrecedence": 500,
            "priorityLevelConfiguration": { "name": "workload-high" },
            "rules": [{ "subjects": [whom], "resourceRules": [what] }],
        },
    })
}
