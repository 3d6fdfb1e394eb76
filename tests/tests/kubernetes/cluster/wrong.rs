//! An API server that is busy, a Node that the cluster does not have, and a login that is no kubeconfig: each is told, and does no harm.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use picket_tests::peers::until;
use picket_tests::{Daemon, Gateway, PASSWORD_VARIABLE, Result, Said, picketd};

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

/// `picketd --check`, the start and a check of the node name a kubeconfig that is not there. That is no fault: a gateway without it fences all the
/// same, and reads it once it is there.
#[tokio::test]
async fn a_kubeconfig_that_is_missing_is_told_by_its_name() -> Result<()> {
    let (cluster, lent) = (cluster().await?, lend(1).await?);
    let machine = lent.one();
    let missing = cluster.directory().join("no-login");
    let fleet = settings(cluster, &missing, &[(machine.name(), machine, "pods")], &no_more).await?;
    let mut gateway = Gateway::within(cluster.place(), Daemon::Shipped, &fleet)?;
    let named = format!("kubeconfig {}: ", missing.display());
    let is_told = |said: &str| said.contains(&named) && said.contains("No such file");
    let checked = check(&gateway).await?;
    assert!(checked.code == 0 && is_told(&checked.out), "a note, and no fault: {checked:?}");
    gateway.begin(&[]).await?;
    assert!(is_told(&gateway.log()), "at its start: {}", gateway.log());
    let checked = async || Ok(is_told(&gateway.picket(&["check", machine.name()]).await?.out));
    until("a check tells it", Duration::from_secs(60), checked).await?;
    lent.leave().await?;
    Ok(())
}

async fn check(gateway: &Gateway) -> Result<Said> {
    picketd(&gateway.settings_file(), &["--check"], &[(PASSWORD_VARIABLE, "any")]).await
}

/// One that is there, and by which nobody can log in, is a fault of the settings, and so is the name of a namespace for its UID.
#[tokio::test]
async fn a_kubeconfig_that_is_wrong_is_a_fault_at_its_key() -> Result<()> {
    let (cluster, lent) = (cluster().await?, lend(1).await?);
    let machine = lent.one();
    let directory = cluster.directory().join("wrong-logins");
    std::fs::create_dir_all(&directory).expect("a directory");
    let whole = "contexts: [{name: c, context: {cluster: c, user: u}}]\n\
                 clusters: [{name: c, cluster: {server: 'https://127.0.0.1:6443'}}]\nusers: [{name: u, user: {tokenFile: /nowhere/t}}]\n";
    for (name, text, why) in [
        ("garbled", "clusters: [oh: no", "failed to parse"),
        ("contextless", whole, "it has no current-context"),
        ("elsewhere", &format!("current-context: d\n{whole}"), "it has no context d: it has c"),
        ("tokenless", &format!("current-context: c\n{whole}"), "/nowhere/t cannot be read"),
    ] {
        let login = directory.join(name);
        std::fs::write(&login, text).expect("a file");
        std::fs::set_permissions(&login, std::fs::Permissions::from_mode(0o600)).expect("a mode");
        let fleet = settings(cluster, &login, &[(machine.name(), machine, "pods")], &no_more).await?;
        let checked = check(&Gateway::within(cluster.place(), Daemon::Shipped, &fleet)?).await?;
        let told = format!("{}{}", checked.out, checked.err);
        let named = format!("releases.pods.kubeconfig: kubeconfig {}: ", login.display());
        assert!(checked.code != 0 && told.contains(&named) && told.contains(why), "{name}: {checked:?}");
    }
    let named = |_: &str, login: &str| {
        format!("[releases.named]\nkind = \"kubernetes\"\ncluster_uid = \"kube-system\"\n{login}")
    };
    let fleet =
        settings(cluster, &login(cluster).await?, &[(machine.name(), machine, "pods")], &named).await?;
    let checked = check(&Gateway::within(cluster.place(), Daemon::Shipped, &fleet)?).await?;
    let told = format!("{}{}", checked.out, checked.err);
    assert!(checked.code != 0 && told.contains("releases.named.cluster_uid: expected a UID"), "{checked:?}");
    lent.leave().await?;
    Ok(())
}
