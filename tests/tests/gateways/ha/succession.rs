//! S8 over Redfish: what a gateway sent, or may yet send, ends with its session, which whoever leads next ends by its name. A
//! gateway that was stopped between permit and sending, and goes on, is refused by the BMC.

use std::time::Duration;

use picket_driver_sim::Verb;
use picket_tests::Result;
use tokio::time::sleep;

use crate::ha::duo::{Duo, PATIENCE};

const UNFENCE: [&str; 4] = ["unfence", "n1", "--reason", "a test"];

/// Fenced over the death of its leader at that point, it is brought back at once.
async fn is_back_at_once(point: &str, tasks: bool) -> Result<()> {
    let duo = Duo::start(&[("PICKET_KILL_AT", point)], tasks).await?;
    duo.fence("k1").await?;
    duo.leads(1).await?;
    duo.unfence().await?;
    assert_eq!(duo.told(Verb::On).len(), 1, "{}", duo.logs());
    assert!(duo.gateways[1].log().contains("another's session was ended"), "{}", duo.logs());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_gateway_died_between_login_and_off_is_brought_back_at_once() -> Result<()> {
    is_back_at_once("sending off", false).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_gateway_died_between_off_and_close_is_brought_back_at_once() -> Result<()> {
    is_back_at_once("sent off", false).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_gateway_died_after_an_off_that_is_a_task_is_brought_back_at_once() -> Result<()> {
    is_back_at_once("sent off", true).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_gateway_died_after_the_on_is_fenced_and_brought_back_at_once() -> Result<()> {
    let duo = Duo::start(&[("PICKET_KILL_AT", "sent on")], false).await?;
    duo.fence("k1").await?;
    // Whoever asked hears of the end from the other one, or asks again.
    let said = duo.said(&UNFENCE).await?;
    duo.leads(1).await?;
    if said.code != 0 {
        duo.unfence().await?;
    }
    duo.fence("k2").await?;
    let ons = duo.told(Verb::On).len();
    duo.unfence().await?;
    assert_eq!(duo.told(Verb::On).len(), ons + 1, "{}", duo.logs());
    Ok(())
}

/// The first one is stopped where its permit was asked and holds: the second time for a command, when the connection stands.
async fn stopped(duo: &mut Duo) -> Result<()> {
    for _ in 0..PATIENCE.as_millis() / 50 {
        if duo.gateways[0].process()?.is_frozen() {
            return Ok(());
        }
        sleep(Duration::from_millis(50)).await;
    }
    panic!("it never stopped\n{}", duo.logs());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_off_of_a_gateway_that_stood_still_is_refused() -> Result<()> {
    let mut duo = Duo::start(&[("PICKET_STOP_AT", "permitted off#2")], false).await?;
    duo.fence("k1").await?;
    stopped(&mut duo).await?;
    duo.leads(1).await?;
    duo.unfence().await?;
    let offs = duo.told(Verb::Off).len();
    // It sends what it was about to: the BMC does not know its session any more.
    duo.goes_on_in_vain().await?;
    assert!(duo.bmc.is_on() && duo.told(Verb::Off).len() == offs, "{}", duo.logs());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_on_of_a_gateway_that_stood_still_is_refused() -> Result<()> {
    let mut duo = Duo::start(&[("PICKET_STOP_AT", "permitted on#2")], false).await?;
    duo.fence("k1").await?;
    let said = duo.said(&UNFENCE).await?;
    stopped(&mut duo).await?;
    duo.leads(1).await?;
    if said.code != 0 {
        duo.unfence().await?;
    }
    duo.fence("k2").await?;
    let ons = duo.told(Verb::On).len();
    duo.goes_on_in_vain().await?;
    assert!(!duo.bmc.is_on() && duo.told(Verb::On).len() == ons, "{}", duo.logs());
    duo.unfence().await
}
