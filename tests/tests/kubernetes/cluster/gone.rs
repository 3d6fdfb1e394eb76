//! The API server, as a gateway sees it, is gone just after the off.

use std::time::Duration;

use picket_tests::peers::{eventually, until};
use picket_tests::{Daemon, Gateway, Result};

use crate::cluster::door::Door;
use crate::cluster::fenced::{
    fence, is_told, login, made_anew, no_more, pods, power, settings, taints, unfence, until_clean,
    until_they_run,
};
use crate::cluster::scene::{OUT_OF_SERVICE, cluster, lend, no_more_of};

/// It is held off and nothing is let go; when the API server is back the same fence goes on: the machine is switched off and on once.
#[tokio::test]
async fn it_is_held_off_until_the_api_server_is_back_and_is_switched_once() -> Result<()> {
    let cluster = cluster().await?;
    let lent = lend(1).await?;
    let machine = lent.one();
    let switched = power(machine).len();
    cluster.idle_pods("gone", 2, machine).await?;
    let old = pods(cluster, "gone").await?;
    let door = Door::before(cluster, &login(cluster).await?).await?;
    let nodes = [(machine.name(), machine, "pods")];
    let fleet = settings(cluster, door.login(), &nodes, &no_more).await?;
    let mut gateway = Gateway::within(cluster.place(), Daemon::Hooked, &fleet)?;
    let paused = gateway.directory().join("paused");
    let at = paused.display().to_string();
    gateway.begin(&[("PICKET_PAUSE_AT", "sent off"), ("PICKET_PAUSE_FILE", &at)]).await?;

    let meanwhile = async {
        eventually("the off is sent", Duration::from_secs(120), || paused.exists()).await?;
        door.shut();
        std::fs::remove_file(&paused).expect("it is there");
        let tries = async || Ok(door.turned_away() >= 4);
        until("it is asked for again and again", Duration::from_secs(120), tries).await?;
        is_told(&gateway, machine.name(), "release pods to complete").await?;
        assert!(!machine.runs());
        let node = cluster.node(machine).await?;
        assert!(!taints(&node).contains(&OUT_OF_SERVICE), "{node:#}");
        assert_eq!(pods(cluster, "gone").await?, old, "nothing is let go\n{}", gateway.log());
        door.open();
        Ok(())
    };
    tokio::try_join!(fence(&gateway, machine.name(), "released"), meanwhile)?;
    let new = made_anew(cluster, "gone", &old).await?;
    unfence(&gateway, machine.name()).await?;
    cluster.until_ready(machine, true).await?;
    until_they_run(cluster, "gone", new.len()).await?;
    assert_eq!(pods(cluster, "gone").await?, new);
    assert_eq!(power(machine)[switched..], ["off", "on"]);
    no_more_of(cluster, "gone").await?;
    until_clean(cluster, machine).await?;
    lent.leave().await?;
    Ok(())
}
