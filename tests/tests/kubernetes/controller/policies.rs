//! Policies that would be mistakes.

use picket_tests::Result;
use serde_json::json;

use crate::controller::held::lasts;
use crate::controller::scene::Scene;

#[tokio::test]
async fn a_policy_that_would_be_a_mistake_says_so_and_harms_nobody() -> Result<()> {
    let scene = Scene::open().await?;
    let quick = json!([{ "type": "Ready", "status": "False", "forSeconds": 5 }]);
    let of = |key: &str, value: &str| json!({ "matchLabels": { key: value } });
    let nothing = json!({ "nodeSelector": of("role", "wroker"), "unhealthyConditions": quick });
    scene.named_policy("nothing", &nothing).await?;
    let control_plane = of("node-role.kubernetes.io/control-plane", "");
    let members = json!({ "nodeSelector": control_plane, "unhealthyConditions": quick });
    scene.named_policy("members", &members).await?;
    scene.policy(&json!({ "unhealthyConditions": quick })).await?;
    let zone =
        json!({ "nodeSelector": of("topology.kubernetes.io/zone", "a"), "unhealthyConditions": quick });
    scene.named_policy("zone-a", &zone).await?;
    let controller = scene.controller("one")?;

    for (policy, reason, words) in [
        ("nothing", "SelectsNothing", "nodeSelector"),
        ("members", "ControlPlane", "controlPlaneNodes"),
        ("workers", "SharesNodes", "zone-a acts for Nodes that this one selects too: n1, n2, n3."),
        ("zone-a", "SharesNodes", "workers acts for Nodes that this one selects too: n1, n2, n3."),
    ] {
        let said = scene.told(policy, "Accepted", reason).await?;
        assert!(said.contains(words), "{policy}: {said}");
    }
    for node in ["n1", "m1", "n4"] {
        scene.kubelets.says(node, false).await?;
    }
    // The one for which one policy alone speaks.
    scene.event("n4", "Fenced", &controller).await?;
    assert_eq!(scene.fences().await?, ["n4"], "{}", controller.log());

    // By name, and so that one policy alone speaks for it.
    let named =
        json!({ "nodeSelector": control_plane, "unhealthyConditions": quick, "controlPlaneNodes": ["m1"] });
    scene.named_policy("members", &named).await?;
    scene.event("m1", "Fenced", &controller).await?;
    scene.cluster.kubectl(&["delete", "fencingpolicy", "zone-a"]).await?;
    scene.event("n1", "Fenced", &controller).await?;

    let all = json!({ "nodeSelector": { "matchExpressions": [{ "key": "no-such-label", "operator": "DoesNotExist" }] } });
    scene.cluster.kubectl(&["delete", "fencingpolicies", "--all"]).await?;
    scene.named_policy("all", &all).await?;
    let before = scene.fences().await?;
    let said = scene.told("all", "Acting", "SelectsEverything").await?;
    assert!(said.contains("everyNode: true"), "{said}");
    // For two renewals and longer one of them would be dead.
    scene.kubelets.says("n5", false).await?;
    lasts(20).await?;
    assert_eq!(scene.fences().await?, before, "{}", controller.log());
    Ok(())
}

/// A policy is staged beside the one that it is to replace; once both act, both are told.
#[tokio::test]
async fn a_policy_that_is_paused_disarms_none_and_two_that_act_are_told() -> Result<()> {
    let scene = Scene::open().await?;
    let quick = json!([{ "type": "Ready", "status": "False", "forSeconds": 5 }]);
    let zone = |paused: bool| {
        json!({
            "nodeSelector": { "matchLabels": { "topology.kubernetes.io/zone": "a" } },
            "unhealthyConditions": quick,
            "paused": paused,
        })
    };
    scene.policy(&json!({ "unhealthyConditions": quick })).await?;
    scene.named_policy("zone-a", &zone(true)).await?;
    let controller = scene.controller("one")?;
    scene.told("workers", "Acting", "Acting").await?;
    let said = scene.told("zone-a", "Acting", "Paused").await?;
    assert!(said.contains("workers"), "{said}");
    scene.kubelets.says("n1", false).await?;
    scene.event("n1", "Fenced", &controller).await?;
    assert_eq!(scene.fences().await?, ["n1"], "{}", controller.log());

    scene.named_policy("zone-a", &zone(false)).await?;
    for (one, other) in [("workers", "zone-a"), ("zone-a", "workers")] {
        let words = scene.event(one, "SharesNodes", &controller).await?;
        assert!(words.contains(other), "{words}");
        scene.told(one, "Accepted", "SharesNodes").await?;
        assert!(controller.log().contains(&words), "{}", controller.log());
    }
    scene.kubelets.says("n2", false).await?;
    let words = scene.event("n2", "FenceWithheld", &controller).await?;
    assert!(words.contains("workers, zone-a"), "{words}");
    lasts(20).await?;
    assert_eq!(scene.fences().await?, ["n1"], "{}", controller.log());
    let told = scene.events("SharesNodes").await?;
    assert_eq!(told.len(), 2, "each is told once: {told:?}");
    Ok(())
}

