//! What must not be fenced.

use std::time::Duration;

use picket_tests::Result;
use picket_tests::peers::until;
use serde_json::json;
use tokio::time::Instant;

use crate::controller::scene::Scene;

/// So long nothing else happens.
pub async fn lasts(seconds: u64) -> Result<()> {
    let turned = Instant::now();
    until("a while passes", Duration::from_secs(seconds + 30), async || {
        Ok(turned.elapsed() > Duration::from_secs(seconds))
    })
    .await
}

/// So many Nodes more that are well: else those that are not would be too many at once.
async fn joined(scene: &Scene, zone: &str, count: u32) -> Result<()> {
    let labels = json!({ "role": "worker", "topology.kubernetes.io/zone": zone });
    for number in 1..=count {
        scene.kubelets.joins(&format!("x{number}"), &labels).await?;
    }
    Ok(())
}

/// A network plugin that does not work is rolled out: each kubelet lives, and says that its Node is not Ready.
#[tokio::test]
async fn where_most_nodes_say_at_once_that_they_are_not_ready_none_is_fenced() -> Result<()> {
    let workers: Vec<String> = (1..=40).map(|number| format!("n{number}")).collect();
    let scene = Scene::of(40).await?;
    scene.policy(&quick()).await?;
    let controller = scene.controller("one")?;
    scene.told("workers", "Acting", "Acting").await?;
    scene.kubelets.all_say(&workers, false).await?;
    let words = scene.told("workers", "Acting", "Braked").await?;
    assert!(words.contains("unhealthy") && words.contains("the observer is suspect"), "{words}");
    // Longer than a minute: what is forgotten by then would be a window for the next round.
    lasts(70).await?;
    assert_eq!((scene.fences().await?, controller.asked()), (Vec::new(), 0), "{}", controller.log());
    let said = scene.http("/metrics").await?;
    assert!(said.contains("picket_controller_braked{by=\"leases\"} 0"), "{said}");
    assert!(!said.contains("picket_controller_braked{by=\"conditions\"} 0"), "{said}");
    // It is mended, but for one.
    scene.kubelets.all_say(&workers[..39], true).await?;
    scene.event("n40", "Fenced", &controller).await?;
    assert_eq!(scene.fences().await?, ["n40"]);
    Ok(())
}

fn quick() -> serde_json::Value {
    json!({ "unhealthyConditions": [{ "type": "Ready", "status": "False", "forSeconds": 8 }], "quietSeconds": 30 })
}

#[tokio::test]
async fn what_is_cordoned_excluded_paused_or_flaps_is_left_alone_and_what_is_dead_beside_it_is_not()
-> Result<()> {
    let scene = Scene::open().await?;
    joined(&scene, "a", 5).await?;
    scene.policy(&quick()).await?;
    let controller = scene.controller("one")?;
    scene.told("workers", "Acting", "Acting").await?;
    scene.cluster.kubectl(&["cordon", "n1"]).await?;
    scene
        .cluster
        .kubectl(&["label", "node", "n2", "remediation.medik8s.io/exclude-from-remediation=true"])
        .await?;
    scene.cluster.kubectl(&["annotate", "node", "n3", "picket.dev/paused=yes"]).await?;
    for node in ["n1", "n2", "n3", "n5"] {
        scene.kubelets.says(node, false).await?;
    }
    // It comes and goes, quicker than eight seconds.
    for ready in [false, true, false, true, false, true] {
        scene.kubelets.says("n4", ready).await?;
        lasts(3).await?;
    }
    // Its machine boots by itself: what comes after that is no part of what was before.
    scene.kubelets.says("n4", false).await?;
    lasts(5).await?;
    scene.kubelets.boots_and_says("n4", false).await?;
    lasts(5).await?;
    scene.kubelets.says("n4", true).await?;
    scene.event("n5", "Fenced", &controller).await?;
    for (node, why) in [("n1", "cordoned"), ("n2", "exclude-from-remediation"), ("n3", "picket.dev/paused")] {
        let words = scene.event(node, "FenceWithheld", &controller).await?;
        assert!(words.contains(why), "{node}: {words}");
    }
    assert_eq!(scene.fences().await?, ["n5"], "{}", controller.log());
    // Once nobody excludes it, it is.
    scene
        .cluster
        .kubectl(&["label", "node", "n2", "remediation.medik8s.io/exclude-from-remediation-"])
        .await?;
    scene.event("n2", "Fenced", &controller).await?;
    assert_eq!(scene.fences().await?, ["n5", "n2"]);
    scene.cluster.kubectl(&["uncordon", "n1"]).await.map(drop)
}

