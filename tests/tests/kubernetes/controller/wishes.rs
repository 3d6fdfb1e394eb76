//! Remediations that cannot come true, controllers that die over them, and what is missing for them.

use picket_tests::Result;
use picket_tests::peers::until;
use serde_json::json;

use crate::controller::nhc::{Nhc, clean, template};
use crate::controller::remediated::are_stuck;
use crate::controller::scene::Scene;

#[tokio::test]
async fn a_controller_that_dies_between_the_request_and_the_answer_joins_the_same_fence() -> Result<()> {
    let scene = Scene::open().await?;
    let nhc = Nhc::new(&scene, &json!({}), false).await?;
    let mut first = nhc.controller().await?;
    scene.kubelets.says("n2", false).await?;
    let name = nhc.gives_up("n2").await?;
    scene.event("n2", "FenceAsked", &first).await?;
    let noted = until("the key is noted", std::time::Duration::from_secs(60), async || {
        Ok(nhc.read(&name).await?["status"]["key"].is_string())
    });
    noted.await?;
    first.kill();
    let second = nhc.controller().await?;
    // By then it may be on its way back already.
    let told =
        until("the second one is told what became of it", std::time::Duration::from_secs(120), async || {
            let log = second.log();
            Ok(log.contains("\"Fenced\"") || log.contains("\"NodeReturning\""))
        });
    told.await?;
    assert_eq!(scene.fences().await?, ["n2"], "{}", second.log());
    let asked = scene.events("FenceAsked").await?;
    assert!(asked.len() >= 2 && asked.windows(2).all(|two| two[0] == two[1]), "{asked:?}");
    scene.kubelets.boots("n2").await?;
    nhc.says(&name, ("False", "True", "RemediationFinishedSuccessfully"), &second).await?;
    nhc.deletes(&name, "n2").await?;
    nhc.is_gone(&name, &second).await
}

