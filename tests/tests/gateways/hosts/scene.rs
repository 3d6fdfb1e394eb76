//! The hosts: 0 to 2 carry a gateway and a member of etcd each, 3 carries the BMCs and the receiver of releases.

use std::time::Duration;

use picket_tests::peers::{
    Calls, EtcdCluster, IpmiSim, Knob, Logs, Machine, Network, Observer, Place, Verdict, judge,
};
use picket_tests::{Bmc, Daemon, ExampleReceiver, Fleet, Gateway, PeerError, Result};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::hosts::caller::Caller;

/// The shortest lease that is allowed.
pub const LEASE: Duration = Duration::from_secs(3);
/// What ipmi_sim does with a silent session, and what the settings say of it.
pub const IDLE_LIMIT: Duration = Duration::from_secs(30);
/// The longest that is waited for something that must come.
pub const PATIENCE: Duration = Duration::from_secs(180);

const BMC_PORT: u16 = 10_623;
/// Where the receiver of releases listens.
pub const RECEIVER_PORT: u16 = 8_470;
/// More than a dozen heartbeats long.
const LISTEN: Duration = Duration::from_millis(1_500);

/// A machine with its BMC and its observer.
#[derive(Debug)]
pub struct Node {
    pub name: String,
    pub bmc: IpmiSim,
    pub machine: Machine,
    pub observer: Observer,
}

/// The scene. Gateways are called `g0`, `g1` and `g2`, machines `n1` and so on.
#[derive(Debug)]
pub struct Scene {
    /// First, so that they end first.
    pub gateways: Vec<Gateway>,
    pub etcd: EtcdCluster,
    pub nodes: Vec<Node>,
    pub receiver: ExampleReceiver,
    pub calls: Calls,
    pub network: Network,
    directory: TempDir,
}

impl Scene {
    /// So many machines, switched on and beating, each falling so long after its BMC took the off. `g0` has these variables,
    /// and leads; all three serve.
    pub async fn start(variables: &[(&str, &str)], falls: &[Duration]) -> Result<Self> {
        let network = Network::start(4).await?;
        let etcd = EtcdCluster::within(&[network.host(0), network.host(1), network.host(2)]).await?;
        let receiver = ExampleReceiver::within(network.host(3), RECEIVER_PORT).await?;
        let mut nodes = Vec::new();
        for (n, fall) in (0..).zip(falls) {
            nodes.push(Node::start(network.host(3), n, *fall).await?);
        }
        let calls = Calls::listen(network.host(3), BMC_PORT..=BMC_PORT + 100).await?;
        let directory = tempfile::tempdir().map_err(PeerError::io("create the caller's directory"))?;
        let mut scene = Self { gateways: Vec::new(), etcd, nodes, receiver, calls, network, directory };
        for n in 0..3 {
            let fleet = scene.settings(n);
            scene.gateways.push(Gateway::within(scene.network.host(n), Daemon::Hooked, &fleet)?);
        }
        scene.gateways[0].begin(variables).await?;
        scene.gateways[0].checked().await?;
        scene.gateways[1].begin(&[]).await?;
        scene.gateways[2].begin(&[]).await?;
        assert_eq!(scene.leader().await?, 0, "{}", scene.logs());
        for node in &scene.nodes {
            node.observer.wait_for(2, PATIENCE).await?;
        }
        Ok(scene)
    }

    fn settings(&self, n: usize) -> Fleet {
        let fleet = Fleet::new()
            .with(&format!("[gateway]\nname = \"g{n}\""))
            .with(&format!(
                "[store]\nkind = \"etcd\"\nendpoints = {:?}\nallow_anonymous = true\nallow_plaintext = true\n\
                 [election]\nlease = \"{}s\"",
                self.etcd.endpoints(),
                LEASE.as_secs()
            ))
            .with("[rules]\ndwell = \"500ms\"\nlongest_cycle = \"5s\"\nwatch = \"1s\"")
            .webhook("detach", self.receiver.url(), "settle = \"0s\"\nplain_http = true");
        let limit = format!("idle_limit = \"{}s\"", IDLE_LIMIT.as_secs());
        self.nodes.iter().fold(fleet, |fleet, node| {
            fleet.node(&node.name, &Bmc::at(node.bmc.address()).with(&limit), &["detach"])
        })
    }