/// K10: who holds the lock of kured, or is at work for machine-config, comes back by itself.
#[tokio::test]
async fn whose_reboot_is_planned_is_left_alone_until_it_is_not_any_more() -> Result<()> {
    let scene = Scene::open().await?;
    scene.policy(&quick()).await?;
    let labels = json!({ "name": "kured" });
    let kured = |lock: &str| {
        json!({
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": { "name": "kured", "namespace": "kube-system", "annotations": { "weave.works/kured-node-lock": lock } },
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
        })
    };
    scene.cluster.apply(&kured(r#"{"nodeID":"n1","metadata":{"unschedulable":false}}"#)).await?;
    let working = "machineconfiguration.openshift.io/state=Rebooting";
    scene.cluster.kubectl(&["annotate", "node", "n2", working]).await?;
    let controller = scene.controller("one")?;
    scene.told("workers", "Acting", "Acting").await?;
    for node in ["n1", "n2", "n4"] {
        scene.kubelets.says(node, false).await?;
    }
    for (node, why) in [("n1", "kured"), ("n2", "machineconfiguration")] {
        let words = scene.event(node, "FenceWithheld", &controller).await?;
        assert!(words.contains(why), "{node}: {words}");
    }
    scene.event("n4", "Fenced", &controller).await?;
    assert_eq!(scene.fences().await?, ["n4"], "{}", controller.log());
    // The lock was given back, and it is not Ready still.
    scene.cluster.apply(&kured("")).await?;
    scene.event("n1", "Fenced", &controller).await?;
    assert_eq!(scene.fences().await?, ["n4", "n1"]);
    scene.cluster.kubectl(&["-n", "kube-system", "delete", "daemonset", "kured"]).await.map(drop)
}

#[tokio::test]
async fn a_control_plane_that_stands_still_costs_nobody_a_fence() -> Result<()> {
    let scene = Scene::open().await?;
    let both = json!({
        "unhealthyConditions": [
            { "type": "Ready", "status": "False", "forSeconds": 20 },
            { "type": "Ready", "status": "Unknown", "forSeconds": 20 },
        ],
    });
    scene.policy(&both).await?;
    let controller = scene.controller("one")?;
    scene.told("workers", "Acting", "Acting").await?;
    // One of them is suspect when it happens, and has recovered when it is over: nobody saw that.
    scene.kubelets.says("n1", false).await?;
    lasts(8).await?;
    let stopped = scene.cluster.stop_api_server();
    lasts(60).await?;
    assert_eq!(controller.asked(), 0, "{}", controller.log());
    drop(stopped);
    scene.kubelets.says("n1", true).await?;
    scene.logged(&controller, "cannot be looked at or renewed").await?;
    lasts(35).await?;
    assert_eq!((scene.fences().await?, controller.asked()), (Vec::new(), 0), "{}", controller.log());
    // While Kubernetes' own controllers stand still nobody says of a silent Node that it is not Ready.
    let stopped = scene.cluster.stop_controllers();
    scene.kubelets.falls_silent("n3");
    lasts(25).await?;
    scene.kubelets.says("n3", true).await?;
    drop(stopped);
    lasts(5).await?;
    assert_eq!((scene.fences().await?, controller.asked()), (Vec::new(), 0), "{}", controller.log());
    // It sees again: what is dead is fenced.
    scene.kubelets.says("n2", false).await?;
    scene.event("n2", "Fenced", &controller).await?;
    assert_eq!(scene.fences().await?, ["n2"]);
    Ok(())
}

#[tokio::test]
async fn while_somebody_else_works_on_a_node_it_is_waited_for() -> Result<()> {
    let scene = Scene::open().await?;
    scene.policy(&quick()).await?;
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": { "name": "node-n4", "namespace": "medik8s-leases" },
        "spec": { "holderIdentity": "NodeHealthCheck-other", "leaseDurationSeconds": 600 },
    });
    scene.cluster.apply(&lease).await?;
    let controller = scene.controller("one")?;
    scene.told("workers", "Acting", "Acting").await?;
    scene.kubelets.says("n4", false).await?;
    let words = scene.event("n4", "FenceWaits", &controller).await?;
    assert!(words.contains("NodeHealthCheck-other"), "{words}");
    assert!(scene.fences().await?.is_empty());
    scene.cluster.kubectl(&["-n", "medik8s-leases", "delete", "lease", "node-n4"]).await?;
    scene.event("n4", "Fenced", &controller).await?;
    Ok(())
}

#[tokio::test]
async fn a_zone_whose_leases_all_stand_still_is_not_fenced_and_what_is_dead_elsewhere_is() -> Result<()> {
    let scene = Scene::open().await?;
    let either = json!({
        "unhealthyConditions": [
            { "type": "Ready", "status": "False", "forSeconds": 8 },
            { "type": "Ready", "status": "Unknown", "forSeconds": 15 },
        ],
    });
    // Of the cluster too few are unhealthy, once those of the zone are.
    joined(&scene, "c", 3).await?;
    scene.policy(&either).await?;
    let controller = scene.controller("one")?;
    scene.told("workers", "Acting", "Acting").await?;
    for node in ["n1", "n2", "n3"] {
        scene.kubelets.falls_silent(node);
    }
    let words = scene.told("workers", "Acting", "Braked").await?;
    assert!(words.contains("3 of 3") && words.contains("zone a"), "{words}");
    scene.kubelets.says("n4", false).await?;
    scene.event("n4", "Fenced", &controller).await?;
    assert_eq!(scene.fences().await?, ["n4"], "{}", controller.log());
    // Two of them are heard again: the third is dead.
    scene.kubelets.says("n1", true).await?;
    scene.kubelets.says("n2", true).await?;
    scene.event("n3", "Fenced", &controller).await?;
    assert_eq!(scene.fences().await?, ["n4", "n3"]);
    Ok(())
}
