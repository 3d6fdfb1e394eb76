//! Remediations that are deleted and stand, before a gateway that is silent.

use std::path::Path;

use serde_json::json;

use super::*;
use crate::decider::{Progress, RemediationAction, RemediationState, RemediationUpdate};
use crate::event_recorder::Waiting;
use crate::hold_release::{HoldReleaseResult, KeepReason};
use crate::medik8s::Medik8sLeases;
use crate::object::SeenRemediation;
use crate::{remediation, retired};

/// A controller over those settings, which has seen nothing. No API server answers.
fn control(home: &Path, gateway: &str) -> Control {
    telling(home, gateway).0
}

/// The same, and what it has to tell.
fn telling(home: &Path, gateway: &str) -> (Control, Waiting) {
    use std::os::unix::fs::PermissionsExt;
    let [kubeconfig, file] = ["kubeconfig", "controller.toml"].map(|name| home.join(name));
    let text = "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n\
                clusters: [{name: c, cluster: {server: \"https://127.0.0.1:1\"}}]\nusers: [{name: u, user: {token: t}}]\n";
    let set = format!(
        "[gateway]\nendpoints = [\"http://{gateway}\"]\nselect = \"system-uuid\"\n[kubernetes]\nkubeconfig = {kubeconfig:?}\n"
    );
    for (path, text) in [(&kubeconfig, text), (&file, set.as_str())] {
        std::fs::write(path, text).expect("written");
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).expect("it is ours");
    }
    let settings = Arc::new(crate::settings::Settings::read(&file, |_| None).expect("they are right"));
    let api = Api::new(&settings.login()).expect("a kubeconfig");
    let (_, leading) = crate::leader_election::LeaderElection::new(api.clone(), &settings);
    let gateways = crate::gateway::gateways(&settings);
    let requester =
        FenceRequester { api, gateways, settings, leading, others: Arc::new(Medik8sLeases::new(false)) };
    let metrics = crate::measured::metrics();
    let (recorder, waiting) = EventRecorder::telling(&["ns".to_owned()], metrics.clone());
    (Control::new(requester, recorder, metrics, Arc::default()), waiting)
}

/// Deleted, and its Node is gone.
fn deleted(number: usize) -> Arc<SeenRemediation> {
    let seen = json!({
        "apiVersion": "picket.dev/v1alpha1", "kind": "PicketRemediation", "spec": {},
        "metadata": {
            "name": format!("n{number}"), "namespace": "ns", "uid": format!("w{number:03}"),
            "finalizers": ["picket.dev/remediation"], "deletionTimestamp": "2026-01-01T00:00:00Z",
            "annotations": { "picket.dev/asked": format!("{{\"node\":\"n{number}\",\"key\":\"k8s/u{number}/b/w{number:03}\"}}") },
        },
        "status": { "gatewayNode": "rack9-n9" },
    });
    Arc::new(serde_json::from_value(seen).expect("a remediation"))
}

/// S16: what a gateway says, or does not say, changes nothing of that they stand.
#[tokio::test]
async fn all_that_are_deleted_and_stand_are_told_at_once_and_few_are_asked_about() {
    let home = tempfile::tempdir().expect("a directory");
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = silent.local_addr().expect("an address").to_string();
    let mut control = control(home.path(), &address);
    control.read_wishes((0..40).map(deleted).collect());
    let now = Instant::now();
    let tidings = control.decider.judge(control.moment(now)).tidings;
    control.serve_wishes(tidings, now);
    assert_eq!(control.remediations.stuck(), 40, "each is told");
    assert_eq!(control.remediations.hold_releases.len(), 16);
}

