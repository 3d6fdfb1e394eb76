//! What is told in the cluster: Events, an annotation on the Node, a policy's status. Nothing waits for it.

use http::Method;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;

use crate::api::{Api, Body};
use crate::crd;
use crate::decider::{Node, Note, PolicyReport, STATUS};
use crate::fault::Fault;
use crate::object::SeenNode;

/// Who tells.
pub const CONTROLLER: &str = "picket.dev/controller";
/// So long may the note of an Event be.
const NOTE: usize = 1_000;

/// Now, to the second.
pub fn time() -> String {
    let now = OffsetDateTime::now_utc();
    now.replace_nanosecond(0).unwrap_or(now).format(&Rfc3339).unwrap_or_default()
}

/// Now, to the microsecond, as leases and Events have it.
pub fn micro_time() -> String {
    let form = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z");
    OffsetDateTime::now_utc().format(&form).unwrap_or_default()
}

/// What an Event is about.
#[derive(Clone, Debug)]
pub struct EventSubject {
    api_version: String,
    kind: &'static str,
    name: String,
    uid: String,
}

impl EventSubject {
    /// A Node.
    pub fn node(node: &Node) -> Self {
        let (name, uid) = (node.name.clone(), node.uid.clone());
        Self { api_version: "v1".to_owned(), kind: "Node", name, uid }
    }

    /// A policy.
    pub fn policy(name: &str, uid: &str) -> Self {
        let api_version = format!("{}/{}", crd::GROUP, crd::VERSION);
        Self { api_version, kind: crd::KIND, name: name.to_owned(), uid: uid.to_owned() }
    }
}

/// Reasons of Events by which nobody need do anything: what was asked for takes its way.
const NORMAL: [&str; 11] = [
    "FenceAsked",
    "Waiting",
    "Fencing",
    "Releasing",
    "Released",
    "PoweringOn",
    "Fenced",
    "FenceAborted",
    "NodeReturning",
    "NodeBack",
    "Acting",
];

/// An Event on a Node, or on a policy.
///
/// # Errors
/// It was not told.
pub async fn event(
    api: &Api,
    identity: &str,
    about: &EventSubject,
    reason: &str,
    text: &str,
) -> Result<(), Fault> {
    let EventSubject { api_version, kind, name, uid } = about;
    let body = json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": { "generateName": "picket-", "namespace": "default" },
        "eventTime": micro_time(),
        "type": if NORMAL.contains(&reason) { "Normal" } else { "Warning" },
        "reason": reason,
        "action": "Fence",
        "note": text.chars().take(NOTE).collect::<String>(),
        "regarding": { "apiVersion": api_version, "kind": kind, "name": name, "uid": uid },
        "reportingController": CONTROLLER,
        "reportingInstance": identity.chars().take(128).collect::<String>(),
    });
    api.send(Method::POST, "/apis/events.k8s.io/v1/namespaces/default/events", Body::Whole(&body))
        .await
        .map(drop)
}

/// Notes on a Node how far it is; `None`: takes the note away. Of its metadata alone, and of no other Node of that name.
///
/// # Errors
/// It was not noted, or it is another Node by now.
pub async fn note(api: &Api, node: &Node, note: Option<&Note>) -> Result<(), Fault> {
    let path = format!("/api/v1/nodes/{}", node.name);
    let mut bare = None;
    if note.is_some() && node.annotations.is_empty() {
        // What was seen of it may be old: others note there, too, and the first note brings the map with it.
        let ObjectMeta { annotations, resource_version, .. } = api.get::<SeenNode>(&path).await?.metadata;
        bare = resource_version.filter(|_| annotations.is_none_or(|all| all.is_empty()));
    }
    let value = note.map(serde_json::to_string).transpose();
    let value = value.map_err(|error| Fault::own(error.to_string()))?;
    let patch = noting(&node.uid, bare.as_deref(), value.as_deref());
    api.send(Method::PATCH, &path, Body::Json(&patch)).await.map(drop)
}

/// The patch by which a Node of that UID gets that note, or loses it. `bare`: the version in which it had no annotations.
fn noting(uid: &str, bare: Option<&str>, note: Option<&str>) -> Value {
    let place = format!("/metadata/annotations/{}", STATUS.replace('/', "~1"));
    let is = |path: &str, value: &str| json!({ "op": "test", "path": path, "value": value });
    let uid = is("/metadata/uid", uid);
    match (note, bare) {
        // In any later version the whole map would replace what came meanwhile.
        (Some(note), Some(version)) => json!([
            uid,
            is("/metadata/resourceVersion", version),
            { "op": "add", "path": "/metadata/annotations", "value": { STATUS: note } },
        ]),
        (Some(note), None) => json!([uid, { "op": "add", "path": place, "value": note }]),
        (None, _) => json!([uid, { "op": "remove", "path": place }]),
    }
}

