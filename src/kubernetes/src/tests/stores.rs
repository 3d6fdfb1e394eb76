//! Two gateways that have one owner by mistake, each with a store of its own, over one cluster (K7).

use picket_core::ids::Incarnation;
use picket_core::restore::Lives;
use picket_core::time::WallTime;

use super::*;

const TAINTS: [(&str, &str); 2] = [(OUT_OF_SERVICE, "picket.blue.7"), (FENCED, "picket.blue.7")];
const TOLD: &str = "has the owner \"blue\" too";

fn life(number: u8) -> Incarnation {
    Incarnation::mint(WallTime::from_millis(1), [number; 10])
}

/// The gateway serves a store of the first life, which came from backups of those.
fn serving(api: &Arc<Api>, before: &[u8]) -> Arc<dyn Quarantine> {
    let release = release(api);
    let before = before.iter().map(|number| life(*number)).collect();
    release.serves(&Arc::new(Lives { now: life(1), before }));
    release
}

/// Node `n1`, fenced in the name of that store.
fn fenced(store: Option<u8>, taints: &[(&str, &str)]) -> Value {
    let mut node = node("n1", UUID, taints);
    let store = store.map(|number| life(number).to_string());
    let note = json!({ "owner": "blue", "node": "r1", "generation": 7, "off": true, "stands": true, "bootID": "b", "store": store });
    node["metadata"]["annotations"][OURS] = json!(note.to_string());
    node["metadata"]["finalizers"] = json!(["picket.dev/fencing-blue"]);
    node
}

fn left() -> Left {
    Left { whose: whose(None, UUID), generation: Generation(7), gone: false, off: false, met_last: None }
}

async fn told(release: &Arc<dyn Quarantine>) -> Vec<String> {
    let told = release.check(&identities(UUID), soon()).await;
    told.into_iter().filter(|one| one.contains(TOLD)).collect()
}

#[tokio::test(start_paused = true)]
async fn what_another_store_noted_is_told_and_neither_used_nor_removed() {
    for taints in [&TAINTS[..], &TAINTS[1..], &[]] {
        let theirs = fenced(Some(2), taints);
        let api = Api::of([theirs.clone()]);
        let release = serving(&api, &[]);
        let told = told(&release).await;
        for part in ["Node n1", &life(2).to_string(), "`kubectl annotate node n1 picket.dev/fence-blue-`"] {
            assert!(told.len() == 1 && told[0].contains(part), "{part}: {told:?}");
        }
        assert_eq!(release.clean_up(&left(), soon()).await.expect("answered"), None);
        let of = subject(whose(None, UUID));
        for refused in
            [release.cordon(&of, soon()).await.map(drop), release.before_attempt(&of, soon()).await.map(drop)]
        {
            let Err(ReleaseError::Barred(why)) = refused else { panic!("{refused:?}") };
            assert!(why.contains(TOLD), "{why}");
        }
        // No on while somebody else's taint lets volumes go; what merely keeps pods away bars none.
        let let_on = release.before_on(&of, soon()).await;
        assert_eq!(matches!(let_on, Err(ReleaseError::Barred(_))), taints.len() == 2, "{let_on:?}");
        assert_eq!(api.node("n1"), theirs);
    }
}

/// A kubelet may write on its own Node that another store has it out of service: a machine that is found alive keeps no taint by that (K3).
#[tokio::test(start_paused = true)]
async fn what_lets_go_is_withdrawn_in_whose_name_ever_it_stands() {
    let api = Api::of([fenced(Some(2), &TAINTS)]);
    serving(&api, &[]).withdraw(&whose(None, UUID), soon()).await.expect("it is seen to be gone");
    assert_eq!(api.taints("n1"), [FENCED]);
    let note = api.node("n1")["metadata"]["annotations"][OURS].clone();
    let note: Value = serde_json::from_str(note.as_str().expect("a note")).expect("JSON");
    assert_eq!((&note["store"], &note["stands"]), (&json!(life(2).to_string()), &json!(true)));
}

/// It was written before notes named a store, or in an earlier life of this one.
#[tokio::test(start_paused = true)]
async fn what_names_no_store_or_an_earlier_life_is_ours() {
    for store in [None, Some(1), Some(3)] {
        let api = Api::of([fenced(store, &TAINTS[1..])]);
        let release = serving(&api, &[3]);
        assert_eq!(told(&release).await, [""; 0], "{store:?}");
        release.cordon(&subject(whose(None, UUID)), soon()).await.expect("it is told");
        let note = api.node("n1")["metadata"]["annotations"][OURS].clone();
        assert!(note.as_str().is_some_and(|note| note.contains(&life(1).to_string())), "{note}");
        let api = Api::of([fenced(store, &[])]);
        let left = left();
        while serving(&api, &[3]).clean_up(&left, soon()).await.expect("answered").is_some() {}
        assert_eq!(api.node("n1")["metadata"]["annotations"], json!({}), "{store:?}");
    }
    // Before the first leadership nothing is known of stores.
    let api = Api::of([fenced(Some(2), &[])]);
    assert_eq!(told(&release(&api)).await, [""; 0]);
}

/// A backup was restored in a second place while the first gateway runs on: each of them says so.
#[tokio::test(start_paused = true)]
async fn the_store_whose_backup_was_restored_is_told_where_it_notes_on() {
    let api = Api::of([fenced(Some(3), &[])]);
    let release = serving(&api, &[3]);
    assert_eq!(told(&release).await, [""; 0], "it may be of before");
    api.has(node("n1", UUID, &[]));
    assert_eq!(told(&release).await, [""; 0]);
    let theirs = fenced(Some(3), &TAINTS);
    api.has(theirs.clone());
    assert_eq!(told(&release).await.len(), 1);
    assert_eq!(release.clean_up(&left(), soon()).await.expect("answered"), None);
    assert_eq!(api.node("n1"), theirs);
}
