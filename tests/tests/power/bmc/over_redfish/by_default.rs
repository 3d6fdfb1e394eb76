//! A BMC that says when it was reset, by settings that say nothing of it (S2).

use std::time::Duration;

use picket_driver_sim::Fault;
use picket_proto::v1::Reason;
use picket_tests::{PeerError, Result};

use super::machine::Machine;
use super::{SHORT_SHARE, SOON, meddled_at};
use crate::bmc::scene::{Plan, Scene};

/// Without a session, and so fast that no silence shows it.
#[tokio::test]
async fn a_restart_that_nothing_else_shows_is_seen_in_a_fence() -> Result<()> {
    let machine = Machine::new().await?;
    let never = Duration::from_secs(3_600);
    machine.fault(Fault::OffTakes { least: never, most: never });
    let device = machine.by_default_without_sessions();
    let plan = Plan::over(machine.truth(), &[("bmc", device)]).with(SHORT_SHARE);
    let restart = || machine.bmc.restart(Duration::from_secs(1), true);
    let (scene, left) = meddled_at("sent off", plan, restart).await?;
    left.needs_operator(Reason::BmcRestarted);
    assert!(machine.bmc.is_on(), "it says off, and its machine lives");
    scene.never_released().await;
    Ok(())
}

impl Scene {
    /// Checks until the gateway knows that the BMC's restarts show.
    async fn until_it_tells_its_restarts(&self) -> Result<()> {
        let deadline = tokio::time::Instant::now() + SOON;
        loop {
            let node = self.node().await?;
            if node.devices.iter().all(|device| device.has_epochs) {
                return Ok(());
            }
            if tokio::time::Instant::now() >= deadline {
                let seen = format!("{node:#?}\n{}", self.gateway.log());
                return Err(PeerError::TimedOut { what: "two checks agree".to_owned(), within: SOON, seen });
            }
            let checked = self.gateway.picket(&["check", "n1"]).await?;
            assert_eq!(checked.code, 0, "{checked:?}");
        }
    }
}

#[tokio::test]
async fn once_two_checks_agreed_off_need_not_hold_for_the_long_window() -> Result<()> {
    let machine = Machine::new().await?;
    let scene = Plan::over(machine.truth(), &[("bmc", machine.by_default())]).start().await?;
    assert!(scene.node().await?.devices.iter().all(|device| !device.has_epochs), "one look shows nothing");
    scene.until_it_tells_its_restarts().await?;
    let fenced = scene.fence().await?;
    assert_eq!(fenced.is_fenced().long_window(), "");
    assert_eq!(fenced.evidence().lowered_by.iter().filter(|why| why.contains("restarts")).count(), 0);
    scene.released_while_off(1);
    Ok(())
}

#[tokio::test]
async fn before_that_it_has_to() -> Result<()> {
    let machine = Machine::new().await?;
    let plan = Plan::over(machine.truth(), &[("bmc", machine.by_default())]);
    let scene = plan.with("[rules]\nlongest_cycle = \"5s\"").start().await?;
    let fenced = scene.fence().await?;
    assert_eq!(fenced.is_fenced().long_window(), "the device has no epochs");
    scene.released_while_off(1);
    Ok(())
}
