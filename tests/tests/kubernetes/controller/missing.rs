//! What is missing is said before it is needed, by name.

use std::time::Duration;

use picket_tests::peers::until;
use picket_tests::{PeerError, Result, Said, program};
use serde_json::json;

use crate::controller::held::lasts;
use crate::controller::scene::{Scene, write};

#[tokio::test]
async fn what_is_missing_is_said_all_at_once_and_by_name() -> Result<()> {
    let scene = Scene::open().await?;
    let [nobody, gateway] = scene.endpoints();
    let check = async |settings: &std::path::Path| {
        scene.run(&["--config", &settings.display().to_string(), "check"]).await
    };
    let right = scene.settings("right", &[&gateway], scene.login())?;
    let (code, out, err) = check(&right).await?;
    assert_eq!((code, out.as_str()), (0, "everything that is needed is there\n"), "{err}");

    let stranger = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": "x9", "labels": { "role": "worker" } },
    });
    scene.cluster.apply(&stranger).await?;
    let (code, _, err) = check(&right).await?;
    assert_eq!(code, 75, "{err}");
    assert!(err.contains("node: no node of the gateway is Node x9: there is no node \"x9\""), "{err}");
    scene.cluster.kubectl(&["delete", "node", "x9"]).await?;

    let rules = json!([{ "apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"] }]);
    let poor = scene.cluster.account("poor", &rules).await?;
    scene.cluster.kubectl(&["delete", "crd", "fencingpolicies.picket.dev"]).await?;
    let wrong = scene.settings("wrong", &[&nobody, &gateway], &poor)?;
    let (code, _, err) = check(&wrong).await?;
    assert_eq!(code, 75, "{err}");
    for words in [
        "this account may not patch nodes (",
        "may not list leases.coordination.k8s.io in the namespace kube-node-lease",
        "may not patch fencingpolicies.picket.dev/status",
        "may not create events.events.k8s.io in the namespace default",
        "definition: fencingpolicies.picket.dev is missing",
        "gateway: https://10.250.0.1:7069: ",
    ] {
        assert!(err.contains(words), "{words} is not in\n{err}");
    }
    assert!(!err.contains("may not get nodes") && !err.contains(":7070"), "{err}");

    // One of another version is no better.
    let other = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "fencingpolicies.picket.dev" },
        "spec": {
            "group": "picket.dev",
            "scope": "Cluster",
            "names": { "plural": "fencingpolicies", "singular": "fencingpolicy", "kind": "FencingPolicy" },
            "versions": [{
                "name": "v1beta9",
                "served": true,
                "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
            }],
        },
    });
    scene.cluster.apply(&other).await?;
    until("it is told", Duration::from_secs(60), async || {
        let (code, _, err) = check(&right).await?;
        Ok(code == 75
            && err.contains("fencingpolicies.picket.dev is there in v1beta9, and this controller speaks"))
    })
    .await?;
    scene.cluster.kubectl(&["delete", "crd", "fencingpolicies.picket.dev"]).await?;

    // It waits for its definition, and works once that is there.
    let controller = scene.controller("one")?;
    scene.logged(&controller, "a watch broke").await?;
    lasts(20).await?;
    let log = controller.log();
    let told = log.lines().filter(|line| line.contains("a watch broke") && line.contains("fencingpolicies"));
    let told: Vec<&str> = told.collect();
    assert!(told.len() <= 2, "once, and not each second: {told:?}");
    let words = "the definition fencingpolicies.picket.dev is missing; apply it: picket-controller crds | kubectl apply -f -";
    assert!(told.iter().any(|line| line.contains(words)), "{log}");
    scene.define().await?;
    scene.policy(&json!({})).await?;
    scene.told("workers", "Acting", "Acting").await?;
    Ok(())
}