    /// Who asks, over all gateways.
    pub fn caller(&self) -> Caller {
        let endpoints = self.gateways.iter().map(Gateway::endpoint).collect();
        Caller::new(endpoints, self.directory.path().join("asked"))
    }

    /// Who leads, as it says itself, if anybody does.
    pub async fn leads(&self) -> Option<usize> {
        let seen = futures::future::join_all(self.gateways.iter().map(Gateway::gateways)).await;
        (0..).zip(seen).find_map(|(n, seen)| {
            let (seen, own) = (seen?, format!("g{n}"));
            let leads =
                seen.trouble.is_empty() && seen.gateways.iter().any(|one| one.leads && one.name == own);
            leads.then_some(n)
        })
    }

    /// The same; waits until somebody does.
    pub async fn leader(&self) -> Result<usize> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(leader) = self.leads().await {
                return Ok(leader);
            }
            if Instant::now() >= deadline {
                let (what, seen) = ("somebody leads".to_owned(), self.logs());
                return Err(PeerError::TimedOut { what, within: PATIENCE, seen });
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until all gateways answer and name the same leader.
    pub async fn agreed(&self) -> Result<usize> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let seen = futures::future::join_all(self.gateways.iter().map(Gateway::gateways)).await;
            let leaders: Vec<Option<String>> = seen
                .iter()
                .map(|seen| seen.as_ref()?.gateways.iter().find(|one| one.leads).map(|one| one.name.clone()))
                .collect();
            if let [Some(first), ..] = &leaders[..]
                && leaders.iter().all(|leader| leader.as_ref() == Some(first))
            {
                return Ok(first.trim_start_matches('g').parse().unwrap_or_default());
            }
            if Instant::now() >= deadline {
                let what = "all gateways name the same leader".to_owned();
                let seen = format!("{leaders:?}\n{}", self.logs());
                return Err(PeerError::TimedOut { what, within: PATIENCE, seen });
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// What the judge says, when it has listened for late heartbeats.
    pub async fn judged(&self) -> Result<Verdict> {
        sleep(LISTEN).await;
        let logs: Vec<_> = self
            .nodes
            .iter()
            .map(|node| (node.name.as_str(), node.observer.log(), node.machine.power_log()))
            .collect();
        let logs: Vec<_> = logs.iter().map(|(node, beats, power)| Logs { node, beats, power }).collect();
        judge(&self.receiver.journal(), &self.caller().asked(), &logs).await
    }

    /// What went wrong by the way: panics.
    pub fn panics(&self) -> Vec<String> {
        let logs = self.gateways.iter().map(Gateway::log);
        logs.flat_map(|log| {
            log.lines().filter(|line| line.contains("panicked")).map(str::to_owned).collect::<Vec<_>>()
        })
        .collect()
    }

    pub fn logs(&self) -> String {
        let logs = self.gateways.iter().enumerate().map(|(n, one)| format!("--- g{n}\n{}", one.log()));
        logs.collect::<Vec<_>>().join("\n")
    }
}

impl Node {
    async fn start(place: &Place, n: u16, fall: Duration) -> Result<Self> {
        let machine = Machine::new()?;
        let bmc = IpmiSim::builder().machine(&machine).holds().within(place, BMC_PORT + n).start().await?;
        if !fall.is_zero() {
            bmc.set(Knob::OffDelay(fall))?;
        }
        let observer = machine.observe().await?;
        machine.force(true).await?;
        Ok(Self { name: format!("n{}", n + 1), bmc, machine, observer })
    }
}
