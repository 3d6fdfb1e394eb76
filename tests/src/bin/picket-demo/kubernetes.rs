//! The story of a real Kubernetes: the StatefulSet comes back with its disk; and the same by taint alone, which is why Picket exists.

use std::time::{Duration, SystemTime};

use picket_tests::peers::{Database, Kubernetes, KubernetesMachine, until};
use picket_tests::{Bmc, Daemon, Fleet, Gateway, PeerError, Result};

use crate::showing::picket;
use crate::teller::Teller;

const ALLOWED: &str = include_str!("../../../../deploy/kubernetes/release.yaml");
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
const TAINTS: &str = "jsonpath={range .spec.taints[*]}{.key}:{.effect} {end}";
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

    teller.chapter(&format!("The kubelet of {} is killed; its pod lives", here.name()));
    here.kill_kubelet().await?;
    cluster.until_ready(here, false).await?;
    database.is_terminating().await?;
    database.still_writes(here.name()).await?;
    kubectl(teller, &cluster, &["get", "nodes"]).await?;
    kubectl(teller, &cluster, &["get", "pods", "-o", "wide"]).await?;
    kubectl(teller, &cluster, &["get", "volumeattachments"]).await?;
    teller.say("Terminating it stays: nobody knows whether it still writes, and so nothing replaces it.");
    teller.seen(&format!("it does: the machine runs, and {} writes", here.name()));
    match proof {
        true => fenced(teller, &cluster, &database, [here, there]).await,
        false => torn(teller, &cluster, &database, [here, there]).await,
    }
}

async fn fenced(
    teller: &Teller,
    cluster: &Kubernetes,
    database: &Database<'_>,
    [here, there]: [&KubernetesMachine; 2],
) -> Result<()> {
    teller.chapter(
        "A gateway on the control plane's host, which may do what deploy/kubernetes/release.yaml says",
    );
    let gateway = gateway(cluster, [here, there]).await?;
    teller.quote(&std::fs::read_to_string(gateway.settings_file()).unwrap_or_default());

    teller.chapter(&format!("{} is fenced", here.name()));
    teller.say("Off by its BMC, and proven off; then its pods are deleted, then its volume let go, then the taint that did it is gone.");
    let endpoint = gateway.endpoint();
    let asked = SystemTime::now();
    picket(teller, &endpoint, &["fence", here.name(), "--yes", "--reason", "its kubelet is dead"]).await?;
    database.runs_on(there.name()).await?;
    kubectl(teller, cluster, &["get", "pods", "-o", "wide"]).await?;
    kubectl(teller, cluster, &["get", "node", here.name(), "-o", TAINTS]).await?;
    let writers = database.writers();
    let first = writers.of(there.name()).0.first().map(|write| write.at);
    let last = writers.of(here.name()).last().map(|write| write.at);
    if let (Some(first), Some(last)) = (first, last) {
        let after = |at: SystemTime| at.duration_since(asked).unwrap_or_default().as_secs_f64();
        teller.seen(&format!(
            "{} wrote last {:.1} s after the command, {} first {:.1} s after it",
            here.name(),
            after(last),
            there.name(),
            after(first)
        ));
    }
    written(teller, database);
    if (writers.changes(), writers.overlaps()) != (1, 0) {
        return Err(otherwise("one writer after the other", &writers.nodes().join(", ")));
    }
    picket(teller, &endpoint, &["history", here.name()]).await?;

    teller.chapter(&format!("{} comes back", here.name()));
    picket(teller, &endpoint, &["unfence", here.name(), "--yes", "--reason", "mended"]).await?;
    cluster.until_ready(here, true).await?;
    let clean =
        async || Ok(cluster.kubectl(&["get", "node", here.name(), "-o", TAINTS]).await?.trim().is_empty());
    until("it has no taint any more", Duration::from_secs(120), clean).await?;
    kubectl(teller, cluster, &["get", "nodes"]).await?;
    teller.seen(&format!(
        "it has no taint, no finalizer and no annotation of ours, and writes nothing: {}",
        there.name()
    ));
    written(teller, database);

    teller.chapter("What to try next");
    teller.say(
        "cargo xtask demo --kubernetes --without-proof     the same by the taint alone: two writers, counted",
    );
    teller.say("docs/kubernetes.md                                 what is done, in which order, and why");
    Ok(())
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
    let fleet = machines.iter().fold(Fleet::new().with(&release), |fleet, machine| {
        let identity = format!("identity = {{ uuid = \"{}\" }}", machine.uuid());
        fleet.node(machine.name(), &Bmc::at(machine.bmc().address()).with(&identity), &["pods"])
    });
    let mut gateway = Gateway::within(cluster.place(), Daemon::Shipped, &fleet)?;
    gateway.begin(&[]).await?;
    gateway.checked().await?;
    Ok(gateway)
}

/// Shows a command of kubectl's, and what it says.
async fn kubectl(teller: &Teller, cluster: &Kubernetes, arguments: &[&str]) -> Result<()> {
    let quoted = |word: &&str| if word.contains(' ') { format!("'{word}'") } else { (*word).to_owned() };
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