/// S16: who reads its words, or its Events, is not told in turns what a gateway that answers now and then says.
#[tokio::test]
async fn a_question_that_fails_changes_no_words() {
    let home = tempfile::tempdir().expect("a directory");
    let mut control = control(home.path(), "127.0.0.1:1");
    control.read_wishes(vec![deleted(1)]);
    let paged = control.decider.judge(Duration::ZERO).tidings.remove(0);
    let ready = RemediationUpdate { action: RemediationAction::LetGo { lives: true }, ..paged.clone() };
    let (away, said) =
        (|why: &str| KeepReason::Unknown(why.to_owned()), |why: &str| KeepReason::Said(why.to_owned()));
    let mut told = Vec::new();
    for (update, stays) in [
        (&paged, away("nobody answered")),
        (&ready, away("no leader")),
        (&ready, away("nobody answered")),
        (&ready, said("it says no")),
        (&ready, away("nobody answered")),
        (&ready, said("it says no")),
        (&paged, away("no leader")),
        (&paged, away("nobody answered")),
    ] {
        let before = control.remediations.words(&update.id.uid);
        control.remediations.hold_releases.spawn(std::future::ready((update.id.uid.clone(), Err(stays))));
        while !control.remediations.hold_releases.is_empty() {
            tokio::task::yield_now().await;
            control.let_go_or_not(std::slice::from_ref(update));
        }
        if update.action == RemediationAction::Page {
            assert_eq!(control.remediations.words(&update.id.uid), before, "not for a moment");
        }
        let seen = deleted(1);
        control.serve(update, &seen, Instant::now());
        told.push(control.remediations.words(&update.id.uid));
    }
    let right = [
        retired::NOT_READY,
        "no leader",
        "no leader",
        "it says no",
        "it says no",
        "it says no",
        retired::NOT_READY,
        retired::NOT_READY,
    ];
    let is_right = |(told, right): (&String, &&str)| told.contains(&format!(": {right}: the hold stays"));
    assert!(told.iter().zip(&right).all(is_right) && told.len() == right.len(), "{told:#?}");
}

/// S16: a person is told a name once a gateway has shown it, and until then none.
#[tokio::test]
async fn the_node_s_name_stands_in_the_command_once_a_gateway_has_shown_it() {
    let home = tempfile::tempdir().expect("a directory");
    let mut control = control(home.path(), "127.0.0.1:1");
    control.read_wishes(vec![deleted(1)]);
    let update = control.decider.judge(Duration::ZERO).tidings.remove(0);
    assert_eq!(update.state.gateway_node, None, "so its status alone says");
    for (answer, named) in [
        (Ok(HoldReleaseResult::NotRetired(None)), "NODE"),
        (Ok(HoldReleaseResult::NotRetired(Some("rack1-n1".to_owned()))), "rack1-n1"),
        (Err(KeepReason::Unknown("nobody answered".to_owned())), "rack1-n1"),
        (Ok(HoldReleaseResult::NotRetired(None)), "rack1-n1"),
    ] {
        control.remediations.hold_releases.spawn(std::future::ready((update.id.uid.clone(), answer)));
        while !control.remediations.hold_releases.is_empty() {
            tokio::task::yield_now().await;
            control.let_go_or_not(std::slice::from_ref(&update));
        }
        let update = control.decider.judge(Duration::ZERO).tidings.remove(0);
        control.serve(&update, &deleted(1), Instant::now());
        let words = control.remediations.words(&update.id.uid);
        assert!(words.contains(&format!("`picket retire {named} --reason TEXT`")), "{words}");
    }
}

