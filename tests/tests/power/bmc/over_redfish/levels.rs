//! The next level, for each way in which one can fail.

use std::time::Duration;

use picket_driver_sim::{Act, Fault};
use picket_tests::Result;

use super::machine::Machine;
use super::{DEVICE, SHORT_SHARE};
use crate::bmc::scene::Plan;

/// Where its Redfish fails so, the next level does it.
async fn falls_back(spoil: impl FnOnce(&Machine)) -> Result<()> {
    let machine = Machine::new().await?;
    let scene = Plan::over(machine.truth(), &[("bmc", machine.redfish())])
        .level(&[("ipmi", machine.ipmi())])
        .with(SHORT_SHARE)
        .start()
        .await?;
    spoil(&machine);
    let fenced = scene.fence_until_fenced().await?;
    fenced.tell("the next level");
    assert_eq!(fenced.is_fenced().evidence().level, 2);
    assert!(!machine.bmc.is_on());
    scene.released_while_off(1);
    Ok(())
}

#[tokio::test]
async fn the_next_level_comes_where_one_is_silent() -> Result<()> {
    falls_back(|machine| machine.fault(Fault::Silent)).await
}

#[tokio::test]
async fn the_next_level_comes_where_one_refuses_the_off() -> Result<()> {
    falls_back(|machine| machine.fault(Fault::OffRefused)).await
}

#[tokio::test]
async fn the_next_level_comes_where_one_ignores_the_off() -> Result<()> {
    falls_back(|machine| machine.fault(Fault::OffIgnored)).await
}

#[tokio::test]
async fn the_next_level_comes_where_one_says_nothing_of_power() -> Result<()> {
    falls_back(|machine| machine.fault(Fault::SaysNothing)).await
}

/// Its Redfish ended its sessions, and makes no others for this reason.
async fn makes_no_session(fault: Fault) -> Result<()> {
    falls_back(|machine| {
        machine.fault(fault);
        machine.bmc.happen(Act::LoseSessions { device: DEVICE.to_owned() });
    })
    .await
}

#[tokio::test]
async fn the_next_level_comes_where_one_lets_nobody_in() -> Result<()> {
    makes_no_session(Fault::WrongPassword).await
}

#[tokio::test]
async fn the_next_level_comes_where_one_never_has_a_session() -> Result<()> {
    makes_no_session(Fault::SessionsFull).await
}

#[tokio::test]
async fn the_next_level_comes_where_one_is_busy_for_ever() -> Result<()> {
    falls_back(|machine| machine.fault(Fault::Busy { times: u32::MAX })).await
}

#[tokio::test]
async fn the_next_level_comes_where_one_offers_no_hard_off() -> Result<()> {
    falls_back(|machine| machine.bmc.withdraw("ForceOff")).await
}

#[tokio::test]
async fn the_next_level_comes_where_one_restarted_and_lost_its_machine() -> Result<()> {
    falls_back(|machine| {
        let (device, down) = (DEVICE.to_owned(), Duration::from_secs(1));
        machine.bmc.happen(Act::RestartBmc { device, down, estranged: true });
    })
    .await
}
