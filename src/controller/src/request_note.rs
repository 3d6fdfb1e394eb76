//! What a remediation has asked for, noted in its metadata before the gateway is asked.
//!
//! # Invariants
//!
//! - Whoever may write a status may write anything there (K12). So an annotation beside the finalizer says
//!   which Node was asked for, under which key, and what came of it. Whoever may write that may take the
//!   finalizer away as well. Shown by `what_is_noted_stands_whatever_a_status_says`.
//! - A key that stands in a status alone keeps a finalizer, and frees none. Shown by
//!   `a_status_alone_has_asked_for_nothing`, `no_finalizer_goes_by_a_status_that_names_a_key_of_its_own`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::api::Api;
use crate::decider::{Progress, RemediationId, StatusClaim};
use crate::fault::Fault;
use crate::remediation::{gone, rewrite, word};

/// The annotation, with JSON in it.
pub const ASKED: &str = "picket.dev/asked";

/// What it says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestNote {
    /// The Node's name.
    pub node: String,
    /// Under which key.
    pub key: String,
    /// As a gateway has shown, of what was asked by that key, that it calls the node; `None`: none has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway_node: Option<String>,
    /// The fence of that key said that it is proven off, and that everything is released.
    #[serde(default)]
    pub proven: bool,
    /// The request was fulfilled: nothing more is asked by it.
    #[serde(default)]
    pub fulfilled: bool,
}

impl RequestNote {
    /// What is noted; `None`: it has asked for nothing. A key has the UID of its remediation: what was copied from another one is no word of it.
    pub fn of(metadata: &ObjectMeta) -> Option<Self> {
        let noted: Self = serde_json::from_str(metadata.annotations.as_ref()?.get(ASKED)?).ok()?;
        let is_own = is_own(&noted.key, metadata.uid.as_deref());
        (is_own && !noted.node.is_empty()).then_some(noted)
    }

    /// What is to be noted where that status is about to be told: what is noted, with what came of it. Where nothing is, the key that the status is to
    /// tell: whoever leads knows it, and a version before has noted none, or somebody has lost it.
    pub fn to_note(metadata: &ObjectMeta, status: &Value) -> Option<Self> {
        let text = |name: &str| status[name].as_str().map(str::to_owned);
        let known = || {
            let (node, key) = (text("node")?, text("key")?);
            let is_own = is_own(&key, metadata.uid.as_deref());
            is_own.then_some(Self { node, key, gateway_node: None, proven: false, fulfilled: false })
        };
        Self::of(metadata).or_else(known).map(|asked| asked.told(status))
    }

    /// The same, with what that status says of it, which is about to be told. A status that waited may be of an earlier key: what came of that is
    /// nothing that came of this one.
    fn told(self, status: &Value) -> Self {
        if status["key"] != self.key {
            return self;
        }
        let fulfilled = self.fulfilled || status["phase"] == word(Progress::Succeeded);
        let gateway_node = status["gatewayNode"].as_str().map(str::to_owned).or(self.gateway_node);
        Self { proven: status["proven"] == true, fulfilled, gateway_node, ..self }
    }

    /// How far one is that has asked for that, where its status says `said`.
    pub fn progress(&self, said: Progress) -> Progress {
        match said {
            _ if self.fulfilled => Progress::Succeeded,
            // The gateway says once more, under the same key, what came of it.
            Progress::Succeeded => Progress::Fencing,
            said => said,
        }
    }

    /// The patch that notes it.
    pub fn noting(&self) -> Value {
        json!({ "metadata": { "annotations": { ASKED: json!(self).to_string() } } })
    }
}

/// A key has the UID of its remediation.
fn is_own(key: &str, uid: Option<&str>) -> bool {
    let of = key.strip_prefix("k8s/").and_then(|rest| rest.split('/').nth(2));
    of.is_some() && of == uid
}

/// The key of the remediation of that UID that stands in its status; `None`: there is none, or another one's.
pub fn told_key<'s>(status: &'s Value, uid: Option<&str>) -> Option<&'s str> {
    status["key"].as_str().filter(|key| is_own(key, uid))
}