/// K12: whoever may write a status would else have one that came true ask again, once another replica leads.
#[tokio::test]
async fn what_a_status_says_beforehand_is_noted_all_the_same() {
    let home = tempfile::tempdir().expect("a directory");
    let (mut control, mut waiting) = telling(home.path(), "127.0.0.1:1");
    let key = "k8s/u/b/w";
    let seen = |status: Value| -> Arc<SeenRemediation> {
        let asked = json!({ "node": "n1", "key": key }).to_string();
        let whole = json!({
            "apiVersion": "picket.dev/v1alpha1", "kind": "PicketRemediation", "spec": { "then": "PowerOn", "minimumGrade": "Claimed" }, "status": status,
            "metadata": { "name": "n1", "namespace": "ns", "uid": "w", "annotations": { "picket.dev/asked": asked } },
        });
        Arc::new(serde_json::from_value(whole).expect("a remediation"))
    };
    control.read_wishes(vec![seen(Value::Null)]);
    let id = remediation::id(&seen(Value::Null));
    let state = RemediationState {
        progress: Progress::Succeeded,
        key: Some(key.to_owned()),
        proven: true,
        ..RemediationState::default()
    };
    control.decider.stands(&id, state);
    control.requester.settings = Arc::new(crate::settings::Settings {
        remediation_namespaces: vec!["ns".to_owned()],
        ..crate::settings::Settings::clone(&control.requester.settings)
    });
    control.read_wishes(vec![seen(Value::Null)]);
    let update = control.decider.judge(Duration::ZERO).tidings.remove(0);
    assert_eq!(update.state.progress, Progress::Succeeded);
    control.read_wishes(vec![seen(remediation::status(&update, &Value::Null))]);
    control.serve_wishes(vec![update], Instant::now());
    drop(control);
    assert!(
        matches!(waiting.next().await, Some((ClusterWrite::Remediation(remediation, _), _)) if remediation == id),
        "it is written"
    );
}

/// K12: a version before has noted nothing in the metadata of one whose finalizer stands: what its Node confirms is noted, and of what nothing does a person is told.
#[tokio::test]
async fn what_a_status_alone_says_is_noted_where_its_node_confirms_it_and_told_to_a_person_elsewhere() {
    let home = tempfile::tempdir().expect("a directory");
    let key = "k8s/u/b/w001";
    let seen = || {
        let mut seen = SeenRemediation::clone(&deleted(1));
        seen.metadata.annotations = None;
        seen.status = Some(json!({ "key": key, "node": "n1" }));
        Arc::new(seen)
    };
    for is_confirmed in [true, false] {
        let (mut control, mut waiting) = telling(home.path(), "127.0.0.1:1");
        control.decider.lead(true);
        let note = json!({ "phase": "Fenced", "text": "", "policy": "PicketRemediation ns/n1", "key": key, "at": "" });
        let annotations = [(crate::decider::STATUS.to_owned(), note.to_string())];
        let node = crate::decider::Node {
            name: "n1".to_owned(),
            uid: "u".to_owned(),
            annotations: annotations.into_iter().filter(|_| is_confirmed).collect(),
            ..crate::decider::Node::default()
        };
        control.decider.see(node, Duration::ZERO);
        control.read_wishes(vec![seen()]);
        let tidings = control.decider.judge(Duration::ZERO).tidings;
        assert_eq!(tidings[0].action, RemediationAction::Page, "{is_confirmed}");
        control.serve_wishes(tidings, Instant::now());
        let words = control.remediations.words("w001");
        assert_eq!(words.contains(retired::HEARSAY), !is_confirmed, "{words}");
        assert_eq!(words.contains("Bring the Node back"), is_confirmed, "{words}");
        // What was not noted takes nothing back, also once the Node's note is gone.
        let order = crate::decider::FenceOrder {
            remediation: Some(remediation::id(&seen())),
            ..crate::request::tests::order()
        };
        let bare = crate::decider::Node {
            name: "n1".to_owned(),
            uid: "u".to_owned(),
            ..crate::decider::Node::default()
        };
        control.decider.see(bare, Duration::ZERO);
        control.wish_ended(&order, &OutcomeReport::held("words"), false, None);
        let known = control.decider.judge(Duration::ZERO).tidings.remove(0).state.key;
        assert_eq!(known.as_deref(), is_confirmed.then_some(key));
        assert!(
            words.contains("picket.dev/free-remediation=true") && words.contains("`picket retire NODE"),
            "{words}"
        );
        drop(control);
        let mut told = None;
        while let Some((one, _)) = waiting.next().await {
            if let ClusterWrite::Remediation(_, status) = one {
                told = Some(status["key"].clone());
            }
        }
        assert_eq!(told, Some(if is_confirmed { json!(key) } else { Value::Null }));
    }
}
