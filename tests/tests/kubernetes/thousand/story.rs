//! What happens to many Nodes, one thing after the other: quiet, an API server that is away, a zone that is silent, a rack that is dead.

use std::collections::BTreeSet;
use std::time::Duration;

use picket_tests::Result;

use crate::thousand::cost::{Cost, Weights, is_something};
use crate::thousand::nodes::{self, ALL, ONE, RACK, SILENT, ZONE};
use crate::thousand::scene::{BUDGET, Scene, set};

/// Long enough for two looks of everybody at everybody.
const QUIET: Duration = Duration::from_secs(30);
/// Resident memory that the controller may have at most.
const MEMORY: u64 = 150_000_000;
/// Of one core, in percent: one that is built without optimisation, on a machine that does other things too.
const SHARE: f64 = 50.0;

/// Within the budget it is fenced and beyond it blocked, with the reason; of a zone that is silent, and while nobody answers, nothing; and what
/// all of that takes is bounded.
#[tokio::test]
async fn of_many_nodes_those_are_fenced_that_are_dead_and_that_the_budget_allows() -> Result<()> {
    let mut scene = Scene::open().await?;
    let began = Cost::now(&scene).await?;
    let weights = Weights::of(&scene, ONE).await?;
    quiet(&scene, weights).await?;
    nobody_answers(&scene, weights).await?;
    a_zone_is_silent(&scene, weights).await?;
    a_rack_is_dead(&scene, weights).await?;
    let ended = Cost::now(&scene).await?;
    let took = ended.since(&began);
    println!("{} Nodes, all of it: {took}; {:.1} MB resident at most", *ALL + 1, ended.memory as f64 / 1e6);
    assert!(ended.memory < MEMORY, "{ended:?}");
    assert!(took.share() < SHARE, "{took:?}");
    scene.still_runs()
}

/// Nothing is asked again and again, and nothing is told twice.
async fn quiet(scene: &Scene, weights: Weights) -> Result<()> {
    let before = Cost::now(scene).await?;
    assert!(is_something(&before), "{before:?}");
    scene.pass(QUIET).await?;
    let after = Cost::now(scene).await?;
    let took = after.since(&before);
    println!("{} Nodes, at rest: {took}", *ALL + 1);
    took.is_bounded(weights, 0, 0, 0);
    assert!(took.leases > u64::try_from(*ALL).unwrap_or(u64::MAX), "all are heard: {took:?}");
    assert_eq!((took.broken, scene.controller.asked()), (0, 0), "{}", scene.controller.log());
    Ok(())
}

/// A minute without an API server, after which every lease stands still and the controllers may take every Node for dead.
async fn nobody_answers(scene: &Scene, weights: Weights) -> Result<()> {
    let before = Cost::now(scene).await?;
    let stopped = scene.cluster.stop_api_server();
    scene.pass(Duration::from_secs(60)).await?;
    drop(stopped);
    scene.until("all Nodes are Ready", async || Ok(nodes::ready(&scene.cluster).await? == *ALL + 1)).await?;
    scene.pass(Duration::from_secs(30)).await?;
    scene.told("Acting", "Acting").await?;
    let took = Cost::now(scene).await?.since(&before);
    println!("{} Nodes, the API server away for a minute, and back: {took}", *ALL + 1);
    // For a while all of them may look dead.
    took.is_bounded(weights, *ALL + 1, 0, *ALL + 1);
    assert!(scene.controller.log().contains("cannot be looked at or renewed"), "{}", scene.controller.log());
    assert_eq!(
        (scene.fences().await?, scene.controller.asked()),
        (Vec::new(), 0),
        "{}",
        scene.controller.log()
    );
    Ok(())
}