#[tokio::test]
async fn one_for_no_node_and_one_for_a_node_that_no_gateway_knows_say_so() -> Result<()> {
    let scene = Scene::open().await?;
    let nhc = Nhc::new(&scene, &json!({}), false).await?;
    let controller = nhc.controller().await?;
    let nobody = nhc.gives_up("n9").await?;
    let words = nhc.says(&nobody, ("False", "False", "RemediationFinishedNodeNotFound"), &controller).await?;
    assert!(words.contains("n9"), "{words}");
    nhc.deletes(&nobody, "n9").await?;
    nhc.is_gone(&nobody, &controller).await?;

    // No kubelet speaks for it: after a while the API says that it is not known.
    scene.cluster.apply(&json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "x1" } })).await?;
    let stranger = nhc.gives_up("x1").await?;
    let words = nhc.says(&stranger, ("False", "False", "FenceRefused"), &controller).await?;
    assert!(words.contains("x1"), "{words}");
    assert!(scene.fences().await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn a_template_that_would_be_a_mistake_is_refused_by_its_field() -> Result<()> {
    let scene = Scene::open().await?;
    let nhc = Nhc::new(&scene, &json!({ "deadlineSeconds": 60 }), false).await?;
    for (spec, words) in [
        (json!({ "then": "Reboot" }), "spec.template.spec.then"),
        (json!({ "minimumGrade": "Hope" }), "spec.template.spec.minimumGrade"),
        (json!({ "deadlineSeconds": 1 }), "spec.template.spec.deadlineSeconds"),
        (json!({ "colour": "red" }), "colour"),
        (json!(null), "spec.template.spec"),
    ] {
        let wrong = template("wrong", &json!({}), &spec);
        let refused = scene.cluster.apply(&wrong).await.expect_err("it is refused").to_string();
        assert!(refused.contains(words), "{words} is not in {refused}");
    }
    // A template may be changed, for what is made of it from then on; what was asked for may not.
    let other = template("picket", &json!({}), &json!({ "then": "StayOff" }));
    scene.cluster.apply(&other).await?;
    let name = nhc.makes("n1", &json!({})).await?;
    let change = ["-n", "ops", "patch", "picketremediation", &name, "--type=merge"];
    let to = ["-p", "{\"spec\":{\"then\":\"StayOff\"}}"];
    let refused = scene.cluster.kubectl(&[&change[..], &to].concat()).await.expect_err("refused").to_string();
    assert!(refused.contains("what was asked for stays so"), "{refused}");
    let shown = scene.cluster.kubectl(&["-n", "ops", "get", "pkr"]).await?;
    assert!(shown.contains("SUCCEEDED") && shown.contains("PowerOn"), "{shown}");
    Ok(())
}

#[tokio::test]
async fn what_is_missing_for_remediations_is_said_where_they_are_wanted_and_nowhere_else() -> Result<()> {
    let scene = Scene::open().await?;
    let [_, gateway] = scene.endpoints();
    let check = async |settings: &std::path::Path| {
        scene.run(&["--config", &settings.display().to_string(), "check"]).await
    };
    clean(&scene).await?;
    scene.cluster.kubectl(&["delete", "crd", "picketremediations.picket.dev"]).await?;
    let without = scene.settings("without", &[&gateway], scene.login())?;
    let (code, out, err) = check(&without).await?;
    assert_eq!((code, out.as_str()), (0, "everything that is needed is there\n"), "{err}");
    let wanted = scene.remediating("wanted")?;
    let (code, _, err) = check(&wanted).await?;
    assert_eq!(code, 75, "{err}");
    for words in [
        "may not patch picketremediations.picket.dev (deploy/kubernetes/remediation.yaml grants it)",
        "may not patch picketremediations.picket.dev/status (deploy/kubernetes/remediation.yaml grants it)",
        "definition: picketremediations.picket.dev is missing",
    ] {
        assert!(err.contains(words), "{words} is not in\n{err}");
    }
    assert!(!err.contains("fencingpolicies") && !err.contains("picketremediationtemplates"), "{err}");

    // Policies are heeded all the same.
    let quick = json!([{ "type": "Ready", "status": "False", "forSeconds": 6 }]);
    scene.policy(&json!({ "unhealthyConditions": quick })).await?;
    let controller = scene.begin("one", &scene.remediating("one")?)?;
    scene.logged(&controller, "a watch broke").await?;
    scene.kubelets.says("n5", false).await?;
    scene.event("n5", "Fenced", &controller).await?;
    scene.define().await
}

/// What the controller's writing goes by: the API refuses a status by the version that was read, and looks at no UID.
#[tokio::test]
async fn a_status_that_comes_late_is_refused_by_the_version_that_was_read_and_by_nothing_else() -> Result<()>
{
    let scene = Scene::open().await?;
    let nhc = Nhc::new(&scene, &json!({}), false).await?;
    let name = nhc.gives_up("n9").await?;
    let metadata = nhc.read(&name).await?["metadata"].clone();
    let patched = async |metadata: serde_json::Value, phase: &str| {
        let patch = json!({ "metadata": metadata, "status": { "phase": phase } }).to_string();
        let into = [
            "-n",
            "ops",
            "patch",
            "picketremediation",
            &name,
            "--subresource=status",
            "--type=merge",
            "-p",
            &patch,
        ];
        scene.cluster.kubectl(&into).await
    };
    patched(json!({ "uid": "of another one" }), "Waiting").await?;
    assert_eq!(nhc.read(&name).await?["status"]["phase"], "Waiting", "it is taken for this one");
    let late = json!({ "resourceVersion": metadata["resourceVersion"] });
    let refused = patched(late, "Succeeded").await.expect_err("it was changed since");
    assert!(refused.to_string().contains("Conflict"), "{refused}");
    let now = nhc.read(&name).await?["metadata"]["resourceVersion"].clone();
    patched(json!({ "resourceVersion": now }), "Failed").await?;
    assert_eq!(nhc.read(&name).await?["status"]["phase"], "Failed");
    nhc.deletes(&name, "n9").await
}

/// Another Node, another key, and that it came true: the next leader goes by none of it.
#[tokio::test]
async fn what_others_write_into_a_status_decides_nothing() -> Result<()> {
    let scene = Scene::open().await?;
    let nhc = Nhc::new(&scene, &json!({ "then": "StayOff" }), false).await?;
    let mut first = nhc.controller().await?;
    // Its Node is Ready: it waits, and has asked for nothing.
    let [name, other] = [nhc.gives_up("n3").await?, nhc.gives_up("n2").await?];
    for name in [&name, &other] {
        nhc.says(name, ("True", "Unknown", "RemediationStarted"), &first).await?;
    }
    first.kill();
    let forged = json!({ "status": {
        "key": "k8s/u/b/w", "node": "n4", "gatewayNode": "n4", "phase": "Succeeded", "proven": true,
    } });
    for name in [&name, &other] {
        let into =
            ["-n", "ops", "patch", "picketremediation", name, "--subresource=status", "--type=merge", "-p"];
        scene.cluster.kubectl(&[&into[..], &[&forged.to_string()]].concat()).await?;
    }
    scene.kubelets.says("n3", false).await?;
    scene.kubelets.says("n4", false).await?;
    let second = nhc.controller().await?;
    nhc.says(&name, ("False", "True", "RemediationFinishedSuccessfully"), &second).await?;
    let made = nhc.read(&name).await?;
    let uid = made["metadata"]["uid"].as_str().unwrap_or_default();
    let key = made["status"]["key"].as_str().unwrap_or_default();
    assert!(made["status"]["node"] == "n3" && key.ends_with(uid), "{made:#}");
    assert_eq!(scene.fences().await?, ["n3"], "{}", second.log());
    // Nothing hangs on the other one.
    nhc.deletes(&other, "n2").await?;
    nhc.is_gone(&other, &second).await
}

/// The same of one whose fence was asked for: the next leader goes by what is noted in its metadata.
#[tokio::test]
async fn what_others_write_into_a_status_once_it_was_asked_for_decides_nothing() -> Result<()> {
    let scene = Scene::open().await?;
    let nhc = Nhc::new(&scene, &json!({ "then": "StayOff" }), false).await?;
    let mut first = nhc.controller().await?;
    scene.kubelets.says("n3", false).await?;
    let name = nhc.gives_up("n3").await?;
    until("the key is noted", std::time::Duration::from_secs(60), async || {
        Ok(nhc.read(&name).await?["metadata"]["annotations"]["picket.dev/asked"].is_string())
    })
    .await?;
    first.kill();
    let uid = nhc.read(&name).await?["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    let forged = json!({ "status": {
        "key": format!("k8s/u/b/{uid}"), "node": "n4", "gatewayNode": "n4", "phase": "Succeeded", "proven": true,
    } });
    let into =
        ["-n", "ops", "patch", "picketremediation", &name, "--subresource=status", "--type=merge", "-p"];
    scene.cluster.kubectl(&[&into[..], &[&forged.to_string()]].concat()).await?;
    let second = nhc.controller().await?;
    until("the status says what is noted", std::time::Duration::from_secs(120), async || {
        let status = nhc.read(&name).await?["status"].clone();
        Ok(status["node"] == "n3" && status["gatewayNode"] == "n3")
    })
    .await?;
    nhc.says(&name, ("False", "True", "RemediationFinishedSuccessfully"), &second).await?;
    assert_eq!(scene.fences().await?, ["n3"], "{}", second.log());
    nhc.deletes(&name, "n3").await?;
    are_stuck(&nhc, 1).await?;
    scene.kubelets.boots("n3").await?;
    nhc.is_gone(&name, &second).await?;
    assert!(nhc.holds("n3").await?.0.is_empty(), "the hold goes before the finalizer");
    Ok(())
}