/// K10: where somebody said where kured is, it has to be there.
#[tokio::test]
async fn a_kured_that_is_not_where_it_was_said_to_be_is_missing() -> Result<()> {
    let scene = Scene::open().await?;
    let [_, gateway] = scene.endpoints();
    let rules = json!([{ "apiGroups": ["apps"], "resources": ["daemonsets"], "verbs": ["get"] }]);
    let reader = scene.cluster.account("daemonsets", &rules).await?;
    let settings = scene.settings("elsewhere", &[&gateway], &reader)?;
    let text = std::fs::read_to_string(&settings).unwrap_or_default();
    write(&settings, &text.replace("[controller]", "kured = \"default/reboots\"\n[controller]"))?;
    let missing = "kubernetes.kured: there is no DaemonSet default/reboots";
    let config = settings.display().to_string();
    let (_, _, err) = scene.run(&["--config", &config, "check"]).await?;
    assert!(err.contains(missing), "{err}");

    let labels = json!({ "name": "reboots" });
    let kured = json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": { "name": "reboots", "namespace": "default" },
        "spec": {
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "nodeSelector": { "no-such-label": "here" },
                    "containers": [{ "name": "kured", "image": "example.org/kured" }],
                },
            },
        },
    });
    scene.cluster.apply(&kured).await?;
    let (_, _, err) = scene.run(&["--config", &config, "check"]).await?;
    assert!(!err.contains("kubernetes.kured"), "{err}");
    scene.cluster.kubectl(&["delete", "daemonset", "reboots"]).await.map(drop)
}

#[tokio::test]
async fn settings_that_are_wrong_are_told_by_their_keys() -> Result<()> {
    let scene = Scene::open().await?;
    let file = scene.settings("wrong", &["http://10.250.0.1:7070"], scene.login())?;
    let (code, _, err) = scene.run(&["--config", &file.display().to_string(), "check"]).await?;
    assert_eq!(code, 78, "{err}");
    assert!(err.contains("wrong.toml: gateway.endpoints: "), "{err}");
    Ok(())
}

/// What a kubeconfig is that cannot be used, by its name, and what is told of it.
const UNUSABLE: [(&str, Option<&str>, &str); 8] = [
    ("missing", None, "No such file"),
    ("garbled", Some("clusters: [oh: no"), "failed to parse"),
    ("empty", Some(""), "it has no current-context"),
    ("contextless", Some("current-context: there\n"), "it has no context there"),
    (
        "clusterless",
        Some("current-context: c\ncontexts: [{name: c, context: {cluster: there, user: u}}]\n"),
        "names the cluster there: it has none",
    ),
    (
        "serverless",
        Some(
            "current-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n\
             clusters: [{name: c, cluster: {}}]\nusers: [{name: u, user: {token: t}}]\n",
        ),
        "its cluster c has no server",
    ),
    (
        "plain",
        Some(
            "current-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n\
             clusters: [{name: c, cluster: {server: \"http://127.0.0.1:6443\"}}]\nusers: [{name: u, user: {token: t}}]\n",
        ),
        "https alone is believed",
    ),
    (
        "programmed",
        Some(
            "current-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n\
             clusters: [{name: c, cluster: {server: \"https://127.0.0.1:6443\"}}]\n\
             users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: aws}}}]\n",
        ),
        "set login_program to its absolute path",
    ),
];

/// Both a check and the controller end by it, and whoever starts it again has it look again.
#[tokio::test]
async fn a_kubeconfig_that_cannot_be_used_ends_it_with_the_file_s_name_and_what_would_be_right() -> Result<()>
{
    let folder = tempfile::tempdir().map_err(PeerError::io("make a directory"))?;
    for (name, text, why) in UNUSABLE {
        let login = folder.path().join(name);
        if let Some(text) = text {
            write(&login, text)?;
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            std::fs::set_permissions(&login, mode).map_err(PeerError::io("chmod"))?;
        }
        let settings = folder.path().join("controller.toml");
        let said = format!(
            "[gateway]\nendpoints = [\"https://127.0.0.1:7070\"]\nca_file = \"/ca.pem\"\ncert_file = \"/c.pem\"\n\
             key_file = \"/c.key\"\n[kubernetes]\nkubeconfig = {login:?}\n[controller]\nidentity = \"one\"\n",
        );
        write(&settings, &said)?;
        for task in [&["check"][..], &[]] {
            let mut command = tokio::process::Command::new(program("picket-controller")?);
            command.arg("--config").arg(&settings).args(task).kill_on_drop(true);
            let ended = tokio::time::timeout(Duration::from_secs(60), command.output()).await;
            let ended = ended.unwrap_or_else(|_| panic!("{name}: it goes on"));
            let said = Said::of(ended.map_err(PeerError::io("run picket-controller"))?);
            assert_eq!(said.code, 75, "{name}: {said:?}");
            let right = format!("kubernetes.kubeconfig = {login:?}: it names a file as kubectl takes it");
            assert!(said.err.contains(why) && said.err.contains(&right), "{name}: {said:?}");
            assert!(!said.err.contains("panicked"), "{name}: {said:?}");
        }
    }
    Ok(())
}
