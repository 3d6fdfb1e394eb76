//! Two gateways with one owner, each with a store of its own, over one cluster (K7).

use std::time::Duration;

use picket_tests::peers::until;
use picket_tests::{Daemon, Gateway, Result};
use serde_json::Value;

use crate::cluster::fenced::{fence, is_told, login, no_more, settings, unfence, until_clean};
use crate::cluster::scene::{cluster, lend};

const TOLD: &str = "has the owner \"picket\" too";

/// In the name of which store the Node is noted.
fn store(node: &Value) -> Option<String> {
    let note = node["metadata"]["annotations"]["picket.dev/fence-picket"].as_str()?;
    serde_json::from_str::<Value>(note).ok()?["store"].as_str().map(str::to_owned)
}

/// Each says so of what the other one noted, and lets it be; what neither noted is nobody's fault.
#[tokio::test]
async fn two_gateways_with_one_owner_and_two_stores_tell_of_each_other() -> Result<()> {
    let cluster = cluster().await?;
    let lent = lend(1).await?;
    let machine = lent.one();
    let name = machine.name();
    let fleet = settings(cluster, &login(cluster).await?, &[(name, machine, "pods")], &no_more).await?;
    let mut one = Gateway::within(cluster.place(), Daemon::Shipped, &fleet)?;
    let mut other = Gateway::within(cluster.place(), Daemon::Shipped, &fleet)?;
    for gateway in [&mut one, &mut other] {
        gateway.begin(&[]).await?;
        let checked = gateway.picket(&["check", name]).await?;
        assert!(!checked.out.contains(TOLD), "{checked:?}");
    }
    for (fences, reads) in [(&one, &other), (&other, &one)] {
        fence(fences, name, "released").await?;
        assert!(store(&cluster.node(machine).await?).is_some());
        let checked = reads.picket(&["check", name]).await?;
        assert!(checked.out.contains(TOLD) && checked.out.contains("its own owner"), "{checked:?}");
        let own = fences.picket(&["check", name]).await?;
        assert!(!own.out.contains(TOLD), "{own:?}");
        unfence(fences, name).await?;
        cluster.until_ready(machine, true).await?;
        until_clean(cluster, machine).await?;
        let over = async || Ok(!reads.picket(&["check", name]).await?.out.contains(TOLD));
        until("it is not told any more", Duration::from_secs(60), over).await?;
    }

    // A fence beside the note of the other one has its off and its proof, and its release waits for a person.
    fence(&one, name, "released").await?;
    let noted = store(&cluster.node(machine).await?);
    fence(&other, name, "confirmed").await?;
    is_told(&other, name, TOLD).await?;
    assert_eq!(store(&cluster.node(machine).await?), noted);
    other.stop().await?;
    unfence(&one, name).await?;
    cluster.until_ready(machine, true).await?;
    until_clean(cluster, machine).await?;
    lent.leave().await?;
    Ok(())
}
