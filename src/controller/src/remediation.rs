//! A `PicketRemediation`: read into what the decider takes, its status and its finalizer, and the hold that
//! goes with it.
//!
//! # Invariants
//!
//! - Each change names the version that was read, of the object that was meant. Shown by
//!   `the_key_is_noted_in_the_version_that_was_read_and_on_no_other_one_of_that_name`.
//! - The key stands in the metadata before the gateway is asked. A remediation without a key, there and in
//!   its status, has asked for nothing.
//! - A hold is dropped only while the Node is Ready by a quorum's word, in another life than the one that
//!   was fenced. It has to be this remediation's, in the generation that was looked at. Shown by
//!   `a_hold_goes_by_whose_it_is_and_a_node_is_back_by_its_uid_and_another_life_or_its_lease`.

use http::Method;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::{Api, Body};
use crate::decider::{
    MALFORMED, Progress, RemediationId, RemediationRequest, RemediationState, RemediationUpdate,
};
use crate::fault::Fault;
use crate::object::SeenRemediation;
use crate::request_note::{self, RequestNote};
use crate::spec::{AfterFenceWord, GradeWord};
use crate::{crd, events};

/// Ours on a remediation.
pub const FINALIZER: &str = "picket.dev/remediation";
/// By which a person takes it away, whatever becomes of the hold.
pub const FREED: &str = "picket.dev/free-remediation";
/// By which NodeHealthCheck says which Node is meant, where the name does not.
const NODE: &str = "remediation.medik8s.io/node-name";
/// By which it says that its time is over.
const TIMED_OUT: &str = "remediation.medik8s.io/nhc-timed-out";
const HEALTH_CHECK: &str = "NodeHealthCheck";
/// Its group, in whichever version.
const HEALTH_CHECKS: &str = "remediation.medik8s.io/";
/// So often one is changed that somebody else writes into, too.
const TRIES: u32 = 5;

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
    then: AfterFenceWord,
    minimum_grade: GradeWord,
    deadline_seconds: Option<u64>,
}

impl Spec {
    /// What is wanted where nobody can read what is: nothing is asked by it.
    const NONE: Self =
        Self { then: AfterFenceWord::StayOff, minimum_grade: GradeWord::Observed, deadline_seconds: None };
}

/// Reads one; also of one that this controller does not understand what its metadata and its status say. What it has asked for is what its metadata
/// says: of a status, words are read, and how far it is told to be.
pub fn read(seen: &SeenRemediation) -> RemediationRequest {
    let (spec, wrong) = match Spec::deserialize(&seen.spec) {
        Ok(spec) => (spec, None),
        Err(why) => {
            let text =
                format!("this controller does not understand it, so that nobody is fenced by it: {why}");
            (Spec::NONE, Some((MALFORMED, text)))
        }
    };
    let (metadata, status) = (&seen.metadata, seen.status.as_ref().unwrap_or(&Value::Null));
    let name = metadata.name.clone().unwrap_or_default();
    let asked = RequestNote::of(metadata);
    let state = state(status, asked.as_ref());
    // A key is that of one Node, whatever is written beside it later.
    let asked = asked.as_ref().map(|asked| asked.node.as_str());
    let named = annotation(metadata, NODE).map(String::as_str);
    let node = asked.or(named).filter(|node| !node.is_empty()).unwrap_or(&name).to_owned();
    RemediationRequest {
        id: id(seen),
        created: metadata.creation_timestamp.as_ref().map(|at| at.0.as_second()),
        generation: metadata.generation.unwrap_or_default(),
        node,
        then: spec.then.into(),
        grade: spec.minimum_grade.into(),
        deadline: spec.deadline_seconds.map(std::time::Duration::from_secs),
        timed_out: annotation(metadata, TIMED_OUT).is_some(),
        deleted: metadata.deletion_timestamp.is_some(),
        kept: is_kept(seen),
        freed: is_freed(seen),
        wrong,
        state,
        status_claim: request_note::status_claim(status, metadata.uid.as_deref()),
    }
}

/// Which it is.
pub fn id(seen: &SeenRemediation) -> RemediationId {
    let metadata = &seen.metadata;
    let owners = metadata.owner_references.as_deref().unwrap_or_default();
    RemediationId {
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: metadata.name.clone().unwrap_or_default(),
        uid: metadata.uid.clone().unwrap_or_default(),
        health_check: owners.iter().find(|one| is_health_check(one)).map(|one| one.name.clone()),
    }
}

