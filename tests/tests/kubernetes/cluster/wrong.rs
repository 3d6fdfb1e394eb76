//! An API server that is busy, a Node that the cluster does not have, and a login that is no kubeconfig: each is told, and does no harm.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use picket_tests::peers::until;
use picket_tests::{Daemon, Gateway, PASSWORD_VARIABLE, Result, picketd};

use crate::cluster::door::{Asked, Door};
use crate::cluster::fenced::{
    fence, is_told, login, made_anew, no_more, pods, power, settings, start, unfence, until_clean,
    until_they_run,
};
use crate::cluster::scene::{OUT_OF_SERVICE, cluster, lend, no_more_of};

fn is(asked: &Asked, method: &str, end: &str) -> bool {
    asked.method == method && asked.path.split('?').next().unwrap_or_default().ends_with(end)
}

/// Each kind of request of a release fails once, with 503 or 429, and one is answered late: it goes on, deletes no pod twice, and completes.
#[tokio::test]
async fn what_is_answered_503_or_429_or_late_is_asked_for_again_and_done_once() -> Result<()> {
    let (cluster, lent) = (cluster().await?, lend(1).await?);
    let machine = lent.one();
    let switched = power(machine).len();
    cluster.idle_pods("wrong", 3, machine).await?;
    let old = pods(cluster, "wrong").await?;
    let door = Door::before(cluster, &login(cluster).await?).await?;
    let nodes = [(machine.name(), machine, "pods")];
    let fleet = settings(cluster, door.login(), &nodes, &no_more).await?;
    let mut gateway = Gateway::within(cluster.place(), Daemon::Shipped, &fleet)?;
    gateway.begin(&[]).await?;
    gateway.checked().await?;
    let node = machine.name();
    door.fail(503, |one| is(one, "GET", "/api/v1/pods"));
    door.fail(429, |one| is(one, "GET", "/volumeattachments"));
    door.fail(429, move |one| is(one, "PATCH", node) && !one.body.contains(OUT_OF_SERVICE));
    door.fail(503, move |one| is(one, "PATCH", node) && one.body.contains(OUT_OF_SERVICE));
    door.fail(503, |one| is(one, "PATCH", "/wrong-0/status"));
    door.fail(429, |one| is(one, "DELETE", "/wrong-1"));
    // Nobody waits for it any more when it arrives.
    door.hold(1, |one| is(one, "DELETE", "/wrong-2"));
    fence(&gateway, node, "confirmed").await?;
    door.until_held(1).await?;
    let anew = made_anew(cluster, "wrong", &old).await?;
    for one in door.let_go().await? {
        assert!(matches!(one.status, Some(404 | 409)), "{one:#?}\n{}", gateway.log());
    }
    is_told(&gateway, node, "released").await?;
    assert_eq!(door.to_fail(), 0, "{:#?}", door.changes());
    for n in 0..3 {
        let it = format!("/wrong-{n}");
        let done = door.changes().into_iter().filter(|one| is(one, "DELETE", &it) && one.status == Some(200));
        // Whom its own controller has deleted meanwhile, since it is Failed, nobody deletes again.
        assert!(done.count() <= 1, "{it}: {:#?}", door.changes());
    }
    assert_eq!(pods(cluster, "wrong").await?, anew);
    unfence(&gateway, node).await?;
    cluster.until_ready(machine, true).await?;
    until_they_run(cluster, "wrong", anew.len()).await?;
    assert_eq!(pods(cluster, "wrong").await?, anew, "nobody deletes them again");
    assert_eq!(power(machine)[switched..], ["off", "on"]);
    no_more_of(cluster, "wrong").await?;
    until_clean(cluster, machine).await?;
    lent.leave().await?;
    Ok(())
}

/// It is told by a check, and by the fence, which is proven and lets nothing go.
#[tokio::test]
async fn a_node_that_the_cluster_does_not_have_is_told() -> Result<()> {
    let (cluster, lent) = (cluster().await?, lend(1).await?);
    let machine = lent.one();
    let gateway = start(cluster, &[("n99", machine, "pods")], &no_more).await?;
    let checked = gateway.picket(&["check", "n99"]).await?;
    assert!(checked.out.contains("that cluster has no Node n99"), "{checked:?}");
    fence(&gateway, "n99", "confirmed").await?;
    is_told(&gateway, "n99", "nodes \"n99\" not found").await?;
    assert!(!machine.runs());
    machine.force(true).await?;
    cluster.until_ready(machine, true).await?;
    lent.leave().await?;
    Ok(())
}

/// `picketd --check`, the start and a check of the node name the file and what is wrong with it. That it is so is no fault: a gateway without it fences all the same.
#[tokio::test]
async fn a_kubeconfig_that_is_missing_or_garbled_is_told_by_its_name() -> Result<()> {
    let (cluster, lent) = (cluster().await?, lend(1).await?);
    let machine = lent.one();
    let directory = cluster.directory().join("wrong-logins");
    std::fs::create_dir_all(&directory).expect("a directory");
    let (missing, garbled) = (directory.join("missing"), directory.join("garbled"));
    std::fs::write(&garbled, "clusters: [oh: no").expect("a file");
    std::fs::set_permissions(&garbled, std::fs::Permissions::from_mode(0o600)).expect("a mode");
    for (login, why) in [(&missing, "No such file"), (&garbled, "failed to parse")] {
        let fleet = settings(cluster, login, &[(machine.name(), machine, "pods")], &no_more).await?;
        let mut gateway = Gateway::within(cluster.place(), Daemon::Shipped, &fleet)?;
        let named = format!("kubeconfig {}: ", login.display());
        let is_told = |said: &str| said.contains(&named) && said.contains(why);
        let password = [(PASSWORD_VARIABLE, "any")];
        let checked = picketd(&gateway.settings_file(), &["--check"], &password).await?;
        assert!(checked.code == 0 && is_told(&checked.out), "a note, and no fault: {checked:?}");
        gateway.begin(&[]).await?;
        assert!(is_told(&gateway.log()), "at its start: {}", gateway.log());
        let checked = async || Ok(is_told(&gateway.picket(&["check", machine.name()]).await?.out));
        until("a check tells it", Duration::from_secs(60), checked).await?;
    }
    lent.leave().await?;
    Ok(())
}