/// What a status says of what the remediation of that UID has asked for.
pub fn status_claim(status: &Value, uid: Option<&str>) -> StatusClaim {
    let node = status["gatewayNode"].as_str().filter(|node| !node.is_empty());
    StatusClaim { key: told_key(status, uid).map(str::to_owned), gateway_node: node.map(str::to_owned) }
}

/// Notes under which key the gateway is asked for which Node, before it is.
///
/// # Errors
/// It is not noted: nothing is to be asked.
pub async fn note(api: &Api, remediation: &RemediationId, node: &str, key: &str) -> Result<(), Fault> {
    let noted = rewrite(api, remediation, |seen| {
        // By another key another machine may be meant.
        let same = RequestNote::of(&seen.metadata).filter(|asked| asked.key == key);
        let gateway_node = same.and_then(|asked| asked.gateway_node);
        let (node, key) = (node.to_owned(), key.to_owned());
        vec![("", RequestNote { node, key, gateway_node, proven: false, fulfilled: false }.noting())]
    });
    match noted.await? {
        true => Ok(()),
        false => Err(gone(remediation)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decider::{Progress, RemediationRequest};
    use crate::object::SeenRemediation;
    use crate::remediation::{FINALIZER, FinalizerState, keep, read, write_status};

    /// One with that note, `Null`: with none.
    fn whole(noted: &Value, status: &Value) -> Value {
        let annotations = match noted {
            Value::Null => json!({}),
            noted => json!({ ASKED: noted.to_string() }),
        };
        let metadata = json!({ "name": "n1", "namespace": "ns", "uid": "w", "resourceVersion": "7", "annotations": annotations });
        json!({
            "apiVersion": "picket.dev/v1alpha1", "kind": "PicketRemediation", "metadata": metadata, "spec": {}, "status": status,
        })
    }

    fn made(noted: &Value, status: &Value) -> RemediationRequest {
        read(&serde_json::from_value(whole(noted, status)).expect("a remediation"))
    }

    /// K12: whoever may write a status would else have another Node fenced, or a finalizer gone while its hold stays.
    #[test]
    fn a_status_alone_has_asked_for_nothing() {
        let all = json!({ "key": "k8s/u/b/w", "node": "n2", "phase": "Succeeded", "proven": true });
        let remediation = made(&Value::Null, &all);
        assert_eq!((remediation.node.as_str(), &remediation.state.key), ("n1", &None));
        assert_eq!((remediation.state.progress, remediation.state.proven), (Progress::Waiting, false));
        for phase in ["Fencing", "Returning", "Succeeded"] {
            let remediation = made(&Value::Null, &json!({ "phase": phase }));
            assert_eq!(remediation.state.progress, Progress::Waiting, "{phase}");
        }
    }

    #[test]
    fn what_is_noted_stands_whatever_a_status_says() {
        let noted = json!({ "node": "n3", "key": "k8s/u/b/w" });
        for status in [
            Value::Null,
            json!({ "key": "", "node": "" }),
            json!({ "key": "k8s/v/c/w", "node": "n2", "phase": "Succeeded", "proven": true }),
            json!({ "key": "k8s/v/c/w", "node": "n2", "phase": "Returning", "proven": true }),
        ] {
            let remediation = made(&noted, &status);
            assert_eq!(
                (remediation.node.as_str(), remediation.state.key.as_deref()),
                ("n3", Some("k8s/u/b/w")),
                "{status}"
            );
            assert!(
                !remediation.state.proven && remediation.state.progress != Progress::Succeeded,
                "{status}"
            );
        }
    }

    #[test]
    fn what_was_copied_from_another_one_or_makes_no_sense_is_no_word_of_this_one() {
        for noted in [
            json!({ "node": "n3", "key": "k8s/u/b/v" }),
            json!({ "node": "n3", "key": "k8s/u/w" }),
            json!({ "node": "n3", "key": "w" }),
            json!({ "node": "", "key": "k8s/u/b/w" }),
            json!({ "node": "n3" }),
            json!("k8s/u/b/w"),
        ] {
            let remediation = made(&noted, &Value::Null);
            assert_eq!((remediation.node.as_str(), remediation.state.key), ("n1", None), "{noted}");
        }
        let round = made(&json!({ "node": "n3", "key": "k8s/u/b/w/2" }), &Value::Null);
        assert_eq!(round.state.key.as_deref(), Some("k8s/u/b/w/2"));
    }

    /// K12: by what a status says, one that came true would else ask again, and one that did not would never.
    #[test]
    fn one_has_come_true_where_that_is_noted() {
        let noted = |fulfilled: bool| json!({ "node": "n1", "key": "k8s/u/b/w", "proven": true, "fulfilled": fulfilled });
        for (phase, right) in [
            ("Waiting", Progress::Waiting),
            ("Fencing", Progress::Fencing),
            ("Returning", Progress::Returning),
            ("Failed", Progress::Failed),
            ("Succeeded", Progress::Fencing),
        ] {
            let status = json!({ "phase": phase });
            let state = made(&noted(false), &status).state;
            assert_eq!((state.progress, state.proven), (right, true), "{phase}");
            assert_eq!(made(&noted(true), &status).state.progress, Progress::Succeeded, "{phase}");
        }
    }

    fn id() -> RemediationId {
        let (namespace, name, uid) = ("ns".to_owned(), "n1".to_owned(), "w".to_owned());
        RemediationId { namespace, name, uid, health_check: None }
    }

    /// What is sent where that is noted, `said` is its status, and `late` is to be told.
    async fn written(noted: &Value, said: &Value, late: &Value) -> Vec<Value> {
        let (api, sent) = Api::answering(&whole(noted, said));
        write_status(&api, &id(), late).await.expect("written");
        let sent: Vec<Value> = sent.lock().clone();
        for patch in &sent {
            assert_eq!(patch["metadata"]["resourceVersion"], "7", "{patch}");
        }
        sent
    }

    fn noted_by(patch: &Value) -> Value {
        let asked = patch["metadata"]["annotations"][ASKED].as_str().expect("a note");
        serde_json::from_str(asked).expect("JSON")
    }

    /// What was asked for is known to the next leader before anybody reads of it in the status.
    #[tokio::test]
    async fn what_came_of_it_is_noted_before_the_status_tells_it() {
        let noted = json!({ "node": "n3", "key": "k8s/u/b/w" });
        let late = json!({ "phase": "Succeeded", "proven": true, "node": "n9", "key": "k8s/u/b/w", "gatewayNode": "rack1-n3" });
        let sent = written(&noted, &json!({ "key": "forged", "node": "n2" }), &late).await;
        let [first, second] = &sent[..] else { panic!("{sent:?}") };
        let right = json!({
            "node": "n3", "key": "k8s/u/b/w", "gatewayNode": "rack1-n3", "proven": true, "fulfilled": true,
        });
        assert_eq!(noted_by(first), right);
        let told = &second["status"];
        assert_eq!((&told["node"], &told["key"]), (&json!("n3"), &json!("k8s/u/b/w")), "as it is noted");
    }

    /// A status that waited is of the round before: by it one that was never proven off would come true, or one that was would not.
    #[tokio::test]
    async fn what_came_of_another_key_is_not_noted() {
        for (proven, fulfilled) in [(false, false), (true, false), (true, true)] {
            let noted = json!({ "node": "n3", "key": "k8s/u/b/w/2", "gatewayNode": "rack1-n3", "proven": proven, "fulfilled": fulfilled });
            for key in [json!("k8s/u/b/w"), Value::Null] {
                let late =
                    json!({ "phase": "Succeeded", "proven": !proven, "key": key, "gatewayNode": "rack1-n9" });
                let sent = written(&noted, &Value::Null, &late).await;
                let [told] = &sent[..] else { panic!("{sent:?}") };
                assert_eq!(told["status"]["key"], "k8s/u/b/w/2", "{told}");
            }
        }
    }

    #[tokio::test]
    async fn a_status_of_one_that_has_asked_for_nothing_has_no_key() {
        let waiting = json!({ "phase": "Waiting", "key": null });
        let sent = written(&Value::Null, &json!({ "key": "k8s/u/b/of another one" }), &waiting).await;
        let [only] = &sent[..] else { panic!("{sent:?}") };
        assert_eq!(only["status"].as_object().and_then(|all| all.get("key")), Some(&Value::Null));
        // That of its own may be all that is left of what it has asked for.
        let sent = written(&Value::Null, &json!({ "key": "k8s/u/b/w" }), &waiting).await;
        let [only] = &sent[..] else { panic!("{sent:?}") };
        assert_eq!(only["status"].as_object().and_then(|all| all.get("key")), None);
    }

    /// A version before has noted nothing, or somebody has lost it: whoever leads knows it.
    #[tokio::test]
    async fn what_the_leader_knows_is_noted_where_nothing_is() {
        let late = json!({ "phase": "Fencing", "proven": false, "node": "n3", "key": "k8s/u/b/w" });
        let sent = written(&Value::Null, &json!({ "key": "k8s/u/b/w" }), &late).await;
        let [first, second] = &sent[..] else { panic!("{sent:?}") };
        let right = json!({ "node": "n3", "key": "k8s/u/b/w", "proven": false, "fulfilled": false });
        assert_eq!((noted_by(first), &second["status"]["key"]), (right, &json!("k8s/u/b/w")));
    }

    /// As a gateway has shown that it calls the node, and for the key by which that was asked for.
    #[tokio::test]
    async fn the_gateway_s_node_is_what_is_noted_for_its_key() {
        let noted = json!({ "node": "n3", "key": "k8s/u/b/w", "gatewayNode": "rack1-n3" });
        let named = |noted: &Value| {
            made(noted, &json!({ "gatewayNode": "rack7-n7", "key": "k8s/u/b/w" })).state.gateway_node
        };
        assert_eq!(named(&noted).as_deref(), Some("rack1-n3"));
        assert_eq!(named(&json!({ "node": "n3", "key": "k8s/u/b/w" })), None);
        assert_eq!(named(&Value::Null), None);
        for (key, right) in [("k8s/u/b/w", json!("rack1-n3")), ("k8s/u/b/w/2", Value::Null)] {
            let (api, sent) = Api::answering(&whole(&noted, &Value::Null));
            note(&api, &id(), "n3", key).await.expect("noted");
            let first = sent.lock().first().cloned().expect("it was sent");
            assert_eq!(noted_by(&first)["gatewayNode"], right, "{key}");
        }
    }

    /// The decider may have decided by what was so before.
    #[tokio::test]
    async fn no_finalizer_goes_by_a_status_that_names_a_key_of_its_own() {
        let sent = async |key: &str, annotations: Value| {
            let mut one = whole(&Value::Null, &json!({ "key": key }));
            one["metadata"]["finalizers"] = json!([FINALIZER]);
            one["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            one["metadata"]["annotations"] = annotations;
            let (api, sent) = Api::answering(&one);
            keep(&api, &id(), FinalizerState::Not).await.expect("done");
            sent.lock().len()
        };
        assert_eq!(sent("k8s/u/b/w", json!({})).await, 0);
        assert_eq!(sent("k8s/u/b/v", json!({})).await, 1, "that of another one");
        assert_eq!(sent("k8s/u/b/w", json!({ "picket.dev/free-remediation": "true" })).await, 1);
    }

    #[tokio::test]
    async fn the_key_is_noted_in_the_version_that_was_read_and_on_no_other_one_of_that_name() {
        let (api, sent) = Api::answering(&whole(&Value::Null, &Value::Null));
        note(&api, &id(), "n3", "k8s/u/b/w").await.expect("noted");
        let first = sent.lock().first().cloned().expect("it was sent");
        assert_eq!(first["metadata"]["resourceVersion"], "7");
        let noted: SeenRemediation = serde_json::from_value({
            let mut whole = whole(&Value::Null, &Value::Null);
            whole["metadata"]["annotations"] = first["metadata"]["annotations"].clone();
            whole
        })
        .expect("a remediation");
        let remediation = read(&noted);
        assert_eq!((remediation.node.as_str(), remediation.state.key.as_deref()), ("n3", Some("k8s/u/b/w")));
        let other = RemediationId { uid: "v".to_owned(), ..id() };
        let fault = note(&api, &other, "n3", "k8s/u/b/v").await.expect_err("another one");
        assert!(fault.is_changed() && sent.lock().len() == 1, "{fault}");
    }
}