/// As in a managed cluster, which shows no control plane; and what stops a policy is told.
#[tokio::test]
async fn a_policy_acts_where_every_node_has_its_label_and_tells_what_stops_it() -> Result<()> {
    let scene = Scene::open().await?;
    let quick = json!([{ "type": "Ready", "status": "False", "forSeconds": 5 }]);
    let label = ["label", "node", "m1", "node-role.kubernetes.io/control-plane-", "role=worker"];
    scene.cluster.kubectl(&label).await?;
    scene.policy(&json!({ "unhealthyConditions": quick })).await?;
    let controller = scene.controller("one")?;
    scene.told("workers", "Acting", "Acting").await?;
    scene.kubelets.says("n1", false).await?;
    scene.event("n1", "Fenced", &controller).await?;

    let none = json!({ "matchExpressions": [{ "key": "no-such-label", "operator": "DoesNotExist" }] });
    scene.named_policy("workers", &json!({ "nodeSelector": none, "unhealthyConditions": quick })).await?;
    let words = scene.event("workers", "SelectsEverything", &controller).await?;
    assert!(words.starts_with("it does not act any more: ") && words.contains("everyNode: true"), "{words}");
    scene.kubelets.says("n4", false).await?;
    scene.event("n4", "FenceWithheld", &controller).await?;
    lasts(20).await?;
    assert_eq!(scene.fences().await?, ["n1"], "{}", controller.log());

    scene.policy(&json!({ "unhealthyConditions": quick })).await?;
    scene.event("workers", "Acting", &controller).await?;
    scene.event("n4", "Fenced", &controller).await?;
    scene.cluster.kubectl(&["delete", "fencingpolicy", "workers"]).await?;
    scene.event("workers", "Deleted", &controller).await?;
    Ok(())
}

/// K11: a second one that is down has cost the cluster's etcd its quorum.
#[tokio::test]
async fn of_the_control_plane_none_is_fenced_while_another_one_is_not_back() -> Result<()> {
    let scene = Scene::open().await?;
    let member = json!({ "node-role.kubernetes.io/control-plane": "" });
    scene.kubelets.joins("m2", &member).await?;
    let policy = json!({
        "nodeSelector": { "matchLabels": member },
        "unhealthyConditions": [{ "type": "Ready", "status": "False", "forSeconds": 5 }],
        "controlPlaneNodes": ["m1", "m2"],
    });
    scene.named_policy("members", &policy).await?;
    let controller = scene.controller("one")?;
    scene.told("members", "Acting", "Acting").await?;
    scene.kubelets.says("m1", false).await?;
    scene.event("m1", "Fenced", &controller).await?;
    scene.kubelets.says("m2", false).await?;
    let words = scene.event("m2", "FenceWithheld", &controller).await?;
    assert!(words.contains("m1"), "{words}");
    lasts(20).await?;
    assert_eq!(scene.fences().await?, ["m1"], "{}", controller.log());
    // It is back: the other one is dead still.
    scene.kubelets.boots("m1").await?;
    scene.event("m2", "Fenced", &controller).await?;
    assert_eq!(scene.fences().await?, ["m1", "m2"]);
    Ok(())
}

