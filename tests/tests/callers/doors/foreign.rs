//! A client that others wrote, on gRPC that others wrote, before the real daemon: Python's grpcio, over TLS and the socket.

use base64::Engine;
use picket_tests::peers::Foreign;
use picket_tests::{Fleet, Gateway, Result};
use serde_json::{Value, json};

use crate::doors::scene::{FLEET, Scene};

/// A node with a release.
const RELEASED: &str = "[nodes.n9]\nreleases = [\"detach\"]\n[nodes.n9.devices.bmc]\ndriver = \"sim\"\nmachine = \"n9\"\n\
                        [releases.detach]\nkind = \"none\"\nsettle = \"0s\"\n";

fn certified(scene: &Scene, name: &str) -> Foreign {
    let files = scene.caller(name);
    let target = scene.endpoint.trim_start_matches("https://");
    Foreign::certified(target, &scene.path("ca.pem"), &files.certificate, &files.key)
}

fn named(node: &str) -> Value {
    json!({"name": node})
}

/// The detail of an error of that kind.
fn detail<'a>(error: &'a Value, kind: &str) -> &'a Value {
    let details = error["details"].as_array().unwrap_or_else(|| panic!("{error:#}"));
    let wanted = format!("type.googleapis.com/google.rpc.{kind}");
    details
        .iter()
        .find(|detail| detail["@type"] == wanted)
        .unwrap_or_else(|| panic!("no {kind} in {error:#}"))
}

async fn finds_its_way(client: &Foreign) -> Result<()> {
    let services = client.services().await?;
    let listed = |name: &str| services.as_array().is_some_and(|all| all.contains(&name.into()));
    assert!(listed("picket.v1.FencingService") && listed("grpc.health.v1.Health"), "{services}");
    let files = client.files().await?;
    assert_eq!(files["file"], "picket/v1/service.proto");
    let calls = files["calls"].as_array().expect("calls");
    assert!(calls.len() >= 23 && calls.contains(&"Fence".into()), "{files}");
    assert_eq!(client.health("").await?, "SERVING");
    assert_eq!(client.health("picket.v1.FencingService").await?, "SERVING");
    let unknown = client.health("picket.v0.Nobody").await?;
    assert_eq!(unknown["error"]["code"], "NOT_FOUND", "{unknown}");
    Ok(())
}

/// One fence with its stream, its history, and the way back.
async fn fences_and_unfences(client: &Foreign) -> Result<()> {
    let request = json!({"node": named("n9"), "reason": "it does not answer", "idempotency_key": "k1"});
    let told = client.call("Fence", &request).await?;
    let last = &told.last().expect("something")["update"];
    assert_eq!(last["outcome"]["kind"], "OUTCOME_KIND_FENCED", "{told:#?}");
    assert_eq!((&last["outcome"]["released"], &last["phase"]), (&true.into(), &"PHASE_RELEASED".into()));
    let phases: Vec<&str> = told.iter().filter_map(|answer| answer["update"]["phase"].as_str()).collect();
    let mut order = phases.clone();
    order.dedup();
    assert_eq!(order, ["PHASE_FENCING", "PHASE_FENCED", "PHASE_RELEASED"], "{told:#?}");
    let with_evidence = told.iter().find(|answer| !answer["update"]["evidence"].is_null());
    let evidence = &with_evidence.unwrap_or_else(|| panic!("{told:#?}"))["update"]["evidence"];
    assert!(evidence["grade"].as_str().is_some_and(|grade| grade != "GRADE_UNSPECIFIED"), "{evidence:#}");
    assert_eq!(evidence["simulated"], true, "{evidence:#}");

    let id = last["fence_id"].as_str().expect("an id");
    let got = client.call("GetFence", &json!({"fence_id": id, "view": "FENCE_VIEW_FULL"})).await?;
    let fence = &got[0]["fence"];
    assert_eq!((&fence["node"], &fence["off_sent"]), (&"n9".into(), &true.into()), "{fence:#}");
    assert_eq!(fence["releases"][0]["stage"], "RELEASE_STAGE_COMPLETE", "{fence:#}");
    assert_eq!(fence["askers"][0]["reason"], "it does not answer", "{fence:#}");
    assert!(!fence["moments"].as_array().expect("moments").is_empty());

    // The same key with other parameters, in words that a program reads.
    let other = json!({"node": named("n9"), "reason": "another", "idempotency_key": "k1", "then": "FENCE_THEN_POWER_ON"});
    let refused = client.call("Fence", &other).await?;
    let error = &refused.last().expect("an answer")["error"];
    assert_eq!(error["code"], "INVALID_ARGUMENT", "{refused:#?}");
    assert_eq!(detail(error, "ErrorInfo")["reason"], "KEY_REUSED", "{error:#}");

    receipts(client).await?;

    let back = json!({"node": named("n9"), "reason": "it is mended", "idempotency_key": "k2"});
    let told = client.call("Unfence", &back).await?;
    let last = &told.last().expect("something")["update"];
    assert_eq!(last["outcome"]["kind"], "OUTCOME_KIND_UNFENCED", "{told:#?}");
    assert_eq!(last["phase"], "PHASE_NORMAL", "{told:#?}");
    Ok(())
}

