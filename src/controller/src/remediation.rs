//! A `PicketRemediation`: read into what the mind takes, its status and its finalizer, and the hold that goes with it.
//!
//! **Invariants.** Each change names its UID, and that of its finalizers the version that was read. The key stands in its status before the
//! gateway is asked: one without a key has asked for nothing. A hold is dropped only while the Node is Ready by a quorum's word.

use http::Method;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use picket_proto::client::Gateways;
use picket_proto::v1::fencing_service_client::FencingServiceClient;
use picket_proto::v1::{DropHoldRequest, ErrorReason, NodeSelector};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::{Api, Body};
use crate::fault::Fault;
use crate::mind::{Progress, Standing, Tiding, Wish, WishId};
use crate::object::SeenWish;
use crate::outcome::reason;
use crate::settings::Settings;
use crate::spec::{GradeWord, ThenWord};
use crate::{ask, crd, told, watch};

/// Ours on a remediation.
pub const FINALIZER: &str = "picket.dev/remediation";
/// By which a person takes it away, whatever becomes of the hold.
pub const FREED: &str = "picket.dev/free-remediation";
/// By which NodeHealthCheck says which Node is meant, where the name does not.
const NODE: &str = "remediation.medik8s.io/node-name";
/// By which it says that its time is over.
const TIMED_OUT: &str = "remediation.medik8s.io/nhc-timed-out";
const HEALTH_CHECK: &str = "NodeHealthCheck";

/// By their words in a status.
const PROGRESS: [(&str, Progress); 6] = [
    ("Waiting", Progress::Waiting),
    ("Fencing", Progress::Fencing),
    ("Returning", Progress::Returning),
    ("Failed", Progress::Failed),
    ("Succeeded", Progress::Succeeded),
    // Whoever is interrupted asks for nothing while its annotation stands.
    ("Interrupted", Progress::Waiting),
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Spec {
    then: ThenWord,
    minimum_grade: GradeWord,
    deadline_seconds: Option<u64>,
}

/// Reads one.
///
/// # Errors
/// What this controller does not understand of it.
pub fn read(seen: &SeenWish) -> Result<Wish, serde_json::Error> {
    let spec = Spec::deserialize(&seen.spec)?;
    let metadata = &seen.metadata;
    let name = metadata.name.clone().unwrap_or_default();
    let node = annotation(metadata, NODE).filter(|node| !node.is_empty()).unwrap_or(&name).to_owned();
    Ok(Wish {
        id: id(seen),
        generation: metadata.generation.unwrap_or_default(),
        node,
        then: spec.then.into(),
        grade: spec.minimum_grade.into(),
        deadline: spec.deadline_seconds.map(std::time::Duration::from_secs),
        timed_out: annotation(metadata, TIMED_OUT).is_some(),
        deleted: metadata.deletion_timestamp.is_some(),
        kept: finalizers(metadata).iter().any(|one| one == FINALIZER),
        freed: annotation(metadata, FREED).is_some_and(|value| value != "false"),
        standing: standing(seen.status.as_ref().unwrap_or(&Value::Null)),
    })
}

/// Which it is.
pub fn id(seen: &SeenWish) -> WishId {
    let metadata = &seen.metadata;
    let owners = metadata.owner_references.as_deref().unwrap_or_default();
    WishId {
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: metadata.name.clone().unwrap_or_default(),
        uid: metadata.uid.clone().unwrap_or_default(),
        health_check: owners.iter().find(|one| one.kind == HEALTH_CHECK).map(|one| one.name.clone()),
    }
}

fn annotation<'a>(metadata: &'a ObjectMeta, key: &str) -> Option<&'a String> {
    metadata.annotations.as_ref()?.get(key)
}

fn finalizers(metadata: &ObjectMeta) -> &[String] {
    metadata.finalizers.as_deref().unwrap_or_default()
}

