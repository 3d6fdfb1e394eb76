//! Redfish, through OpenStack's sushy-emulator, untouched: falls of 1 to 11 s, no sessions, no connection that stays.

use std::time::Duration;

use picket_proto::v1::{Grade, Phase, Reason};
use picket_tests::peers::{SYSTEMS, Sushy};
use picket_tests::{Bmc, Result};

use crate::bmc::scene::Plan;

/// Off must hold for longer than the longest power cycle, as the service does not tell its restarts.
const WINDOW: Duration = Duration::from_secs(15);

#[tokio::test]
async fn a_machine_behind_sushy_is_switched_off_proven_off_let_go_and_brought_back() -> Result<()> {
    let sushy = Sushy::start().await?;
    let (truth, bystander) = (sushy.truth(SYSTEMS[0]), sushy.truth(SYSTEMS[1]));
    let identity = format!("call = \"20s\"\nidentity = {{ uuid = {:?} }}", SYSTEMS[0]);
    let device = Bmc::redfish(&sushy, SYSTEMS[0]).with(&identity);
    let scene = Plan::over(truth.clone(), &[("bmc", device)]).start().await?;
    let fenced = scene.fence().await?;
    fenced.tell("sushy-emulator");
    assert!(fenced.is_fenced().took >= WINDOW, "{:?}", fenced.took);
    assert_eq!(fenced.evidence().grade(), Grade::Hypervisor, "one lower: it does not tell its restarts");
    assert!(!truth() && bystander());
    scene.released_while_off(1);
    // One at the beginning, and one that seals the window.
    assert_eq!(sushy.resets(), 2);
    scene.unfence().await?.is_back();
    assert!(truth());
    assert_eq!(sushy.resets(), 3, "the on was sent once");
    assert_eq!(scene.node().await?.phase(), Phase::Normal);
    scene.released_while_off(1);
    Ok(())
}

#[tokio::test]
async fn a_service_that_another_ca_vouches_for_is_not_believed_and_nothing_is_let_go() -> Result<()> {
    let sushy = Sushy::start().await?;
    let truth = sushy.truth(SYSTEMS[0]);
    let foreign = sushy.foreign_ca()?;
    let device = Bmc::redfish(&sushy, SYSTEMS[0]).trusting(&foreign);
    let settings = "[rules]\nlevel_share = \"30s\"\nfence_deadline = \"32s\"\nsilent_share = \"8s\"";
    let scene = Plan::over(truth.clone(), &[("bmc", device)]).with(settings).start().await?;
    let fenced = scene.fence().await?;
    fenced.tell("a certificate of another CA");
    fenced.needs_operator(Reason::LevelsSpent);
    assert!(truth());
    assert_eq!(sushy.resets(), 0);
    scene.never_released().await;
    Ok(())
}