/// A receipt: signed, verified, handed back.
async fn receipts(client: &Foreign) -> Result<()> {
    let got = client.call("GetReceipt", &json!({"node": named("n9"), "audience": "storage"})).await?;
    let receipt = &got[0]["receipt"];
    assert_eq!(receipt["algorithm"], "SIGNATURE_ALGORITHM_ED25519", "{got:#?}");
    let keys = client.call("ListReceiptKeys", &json!({})).await?;
    let key = &keys[0]["keys"][0];
    assert_eq!((&key["key_id"], &key["signs"]), (&receipt["key_id"], &true.into()), "{keys:#?}");
    let verified = client.call("VerifyReceipt", &json!({"receipt": receipt, "fresh": true})).await?;
    assert_eq!(verified[0]["verdict"], "RECEIPT_VERDICT_HOLDS", "{verified:#?}");
    let body = receipt["body"].as_str().expect("base64");
    let body = base64::engine::general_purpose::STANDARD.decode(body).expect("base64");
    let says: Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!((&says["node"], &says["audience"]), (&"n9".into(), &"storage".into()));
    client.call("ReturnReceipt", &json!({"receipt_id": says["id"]})).await?;
    let verified = client.call("VerifyReceipt", &json!({"receipt": receipt})).await?;
    assert_eq!(verified[0]["verdict"], "RECEIPT_VERDICT_RETURNED", "{verified:#?}");
    Ok(())
}

/// Errors whose details a foreign client can act on.
async fn reads_errors(client: &Foreign) -> Result<()> {
    let refused = client.call("GetNode", &json!({"node": named("n99")})).await?;
    let error = &refused[0]["error"];
    assert_eq!((&error["code"], &error["status"]["code"]), (&"NOT_FOUND".into(), &5.into()), "{error:#}");
    assert_eq!(error["status"]["message"], error["message"]);
    let info = detail(error, "ErrorInfo");
    assert_eq!(info["reason"], "NODE_NOT_FOUND", "{error:#}");
    assert_eq!(info["domain"], "picket", "{error:#}");
    assert!(info["metadata"]["near"].as_str().is_some_and(|near| near.contains("n9")), "{error:#}");
    assert_eq!(detail(error, "ResourceInfo")["resource_name"], "n99", "{error:#}");
    let refused = client.call("Fence", &json!({"node": named("n1")})).await?;
    let error = &refused[0]["error"];
    assert_eq!(error["code"], "INVALID_ARGUMENT", "{error:#}");
    assert_eq!(detail(error, "ErrorInfo")["reason"], "BAD_REQUEST", "{error:#}");
    let wrong = detail(error, "BadRequest")["field_violations"].as_array().expect("fields").clone();
    assert!(wrong.iter().any(|field| field["field"] == "reason"), "{error:#}");
    Ok(())
}

#[tokio::test]
async fn over_tls_it_is_known_by_its_certificate() -> Result<()> {
    let scene = Scene::with(RELEASED).await?;
    let alice = certified(&scene, "alice@example.org");
    finds_its_way(&alice).await?;
    reads_errors(&alice).await?;
    fences_and_unfences(&alice).await?;

    let screen = certified(&scene, "screen.example.org");
    let refused = screen.call("Fence", &json!({"node": named("n1"), "reason": "a test"})).await?;
    let error = &refused[0]["error"];
    assert_eq!(error["code"], "PERMISSION_DENIED", "{error:#}");
    let info = detail(error, "ErrorInfo");
    assert_eq!((&info["reason"], &info["metadata"]["role"]), (&"ROLE_MISSING".into(), &"controller".into()));
    Ok(())
}

#[tokio::test]
async fn over_the_socket_it_is_known_by_its_user() -> Result<()> {
    let gateway = Gateway::start(&Fleet::new().with(FLEET).with(RELEASED)).await?;
    let client = Foreign::plain(&gateway.endpoint());
    finds_its_way(&client).await?;
    reads_errors(&client).await?;
    fences_and_unfences(&client).await
}
