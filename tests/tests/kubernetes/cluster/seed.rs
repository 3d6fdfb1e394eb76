//! The case that Picket is for: the pod runs elsewhere with its volume, one writer after the other, and the node comes back clean; in each of
//! the ways in which a node fails. As often in a row as `PICKET_RUNS` says (`cargo xtask soak kubernetes`: 20 times), each time with a volume of
//! its own.

use std::time::SystemTime;

use picket_tests::peers::{Cut, Database, Frozen, Kubernetes, KubernetesMachine};
use picket_tests::{Gateway, Result, soak};
use serde_json::Value;

use crate::cluster::fenced::{FENCED, fence, no_more, power, start, taints, unfence, until_clean};
use crate::cluster::scene::{OUT_OF_SERVICE, cluster, lend, no_more_of, told};

const LONG: usize = 20;

#[derive(Clone, Copy, Debug)]
enum Failing {
    /// Its kubelet is killed, its pod lives and writes.
    Kubelet,
    /// Its network is cut while its pod writes.
    Network,
    /// All of it stands still, and may go on at any moment.
    Machine,
}

/// Dropped, what failed is mended.
enum Failed {
    Kubelet,
    Network { _cut: [Cut; 2] },
    Machine { _frozen: Frozen },
}

impl Failing {
    async fn befalls(self, machine: &KubernetesMachine) -> Result<Failed> {
        Ok(match self {
            Self::Kubelet => {
                machine.kill_kubelet().await?;
                Failed::Kubelet
            }
            Self::Network => Failed::Network { _cut: machine.cut_off()? },
            Self::Machine => Failed::Machine { _frozen: machine.freeze() },
        })
    }

    fn writes_on(self) -> bool {
        !matches!(self, Self::Machine)
    }
}

#[tokio::test]
async fn its_kubelet_is_killed_and_its_pod_writes_on() -> Result<()> {
    in_a_row(Failing::Kubelet, "killed").await
}

#[tokio::test]
async fn its_network_is_cut_and_its_pod_writes_on() -> Result<()> {
    in_a_row(Failing::Network, "cut").await
}

#[tokio::test]
async fn it_is_frozen_and_thawed_when_another_one_writes() -> Result<()> {
    in_a_row(Failing::Machine, "frozen").await
}

async fn in_a_row(failing: Failing, name: &str) -> Result<()> {
    let (cluster, lent) = (cluster().await?, lend(2).await?);
    let given = std::env::var("PICKET_RUNS").ok().and_then(|text| text.parse().ok());
    let runs = given.unwrap_or(if soak() { LONG } else { 1 });
    for n in 1..=runs {
        let began = SystemTime::now();
        once(cluster, failing, &format!("{name}-{n}"), lent.two()).await?;
        println!("{name}: {n} of {runs}, in {:.0?}", began.elapsed().unwrap_or_default());
    }
    lent.leave().await?;
    Ok(())
}

async fn once(cluster: &Kubernetes, failing: Failing, name: &str, on: [&KubernetesMachine; 2]) -> Result<()> {
    let database = cluster.database(name, &on).await?;
    let (here, there) = placed(cluster, &database, on).await?;
    let before = foreign(&cluster.node(here).await?);
    let (boot, switched) = (here.boot_id(), power(here).len());

    let failed = failing.befalls(here).await?;
    cluster.until_ready(here, false).await?;
    database.is_terminating().await?;
    if failing.writes_on() {
        database.still_writes(here.name()).await?;
    }
    assert!(here.runs());
    let attached = [("attach", here.name()), ("mount", here.name())];
    assert_eq!(told(&database.csi_calls()), attached, "nothing lets go by itself");

    let gateway =
        start(cluster, &[(here.name(), here, "pods"), (there.name(), there, "pods")], &no_more).await?;
    fence(&gateway, here.name(), "released").await?;
    let released = SystemTime::now();
    assert!(!here.runs());
    let node = cluster.node(here).await?;
    assert!(!taints(&node).contains(&OUT_OF_SERVICE), "it stands only until all is let go: {node:#}");
    assert!(taints(&node).contains(&FENCED), "{node:#}");
    database.runs_on(there.name()).await?;
    drop(failed);
    assert!(!here.runs(), "what is mended stays off");
    moved_once(&database, here, there, released);

    unfence(&gateway, here.name()).await?;
    cluster.until_ready(here, true).await?;
    assert_ne!(here.boot_id(), boot);
    until_clean(cluster, here).await?;
    assert_eq!(foreign(&cluster.node(here).await?), before);
    assert_eq!(power(here)[switched..], ["off", "on"]);
    moved_once(&database, here, there, released);
    audited(&gateway, here.name(), &["fencing", "fenced", "released", "unfencing", "normal"]).await?;
    leave(cluster, &database, here).await
}