/// A condition: status, reason, words.
pub type PolicyCondition = (&'static str, &'static str, String);

fn accepted(report: &PolicyReport) -> PolicyCondition {
    match &*report.faults {
        [] => ("True", "Accepted", "it is right".to_owned()),
        [first, ..] => {
            let all: Vec<&str> = report.faults.iter().map(|fault| fault.message.as_str()).collect();
            ("False", first.reason, all.join("; "))
        }
    }
}

/// Whether a policy acts.
pub fn acting(report: &PolicyReport) -> PolicyCondition {
    let is_acting = report.selected > 0 || report.faults.is_empty();
    match &report.holding {
        Some(holding) => ("False", holding.reason, holding.message.clone()),
        None if is_acting => ("True", "Acting", "Nodes that fail are fenced".to_owned()),
        None => accepted(report),
    }
}

/// What is told of a policy that cannot be read.
pub fn not_understood(why: &str) -> PolicyCondition {
    let text = format!("this controller does not understand it, so that nobody is fenced by it: {why}");
    ("False", "Malformed", text)
}

/// The status of a policy by what was found; its conditions keep the time of their last turn where they did not turn.
pub fn status(report: &PolicyReport, before: &Value) -> Value {
    conditions(
        report.generation,
        &[("Accepted", accepted(report)), ("Acting", acting(report))],
        before,
        json!({
            "selected": report.selected,
            "unhealthy": report.unhealthy,
            "fencing": report.fencing,
        }),
    )
}

/// The status of a policy that cannot be read.
pub fn malformed(generation: i64, why: &str, before: &Value) -> Value {
    let one = not_understood(why);
    let counts = json!({ "selected": 0, "unhealthy": 0, "fencing": 0 });
    conditions(generation, &[("Accepted", one.clone()), ("Acting", one)], before, counts)
}

/// A status with these conditions: type, then status, reason and words.
pub fn conditions(
    generation: i64,
    all: &[(&str, (&str, &str, String))],
    before: &Value,
    mut status: Value,
) -> Value {
    let turned = |kind: &str, now: &str| {
        let before = before["conditions"].as_array()?;
        let same = before.iter().find(|one| one["type"] == kind && one["status"] == now)?;
        same["lastTransitionTime"].as_str().map(str::to_owned)
    };
    let condition = |(kind, (now, reason, message)): &(&str, (&str, &str, String))| {
        json!({
            "type": kind,
            "status": now,
            "reason": reason,
            "message": message,
            "observedGeneration": generation,
            "lastTransitionTime": turned(kind, now).unwrap_or_else(time),
        })
    };
    status["conditions"] = all.iter().map(condition).collect();
    status["observedGeneration"] = json!(generation);
    status
}

/// Whether they are the same but for the times of turns, which are made anew until they were read back.
pub fn is_same(one: &Value, other: &Value) -> bool {
    let plain = |status: &Value| {
        let mut status = status.clone();
        for condition in status["conditions"].as_array_mut().into_iter().flatten() {
            condition["lastTransitionTime"] = Value::Null;
        }
        status
    };
    plain(one) == plain(other)
}

