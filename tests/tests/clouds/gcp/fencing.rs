//! An instance is fenced, and comes back.

use picket_tests::Result;
use picket_tests::peers::{GceMake, GceTreatment};
use serde_json::json;

use crate::gcp::scene::{Plan, compute};
use crate::scene::{IMPATIENT, soon};

#[tokio::test]
async fn an_instance_is_stopped_by_its_numeric_id_and_started_again() -> Result<()> {
    let instance = compute().await?.instance(&[]).await?;
    let scene = Plan::new().over(&instance).await?;
    let slow = GceTreatment { stopping: Some(1.5), starting: Some(1.0), ..GceTreatment::default() };
    scene.compute.treat(scene.id(), &slow).await?;
    let told = scene.must_fence().await?;
    assert_eq!(scene.stops().await?.len(), 1);
    assert!(told.result["evidence"].to_string().contains("TERMINATED"), "{:#?}", told.result);

    let back = scene.unfence().await?;
    assert_eq!(back.kind(), "unfenced", "{:#?}\n{}", back.result, scene.gateway.log());
    assert_eq!(scene.compute.state(scene.id()).await?, "RUNNING");
    let asked = scene.compute.asked(scene.id()).await?;
    let commands: Vec<&str> = asked
        .iter()
        .map(|one| one.method.as_str())
        .filter(|method| !method.contains(".get") && !method.contains(".list"))
        .collect();
    assert_eq!(commands, ["instances.stop", "instances.start"]);
    scene.lawful().await
}

#[tokio::test]
async fn what_is_terminated_already_is_told_all_the_same_and_proven_by_the_long_window() -> Result<()> {
    let instance = compute().await?.instance(&[]).await?;
    let scene = Plan::new().over(&instance).await?;
    scene.compute.switch(scene.id(), "TERMINATED").await?;
    scene.must_fence().await?;
    let stops = scene.stops().await?;
    assert!(stops.len() >= 2, "the window is sealed by another one");
    // Each of them by a name of its own: Compute Engine would do nothing for the old one.
    assert_ne!(stops[0].field("requestId"), stops[1].field("requestId"));
    Ok(())
}

#[tokio::test]
async fn a_stop_that_lasts_is_waited_for() -> Result<()> {
    let instance = compute().await?.instance(&[]).await?;
    let scene = Plan::new().over(&instance).await?;
    let slow =
        GceTreatment { pending: Some(2.0), stopping: Some(5.0), acpi: Some(2.0), ..GceTreatment::default() };
    scene.compute.treat(scene.id(), &slow).await?;
    scene.must_fence().await?;
    assert_eq!(scene.stops().await?.len(), 1, "what was taken is on its way");
    Ok(())
}

#[tokio::test]
async fn a_stop_whose_answer_is_lost_is_sent_again_under_the_same_name_and_done_once() -> Result<()> {
    let instance = compute().await?.instance(&[]).await?;
    let scene = Plan::new().over(&instance).await?;
    scene.compute.rule("instances.stop", scene.id(), 2, json!({ "do": "lost" })).await?;
    scene.must_fence().await?;
    let stops = scene.stops().await?;
    assert!(stops.len() >= 3, "{stops:#?}");
    assert!(
        stops[..3].iter().all(|stop| stop.field("requestId") == stops[0].field("requestId")),
        "{stops:#?}"
    );
    let off = scene.compute.events(scene.id()).await?.into_iter().filter(|event| event.what == "off").count();
    assert_eq!(off, 1);
    Ok(())
}

#[tokio::test]
async fn an_unfence_after_a_lost_answer_does_not_wait_for_a_token_s_end() -> Result<()> {
    let instance = compute().await?.instance(&[]).await?;
    let scene = Plan::new().over(&instance).await?;
    scene.compute.rule("instances.stop", scene.id(), 1, json!({ "do": "lost" })).await?;
    scene.must_fence().await?;
    scene.compute.rule("instances.start", scene.id(), 1, json!({ "do": "lost" })).await?;
    let back = scene.unfence().await?;
    assert_eq!(back.kind(), "unfenced", "{:#?}\n{}", back.result, scene.gateway.log());
    assert_eq!(scene.compute.asked_to("instances.start", scene.id()).await?.len(), 1, "once");
    // Its operation was found, and the next fence need not wait for it either.
    scene.must_fence().await?;
    Ok(())
}

