//! A machine that is not there for a while, though it runs.

use picket_tests::Result;
use picket_tests::peers::PowerWord;

use crate::cluster::fenced::power;
use crate::cluster::scene::{cluster, lend, no_more_of};

#[tokio::test]
async fn one_that_hangs_is_cut_off_or_has_no_kubelet_is_not_ready_until_that_is_over() -> Result<()> {
    let cluster = cluster().await?;
    let lent = lend(1).await?;
    let machine = lent.one();
    let switched = power(machine);
    let database = cluster.database("away", &[machine]).await?;
    database.runs_on(machine.name()).await?;
    let boot = machine.boot_id();

    let frozen = machine.freeze();
    let written = database.writers();
    cluster.until_ready(machine, false).await?;
    database.is_terminating().await?;
    assert_eq!(database.writers(), written, "what stands writes nothing");
    assert!(machine.runs(), "it may go on at any moment");
    assert_eq!(machine.ipmitool().power().await?, PowerWord::On);
    drop(frozen);
    cluster.until_ready(machine, true).await?;
    // What was to be deleted is deleted now, and the next one has the volume.
    database.runs_on(machine.name()).await?;

    let cut = machine.cut_off()?;
    cluster.until_ready(machine, false).await?;
    database.is_terminating().await?;
    database.still_writes(machine.name()).await?;
    assert_eq!(machine.ipmitool().power().await?, PowerWord::On, "its BMC is not cut off");
    drop(cut);
    cluster.until_ready(machine, true).await?;
    database.runs_on(machine.name()).await?;

    machine.kill_kubelet().await?;
    cluster.until_ready(machine, false).await?;
    database.still_writes(machine.name()).await?;
    machine.start_kubelet()?;
    cluster.until_ready(machine, true).await?;

    assert_eq!(machine.boot_id(), boot);
    assert_eq!(power(machine), switched);
    no_more_of(cluster, "away").await?;
    lent.leave().await?;
    Ok(())
}
