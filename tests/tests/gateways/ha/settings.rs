//! Other settings: nobody leads by them unnoticed, and one word of a person is enough.

use picket_tests::{Result, picketd};
use std::time::Duration;
use tokio::time::sleep;

use crate::ha::trio::Trio;

/// Other rules than [`crate::ha::trio::RULES`].
const OTHERS: &str = "[rules]\ndwell = \"600ms\"\nlongest_cycle = \"5s\"\nwatch = \"1s\"";
const PASSWORD: [(&str, &str); 1] = [(picket_tests::PASSWORD_VARIABLE, "a test")];

/// The operator gave all machines another file, and restarted all of them at once.
#[tokio::test]
async fn all_restarted_with_other_settings_wait_for_one_word() -> Result<()> {
    let mut trio = Trio::start(&[]).await?;
    // While somebody leads, settings are changed by a reload.
    let (file, others) = (trio.gateways[1].settings_file(), trio.fleet(1, "3s", OTHERS));
    trio.gateways[1].settings(&others)?;
    let refused = picketd(&file, &["accept-settings"], &PASSWORD).await?;
    assert_eq!(refused.code, 75, "{refused:?}");
    assert!(refused.err.contains("g0 leads by other settings ("), "{refused:?}");
    for gateway in trio.gateways.iter_mut() {
        gateway.stop().await?;
    }
    for n in 0..3 {
        let fleet = trio.fleet(n, "3s", OTHERS);
        trio.gateways[n].settings(&fleet)?;
        trio.gateways[n].launch(&[])?;
    }
    // Nobody stands, each says so, and what to do.
    for n in 0..3 {
        loop {
            let seen = trio.seen_by(n).await;
            let all = |seen: &picket_proto::v1::ListGatewaysResponse| {
                seen.gateways.len() == 3
                    && seen.gateways.iter().all(|one| one.aside.contains("picketd accept-settings"))
            };
            if seen.as_ref().is_some_and(all) {
                break;
            }
            sleep(Duration::from_millis(50)).await;
        }
        trio.measures(n, "picket_settings_differ", |differ| differ == 1.0).await;
        trio.measures(n, "picket_standing", |stands| stands == 0.0).await;
    }
    trio.measures(2, "picket_gateways{part=\"aside\"}", |aside| aside == 3.0).await;
    let told = trio.gateways[2].picket(&["gateways"]).await?;
    assert_eq!(told.code, 5, "{told:?}");
    assert!(told.out.contains("g0, g1, g2 have others"), "{told:?}");
    assert!(trio.gateways[0].log().contains("picketd accept-settings"), "{}", trio.gateways[0].log());
    // Once, anywhere.
    let said = picketd(&file, &["accept-settings"], &PASSWORD).await?;
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("is led by these settings (") && said.out.contains("from now on"), "{said:?}");
    trio.gateways.leader().await?;
    for n in 0..3 {
        trio.measures(n, "picket_settings_differ", |differ| differ == 0.0).await;
        trio.measures(n, "picket_standing", |stands| stands == 1.0).await;
    }
    let again = picketd(&file, &["accept-settings"], &PASSWORD).await?;
    assert!(again.code == 0 && again.out.contains("already: nothing was done"), "{again:?}");
    let said = trio.fenced("k1").await?;
    assert_eq!(said.code, 0, "{said:?}\n{}", trio.gateways.logs());
    trio.never(&said);
    Ok(())
}