/// A switch is dead, and not its machines; and one elsewhere is dead, whose turn it is all the same.
async fn a_zone_is_silent(scene: &Scene, weights: Weights) -> Result<()> {
    let before = Cost::now(scene).await?;
    // To the end: it is held, whatever happens elsewhere.
    std::mem::forget(scene.kubelets("zone").falls_silent());
    let words = scene.told("Acting", "Braked").await?;
    assert!(words.contains(&format!("of {} Nodes", *ZONE)) && words.contains("zone e"), "{words}");
    scene
        .until("all of the zone are away", async || {
            Ok(nodes::ready(&scene.cluster).await? == *ALL + 1 - *ZONE)
        })
        .await?;
    // It is dead: nobody speaks for it any more.
    std::mem::forget(scene.kubelets("one").falls_silent());
    scene
        .until(&format!("{ONE} is fenced"), async || Ok(scene.events("Fenced").await?.contains_key(ONE)))
        .await?;
    assert_eq!(scene.fences().await?, [ONE], "{}", scene.controller.log());
    let held = scene.events("FenceWithheld").await?;
    let why = format!("(zone {SILENT}): the observer is suspect");
    assert!(held.iter().any(|(node, words)| node.starts_with(SILENT) && words.contains(&why)), "{held:?}");
    let took = Cost::now(scene).await?.since(&before);
    println!("{} Nodes, a zone of {} silent: {took}", *ALL + 1, *ZONE);
    took.is_bounded(weights, *ZONE + 1, 1, *ZONE);
    assert_eq!(
        (scene.fences().await?, scene.controller.asked()),
        (vec![ONE.to_owned()], 1),
        "{}",
        scene.controller.log()
    );
    Ok(())
}

/// As many as the budget allows are fenced, and each of the others says why it is not.
async fn a_rack_is_dead(scene: &Scene, weights: Weights) -> Result<()> {
    let before = Cost::now(scene).await?;
    std::mem::forget(scene.kubelets("rack").falls_silent());
    let (rack, rest) = (nodes::rack(), BUDGET - 1);
    let of_rack = |names: BTreeSet<String>| -> Vec<String> {
        names.into_iter().filter(|name| rack.contains(name)).collect()
    };
    let found = async |reason: &str| -> Result<Vec<String>> {
        Ok(of_rack(scene.events(reason).await?.into_keys().collect()))
    };
    scene
        .until("the rack is fenced or blocked", async || {
            Ok((found("Fenced").await?.len(), found("FenceBlocked").await?.len()) == (rest, *RACK - rest))
        })
        .await?;
    let (fenced, blocked) = (found("Fenced").await?, found("FenceBlocked").await?);
    let either: BTreeSet<&str> = set(&fenced).union(&set(&blocked)).copied().collect();
    assert_eq!(either, set(&rack), "each is one of both");
    for (node, words) in scene.events("FenceBlocked").await? {
        assert!(words.contains("per_window, the fleet") && words.contains("asked again"), "{node}: {words}");
    }
    let fences = scene.fences().await?;
    assert_eq!((fences.len(), fences[0].as_str()), (BUDGET, ONE), "{fences:?}");
    assert_eq!(set(&fences[1..]), set(&fenced));
    scene
        .until("the policy says so", async || {
            let counts =
                [*ALL, *ZONE + *RACK + 1, BUDGET].map(|count| u64::try_from(count).unwrap_or_default());
            Ok(scene.counts().await? == counts)
        })
        .await?;
    scene
        .until("the Node says that it is blocked, and why", async || {
            let noted = scene.note(&blocked[0]).await?;
            let says = noted["text"].as_str().is_some_and(|text| text.contains("per_window"));
            Ok(noted["phase"] == "Blocked" && says)
        })
        .await?;
    let status = scene.gateway.picket(&["plan", &blocked[0]]).await?;
    assert!(status.out.contains("blocked (budget)"), "{status:?}");
    assert_eq!(scene.gateway.picket(&["status", &fenced[0]]).await?.code, 0);
    let took = Cost::now(scene).await?.since(&before);
    println!("{} Nodes, a rack of {} dead: {took}", *ALL + 1, *RACK);
    took.is_bounded(weights, *ZONE + 1 + *RACK, *RACK, 0);
    // The gateway said when it is worth asking again: nobody does so every few seconds.
    assert!(scene.controller.asked() < 2 * (*RACK + 1), "{}", scene.controller.log());
    Ok(())
}
