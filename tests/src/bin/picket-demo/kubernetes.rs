//! The story of a real Kubernetes: the StatefulSet comes back with its disk; and the same by taint alone, which is why Picket exists.

use std::time::{Duration, SystemTime};

use picket_proto::v1::ListFencesRequest;
use picket_tests::peers::{Database, Kubernetes, KubernetesMachine, until};
use picket_tests::{Bmc, Controller, Daemon, Fleet, Gateway, PeerError, Result};
use serde_json::Value;

use crate::showing::picket;
use crate::teller::Teller;

const ALLOWED: &str = include_str!("../../../../deploy/kubernetes/release.yaml");
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
const POLICY: &str = "apiVersion: picket.dev/v1alpha1
kind: FencingPolicy
metadata: { name: all }
spec:
  nodeSelector: {}
  everyNode: true
  then: PowerOn
";
/// What the controller notes on a Node.
const STATUS: &str = "jsonpath={.metadata.annotations.picket\\.dev/status}";
/// Where on a Node something of ours stands, if anything does.
const MARKS: &str = "jsonpath=taints: {.spec.taints}{\"\\n\"}finalizers: {.metadata.finalizers}{\"\\n\"}annotations: {.metadata.annotations}{\"\\n\"}";
const EVENTS: &str = "custom-columns=REASON:.reason,MESSAGE:.message";
/// A policy waits, a machine is proven off, boots, and is given its time before it is tidied.
const WITHIN: Duration = Duration::from_secs(300);
/// How long both writers are let write: long enough to be counted.
const TORN: Duration = Duration::from_secs(60);

/// Tells it from the start to the end. `proof`: by Picket; else by the taint alone.
pub async fn tell(teller: &Teller, proof: bool) -> Result<()> {
    teller.chapter("A real Kubernetes, with two machines behind BMCs");
    teller.say("kube-apiserver, controller-manager, scheduler and kubelets 1.35 in namespaces of their own, containerd, a CSI driver");
    teller.say(
        "whose volume is a file that both machines reach, and OpenIPMI's BMC simulator before each machine.",
    );
    let cluster = Kubernetes::start(2).await?;
    let [n1, n2] = [cluster.machine("n1"), cluster.machine("n2")];
    kubectl(teller, &cluster, &["get", "nodes"]).await?;

    teller.chapter(
        "A database: a StatefulSet of one, that writes a line to its ReadWriteOnce volume every 50 ms",
    );
    let database = cluster.database("database", &[n1, n2]).await?;
    let on = database.node().await?.unwrap_or_default();
    let (here, there) = if n1.name() == on { (n1, n2) } else { (n2, n1) };
    database.runs_on(here.name()).await?;
    kubectl(teller, &cluster, &["get", "pods", "-o", "wide"]).await?;
    written(teller, &database);

    // Before anything fails, and it stays till the end.
    let guard = match proof {
        true => Some(Guard::start(teller, &cluster, [here, there]).await?),
        false => None,
    };
    teller.chapter(&format!("The kubelet of {} is killed; its pod lives", here.name()));
    let killed = SystemTime::now();
    here.kill_kubelet().await?;
    cluster.until_ready(here, false).await?;
    database.is_terminating().await?;
    database.still_writes(here.name()).await?;
    kubectl(teller, &cluster, &["get", "nodes"]).await?;
    kubectl(teller, &cluster, &["get", "pods", "-o", "wide"]).await?;
    kubectl(teller, &cluster, &["get", "volumeattachments"]).await?;
    teller.say("Terminating it stays: nobody knows whether it still writes, and so nothing replaces it.");
    teller.seen(&format!("it does: the machine runs, and {} writes", here.name()));
    match guard {
        Some(guard) => guard.fenced(teller, &database, [here, there], killed).await,
        None => torn(teller, &cluster, &database, [here, there]).await,
    }
}

/// Who sees that a Node is not Ready, and who switches its machine off.
struct Guard<'a> {
    cluster: &'a Kubernetes,
    // Ends before whom it asks.
    _controller: Controller,
    gateway: Gateway,
}

