//! S8 over Redfish: what a gateway sent, or may yet send, ends with its session, which whoever leads next ends by its name. A
//! gateway that was stopped between permit and sending, and goes on, is refused by the BMC.

use picket_driver_sim::Verb;
use picket_tests::Result;

use crate::ha::duo::Duo;

const UNFENCE: [&str; 4] = ["unfence", "n1", "--reason", "a test"];

/// Fenced over the death of its leader at that point, it is brought back at once.
async fn is_back_at_once(point: &str, tasks: bool) -> Result<()> {
    let duo = Duo::start(&[("PICKET_KILL_AT", point)], tasks).await?;
    duo.fence("k1").await?;
    duo.gateways.leads(1).await?;
    duo.unfence().await?;
    assert_eq!(duo.told(Verb::On).len(), 1, "{}", duo.gateways.logs());
    assert!(duo.gateways[1].log().contains("another's session was ended"), "{}", duo.gateways.logs());
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
    let said = duo.gateways.said(&UNFENCE).await?;
    duo.gateways.leads(1).await?;
    if said.code != 0 {
        duo.unfence().await?;
    }
    duo.fence("k2").await?;
    let ons = duo.told(Verb::On).len();
    duo.unfence().await?;
    assert_eq!(duo.told(Verb::On).len(), ons + 1, "{}", duo.gateways.logs());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_off_of_a_gateway_that_stood_still_is_refused() -> Result<()> {
    let mut duo = Duo::start(&[("PICKET_STOP_AT", "permitted off#2")], false).await?;
    duo.fence("k1").await?;
    duo.gateways.until_stopped().await?;
    duo.gateways.leads(1).await?;
    duo.unfence().await?;
    let offs = duo.told(Verb::Off).len();
    // It sends what it was about to: the BMC does not know its session any more.
    duo.goes_on_in_vain().await?;
    assert!(duo.bmc.is_on() && duo.told(Verb::Off).len() == offs, "{}", duo.gateways.logs());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_on_of_a_gateway_that_stood_still_is_refused() -> Result<()> {
    let mut duo = Duo::start(&[("PICKET_STOP_AT", "permitted on#2")], false).await?;
    duo.fence("k1").await?;
    let said = duo.gateways.said(&UNFENCE).await?;
    duo.gateways.until_stopped().await?;
    duo.gateways.leads(1).await?;
    if said.code != 0 {
        duo.unfence().await?;
    }
    duo.fence("k2").await?;
    let ons = duo.told(Verb::On).len();
    duo.goes_on_in_vain().await?;
    assert!(!duo.bmc.is_on() && duo.told(Verb::On).len() == ons, "{}", duo.gateways.logs());
    duo.unfence().await
}