/// K1: a kubelet takes the system UUID of the control plane's machine for its own, and says that it is not Ready.
#[tokio::test]
async fn a_node_that_claims_the_identity_of_another_one_has_nobody_fenced() -> Result<()> {
    let scene = Scene::open().await?;
    scene.kubelets.claims("m1", "4b554245-2d4e-4f44-452d-303030303031").await?;
    // In the other byte order.
    scene.kubelets.claims("n1", "4542554b-4e2d-444f-452d-303030303031").await?;
    has_nobody_fenced(&scene, "system-uuid", "system UUID").await
}

/// A kubelet may set its Node's `spec.providerID` as long as it is empty.
#[tokio::test]
async fn nor_does_one_that_claims_its_provider_id() -> Result<()> {
    let scene = Scene::open().await?;
    for node in ["m1", "n1"] {
        let patch = json!({ "spec": { "providerID": "metal://rack1/m1" } }).to_string();
        scene.cluster.kubectl(&["patch", "node", node, "--type=merge", "-p", &patch]).await?;
    }
    has_nobody_fenced(&scene, "provider-id", "providerID").await
}

/// `n1` claims what `m1` is known by, and says that it is not Ready.
async fn has_nobody_fenced(scene: &Scene, by: &str, told: &str) -> Result<()> {
    scene
        .policy(&json!({ "unhealthyConditions": [{ "type": "Ready", "status": "False", "forSeconds": 5 }] }))
        .await?;
    let controller = scene.begin("one", &scene.selecting("one", by)?)?;
    scene.told("workers", "Acting", "Acting").await?;
    scene.kubelets.says("n1", false).await?;
    let words = scene.told("workers", "Acting", "ClaimedIdentity").await?;
    assert!(words.contains("n1") && words.contains("m1") && words.contains(told), "{words}");
    let words = scene.event("n1", "FenceWithheld", &controller).await?;
    assert!(words.contains("m1"), "{words}");
    lasts(20).await?;
    assert_eq!((scene.fences().await?, controller.asked()), (Vec::new(), 0), "{}", controller.log());
    Ok(())
}

#[tokio::test]
async fn what_the_schema_can_say_is_refused_by_the_api_server() -> Result<()> {
    let scene = Scene::open().await?;
    let selector = json!({ "matchLabels": { "role": "worker" } });
    let requirement = |operator: &str| json!({ "matchExpressions": [{ "key": "a", "operator": operator }] });
    for (spec, words) in [
        (json!({}), "nodeSelector"),
        (json!({ "nodeSelector": {} }), "an empty nodeSelector selects every Node"),
        (json!({ "nodeSelector": requirement("In") }), "In and NotIn want values"),
        (json!({ "nodeSelector": requirement("Hope") }), "Unsupported value"),
        (json!({ "nodeSelector": selector, "then": "Reboot" }), "Unsupported value"),
        (json!({ "nodeSelector": selector, "colour": "red" }), "unknown field"),
        (
            json!({ "nodeSelector": selector, "unhealthyConditions": [{ "type": "Ready", "status": "True" }] }),
            "a Node that is Ready is healthy",
        ),
        (
            json!({ "nodeSelector": selector, "unhealthyConditions": [{ "type": "MemoryPressure", "status": "False" }] }),
            "False is what a healthy Node says",
        ),
        (
            json!({ "nodeSelector": selector, "unhealthyConditions": [{ "type": "Ready", "status": "False", "forSeconds": 1 }] }),
            "greater than or equal to 5",
        ),
        (json!({ "nodeSelector": selector, "exclude": { "nodeSelector": {} } }), "excludes every Node"),
    ] {
        let refused = scene.named_policy("wrong", &spec).await.expect_err("it is refused").to_string();
        assert!(refused.contains(words), "{words} is not in {refused}");
    }
    let defaulted = json!({ "nodeSelector": {}, "everyNode": true });
    scene.named_policy("right", &defaulted).await?;
    let read = scene.cluster.json(&["get", "fencingpolicy", "right"]).await?;
    assert_eq!(
        (&read["spec"]["then"], &read["spec"]["quietSeconds"]),
        (&json!("StayOff"), &json!(60)),
        "{read}"
    );
    Ok(())
}