fn standing(status: &Value) -> Standing {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let conditions = status["conditions"].as_array();
    let said = conditions.and_then(|all| all.iter().find(|one| one["type"] == "Processing"));
    let said = said.unwrap_or(&Value::Null);
    let word = PROGRESS.iter().find(|(word, _)| status["phase"] == *word);
    Standing {
        progress: word.map(|(_, progress)| *progress).unwrap_or_default(),
        key: status["key"].as_str().filter(|key| !key.is_empty()).map(str::to_owned),
        proven: status["proven"] == true,
        reason: text(&said["reason"]),
        text: text(&said["message"]),
    }
}

/// As it stands in a status.
pub fn word(progress: Progress) -> &'static str {
    match progress {
        Progress::Waiting => "Waiting",
        Progress::Fencing => "Fencing",
        Progress::Returning => "Returning",
        Progress::Failed => "Failed",
        Progress::Succeeded => "Succeeded",
        Progress::Interrupted => "Interrupted",
    }
}

/// What its status says; its conditions keep the time of their last turn where they did not turn.
pub fn status(tiding: &Tiding, before: &Value) -> Value {
    let said = tiding
        .conditions
        .each_ref()
        .map(|(kind, status, reason, text)| (*kind, (*status, reason.as_str(), text.clone())));
    let Standing { progress, key, proven, .. } = &tiding.standing;
    let mut status = json!({ "node": tiding.node, "phase": word(*progress), "proven": proven });
    if let Some(key) = key {
        status["key"] = json!(key);
    }
    told::conditions(tiding.generation, &said, before, status)
}

/// The status of one that cannot be read.
pub fn malformed(generation: i64, why: &str, before: &Value) -> Value {
    let text = format!("this controller does not understand it, so that nobody is fenced by it: {why}");
    let one = |kind| (kind, ("False", "Malformed", text.clone()));
    told::conditions(generation, &[one("Processing"), one("Succeeded")], before, json!({ "phase": "Failed" }))
}

fn path(wish: &WishId) -> String {
    let (group, version, plural) = (crd::GROUP, crd::VERSION, crd::remediation::PLURAL);
    format!("/apis/{group}/{version}/namespaces/{}/{plural}/{}", wish.namespace, wish.name)
}

/// Writes its status.
///
/// # Errors
/// It was not written, or it is another one by now.
pub async fn write_status(api: &Api, wish: &WishId, status: &Value) -> Result<(), Fault> {
    let body = json!({ "metadata": { "uid": wish.uid }, "status": status });
    api.send(Method::PATCH, &format!("{}/status", path(wish)), Body::Merge(&body)).await.map(drop)
}

/// Notes under which key the gateway is asked, before it is.
///
/// # Errors
/// It is not noted: nothing is to be asked.
pub async fn note_key(api: &Api, wish: &WishId, key: &str) -> Result<(), Fault> {
    write_status(api, wish, &json!({ "key": key, "phase": "Fencing", "proven": false })).await
}

/// Places the finalizer, or takes it away, where it is still as it was read.
///
/// # Errors
/// It was not done, or it is another one by now.
pub async fn keep(api: &Api, seen: &SeenWish, kept: bool) -> Result<(), Fault> {
    let metadata = &seen.metadata;
    let mut all: Vec<&str> =
        finalizers(metadata).iter().map(String::as_str).filter(|one| *one != FINALIZER).collect();
    if kept {
        all.push(FINALIZER);
    }
    let body = json!({ "metadata": {
        "uid": metadata.uid, "resourceVersion": metadata.resource_version, "finalizers": all,
    } });
    api.send(Method::PATCH, &path(&id(seen)), Body::Merge(&body)).await.map(drop)
}

/// Whether it still wants what it wanted, by a quorum's word.
///
/// # Errors
/// Nobody could look.
pub async fn holds(api: &Api, wish: &WishId) -> Result<bool, Fault> {
    let Some(seen) = api.find::<SeenWish>(&path(wish)).await? else { return Ok(false) };
    let metadata = &seen.metadata;
    let is_over = metadata.deletion_timestamp.is_some() || annotation(metadata, TIMED_OUT).is_some();
    Ok(metadata.uid.as_deref() == Some(&wish.uid) && !is_over)
}

