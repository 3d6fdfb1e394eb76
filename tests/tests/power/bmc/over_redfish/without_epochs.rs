//! A BMC whose restarts nothing shows that restarts within the fence (S2).

use std::time::Duration;

use picket_driver_sim::Fault;
use picket_proto::v1::Reason;
use picket_tests::Result;

use super::machine::Machine;
use super::meddled_at;
use crate::bmc::scene::Plan;

#[tokio::test]
async fn a_lying_bmc_that_was_silent_for_as_long_as_a_restart_takes_is_never_believed() -> Result<()> {
    never_believed(Duration::from_secs(20)).await
}

/// It restarted too fast for its silence to show it, and knows its sessions no more.
#[tokio::test]
async fn one_that_refuses_a_session_whose_life_is_not_over_is_never_believed() -> Result<()> {
    never_believed(Duration::from_secs(1)).await
}

async fn never_believed(down: Duration) -> Result<()> {
    let machine = Machine::new().await?;
    let never = Duration::from_secs(3_600);
    machine.fault(Fault::OffTakes { least: never, most: never });
    let plan = Plan::over(machine.truth(), &[("bmc", machine.without_epochs())]);
    let restart = || machine.bmc.restart(down, true);
    let (scene, left) = meddled_at("sent off", plan, restart).await?;
    left.needs_operator(Reason::BmcRestarted);
    assert!(machine.bmc.is_on(), "it says off, and its machine lives");
    scene.never_released().await;
    Ok(())
}
