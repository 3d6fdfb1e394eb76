//! The seed's own story.

use picket_tests::Result;
use picket_tests::peers::Who;
use serde_json::json;

use crate::story::scene::{ATTACHING, Login, scene, server, stuck, told};

/// A kubelet is dead, its pod writes on, Nova says ACTIVE. Once the server is proven off its pod goes, the CSI driver detaches the
/// volume through Nova, once, and attaches it to the other server; and the server comes back clean.
#[tokio::test]
async fn a_volume_of_cinder_goes_from_a_server_that_is_proven_off_to_another() -> Result<()> {
    let scene = scene().await?;
    let attaching = ATTACHING.lock().await;
    let (here, there, database) = stuck(scene, "seed", ["n1", "n2"]).await?;
    let volume = database.volume();
    let driven = scene.gateway(Login::Member, &[here, there]).await?;
    let checked = driven.gateway.picket(&["check"]).await?;
    assert_eq!(checked.code, 0, "{checked:?}");

    let (result, proven) = driven.fence(here, &[]).await?;
    let outcome = &result["outcome"];
    assert_eq!((&outcome["kind"], &outcome["released"]), (&json!("fenced"), &json!(true)), "{result:#}");
    assert_eq!(result["evidence"]["grade"], "hypervisor", "{result:#}");
    for release in ["pods", "volumes"] {
        let all = result["releases"].as_array().cloned().unwrap_or_default();
        let is = |one: &&serde_json::Value| one["name"] == release;
        let found = all.iter().find(is).unwrap_or_else(|| panic!("no {release}: {result:#}"));
        assert_eq!(found["stage"], "complete", "{result:#}");
    }
    database.runs_on(there.name()).await?;
    scene.is_at(volume, there).await?;
    drop(attaching);

    // One writer after the other.
    let writers = database.writers();
    assert_eq!((writers.nodes(), writers.overlaps()), (vec![here.name(), there.name()], 0));
    assert_eq!(writers.after(proven).of(here.name()).0, [], "what is off writes nothing");
    // Nova's own log: detached once, after the guest was gone and proven so, by the CSI driver.
    let did = scene.did(here)?;
    let words: Vec<&str> = did.iter().map(|effect| effect.did.as_str()).collect();
    assert_eq!(words, ["attach", "power_off", "detach"], "{did:#?}");
    assert!(did[1].at < proven && proven < did[2].at && did[2].volume == volume, "{proven:?}: {did:#?}");
    let asked = scene.detaches(here, volume)?;
    let is_one = matches!(asked[..], [ref one] if one.status == 202 && !one.by_us && one.at > proven);
    assert!(is_one, "who verifies has nothing left to let go: {proven:?}: {asked:#?}");
    let of_other = scene.did(there)?;
    let words: Vec<&str> = of_other.iter().map(|effect| effect.did.as_str()).collect();
    assert_eq!(words, ["attach"], "{of_other:#?}");
    assert!(of_other[0].at > did[2].at, "{did:#?} {of_other:#?}");
    let order = told(&database);
    let (a, b) = (here.name().to_owned(), there.name().to_owned());
    let wanted = [
        ("attach", server(here)),
        ("mount", a),
        ("detach", server(here)),
        ("attach", server(there)),
        ("mount", b),
    ];
    assert_eq!(order, wanted.map(|(what, node)| (what.to_owned(), node)));

    driven.unfence(here).await?;
    assert_eq!(scene.cloud.look(&Who::Tenant, &server(there)).await?["status"], "ACTIVE");
    assert_eq!(database.writers().changes(), 1, "who is back does not write");
    assert_eq!(scene.detaches(here, volume)?.len(), 1);
    scene.is_at(volume, there).await
}
