//! Who drops whose hold, over a real BMC: nobody but its holder, or an admin.

use picket_tests::Result;
use picket_tests::peers::IpmiSim;

use crate::doors::scene::Scene;

const ADMINS: &str = r#"
[roles.admins]
role = "admin"
callers = ["root@example.com"]
"#;

/// `n9`, behind a BMC: a real device, which stands beside no simulated one.
fn node(bmc: &IpmiSim) -> String {
    let address = bmc.address();
    let fleet = picket_tests::Fleet::new().node("n9", &picket_tests::Bmc::at(address), &[]);
    format!("{}[nodes.n9.labels]\nrack = \"r1\"\n", fleet.settings())
}

#[tokio::test]
async fn a_hold_of_somebody_else_is_dropped_by_an_admin_alone() -> Result<()> {
    let bmc = IpmiSim::builder().holds().start().await?;
    let scene = Scene::over(&node(&bmc), ADMINS).await?;
    let (alice, bob, root) = (
        scene.caller("alice@example.org"),
        scene.caller("bob@example.org"),
        scene.caller("root@example.com"),
    );
    let fenced = scene.picket(&alice, &["fence", "n9", "--yes", "--reason", "it is dead"]).await?;
    assert_eq!(fenced.code, 0, "{fenced:?}");
    let held = scene.picket(&bob, &["hold", "n9", "--reason", "a disk"]).await?;
    assert_eq!(held.code, 0, "{held:?}");

    for verb in ["unhold", "unfence"] {
        let whose = [verb, "n9", "--yes", "--reason", "a test", "--holder", "alice@example.org"];
        let whose: Vec<&str> =
            whose.into_iter().filter(|word| verb == "unfence" || *word != "--yes").collect();
        let refused = scene.picket(&bob, &whose).await?;
        let text = format!("{}{}", refused.out, refused.err);
        assert_eq!(refused.code, 7, "{verb}: {text}");
        assert!(
            text.contains("bob@example.org may not act for \"alice@example.org\" on n9"),
            "{verb}: {text}"
        );
    }
    scene.logged(&["audit", "bob@example.org", "HOLDER_NOT_ALLOWED"]).await;
    let status = scene.picket(&bob, &["status", "n9"]).await?;
    assert!(status.out.contains("alice@example.org") && status.out.contains("bob@example.org"), "{status:?}");
    assert!(!bmc.is_on()?, "nothing was switched on");

    // Who holds nothing here is told who does.
    let nobody = ["unhold", "n9", "--reason", "a test", "--holder", "carol"];
    let refused = scene.picket(&root, &nobody).await?;
    let text = format!("{}{}", refused.out, refused.err);
    assert!(refused.code != 0 && text.contains("alice@example.org, bob@example.org"), "{text}");

    // An admin drops both: the first leaves it off, with the second it comes back.
    let drop = |whose: &'static str| ["unhold", "n9", "--reason", "both are on leave", "--holder", whose];
    let first = scene.picket(&root, &drop("alice@example.org")).await?;
    assert_eq!(first.code, 0, "{first:?}");
    assert!(!bmc.is_on()?, "bob holds it still");
    let last = ["unfence", "n9", "--yes", "--reason", "both are on leave", "--holder", "bob@example.org"];
    let back = scene.picket(&root, &last).await?;
    assert_eq!(back.code, 0, "{back:?}");
    assert!(bmc.is_on()?);
    Ok(())
}