impl<'a> Guard<'a> {
    /// Both run, and a policy selects every Node.
    async fn start(
        teller: &Teller,
        cluster: &'a Kubernetes,
        machines: [&KubernetesMachine; 2],
    ) -> Result<Self> {
        teller.chapter(
            "A gateway on the control plane's host, which may do what deploy/kubernetes/release.yaml says",
        );
        let gateway = gateway(cluster, machines).await?;
        teller.quote(&std::fs::read_to_string(gateway.settings_file()).unwrap_or_default());

        teller.chapter(
            "A controller, which may do what deploy/kubernetes/controller.yaml says, and a policy for it",
        );
        let controller = Controller::start(cluster, &gateway).await?;
        let file = cluster.directory().join("policy.yaml");
        std::fs::write(&file, POLICY).map_err(PeerError::io("write a policy"))?;
        kubectl(teller, cluster, &["apply", "-f", &file.display().to_string()]).await?;
        teller.quote(POLICY);
        let is_accepted = async || {
            let policy = cluster.json(&["get", "fencingpolicy", "all"]).await?;
            Ok(policy["status"]["selected"] == machines.len())
        };
        until("the policy selects both Nodes", WITHIN, is_accepted).await?;
        kubectl(teller, cluster, &["get", "fencingpolicies"]).await?;
        Ok(Self { cluster, _controller: controller, gateway })
    }

    /// From here on nobody types anything but questions.
    async fn fenced(
        &self,
        teller: &Teller,
        database: &Database<'_>,
        [here, there]: [&KubernetesMachine; 2],
        killed: SystemTime,
    ) -> Result<()> {
        let cluster = self.cluster;
        teller.chapter(&format!("The controller has seen it for 20 s, and has {} fenced", here.name()));
        let is_noted =
            async || Ok(!cluster.kubectl(&["get", "node", here.name(), "-o", STATUS]).await?.is_empty());
        until("it is noted on the Node", WITHIN, is_noted).await?;
        kubectl(teller, cluster, &["get", "node", here.name(), "-o", STATUS]).await?;
        kubectl(teller, cluster, &["get", "fencingpolicies"]).await?;
        teller.say("Off by its BMC, and proven off; then its pods are deleted, then its volume let go, then the taint that did it is gone.");
        database.runs_on(there.name()).await?;
        kubectl(teller, cluster, &["get", "pods", "-o", "wide"]).await?;
        handed_over(teller, database, [here, there], killed)?;

        teller.chapter("What is kept of it, with the evidence");
        let (endpoint, fence) = (self.gateway.endpoint(), self.fence().await?);
        picket(teller, &endpoint, &["history", here.name()]).await?;
        picket(teller, &endpoint, &["history", "--fence", &fence]).await?;

        teller.chapter(&format!("{} comes back, as the policy says", here.name()));
        cluster.until_ready(here, true).await?;
        let clean = async || Ok(is_clean(&cluster.node(here).await?));
        until("nothing of ours stands on it", WITHIN, clean).await?;
        kubectl(teller, cluster, &["get", "nodes"]).await?;
        kubectl(teller, cluster, &["get", "node", here.name(), "-o", MARKS]).await?;
        teller.seen(&format!(
            "it has no taint, no finalizer and no annotation of ours, and writes nothing: {} does",
            there.name()
        ));
        let ours = format!("involvedObject.name={},reportingComponent=picket.dev/controller", here.name());
        let events = ["get", "events", "--sort-by=.eventTime", "--field-selector", &ours, "-o", EVENTS];
        kubectl(teller, cluster, &events).await?;
        written(teller, database);
        one_after_the_other(database)?;

        teller.chapter("What to try next");
        teller.say(
            "cargo xtask demo --kubernetes --without-proof     the same by the taint alone: two writers, counted",
        );
        teller.say(
            "docs/controller-when.md                            when a Node is asked for, and when it is not",
        );
        teller
            .say("docs/kubernetes-release.md                         what is done, in which order, and why");
        Ok(())
    }

    /// The id of the only fence, once all is let go.
    async fn fence(&self) -> Result<String> {
        let mut id = String::new();
        until("the fence has released", WITHIN, async || {
            let answer = self.gateway.client().await?.list_fences(ListFencesRequest::default()).await;
            let mut fences = answer.map_err(PeerError::call("ListFences"))?.into_inner().fences.into_iter();
            let is_released =
                |fence: &picket_proto::v1::Fence| fence.outcome.as_ref().is_some_and(|end| end.released);
            id = fences.find(is_released).map(|fence| fence.id).unwrap_or_default();
            Ok(!id.is_empty())
        })
        .await?;
        Ok(id)
    }
}

/// When one wrote last, and the other first.
fn handed_over(
    teller: &Teller,
    database: &Database<'_>,
    [here, there]: [&KubernetesMachine; 2],
    killed: SystemTime,
) -> Result<()> {
    let writers = database.writers();
    let first = writers.of(there.name()).0.first().map(|write| write.at);
    let last = writers.of(here.name()).last().map(|write| write.at);
    if let (Some(first), Some(last)) = (first, last) {
        let after = |at: SystemTime| at.duration_since(killed).unwrap_or_default().as_secs_f64();
        teller.seen(&format!(
            "{} wrote last {:.1} s after its kubelet was killed, {} first {:.1} s after it",
            here.name(),
            after(last),
            there.name(),
            after(first)
        ));
    }
    written(teller, database);
    one_after_the_other(database)
}