#[tokio::test]
async fn answers_that_make_no_sense_are_neither_off_nor_the_end() -> Result<()> {
    let instance = compute().await?.instance(&["data"]).await?;
    let scene = Plan::new().over(&instance).await?;
    for how in ["garbled", "misshapen", "cut"] {
        scene.compute.rule("instances.stop", scene.id(), 1, json!({ "do": how })).await?;
        scene.compute.rule("instances.get", scene.id(), 2, json!({ "do": how })).await?;
        scene.compute.rule("disks.get", &instance.disks["data"], 1, json!({ "do": how })).await?;
    }
    scene.must_fence().await?;
    scene.detached_while_off(1).await
}

#[tokio::test]
async fn what_is_refused_by_limits_is_sent_again() -> Result<()> {
    let instance = compute().await?.instance(&[]).await?;
    let scene = Plan::new().over(&instance).await?;
    let limited = json!({ "status": 403, "reason": "rateLimitExceeded", "domain": "usageLimits" });
    scene.compute.rule("instances.stop", scene.id(), 2, limited.clone()).await?;
    scene.compute.rule("instances.get", scene.id(), 2, json!({ "status": 429 })).await?;
    scene.must_fence().await?;
    let stops = scene.stops().await?;
    assert_eq!(stops.iter().map(|stop| stop.status).collect::<Vec<_>>(), [403, 403, 200]);
    Ok(())
}

/// What somebody else has under way is waited for, and then our own stop is told.
#[tokio::test]
async fn a_stop_of_somebody_else_s_is_joined_and_ours_comes_after_it() -> Result<()> {
    let instance = compute().await?.instance(&["data"]).await?;
    let scene = Plan::new().over(&instance).await?;
    let slow =
        GceTreatment { graceful: Some(2.0), acpi: Some(1.0), stopping: Some(3.0), ..GceTreatment::default() };
    scene.compute.treat(scene.id(), &slow).await?;
    assert_eq!(scene.by_hand("stop").await?, 200);
    soon("it stops", async || Ok(scene.compute.state(scene.id()).await? == "STOPPING")).await?;
    scene.must_fence().await?;
    let ours: Vec<u16> = scene.stops().await?.iter().map(|stop| stop.status).collect();
    assert!(ours.first() == Some(&400) && ours.contains(&200), "{ours:?}");
    scene.detached_while_off(1).await
}

#[tokio::test]
async fn a_stop_that_comes_to_nothing_is_told_again_and_never_believed() -> Result<()> {
    let instance = compute().await?.instance(&["data"]).await?;
    let scene = Plan::new().rules(IMPATIENT).over(&instance).await?;
    let fails =
        json!({ "do": "fault", "code": "INTERNAL_ERROR", "message": "it came to nothing", "status": 500 });
    scene.compute.rule("instances.stop", scene.id(), 1_000, fails).await?;
    scene.fence_in_vain("levels_spent").await?;
    assert!(scene.stops().await?.len() >= 2, "an operation that is done proves nothing");
    assert_eq!(scene.compute.state(scene.id()).await?, "RUNNING");
    Ok(())
}

#[tokio::test]
async fn what_a_check_finds_is_said_before_it_matters() -> Result<()> {
    let odd = GceMake {
        ssds: 2,
        group: Some("web"),
        scheduling: json!({ "preemptible": true }),
        ..GceMake::default()
    };
    let instance = compute().await?.make(&odd).await?;
    let scene = Plan::new().rules(IMPATIENT).over(&instance).await?;
    for asked in [["check", "n1"], ["plan", "n1"]] {
        let said = scene.gateway.picket(&asked).await?;
        let words = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
        for word in [
            "managed instance group \"web\"",
            "local-ssd-0, local-ssd-1",
            "discard_local_ssd is not set",
            "skipGuestOsShutdown",
        ] {
            assert!(words.contains(word), "{asked:?}, {word}: {said:?}");
        }
    }
    let told = scene.fence_in_vain("levels_spent").await?;
    assert!(scene.stops().await?.is_empty(), "what is on them is not lost by accident: {:#?}", told.result);
    Ok(())
}

#[tokio::test]
async fn local_ssds_are_discarded_where_the_settings_say_so() -> Result<()> {
    let instance = compute().await?.make(&GceMake { ssds: 1, ..GceMake::default() }).await?;
    let scene = Plan::new().device("discard_local_ssd = true\n").over(&instance).await?;
    scene.must_fence().await?;
    assert_eq!(scene.stops().await?[0].field("discardLocalSsd"), Some("true"));
    assert!(scene.compute.events(scene.id()).await?.iter().any(|event| event.what == "discarded"));
    Ok(())
}
