//! The last looks (S15, K9): what the cluster says of a Node before anything is done to its machine.

use std::time::Duration;

use picket_tests::peers::{Kubernetes, KubernetesMachine, eventually, until};
use picket_tests::{Daemon, Gateway, Result};

use crate::cluster::door::Door;
use crate::cluster::fenced::{RECOVERED, done, is_told, login, power, settings, unfence, until_clean};
use crate::cluster::scene::{cluster, lend};

/// A gateway that asks by the door's login whether the machine recovered, and lets go by it.
async fn asking(
    cluster: &Kubernetes,
    machine: &KubernetesMachine,
    door: &Door,
    everybody: &str,
) -> Result<Gateway> {
    let source = |uid: &str, login: &str| {
        let name = machine.name();
        format!(
            "[roles.everybody]\nrole = {everybody:?}\ncallers = [\"uid:*\"]\n[groups.all]\nhosts = {name:?}\n\
             [groups.all.liveness]\nkind = \"kubernetes\"\ncluster_uid = {uid:?}\n{login}"
        )
    };
    let fleet = settings(cluster, door.login(), &[(machine.name(), machine, "pods")], &source).await?;
    Gateway::within(cluster.place(), Daemon::Hooked, &fleet)
}

/// Not Ready when it is asked for, and Ready again once the hold stands, right before the off: nothing is sent, and the hold is undone.
#[tokio::test]
async fn who_is_ready_again_right_before_the_off_is_let_be() -> Result<()> {
    let cluster = cluster().await?;
    let lent = lend(1).await?;
    let machine = lent.one();
    let switched = power(machine);
    let door = Door::before(cluster, &login(cluster).await?).await?;
    let mut gateway = asking(cluster, machine, &door, "controller").await?;
    let paused = gateway.directory().join("paused");
    let at = paused.display().to_string();
    gateway.begin(&[("PICKET_PAUSE_AT", "sent hold"), ("PICKET_PAUSE_FILE", &at)]).await?;
    machine.kill_kubelet().await?;
    cluster.until_ready(machine, false).await?;

    let fence = ["fence", machine.name(), "--yes", "--reason", "a test"];
    let meanwhile = async {
        eventually("the hold is sent", Duration::from_secs(120), || paused.exists()).await?;
        machine.start_kubelet()?;
        cluster.until_ready(machine, true).await?;
        std::fs::remove_file(&paused).expect("it is there");
        Ok(())
    };
    let (aborted, ()) = tokio::try_join!(gateway.picket(&fence), meanwhile)?;
    assert_eq!(aborted.code, RECOVERED, "{aborted:?}\n{}", gateway.log());
    assert!(aborted.out.contains("Ready is True"), "{aborted:?}");
    assert_eq!(power(machine), switched, "nothing was sent");
    until_clean(cluster, machine).await?;
    lent.leave().await?;
    Ok(())
}

/// While the API server cannot be reached a program's fence waits for its word, with nothing sent; then the machine is fenced, as it is not Ready.
/// Who is Ready again after the off is fenced to the end.
#[tokio::test]
async fn while_the_api_server_is_away_a_program_s_fence_waits() -> Result<()> {
    let cluster = cluster().await?;
    let lent = lend(1).await?;
    let machine = lent.one();
    let switched = power(machine).len();
    let door = Door::before(cluster, &login(cluster).await?).await?;
    let mut gateway = asking(cluster, machine, &door, "controller").await?;
    gateway.begin(&[]).await?;
    machine.kill_kubelet().await?;
    cluster.until_ready(machine, false).await?;

    door.shut();
    let fence = ["fence", machine.name(), "--yes", "--reason", "a test"];
    let meanwhile = async {
        is_told(&gateway, machine.name(), "whether the node recovered (").await?;
        let turned_away = door.turned_away();
        let again = async || Ok(door.turned_away() > turned_away + 4);
        until("it is asked again and again", Duration::from_secs(120), again).await?;
        assert_eq!(power(machine).len(), switched, "nothing is sent meanwhile\n{}", gateway.log());
        door.open();
        Ok(())
    };
    let (fenced, ()) = tokio::try_join!(gateway.picket(&fence), meanwhile)?;
    assert_eq!(fenced.code, 0, "{fenced:?}\n{}", gateway.log());
    assert!(!machine.runs());
    machine.start_kubelet()?;
    unfence(&gateway, machine.name()).await?;
    cluster.until_ready(machine, true).await?;
    until_clean(cluster, machine).await?;
    assert_eq!(power(machine)[switched..], ["off", "on"]);
    lent.leave().await?;
    Ok(())
}

/// A person who fences meanwhile is warned, and the machine is off without the API server; what is let go waits for it, to whom it is known by then.
#[tokio::test]
async fn while_the_api_server_is_away_a_person_s_fence_warns_and_goes_on() -> Result<()> {
    let cluster = cluster().await?;
    let lent = lend(1).await?;
    let machine = lent.one();
    let switched = power(machine).len();
    let door = Door::before(cluster, &login(cluster).await?).await?;
    let mut gateway = asking(cluster, machine, &door, "admin").await?;
    gateway.begin(&[]).await?;

    door.shut();
    let fence = ["fence", machine.name(), "--yes", "--until", "confirmed", "--reason", "a test"];
    let confirmed = gateway.picket(&fence).await?;
    assert_eq!(confirmed.code, 0, "{confirmed:?}\n{}", gateway.log());
    let warned = "release pods: that it is being fenced is not told there yet: ";
    assert_eq!(confirmed.out.matches(warned).count(), 1, "{confirmed:?}");
    assert_eq!(power(machine)[switched..], ["off"], "the cluster thinks well of it, and a person does not");
    assert!(door.turned_away() > 0);

    door.open();
    done(&gateway, &["fence", machine.name(), "--yes", "--reason", "a test"]).await?;
    unfence(&gateway, machine.name()).await?;
    cluster.until_ready(machine, true).await?;
    until_clean(cluster, machine).await?;
    lent.leave().await?;
    Ok(())
}
