//! By Picket: the controller sees it, the gateway fences and lets go.

use std::time::{Duration, SystemTime};

use picket_proto::v1::{Fence, ListFencesRequest};
use picket_tests::peers::{Kubernetes, KubernetesMachine, until};
use picket_tests::{Bmc, Controller, Daemon, Fleet, Gateway, HOLDER, PeerError};
use serde_json::json;

use crate::edge::Wrong;
use crate::stage::{Did, Stage};
use crate::turn::Turn;

const ALLOWED: &str = include_str!("../../../deploy/kubernetes/release.yaml");
/// From the first Off of the proof to the first attempt of the release, which comes after the proof: the default.
const SETTLE: Duration = Duration::from_secs(2);
const WITHIN: Duration = Duration::from_secs(300);

/// A gateway over both machines.
pub struct Ours<'a> {
    cluster: &'a Kubernetes,
    gateway: Gateway,
}

impl<'a> Ours<'a> {
    /// By the shipped rules, which let it fence the same machine again at once.
    pub async fn start(cluster: &'a Kubernetes) -> Result<Self, Wrong> {
        let login = cluster.account_by("picket-release", &[ALLOWED]).await?;
        let system = cluster.json(&["get", "namespace", "kube-system"]).await?;
        let uid = system["metadata"]["uid"].as_str().unwrap_or_default();
        let release = format!(
            "[releases.pods]\nkind = \"kubernetes\"\ncluster_uid = {uid:?}\nkubeconfig = {login:?}\n"
        );
        let socket = "[roles.socket]\nrole = \"admin\"\ncallers = [\"uid:*\"]\n";
        let fleet =
            cluster.machines().iter().fold(Fleet::new().with(&release).with(socket), |fleet, machine| {
                let identity = format!("identity = {{ uuid = \"{}\" }}", machine.uuid());
                fleet.node(
                    machine.name(),
                    &Bmc::simulated(machine.bmc().address()).with(&identity),
                    &["pods"],
                )
            });
        let mut gateway = Gateway::within(cluster.place(), Daemon::Shipped, &fleet)?;
        gateway.begin(&[]).await?;
        gateway.checked().await?;
        Ok(Self { cluster, gateway })
    }

    /// Fences what fails, by a policy as it is by default.
    pub async fn fence(&self, stage: &Stage<'_>) -> Result<Turn, Wrong> {
        let controller = Controller::start(self.cluster, &self.gateway).await?;
        let all = json!({ "nodeSelector": {}, "everyNode": true });
        self.cluster.fencing_policy("all", &all).await?;
        let fence = self.fenced(stage).await.map_err(|wrong| format!("{wrong}\n{}", controller.log()))?;
        self.cluster.kubectl(&["delete", "fencingpolicy", "all"]).await?;
        let asked = SystemTime::try_from(fence.opened_at.ok_or("it was never opened")?)?;
        let evidence = fence.evidence.ok_or("it was never proven")?;
        let proven = SystemTime::try_from(evidence.confirmed_at.ok_or("it was never proven")?)?;
        let dark = SystemTime::try_from(evidence.off_since.ok_or("it was never seen off")?)?;
        stage.seen(Did { asked, proven, settled: proven.max(dark + SETTLE) }).await
    }

    /// The fence of this turn, once it is proven.
    async fn fenced(&self, stage: &Stage<'_>) -> Result<Fence, Wrong> {
        let request = ListFencesRequest { opened_after: Some(stage.killed.into()), ..Default::default() };
        let mut client = self.gateway.client().await?;
        let mut found = None;
        until("the machine is proven off", WITHIN, async || {
            let answer = client.list_fences(request.clone()).await.map_err(PeerError::call("ListFences"))?;
            let mut fences = answer.into_inner().fences.into_iter();
            found = fences.find(|fence| fence.evidence.is_some());
            Ok(found.is_some())
        })
        .await?;
        found.ok_or_else(|| "it is proven off".into())
    }

    /// Nothing of ours is left on a machine, if anything was.
    pub async fn give_back(&self, machine: &KubernetesMachine) -> Result<(), Wrong> {
        let request = ListFencesRequest { open_only: true, ..Default::default() };
        let answer = self.gateway.client().await?.list_fences(request).await?;
        if answer.into_inner().fences.is_empty() {
            return Ok(());
        }
        // What the controller holds is not ours to give back, but that this caller may do everything.
        let why = ["--yes", "--reason", "the turn is over", "--holder", HOLDER];
        let said = self.gateway.picket(&[&["unfence", machine.name()], &why[..]].concat()).await?;
        match said.code {
            0 => Ok(()),
            _ => Err(format!("{said:?}\n{}", self.gateway.log()).into()),
        }
    }
}