fn one_after_the_other(database: &Database<'_>) -> Result<()> {
    let writers = database.writers();
    match (writers.changes(), writers.overlaps()) {
        (1, 0) => Ok(()),
        _ => Err(otherwise("one writer after the other", &writers.nodes().join(", "))),
    }
}

/// No taint stands on it, no finalizer, and no annotation of ours.
fn is_clean(node: &Value) -> bool {
    let none = |list: &Value| list.as_array().is_none_or(Vec::is_empty);
    let annotations = node["metadata"]["annotations"].as_object();
    let is_ours = |key: &String| key.starts_with("picket.dev/") || key.contains("scale-down-disabled");
    none(&node["spec"]["taints"])
        && none(&node["metadata"]["finalizers"])
        && !annotations.is_some_and(|all| all.keys().any(is_ours))
}

async fn torn(
    teller: &Teller,
    cluster: &Kubernetes,
    database: &Database<'_>,
    [here, there]: [&KubernetesMachine; 2],
) -> Result<()> {
    teller.chapter("What the documentation advises, and nobody has switched the machine off");
    let taint = format!("{OUT_OF_SERVICE}=nodeshutdown:NoExecute");
    kubectl(teller, cluster, &["taint", "node", here.name(), &taint]).await?;
    database.runs_on(there.name()).await?;
    kubectl(teller, cluster, &["get", "pods", "-o", "wide"]).await?;
    teller.say("All is well, says Kubernetes.");
    let writers = async || Ok(database.writers().overlaps() > 100);
    until("both write", TORN, writers).await?;
    written(teller, database);
    let both = database.writers();
    let last = &both.0[both.0.len().saturating_sub(6)..];
    let since = last.first().map_or(SystemTime::UNIX_EPOCH, |write| write.at);
    for write in last {
        let millis = write.at.duration_since(since).unwrap_or_default().as_millis();
        teller.quote(&format!("{millis:>4} ms  {}", write.node));
    }
    teller.say("Two machines write to one volume, in turns. A file system that is mounted twice does not survive that.");
    teller.say("cargo xtask demo --kubernetes     the same by Picket: off first, and proven");
    Ok(())
}

/// A gateway that knows both, and has the release.
async fn gateway(cluster: &Kubernetes, machines: [&KubernetesMachine; 2]) -> Result<Gateway> {
    let login = cluster.account_by("picket-release", &[ALLOWED]).await?;
    let system = cluster.json(&["get", "namespace", "kube-system"]).await?;
    let uid = system["metadata"]["uid"].as_str().unwrap_or_default();
    let release =
        format!("[releases.pods]\nkind = \"kubernetes\"\ncluster_uid = {uid:?}\nkubeconfig = {login:?}\n");
    // Who reaches its socket may ask in the controller's name.
    let socket = "[roles.socket]\nrole = \"admin\"\ncallers = [\"uid:*\"]\n";
    let fleet = machines.iter().fold(Fleet::new().with(&release).with(socket), |fleet, machine| {
        let identity = format!("identity = {{ uuid = \"{}\" }}", machine.uuid());
        fleet.node(machine.name(), &Bmc::simulated(machine.bmc().address()).with(&identity), &["pods"])
    });
    let mut gateway = Gateway::within(cluster.place(), Daemon::Shipped, &fleet)?;
    gateway.begin(&[]).await?;
    gateway.checked().await?;
    Ok(gateway)
}

/// Shows a command of kubectl's, and what it says.
async fn kubectl(teller: &Teller, cluster: &Kubernetes, arguments: &[&str]) -> Result<()> {
    let quoted =
        |word: &&str| if word.contains([' ', '{']) { format!("'{word}'") } else { (*word).to_owned() };
    teller.command(&format!("kubectl {}", arguments.iter().map(quoted).collect::<Vec<_>>().join(" ")));
    teller.quote(&cluster.kubectl(arguments).await?);
    Ok(())
}

/// What stands in the file.
fn written(teller: &Teller, database: &Database<'_>) {
    let writers = database.writers();
    let mut nodes = writers.nodes();
    nodes.dedup();
    let who = match nodes.len() {
        0..=4 => nodes.join(", then "),
        more => format!("{}, and so on: {more} turns", nodes[..3].join(", then ")),
    };
    teller.seen(&format!(
        "{} lines stand on the volume, by {who}; written by two at a time: {} times",
        writers.0.len(),
        writers.overlaps()
    ));
}

fn otherwise(what: &str, seen: &str) -> PeerError {
    PeerError::TimedOut { what: what.to_owned(), within: TORN, seen: seen.to_owned() }
}
