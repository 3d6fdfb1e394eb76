//! Attachments that are waited for, and those that nobody will ever take away (K5).

use super::*;
use picket_release::Progress;

const ATTACHED: &str = "/apis/storage.k8s.io/v1/volumeattachments";
const DRIVERS: &str = "/apis/storage.k8s.io/v1/csidrivers";
const KUBELETS: &str = "/apis/storage.k8s.io/v1/csinodes";
const VOLUMES: &str = "/api/v1/persistentvolumes";

fn attachment(name: &str, status: Value) -> Value {
    let source = json!({ "persistentVolumeName": format!("v-{name}") });
    let spec = json!({ "attacher": "gone.example.org", "nodeName": "n1", "source": source });
    json!({ "metadata": { "name": name }, "spec": spec, "status": status })
}

/// What is told of the Node `n1`, whose taint stands, beside these attachments and what else there is of CSI drivers.
async fn told(attached: &[Value], there: &[(&str, Value)], fails: &str) -> Progress {
    let none = [DRIVERS, KUBELETS, VOLUMES].map(|path| (path, json!({ "items": [] })));
    let items = (ATTACHED, json!({ "items": attached }));
    let there = there.iter().map(|(path, object)| (*path, json!({ "items": [object] })));
    let fenced = node("n1", UUID, &[(OUT_OF_SERVICE, "picket.blue.7")]);
    let api = Api::of_both([fenced.clone()], none.into_iter().chain(there).chain([items]));
    api.fails(fails);
    let (release, subject) =
        (with(&api, json!({ "find_by": "system_uuid" })), subject(whose(Some(&fenced), UUID)));
    release.observe(&subject, soon()).await.expect("it is told")
}

#[tokio::test(start_paused = true)]
async fn one_that_never_was_attached_and_of_whose_driver_nothing_is_left_is_named_and_not_waited_for() {
    let begun = [attachment("a", json!({ "attached": false })), attachment("b", json!({}))];
    let Progress::Complete(words) = told(&begun, &[], "").await else { panic!("it is waited for") };
    for name in ["v-a by gone.example.org (a), never attached, and its CSI driver is gone", "v-b by"] {
        assert!(words.contains(name), "{words}");
    }
}

#[tokio::test(start_paused = true)]
async fn any_other_one_is_waited_for() {
    let begun = || attachment("a", json!({ "attached": false }));
    let is_waited_for =
        |told: &Progress| matches!(told, Progress::Accepted(words) if words.contains("v-a by"));
    for status in [
        json!({ "attached": true }),
        json!({ "attached": false, "attachmentMetadata": { "devicePath": "/dev/sdb" } }),
        json!({ "attached": false, "detachError": { "message": "no" } }),
    ] {
        let told = told(&[attachment("a", status.clone())], &[], "").await;
        assert!(is_waited_for(&told), "{status} {told:?}");
    }
    let driver = "gone.example.org";
    for there in [
        (DRIVERS, json!({ "metadata": { "name": driver } })),
        (KUBELETS, json!({ "spec": { "drivers": [{ "name": driver }] } })),
        (VOLUMES, json!({ "spec": { "csi": { "driver": driver } } })),
    ] {
        let told = told(&[begun()], std::slice::from_ref(&there), "").await;
        assert!(is_waited_for(&told), "{there:?} {told:?}");
    }
    // What may not be asked is not known.
    for fails in ["csidrivers", "csinodes", "persistentvolumes"] {
        let told = told(&[begun()], &[], fails).await;
        assert!(is_waited_for(&told) && told.words().contains("cannot be told"), "{told:?}");
    }
    let beside = [begun(), attachment("b", json!({ "attached": true }))];
    assert!(is_waited_for(&told(&beside, &[], "").await));
    let mut inline = begun();
    inline["spec"]["source"] = json!({ "inlineVolumeSpec": {} });
    assert!(matches!(told(&[inline], &[], "").await, Progress::Accepted(_)));
}

/// Whoever takes it away before a fence is not told of it in one.
#[tokio::test(start_paused = true)]
async fn a_check_names_one_that_nobody_will_ever_take_away() {
    for (driver, is_told) in [("gone.example.org", true), ("here.example.org", false)] {
        let mut nobodys = attachment("a", json!({ "attached": false }));
        nobodys["spec"]["attacher"] = json!(driver);
        let here = json!({ "items": [{ "metadata": { "name": "here.example.org" } }] });
        let items = json!({ "items": [nobodys, attachment("b", json!({ "attached": true }))] });
        let others = [(ATTACHED, items), (DRIVERS, here), (VOLUMES, json!({ "items": [] }))];
        let api = Api::of_both([node("n1", UUID, &[])], others);
        let release = with(&api, json!({ "find_by": "system_uuid" }));
        let told = release.check(&identities(UUID), soon()).await;
        let command = "take it away by kubectl delete volumeattachment a";
        assert_eq!(told.iter().any(|words| words.ends_with(command)), is_told, "{driver}: {told:?}");
    }
}
