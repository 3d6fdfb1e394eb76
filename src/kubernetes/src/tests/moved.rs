//! Settings that are others than those by which a fence set something up: it stands where it was set up (K3).

use picket_release::Progress;

use super::*;

const AWAY: &str = "ip-10-0-1-2";

/// The fence met that Node in that cluster; an older version noted none.
fn met_in(cluster: &str, node: &Value) -> Whose {
    let met = Met::of(&serde_json::from_value(node.clone()).expect("a Node")).in_cluster(cluster);
    Whose { met: Some(met.words()), ..whose(None, UUID) }
}

fn standing() -> Value {
    noted(node(AWAY, UUID, &[(OUT_OF_SERVICE, "picket.blue.7")]), "r1", 7)
}

/// Whatever it is found by now.
fn by_all(api: &Arc<Api>) -> [Arc<dyn Quarantine>; 2] {
    ["name", "system_uuid"].map(|find_by| with(api, json!({ "find_by": find_by })))
}

#[tokio::test(start_paused = true)]
async fn what_a_fence_set_up_is_taken_from_the_node_that_it_met() {
    for by in [0, 1] {
        for cluster in [CLUSTER, ""] {
            let api = Api::of([standing(), node("r1", "", &[])]);
            let [release, of] = [by_all(&api)[by].clone(), by_all(&api)[by].clone()];
            let met = met_in(cluster, &standing());
            api.fails(AWAY);
            release.withdraw(&met, soon()).await.expect_err("that one does not answer");
            api.fails("");
            let let_on = of.before_on(&subject(met.clone()), soon()).await.expect("answered");
            assert!(let_on.stands, "{by}: it is told before the on");
            release.withdraw(&met, soon()).await.expect("it is seen to be gone");
            assert_eq!(api.taints(AWAY), [""; 0], "{by}");
        }
        // With the Node its taints are gone, in its own cluster.
        let api = Api::of([node("r1", "", &[])]);
        by_all(&api)[by].withdraw(&met_in(CLUSTER, &standing()), soon()).await.expect("it was deleted");
    }
}

/// The node's name is that of another Node, too, or of none.
#[tokio::test(start_paused = true)]
async fn what_is_let_go_is_bound_to_the_node_that_was_met() {
    for nodes in [vec![standing()], vec![standing(), node("r1", UUID, &[])]] {
        let api = Api::of(nodes);
        let release = with(&api, json!({ "match": "name" }));
        let about = subject(met_in(CLUSTER, &standing()));
        let prepared = release.before_attempt(&about, soon()).await.expect("it is the one that was met");
        assert!(prepared.stands, "it is that Node's");
        let pods =
            json!({ "items": [{ "metadata": { "name": "db-0", "namespace": "default", "uid": "u" } }] });
        api.also("/api/v1/pods", pods);
        let seen = release.observe(&about, soon()).await.expect("answered");
        assert!(matches!(seen, Progress::NotThere(_)), "{seen:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn another_cluster_says_nothing_of_what_stands() {
    for nodes in [vec![], vec![node("r1", UUID, &[]), node(AWAY, UUID, &[])]] {
        let api = Api::of(nodes);
        for release in by_all(&api) {
            let met = met_in("a-cluster", &standing());
            let refused = release.withdraw(&met, soon()).await;
            let attempt = release.before_attempt(&subject(met.clone()), soon()).await.map(drop);
            let look = release.observe(&subject(met), soon()).await.map(drop);
            for said in [&refused, &attempt] {
                let Err(ReleaseError::DidNotHappen(why)) = said else { panic!("{said:?}") };
                for word in
                    [AWAY, "the cluster a-cluster", &format!("the settings say the cluster {CLUSTER}")]
                {
                    assert!(why.contains(word), "{why}");
                }
            }
            assert!(matches!(look, Err(ReleaseError::Unknown(_))), "{look:?}");
        }
        assert_eq!(api.changes(), [""; 0], "nothing is changed there");
    }
}

#[tokio::test(start_paused = true)]
async fn who_is_met_is_noted_with_its_cluster() {
    let api = Api::of([node("n1", UUID, &[])]);
    let (release, about) = (release(&api), subject(whose(None, UUID)));
    let announced = release.cordon(&about, soon()).await.expect("answered");
    let prepared = release.before_attempt(&about, soon()).await.expect("answered").met;
    for met in [announced, prepared] {
        let met = Met::read(&met.expect("one was met")).expect("ours");
        assert!(met.is_elsewhere(CLUSTER).is_none() && met.is_elsewhere("another").is_some());
    }
}