fn is_health_check(owner: &OwnerReference) -> bool {
    owner.kind == HEALTH_CHECK && owner.api_version.starts_with(HEALTH_CHECKS)
}

fn annotation<'a>(metadata: &'a ObjectMeta, key: &str) -> Option<&'a String> {
    metadata.annotations.as_ref()?.get(key)
}

fn finalizers(metadata: &ObjectMeta) -> &[String] {
    metadata.finalizers.as_deref().unwrap_or_default()
}

/// Whether a person says that it may go.
pub fn is_freed(seen: &SeenRemediation) -> bool {
    annotation(&seen.metadata, FREED).is_some_and(|value| value != "false")
}

/// Whether our finalizer stands on it.
pub fn is_kept(seen: &SeenRemediation) -> bool {
    finalizers(&seen.metadata).iter().any(|one| one == FINALIZER)
}

fn state(status: &Value, asked: Option<&RequestNote>) -> RemediationState {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let conditions = status["conditions"].as_array();
    let said = conditions.and_then(|all| all.iter().find(|one| one["type"] == "Processing"));
    let said = said.unwrap_or(&Value::Null);
    let word = PROGRESS.iter().find(|(word, _)| status["phase"] == *word);
    let told = word.map(|(_, progress)| *progress).unwrap_or_default();
    let progress = match (asked, told) {
        (Some(asked), told) => asked.progress(told),
        // It failed before anything was asked, and is asked for again all the same.
        (None, Progress::Failed) => Progress::Failed,
        (None, _) => Progress::Waiting,
    };
    RemediationState {
        progress,
        key: asked.map(|asked| asked.key.clone()),
        gateway_node: asked.and_then(|asked| asked.gateway_node.clone()),
        proven: asked.is_some_and(|asked| asked.proven),
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

/// What its status says. Its conditions keep the time of their last turn where they did not turn.
pub fn status(update: &RemediationUpdate, before: &Value) -> Value {
    let said = update
        .conditions
        .each_ref()
        .map(|(kind, status, reason, text)| (*kind, (*status, reason.as_str(), text.clone())));
    let RemediationState { progress, key, proven, gateway_node, .. } = &update.state;
    let mut status = json!({ "node": update.node, "phase": word(*progress), "proven": proven });
    // What only it says is not taken from it: nothing else may be left of what was asked for.
    if key.is_some() || request_note::told_key(before, Some(&update.id.uid)).is_none() {
        status["key"] = json!(key);
    }
    if let Some(node) = gateway_node {
        status["gatewayNode"] = json!(node);
    }
    events::conditions(update.generation, &said, before, status)
}

/// Where it is.
pub fn path(remediation: &RemediationId) -> String {
    let (group, version, plural) = (crd::GROUP, crd::VERSION, crd::remediation::PLURAL);
    format!("/apis/{group}/{version}/namespaces/{}/{plural}/{}", remediation.namespace, remediation.name)
}

/// Changes one as it is now, by what `change` makes of it: patches of it (`""`) or of its status (`"/status"`), one after the other, each in the
/// version that the one before has left. All of it anew where somebody else wrote meanwhile. The API looks at no UID in a patch of the status; what
/// names the version that was read is refused of any other one, however late it arrives. False: it is gone, or is another one by now.
///
/// # Errors
/// It was not changed, or not to the end.
pub async fn rewrite(
    api: &Api,
    remediation: &RemediationId,
    change: impl Fn(&SeenRemediation) -> Vec<(&'static str, Value)>,
) -> Result<bool, Fault> {
    let path = path(remediation);
    let mut tries = TRIES;
    'anew: loop {
        let seen = api.find::<SeenRemediation>(&path).await?;
        let Some(seen) = seen.filter(|seen| seen.metadata.uid.as_deref() == Some(&remediation.uid)) else {
            return Ok(false);
        };
        tries -= 1;
        let mut version = json!(seen.metadata.resource_version);
        for (part, mut body) in change(&seen) {
            body["metadata"]["resourceVersion"] = version;
            match api.send(Method::PATCH, &format!("{path}{part}"), Body::Merge(&body)).await {
                Ok(written) => version = written["metadata"]["resourceVersion"].clone(),
                // Somebody else wrote meanwhile.
                Err(fault) if fault.is_changed() && tries > 0 => continue 'anew,
                Err(fault) if fault.is_not_found() => return Ok(false),
                Err(fault) => return Err(fault),
            }
        }
        return Ok(true);
    }
}

/// It is not there any more.
pub fn gone(remediation: &RemediationId) -> Fault {
    Fault::changed(format!("{remediation} is gone, or is another one by now"))
}

/// Writes into its status, as it is now: what is not named stays. What its status is to say of what it has asked for is noted before; key and Node
/// are those that are noted, for what waits to be told must not bring earlier ones back.
///
/// # Errors
/// It was not written, or it is another one by now.
pub async fn write_status(api: &Api, remediation: &RemediationId, status: &Value) -> Result<(), Fault> {
    let is_there = rewrite(api, remediation, |seen| {
        let (mut status, mut changes) = (status.clone(), Vec::new());
        match RequestNote::to_note(&seen.metadata, &status) {
            Some(asked) => {
                if RequestNote::of(&seen.metadata).as_ref() != Some(&asked) {
                    changes.push(("", asked.noting()));
                }
                (status["node"], status["key"]) = (json!(asked.node), json!(asked.key));
            }
            None if read(seen).status_claim.key.is_some() => {
                status.as_object_mut().map(|all| all.remove("key"));
            }
            None => status["key"] = Value::Null,
        }
        changes.push(("/status", json!({ "status": status })));
        changes
    });
    if is_there.await? { Ok(()) } else { Err(gone(remediation)) }
}

/// Whether the finalizer stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinalizerState {
    /// It does, before anything is asked.
    Stands,
    /// It does not: nothing was asked, or a person said so.
    Not,
    /// It does not: what hung on it is gone.
    NotAnyMore,
}

/// Places the finalizer, or takes it away, as it stands now: others' words on it, and our own, change it all the time. Of one that is gone it does
/// not stand.
///
/// # Errors
/// It was not done.
pub async fn keep(api: &Api, remediation: &RemediationId, wanted: FinalizerState) -> Result<(), Fault> {
    let kept = wanted == FinalizerState::Stands;
    let changed = rewrite(api, remediation, |seen| {
        let (metadata, known) = (&seen.metadata, read(seen));
        // What is deleted takes no finalizer any more.
        let is_late = kept && metadata.deletion_timestamp.is_some();
        let key = known.state.key.or(known.status_claim.key);
        let is_asked = wanted == FinalizerState::Not && key.is_some() && !known.freed;
        if is_late || is_asked || known.kept == kept {
            return Vec::new();
        }
        let mut all: Vec<&str> = finalizers(metadata).iter().map(String::as_str).collect();
        all.retain(|one| *one != FINALIZER);
        if kept {
            all.push(FINALIZER);
        }
        vec![("", json!({ "metadata": { "finalizers": all } }))]
    });
    changed.await.map(drop)
}

/// Whether it still wants what it wanted, by a quorum's word.
///
/// # Errors
/// Nobody could look.
pub async fn holds(api: &Api, remediation: &RemediationId) -> Result<bool, Fault> {
    let Some(seen) = api.find::<SeenRemediation>(&path(remediation)).await? else { return Ok(false) };
    let metadata = &seen.metadata;
    let is_over = metadata.deletion_timestamp.is_some() || annotation(metadata, TIMED_OUT).is_some();
    Ok(metadata.uid.as_deref() == Some(&remediation.uid) && !is_over)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request_note::ASKED;

    fn seen(metadata: &Value, status: &Value) -> SeenRemediation {
        let spec = json!({ "then": "PowerOn", "minimumGrade": "Observed", "deadlineSeconds": 90 });
        let whole = json!({
            "apiVersion": "picket.dev/v1alpha1", "kind": "PicketRemediation", "metadata": metadata, "spec": spec, "status": status,
        });
        serde_json::from_value(whole).expect("a remediation")
    }

    #[test]
    fn the_node_is_the_name_s_or_the_annotation_s() {
        let plain = read(&seen(&json!({ "name": "n1", "uid": "u" }), &Value::Null));
        assert_eq!((plain.node.as_str(), plain.kept, plain.id.health_check), ("n1", false, None));
        let made = json!({
            "name": "n1-x7", "namespace": "ns", "uid": "u", "creationTimestamp": "1970-01-01T00:16:40Z", "finalizers": ["other", FINALIZER],
            "annotations": { NODE: "n1", "remediation.medik8s.io/template-name": "t", TIMED_OUT: "2026-01-01T00:00:00Z" },
            "ownerReferences": [{ "apiVersion": "remediation.medik8s.io/v1alpha1", "kind": "NodeHealthCheck", "name": "workers", "uid": "w" }],
        });
        let made = read(&seen(&made, &Value::Null));
        assert_eq!((made.created, plain.created), (Some(1_000), None));
        assert!(made.kept && made.timed_out && !made.deleted && !made.freed);
        assert_eq!((made.node.as_str(), made.id.health_check.as_deref()), ("n1", Some("workers")));
        let of = |api_version: &str| {
            let owner = json!({ "apiVersion": api_version, "kind": "NodeHealthCheck", "name": "workers", "uid": "w" });
            read(&seen(&json!({ "name": "n1", "ownerReferences": [owner] }), &Value::Null)).id.health_check
        };
        assert_eq!(of("remediation.medik8s.io/v1").as_deref(), Some("workers"), "whichever version");
        assert_eq!(of("example.org/v1"), None, "a kind of somebody else's");
    }

    #[test]
    fn what_a_status_says_is_read_back() {
        for (progress, key) in [
            (Progress::Fencing, Some("k8s/u/b/w")),
            (Progress::Succeeded, Some("k8s/u/b/w")),
            (Progress::Failed, None),
        ] {
            let proven = key.is_some();
            let state = RemediationState {
                progress,
                key: key.map(str::to_owned),
                gateway_node: key.map(|_| "rack1-n1".to_owned()),
                proven,
                reason: "R".to_owned(),
                text: "words".to_owned(),
            };
            let said = |kind| (kind, "True", "R".to_owned(), "words".to_owned());
            let update = RemediationUpdate {
                id: RemediationId {
                    namespace: "ns".to_owned(),
                    name: "n1".to_owned(),
                    uid: "u".to_owned(),
                    health_check: None,
                },
                generation: 3,
                node: "n1".to_owned(),
                state: state.clone(),
                conditions: [said("Processing"), said("Succeeded")],
                action: crate::decider::RemediationAction::Nothing,
            };
            let status = status(&update, &Value::Null);
            assert_eq!((&status["key"], &status["node"]), (&json!(key), &json!("n1")));
            let fulfilled = progress == Progress::Succeeded;
            let asked = json!({ "node": "n1", "key": "k8s/u/b/w", "gatewayNode": "rack1-n1", "proven": proven, "fulfilled": fulfilled }).to_string();
            let annotations = if key.is_some() { json!({ ASKED: asked }) } else { json!({}) };
            let made = json!({ "name": "n1", "uid": "w", "annotations": annotations });
            assert_eq!(read(&seen(&made, &status)).state, state);
        }
    }

    #[test]
    fn what_another_version_stored_is_told_by_its_key() {
        let mut wrong = seen(&json!({ "name": "n1" }), &Value::Null);
        wrong.spec["colour"] = json!("red");
        wrong.metadata.finalizers = Some(vec![FINALIZER.to_owned()]);
        wrong.metadata.uid = Some("w".to_owned());
        let asked = json!({ "node": "n2", "key": "k8s/u/b/w" }).to_string();
        wrong.metadata.annotations = Some([(ASKED.to_owned(), asked)].into());
        let read = read(&wrong);
        assert!(read.wrong.as_ref().is_some_and(|(_, why)| why.contains("colour")), "{read:?}");
        assert!(read.kept && read.state.key.is_some(), "what hangs on it is known all the same");
    }

    #[test]
    fn a_key_is_that_of_the_node_for_which_it_was_noted() {
        let made = |key: &str| {
            let asked = json!({ "node": "n2", "key": key }).to_string();
            json!({ "name": "n1", "uid": "w", "annotations": { NODE: "n3", ASKED: asked } })
        };
        assert_eq!(read(&seen(&made("k8s/u/b/w"), &Value::Null)).node, "n2");
        assert_eq!(read(&seen(&made(""), &Value::Null)).node, "n3", "nothing was asked yet");
    }
}
