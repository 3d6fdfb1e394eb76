//! Requests that wait, and what bars them, as callers with a role for some nodes see it (S14).

use std::process::Stdio;

use picket_tests::peers::{HANGS, until};
use picket_tests::{Result, Said};

use crate::doors::scene::Scene;

async fn fence(scene: &Scene, node: &str) -> Result<Said> {
    scene.gateway.picket(&["fence", node, "--yes", "--reason", "a test"]).await
}

#[tokio::test]
async fn what_waits_for_a_caller_whose_role_is_taken_away_is_not_begun() -> Result<()> {
    let mut scene =
        Scene::with("[budget]\ncool_down = \"1h\"\nbrake_least = 1000\nmin_not_fenced = 0\n").await?;
    let back = ["unfence", "n1", "--yes", "--reason", "a test"];
    assert_eq!(fence(&scene, "n1").await?.code, 0);
    assert_eq!(scene.gateway.picket(&back).await?.code, 0);
    let db = scene.caller("spiffe://lab/ns/db");
    let mut waits = scene.command(&db, &["fence", "n1", "--yes", "--reason", "a test", "--queue=10m"])?;
    let waits =
        waits.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).spawn().expect("it runs");
    until("it waits", HANGS, async || {
        Ok(scene.gateway.picket(&["status", "n1"]).await?.out.contains("waits for"))
    })
    .await?;

    // One reload takes the role, and with it what kept the request waiting.
    let file = scene.gateway.settings_file();
    let settings = std::fs::read_to_string(&file).expect("read");
    let settings = settings.replace("spiffe://lab/ns/*", "spiffe://lab/other/*").replace("\"1h\"", "\"0s\"");
    std::fs::write(&file, settings).expect("written");
    scene.gateway.process()?.signal(rustix::process::Signal::HUP);
    scene.logged(&["the new settings hold"]).await;

    let ended = waits.wait_with_output().await.expect("it ends");
    let said = String::from_utf8_lossy(&ended.stdout) + String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.code() == Some(7) && said.contains("spiffe://lab/ns/db"), "{said}");
    let told = scene.gateway.picket(&["history", "n1"]).await?;
    assert_eq!(told.out.matches("n1").count(), 1, "one fence, and it was ours: {told:?}");
    Ok(())
}

#[tokio::test]
async fn of_nodes_that_its_role_hides_a_caller_is_told_how_many_and_not_which() -> Result<()> {
    let scene = Scene::with("[budget]\nat_once = 4\nmin_not_fenced = 3\nbrake_least = 1000\n").await?;
    assert_eq!(fence(&scene, "n3").await?.code, 0);
    let ours = fence(&scene, "n1").await?;
    assert!(ours.code == 3 && ours.out.contains("n3"), "an admin is told: {ours:?}");
    let db = scene.caller("spiffe://lab/ns/db");
    for arguments in [&["fence", "n1", "--yes", "--reason", "a test"][..], &["plan", "n1"]] {
        let said = scene.picket(&db, arguments).await?;
        let text = said.out + &said.err;
        assert!(said.code == 3 && text.contains("must keep 3 of its 4 nodes"), "{arguments:?}: {text}");
        assert!(!text.contains("n3"), "{arguments:?}: {text}");
    }
    Ok(())
}

/// By names of its own, one for each request: the rest of the places is for others.
#[tokio::test]
async fn a_caller_takes_half_of_the_queue_and_leaves_the_rest() -> Result<()> {
    let scene = Scene::with("[budget]\nmin_not_fenced = 3\nbrake_least = 1000\nqueue_most = 3\n").await?;
    assert_eq!(fence(&scene, "n4").await?.code, 0);
    let db = scene.caller("spiffe://lab/ns/db");
    let asks =
        |node, holder| ["fence", node, "--yes", "--reason", "a test", "--queue=10m", "--holder", holder];
    let waits = async |node: &str| {
        until("it waits", HANGS, async || {
            Ok(scene.gateway.picket(&["status", node]).await?.out.contains("waits for"))
        })
        .await
    };
    let begun = |mut command: tokio::process::Command| {
        command.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true).spawn().expect("it runs")
    };
    let _first = begun(scene.command(&db, &asks("n1", "db-1"))?);
    waits("n1").await?;
    let _second = begun(scene.command(&db, &asks("n2", "db-2"))?);
    waits("n2").await?;
    let refused = scene.picket(&db, &asks("n1", "db-3")).await?;
    let text = refused.out + &refused.err;
    assert!(refused.code == 3 && text.contains("has 2 of the 3 requests"), "{}: {text}", refused.code);
    let person = scene.caller("ada@example.org");
    let fence = ["fence", "n3", "--yes", "--reason", "a test", "--queue=10m"];
    let _third = begun(scene.command(&person, &fence)?);
    waits("n3").await
}