/// The machine on which the database runs, whose Node somebody else has tainted too, and the other one.
pub async fn placed<'m>(
    cluster: &Kubernetes,
    database: &Database<'_>,
    [one, other]: [&'m KubernetesMachine; 2],
) -> Result<(&'m KubernetesMachine, &'m KubernetesMachine)> {
    let at = database.node().await?.expect("it runs");
    let (here, there) = if one.name() == at { (one, other) } else { (other, one) };
    database.runs_on(here.name()).await?;
    // Somebody else's taint stays as it is.
    let taint = ["taint", "node", here.name(), "example.org/mine=yes:PreferNoSchedule", "--overwrite"];
    cluster.kubectl(&taint).await?;
    Ok((here, there))
}

/// One wrote after the other, and nobody let go of the volume before the machine was off.
pub fn moved_once(
    database: &Database<'_>,
    here: &KubernetesMachine,
    there: &KubernetesMachine,
    released: SystemTime,
) {
    let writers = database.writers();
    assert_eq!((writers.nodes(), writers.overlaps()), (vec![here.name(), there.name()], 0));
    assert_eq!(writers.after(released).of(here.name()).0, []);
    let calls = database.csi_calls();
    let order: Vec<&str> = told(&calls).into_iter().map(|(what, _)| what).collect();
    assert_eq!(order, ["attach", "mount", "detach", "attach", "mount"]);
    let power = here.power_events();
    let off = power.iter().rev().find(|event| event.what == "off").expect("it was switched off");
    assert!(calls.iter().filter(|call| call.what == "detach").all(|call| call.at > off.at), "{calls:?}");
}

/// The chain of the audit is whole, fits the fences, and tells of this node all that became of it, in order.
pub async fn audited(gateway: &Gateway, node: &str, became: &[&str]) -> Result<()> {
    let audit = gateway.store_file().with_extension("audit").display().to_string();
    let verified = gateway.picket(&["history", "--audit", &audit, "--verify"]).await?;
    assert!(verified.code == 0 && verified.out.contains("all fit"), "{verified:?}");
    let exported = gateway.picket(&["history", "--audit", &audit, "--export"]).await?;
    assert_eq!(exported.code, 0, "{exported:?}");
    let entries = exported.out.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let phases = entries.filter(|entry| entry["what"] == "phase" && entry["node"] == node);
    let phases: Vec<String> =
        phases.filter_map(|entry| entry["details"]["to"].as_str().map(str::to_owned)).collect();
    assert_eq!(phases, became, "{}", exported.out);
    Ok(())
}

/// Somebody else's taint.
pub fn foreign(node: &Value) -> Option<Value> {
    let taints = node["spec"]["taints"].as_array()?;
    taints.iter().find(|taint| taint["key"] == "example.org/mine").cloned()
}

/// The next one finds the machines as this one did.
pub async fn leave(cluster: &Kubernetes, database: &Database<'_>, here: &KubernetesMachine) -> Result<()> {
    let volume = format!("persistentvolume/{}", database.volume());
    let claim = format!("persistentvolumeclaim/data-{}", database.pod());
    no_more_of(cluster, database.volume()).await?;
    cluster.kubectl(&["delete", &claim, &volume, "--timeout=80s"]).await?;
    cluster.kubectl(&["taint", "node", here.name(), "example.org/mine-"]).await.map(drop)
}
