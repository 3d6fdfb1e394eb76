//! Roles end to end: who lacks one is told which would do, and the audit is told.

use picket_tests::Result;

use crate::doors::scene::Scene;

#[tokio::test]
async fn a_role_that_is_missing_is_told_with_the_one_that_would_do() -> Result<()> {
    let scene = Scene::open().await?;
    let screen = scene.caller("screen.example.org");
    assert_eq!(scene.picket(&screen, &["nodes"]).await?.code, 0, "a viewer looks");
    for _ in 0..3 {
        let said = scene.picket(&screen, &["fence", "n1", "--yes", "--reason", "a test"]).await?;
        assert_eq!(said.code, 7, "{said:?}");
        let text = said.out + &said.err;
        assert!(
            text.contains("Fence needs the role controller, and screen.example.org has only viewer"),
            "{text}"
        );
    }
    scene.logged(&["audit", "screen.example.org", "Fence", "ROLE_MISSING", "count=1"]).await;
    let told = scene.gateway.log().lines().filter(|line| line.contains("ROLE_MISSING")).count();
    assert_eq!(told, 1, "equal ones are gathered");
    assert!(scene.gateway.picket(&["status", "n1"]).await?.out.contains("normal"));
    Ok(())
}

#[tokio::test]
async fn a_role_without_the_group_sees_and_touches_only_its_own() -> Result<()> {
    let scene = Scene::open().await?;
    let db = scene.caller("spiffe://lab/ns/db");
    let said = scene.picket(&db, &["nodes"]).await?;
    assert!(said.out.contains("n1") && said.out.contains("n2"), "{said:?}");
    assert!(!said.out.contains("n3") && !said.out.contains("n4"), "{said:?}");
    for arguments in
        [&["status", "n3"][..], &["fence", "n3", "--yes", "--reason", "a test"], &["nodes", "n[1-4]"]]
    {
        let said = scene.picket(&db, arguments).await?;
        let text = said.out + &said.err;
        assert!(said.code == 7 && text.contains("only for rack=r1"), "{arguments:?}: {} {text}", said.code);
    }
    let said = scene.picket(&db, &["fence", "n2", "--yes", "--reason", "a test"]).await?;
    assert_eq!(said.code, 0, "{said:?}");
    Ok(())
}

#[tokio::test]
async fn a_controller_acts_for_itself_and_for_the_holders_of_its_role() -> Result<()> {
    let scene = Scene::open().await?;
    let db = scene.caller("spiffe://lab/ns/db");
    let fence = |holder: &'static str| ["fence", "n1", "--yes", "--reason", "a test", "--holder", holder];
    let said = scene.picket(&db, &fence("alice@example.org")).await?;
    let text = said.out + &said.err;
    assert!(said.code == 7 && text.contains("may not act for \"alice@example.org\""), "{} {text}", said.code);
    let said = scene.picket(&db, &fence("db-7")).await?;
    assert_eq!(said.code, 0, "{said:?}");
    // Nor may a person who is no admin drop what a program holds.
    let alice = scene.caller("alice@example.org");
    let unfence = ["unfence", "n1", "--yes", "--reason", "a test", "--holder", "db-7"];
    assert_eq!(scene.picket(&alice, &unfence).await?.code, 7);
    assert_eq!(scene.picket(&db, &unfence).await?.code, 0);
    Ok(())
}

#[tokio::test]
async fn who_is_in_no_role_may_do_nothing() -> Result<()> {
    let scene = Scene::open().await?;
    let said = scene.picket(&scene.caller("mallory.example.com"), &["nodes"]).await?;
    let text = said.out + &said.err;
    assert!(said.code == 7 && text.contains("mallory.example.com has no role"), "{} {text}", said.code);
    Ok(())
}
