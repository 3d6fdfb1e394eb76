//! What people ask besides fencing, by the real daemon and the real command.

use picket_tests::{Fleet, Gateway, Result};

const FLEET: &str = r#"
[nodes."n[1-2]"]
labels = { rack = "r1" }
[nodes."n[1-2]".devices.bmc]
driver = "sim"
machine = "{node}"
[groups."rack=r1"]
drills = true
[budget]
cool_down = "0s"
min_not_fenced = 0
[roles.people]
role = "admin"
callers = ["uid:*"]
[roles.witness]
role = "attest"
callers = ["uid:*"]
"#;

#[tokio::test]
async fn holds_checks_drills_and_retirement_by_the_command() -> Result<()> {
    let gateway = Gateway::start(&Fleet::new().with(FLEET)).await?;
    gateway.checked().await?;
    let checked = gateway.picket(&["check"]).await?;
    assert_eq!(checked.code, 0, "{checked:?}");
    assert!(checked.out.contains("Could be fenced now: 2 of 2"), "{checked:?}");

    let drilled = gateway.picket(&["drill", "--group", "rack=r1", "--yes", "--reason", "spring"]).await?;
    assert_eq!(drilled.code, 0, "{drilled:?}");
    assert!(drilled.out.contains("n1") && drilled.out.contains("off by bmc, and back"), "{drilled:?}");

    let early = gateway.picket(&["hold", "n1", "--reason", "a test"]).await?;
    assert_eq!(early.code, 8, "there is nothing to keep off: {early:?}");
    assert_eq!(gateway.picket(&["fence", "n1", "--yes", "--reason", "a test"]).await?.code, 0);
    let held = gateway.picket(&["hold", "n1", "--holder", "ops", "--reason", "a disk"]).await?;
    assert_eq!(held.code, 0, "{held:?}");
    assert_eq!(gateway.picket(&["unfence", "n1", "--reason", "a test"]).await?.code, 3, "ops still holds it");
    let on = gateway.picket(&["attest", "n2", "--yes", "--reason", "unplugged"]).await?;
    assert_eq!(on.code, 8, "nobody vouches for what is not being fenced: {on:?}");
    let dropped = gateway.picket(&["unhold", "n1", "--holder", "ops", "--reason", "a new disk"]).await?;
    assert_eq!(dropped.code, 0, "{dropped:?}");

    let burned = ["retire", "n2", "--yes", "--reason", "it burned"];
    assert_eq!(gateway.picket(&burned).await?.code, 8, "it is not fenced");
    assert_eq!(gateway.picket(&["fence", "n2", "--yes", "--reason", "a test"]).await?.code, 0);
    let retired = gateway.picket(&burned).await?;
    assert_eq!(retired.code, 0, "{retired:?}");
    let again = gateway.picket(&["fence", "n2", "--yes", "--reason", "a test"]).await?;
    assert_eq!(again.code, 8, "{again:?}");
    let status = gateway.picket(&["status", "n2"]).await?;
    assert!(status.out.contains("retired") && status.out.contains("it burned"), "{status:?}");
    Ok(())
}
