//! Somebody else in the service's place, within a fence: by a certificate that nobody vouches for.

use std::time::Duration;

use picket_proto::v1::Reason;
use picket_tests::Result;

use super::machine::Machine;
use super::{SHORT_SHARE, meddled_at};
use crate::bmc::scene::Plan;

/// Fences, and puts somebody else in the service's place where the daemon stops.
async fn replaced_at(point: &str) -> Result<()> {
    let machine = Machine::new().await?;
    let plan = Plan::over(machine.truth(), &[("bmc", machine.redfish())]);
    let replace = || {
        machine.bmc.forge_certificate().expect("a certificate");
        // What was connected is not any more.
        machine.bmc.restart(Duration::from_secs(1), false);
    };
    let (scene, left) = meddled_at(point, plan.with(SHORT_SHARE), replace).await?;
    left.needs_operator(Reason::LevelsSpent);
    let detail = &left.outcome().detail;
    assert!(detail.contains("certificate"), "{detail}");
    scene.never_released().await;
    Ok(())
}

#[tokio::test]
async fn nobody_whom_nobody_vouches_for_is_sent_an_off() -> Result<()> {
    replaced_at("sending off").await
}

#[tokio::test]
async fn nobody_whom_nobody_vouches_for_says_that_it_is_off() -> Result<()> {
    replaced_at("sent off").await
}
