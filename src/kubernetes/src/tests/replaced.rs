//! Another machine has the Node by now: what is ours there goes, whatever else is to become of the fence (K1).

use super::*;

/// The Node of fence 7, which was proven off with the boot id `b`.
fn fenced() -> Value {
    let mut node = noted(node("n1", UUID, &[("mine", "x"), (FENCED, "picket.blue.7")]), "r1", 7);
    let note =
        json!({ "owner": "blue", "node": "r1", "generation": 7, "off": true, "offIn": 7, "bootID": "b" });
    node["metadata"]["annotations"][OURS] = json!(note.to_string());
    node["metadata"]["finalizers"] = json!(["picket.dev/fencing-blue"]);
    node
}

fn with(mut node: Value, at: &str, value: &str) -> Value {
    *node.pointer_mut(at).expect("it is there") = json!(value);
    node
}

/// New hardware under the old name, with the same UID.
fn another() -> Value {
    with(fenced(), "/status/nodeInfo/machineID", "another")
}

fn is_let_be(api: &Api) {
    assert_eq!(api.taints("n1"), ["mine"]);
    let metadata = api.node("n1")["metadata"].clone();
    assert_eq!((&metadata["annotations"], &metadata["finalizers"]), (&json!({}), &json!([])));
}

fn about(met: &Value) -> Subject {
    subject(whose(Some(met), UUID))
}

#[tokio::test(start_paused = true)]
async fn it_is_let_be_before_the_on_and_on_the_watch() {
    for before_the_on in [true, false] {
        let api = Api::of([another()]);
        let (release, subject) = (release(&api), about(&fenced()));
        let said = match before_the_on {
            true => release.before_on(&subject, soon()).await.map(drop),
            false => release.compare(&subject, soon()).await,
        };
        let Err(ReleaseError::Replaced(why)) = said else { panic!("{said:?}") };
        assert!(why.contains("machine ID of Node n1 was m "), "{why}");
        is_let_be(&api);
        // Once more there is nothing to do.
        release.compare(&subject, soon()).await.expect_err("it is another one");
        is_let_be(&api);
    }
}

#[tokio::test(start_paused = true)]
async fn who_is_the_same_or_not_there_or_made_anew_or_not_told_is_nobody_else() {
    let subject = about(&fenced());
    for nodes in [vec![fenced()], vec![], vec![with(fenced(), "/metadata/uid", "anew")]] {
        let api = Api::of(nodes.clone());
        release(&api).compare(&subject, soon()).await.expect("nobody else");
        if !nodes.is_empty() {
            assert_eq!(api.node("n1"), nodes[0]);
        }
    }
    let api = Api::of([another()]);
    api.fails("n1");
    let said = release(&api).compare(&subject, soon()).await;
    assert!(!matches!(said, Ok(()) | Err(ReleaseError::Replaced(_))), "{said:?}");
    assert_eq!(api.node("n1"), another());
}

/// Nothing boots that is off; where it was off in an earlier fence, or is being brought back, it may have.
#[tokio::test(start_paused = true)]
async fn a_node_that_boots_while_it_is_off_is_another_machine_s() {
    let booted = with(fenced(), "/status/nodeInfo/bootID", "another");
    let api = Api::of([booted.clone()]);
    let said = release(&api).compare(&about(&fenced()), soon()).await;
    assert!(matches!(said, Err(ReleaseError::Replaced(_))), "{said:?}");
    is_let_be(&api);

    let api = Api::of([booted.clone()]);
    let comes_back = Subject { generation: Generation(8), ..about(&fenced()) };
    release(&api).before_on(&comes_back, soon()).await.expect("it was switched on");
    assert_eq!(api.node("n1"), booted);

    let note =
        json!({ "owner": "blue", "node": "r1", "generation": 7, "off": true, "offIn": 5, "bootID": "b" });
    let api = Api::of([with(booted, "/metadata/annotations/picket.dev~1fence-blue", &note.to_string())]);
    release(&api).compare(&about(&fenced()), soon()).await.expect("it was off in an earlier fence");
}

/// Also while our taint was taken back, and is to be set again: what that let go is let go once (K4), and the boot counts from the first time.
#[tokio::test(start_paused = true)]
async fn a_node_that_boots_between_two_attempts_is_another_machine_s() {
    for stands in [false, true] {
        let mut booted = with(fenced(), "/status/nodeInfo/bootID", "another");
        if stands {
            let taint = json!({ "key": OUT_OF_SERVICE, "value": "picket.blue.7", "effect": "NoExecute" });
            booted["spec"]["taints"].as_array_mut().expect("a list").push(taint);
        }
        for before_an_attempt in [true, false] {
            let api = Api::of([booted.clone()]);
            let (release, subject) = (release(&api), about(&fenced()));
            let said = match before_an_attempt {
                true => release.before_attempt(&subject, soon()).await.map(drop),
                false => release.observe(&subject, soon()).await.map(drop),
            };
            let Err(ReleaseError::Replaced(why)) = said else { panic!("{stands} {said:?}") };
            assert!(why.contains("a machine booted as Node n1"), "{why}");
            is_let_be(&api);
        }
        // What was off in another round says nothing of this one.
        let subject = Subject { generation: Generation(8), ..about(&fenced()) };
        release(&Api::of([booted]))
            .before_attempt(&subject, soon())
            .await
            .expect("it may have run in between");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_retired_node_left_is_kept_for_its_machine_alone() {
    for (there, goes) in [(fenced(), false), (another(), true)] {
        let api = Api::of([there]);
        let release = release(&api);
        let left = Left {
            whose: whose(Some(&fenced()), UUID),
            generation: Generation(8),
            gone: true,
            off: true,
            met_last: None,
        };
        for _ in 0..3 {
            release.clean_up(&left, soon()).await.expect("answered");
        }
        assert_eq!(api.taints("n1").contains(&FENCED.to_owned()), !goes);
        if goes {
            is_let_be(&api);
        }
    }
    // Of a record of before nobody knows whom its fence met.
    let api = Api::of([another()]);
    let left =
        Left { whose: whose(None, UUID), generation: Generation(8), gone: true, off: true, met_last: None };
    for _ in 0..3 {
        release(&api).clean_up(&left, soon()).await.expect("answered");
    }
    assert_eq!(api.taints("n1"), ["mine", FENCED]);
}