/// Drops the hold of a Node that is Ready, then takes the finalizer away.
///
/// # Errors
/// Why both stay, in words.
pub async fn let_go(
    api: &Api,
    gateways: &Gateways,
    settings: &Settings,
    seen: &SeenWish,
    node: &str,
) -> Result<(), String> {
    let wish = id(seen);
    let Some(node) = watch::look(api, node).await.filter(crate::mind::Node::is_ready) else {
        return Err("the Node is not Ready any more, or cannot be looked at".to_owned());
    };
    let request = DropHoldRequest {
        node: Some(NodeSelector { by: Some(ask::selected(&node, settings.select)?) }),
        holder: settings.holder.clone(),
        reason: format!("Kubernetes: the Node {} is Ready, and {wish} is deleted", node.name),
        expected_generation: None,
    };
    let mut client = FencingServiceClient::new(gateways.clone());
    let dropping = tokio::time::timeout(ask::ANSWERS, client.drop_hold(request)).await;
    match dropping {
        Err(_) => return Err("no gateway answered in time".to_owned()),
        Ok(Ok(_)) => {}
        Ok(Err(status)) => match reason(&status) {
            // There is none of ours.
            Some(ErrorReason::HoldNotFound | ErrorReason::NodeNotFound) => {}
            _ => return Err(format!("the gateway does not drop the hold: {}", status.message())),
        },
    }
    match keep(api, seen, false).await {
        Err(fault) if !fault.is_not_found() => Err(fault.to_string()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(metadata: &Value, status: &Value) -> SeenWish {
        let spec = json!({ "then": "PowerOn", "minimumGrade": "Observed", "deadlineSeconds": 90 });
        let whole = json!({
            "apiVersion": "picket.dev/v1alpha1", "kind": "PicketRemediation", "metadata": metadata, "spec": spec, "status": status,
        });
        serde_json::from_value(whole).expect("a remediation")
    }

    #[test]
    fn the_node_is_the_name_s_or_the_annotation_s() {
        let plain = read(&seen(&json!({ "name": "n1", "uid": "u" }), &Value::Null)).expect("it is right");
        assert_eq!((plain.node.as_str(), plain.kept, plain.id.health_check), ("n1", false, None));
        let made = json!({
            "name": "n1-x7", "namespace": "ns", "uid": "u", "finalizers": ["other", FINALIZER],
            "annotations": { NODE: "n1", "remediation.medik8s.io/template-name": "t", TIMED_OUT: "2026-01-01T00:00:00Z" },
            "ownerReferences": [{ "apiVersion": "remediation.medik8s.io/v1alpha1", "kind": "NodeHealthCheck", "name": "workers", "uid": "w" }],
        });
        let made = read(&seen(&made, &Value::Null)).expect("it is right");
        assert!(made.kept && made.timed_out && !made.deleted && !made.freed);
        assert_eq!((made.node.as_str(), made.id.health_check.as_deref()), ("n1", Some("workers")));
    }

    #[test]
    fn what_a_status_says_is_read_back() {
        for (progress, key) in
            [(Progress::Fencing, Some("k")), (Progress::Succeeded, None), (Progress::Failed, None)]
        {
            let standing = Standing {
                progress,
                key: key.map(str::to_owned),
                proven: true,
                reason: "R".to_owned(),
                text: "words".to_owned(),
            };
            let said = |kind| (kind, "True", "R".to_owned(), "words".to_owned());
            let tiding = Tiding {
                id: WishId {
                    namespace: "ns".to_owned(),
                    name: "n1".to_owned(),
                    uid: "u".to_owned(),
                    health_check: None,
                },
                generation: 3,
                node: "n1".to_owned(),
                standing: standing.clone(),
                conditions: [said("Processing"), said("Succeeded")],
                deed: crate::mind::Deed::Nothing,
            };
            let status = status(&tiding, &Value::Null);
            let read = read(&seen(&json!({ "name": "n1" }), &status)).expect("it is right");
            assert_eq!(read.standing, standing);
        }
    }

    #[test]
    fn what_another_version_stored_is_told_by_its_key() {
        let mut wrong = seen(&json!({ "name": "n1" }), &Value::Null);
        wrong.spec["colour"] = json!("red");
        assert!(read(&wrong).expect_err("unknown").to_string().contains("colour"));
    }
}