/// Writes a policy's status.
///
/// # Errors
/// It was not written.
pub async fn write_status(api: &Api, policy: &str, status: &Value) -> Result<(), Fault> {
    let path = format!("/apis/{}/{}/{}/{policy}/status", crd::GROUP, crd::VERSION, crd::PLURAL);
    api.send(Method::PATCH, &path, Body::Merge(&json!({ "status": status }))).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decider::{Phase, PolicyFault as Wrong};

    fn report() -> PolicyReport {
        PolicyReport {
            policy: "p".to_owned(),
            generation: 7,
            selected: 3,
            unhealthy: 1,
            fencing: 0,
            faults: Vec::new(),
            holding: None,
        }
    }

    fn told(status: &Value) -> Vec<(&str, &str)> {
        let all = status["conditions"].as_array().expect("conditions");
        all[..2]
            .iter()
            .map(|one| (one["status"].as_str().unwrap_or(""), one["reason"].as_str().unwrap_or("")))
            .collect()
    }

    /// K6: a note that brings the map of annotations with it takes no other one's away.
    #[tokio::test]
    async fn a_first_note_is_of_the_version_that_had_no_annotations() {
        let noted = async |annotations: Value| {
            let seen =
                json!({ "name": "n1", "uid": "u", "resourceVersion": "7", "annotations": annotations });
            let (api, sent) = Api::answering(&json!({ "metadata": seen, "spec": {} }));
            let note = Note {
                phase: Phase::Fencing,
                text: String::new(),
                policy: "p".to_owned(),
                key: "k".to_owned(),
                at: time(),
            };
            let node = Node { name: "n1".to_owned(), uid: "u".to_owned(), ..Node::default() };
            super::note(&api, &node, Some(&note)).await.expect("noted");
            let sent: Vec<Value> = sent.lock().clone();
            sent.last().and_then(Value::as_array).expect("a patch").clone()
        };
        let version = json!({ "op": "test", "path": "/metadata/resourceVersion", "value": "7" });
        for bare in [Value::Null, json!({})] {
            let patch = noted(bare).await;
            assert!(patch.contains(&version) && patch[2]["path"] == "/metadata/annotations", "{patch:?}");
        }
        // Somebody else's came since it was seen.
        let patch = noted(json!({ "theirs": "x" })).await;
        assert!(
            patch.len() == 2 && patch[1]["path"] == "/metadata/annotations/picket.dev~1status",
            "{patch:?}"
        );
        assert_eq!(patch[0], json!({ "op": "test", "path": "/metadata/uid", "value": "u" }));
    }

    /// Who looks for warnings finds what somebody has to see to, and each on what it is about.
    #[tokio::test]
    async fn an_event_is_a_warning_where_something_does_not_take_its_way() {
        let (api, sent) = Api::answering(&json!({}));
        let node = Node { name: "n1".to_owned(), uid: "u".to_owned(), ..Node::default() };
        for (about, reason, kind, regarding) in [
            (EventSubject::node(&node), "Releasing", "Normal", ["v1", "Node", "n1", "u"]),
            (EventSubject::node(&node), "NeedsOperator", "Warning", ["v1", "Node", "n1", "u"]),
            (
                EventSubject::policy("p", "v"),
                "SharesNodes",
                "Warning",
                ["picket.dev/v1alpha1", "FencingPolicy", "p", "v"],
            ),
        ] {
            event(&api, "one", &about, reason, "words").await.expect("told");
            let body = sent.lock().last().cloned().expect("it was sent");
            assert_eq!(body["type"], kind, "{body}");
            let said = ["apiVersion", "kind", "name", "uid"].map(|key| body["regarding"][key].clone());
            assert_eq!(said, regarding.map(Value::from), "{body}");
        }
    }

    #[test]
    fn a_policy_says_whether_it_is_right_and_whether_it_acts() {
        let wrong = |reason| Wrong { reason, message: "words".to_owned() };
        assert_eq!(told(&status(&report(), &Value::Null)), [("True", "Accepted"), ("True", "Acting")]);
        let braked = PolicyReport { holding: Some(wrong("Braked")), ..report() };
        assert_eq!(told(&status(&braked, &Value::Null)), [("True", "Accepted"), ("False", "Braked")]);
        let shares = PolicyReport { faults: vec![wrong("SharesNodes")], ..report() };
        assert_eq!(told(&status(&shares, &Value::Null)), [("False", "SharesNodes"), ("True", "Acting")]);
        let nothing = PolicyReport { selected: 0, faults: vec![wrong("SelectsNothing")], ..report() };
        assert_eq!(
            told(&status(&nothing, &Value::Null)),
            [("False", "SelectsNothing"), ("False", "SelectsNothing")]
        );
        assert_eq!(told(&malformed(1, "x", &Value::Null))[0], ("False", "Malformed"));
    }

    #[test]
    fn a_condition_that_did_not_turn_keeps_its_time() {
        let old = "2026-01-01T00:00:00Z";
        let before = json!({ "conditions": [
            { "type": "Accepted", "status": "True", "lastTransitionTime": old },
            { "type": "Acting", "status": "False", "lastTransitionTime": old },
        ] });
        let now = status(&report(), &before);
        assert_eq!(now["conditions"][0]["lastTransitionTime"], old);
        assert_ne!(now["conditions"][1]["lastTransitionTime"], old);
    }

    #[test]
    fn times_have_the_form_that_the_api_wants() {
        assert!(micro_time().len() == 27 && time().len() == 20, "{} {}", micro_time(), time());
    }
}
