//! The case that Picket is for, by hand: in the right order, and in the wrong one, in which it must be seen that it was wrong.

use std::time::{Duration, SystemTime};

use picket_tests::peers::{Database, Kubernetes, KubernetesMachine, PowerWord, until};
use picket_tests::{Bmc, Daemon, Fleet, Gateway, Result};

use crate::cluster::fenced::power;
use crate::cluster::scene::{OUT_OF_SERVICE, cluster, lend, no_more_of, told};

/// A database on one of two machines, whose kubelet is dead: the one, the other, and what still writes.
async fn stuck<'a>(
    cluster: &'a Kubernetes,
    name: &str,
    on: [&'a KubernetesMachine; 2],
) -> Result<(&'a KubernetesMachine, &'a KubernetesMachine, Database<'a>)> {
    let database = cluster.database(name, &on).await?;
    let here = database.node().await?.expect("it runs");
    let [one, other] = on;
    let (here, there) = if one.name() == here { (one, other) } else { (other, one) };
    database.runs_on(here.name()).await?;

    here.kill_kubelet().await?;
    cluster.until_ready(here, false).await?;
    database.is_terminating().await?;
    database.still_writes(here.name()).await?;
    assert!(here.runs());
    let attached = [("attach", here.name()), ("mount", here.name())];
    assert_eq!(told(&database.csi_calls()), attached, "nothing lets go by itself");
    Ok((here, there, database))
}

async fn let_go(cluster: &Kubernetes, database: &Database<'_>, machine: &KubernetesMachine) -> Result<()> {
    cluster.kubectl(&["delete", "pod", &database.pod(), "--grace-period=0", "--force"]).await?;
    let taint = format!("{OUT_OF_SERVICE}=nodeshutdown:NoExecute");
    cluster.kubectl(&["taint", "node", machine.name(), &taint]).await.map(drop)
}

#[tokio::test]
async fn off_first_and_the_volume_has_one_writer_after_the_other() -> Result<()> {
    let cluster = cluster().await?;
    let lent = lend(2).await?;
    let (here, there, database) = stuck(cluster, "moved", lent.two()).await?;
    let switched = power(here).len();
    let boot = here.boot_id();
    assert_eq!(cluster.node(here).await?["status"]["nodeInfo"]["bootID"], boot.as_str());

    here.ipmitool().run("chassis power off").await?;
    let off = SystemTime::now();
    assert_eq!(here.ipmitool().power().await?, PowerWord::Off);
    assert!(!here.runs());
    let_go(cluster, &database, here).await?;
    database.runs_on(there.name()).await?;

    let writers = database.writers();
    assert_eq!(writers.nodes(), [here.name(), there.name()]);
    assert_eq!((writers.changes(), writers.overlaps()), (1, 0), "{} lines", writers.0.len());
    assert_eq!(writers.after(off).of(here.name()).0, [], "what is off writes nothing");
    let calls = database.csi_calls();
    let [here_is, there_is] = [here.name(), there.name()];
    assert_eq!(
        told(&calls),
        [
            ("attach", here_is),
            ("mount", here_is),
            ("detach", here_is),
            ("attach", there_is),
            ("mount", there_is)
        ]
    );
    assert!(calls.iter().all(|call| call.what != "detach" || call.at > off), "{calls:?}");

    here.ipmitool().run("chassis power on").await?;
    cluster.until_ready(here, true).await?;
    cluster.kubectl(&["taint", "node", here.name(), &format!("{OUT_OF_SERVICE}-")]).await?;
    assert_ne!(here.boot_id(), boot);
    assert_eq!(cluster.node(here).await?["status"]["nodeInfo"]["bootID"], here.boot_id());
    cluster.takes_pods(here).await?;
    assert_eq!(power(here)[switched..], ["off", "on"]);
    assert_eq!(database.writers().changes(), 1, "who is back does not write");
    no_more_of(cluster, "moved").await?;
    lent.leave().await?;
    Ok(())
}

/// Without this one the other shows nothing: here what it looks for is there, and is seen.
#[tokio::test]
async fn without_the_off_two_machines_write_to_one_volume_and_that_is_seen() -> Result<()> {
    let cluster = cluster().await?;
    let lent = lend(2).await?;
    let (here, there, database) = stuck(cluster, "torn", lent.two()).await?;
    let_go(cluster, &database, here).await?;
    database.runs_on(there.name()).await?;
    let torn = async || Ok(database.writers().overlaps() >= 20);
    until("two machines write to one volume", Duration::from_secs(120), torn).await?;
    assert!(here.runs() && there.runs());
    let writers = database.writers();
    assert!(writers.changes() > 20);
    assert_eq!(writers.nodes()[..3], [here.name(), there.name(), here.name()]);

    // A gateway on the control plane's host reaches the BMC, and knows by the Node's own UUID whose it is.
    let identity = format!("identity = {{ uuid = \"{}\" }}", here.uuid());
    let fleet = Fleet::new().node(here.name(), &Bmc::at(here.bmc().address()).with(&identity), &[]);
    let mut gateway = Gateway::within(cluster.place(), Daemon::Shipped, &fleet)?;
    gateway.begin(&[]).await?;
    let fenced = gateway.picket(&["fence", here.name(), "--yes", "--reason", "two writers"]).await?;
    assert_eq!(fenced.code, 0, "{fenced:?}\n{}", gateway.log());
    let off = SystemTime::now();
    assert!(!here.runs());
    database.still_writes(there.name()).await?;
    assert_eq!(database.writers().after(off).of(here.name()).0, []);

    gateway.stop().await?;
    no_more_of(cluster, "torn").await?;
    here.force(true).await?;
    cluster.until_ready(here, true).await?;
    cluster.kubectl(&["taint", "node", here.name(), &format!("{OUT_OF_SERVICE}-")]).await?;
    lent.leave().await?;
    Ok(())
}
