//! The next level, for each way in which a first one over IPMI can fail.

use std::time::Duration;

use picket_driver_sim::{Act, Fault};
use picket_proto::v1::FenceUpdate;
use picket_tests::peers::UdpFault;
use picket_tests::{Bmc, Result};

use crate::bmc::over_redfish::machine::Machine;
use crate::bmc::scene::{Plan, Scene, Told};

/// A level is given up after 9 s rather than 180 s; the long window has to fit into that.
const SHORT_SHARE: &str = "[rules]\nlevel_share = \"9s\"\nfence_deadline = \"30s\"\nlongest_cycle = \"5s\"";
const WRONG: &str = "PICKET_TEST_WRONG_PASSWORD";

/// The machine by IPMI, there or elsewhere, and then by its other protocol.
fn plan(machine: &Machine, ipmi: Bmc) -> Plan {
    let first = Plan::over(machine.truth(), &[("bmc", ipmi)]);
    first.level(&[("redfish", machine.redfish())]).with(SHORT_SHARE)
}

/// The second level did it, as the first one failed so, and nothing was let go before.
fn by_the_next(machine: &Machine, scene: &Scene, fenced: &Told, why: &str) {
    fenced.tell("the next level");
    let given_up = |update: &FenceUpdate| update.text.contains("trying level 2") && update.text.contains(why);
    assert!(fenced.updates.iter().any(given_up), "not for {why:?}: {fenced:#?}");
    assert_eq!(fenced.is_fenced().evidence().level, 2);
    assert!(!machine.bmc.is_on());
    scene.released_while_off(1);
}

/// Where its IPMI fails so, the next level does it.
async fn falls_back(why: &str, spoil: impl FnOnce(&Machine)) -> Result<()> {
    let machine = Machine::new().await?;
    let scene = plan(&machine, machine.ipmi()).start().await?;
    spoil(&machine);
    let fenced = scene.fence_until_fenced().await?;
    by_the_next(&machine, &scene, &fenced, why);
    Ok(())
}

/// From now on its IPMI misbehaves so.
fn over_ipmi(machine: &Machine, fault: Fault) {
    machine.bmc.world().fault(&Machine::machine(), fault);
}

/// Who was logged in is not any more.
fn is_asked_for_a_login(machine: &Machine) {
    machine.bmc.happen(Act::LoseSessions { device: Machine::machine() });
}

#[tokio::test]
async fn the_next_level_comes_where_one_refuses_the_off() -> Result<()> {
    falls_back("bmc on (the off: ", |machine| over_ipmi(machine, Fault::OffRefused)).await
}

#[tokio::test]
async fn the_next_level_comes_where_one_says_neither_on_nor_off() -> Result<()> {
    falls_back("bmc unknown", |machine| over_ipmi(machine, Fault::SaysNothing)).await
}

#[tokio::test]
async fn the_next_level_comes_where_one_has_no_session_left() -> Result<()> {
    falls_back("all session slots", |machine| {
        over_ipmi(machine, Fault::SessionsFull);
        is_asked_for_a_login(machine);
    })
    .await
}

#[tokio::test]
async fn the_next_level_comes_where_one_has_another_password_and_it_is_not_hammered() -> Result<()> {
    let machine = Machine::new().await?;
    let network = UdpFault::start(machine.bmc.address(), 1).await?;
    let bmc = Bmc::at(network.address()).password_in(WRONG);
    let scene = plan(&machine, bmc).variable(WRONG, "not-the-password").start().await?;
    let fenced = scene.fence_until_fenced().await?;
    by_the_next(&machine, &scene, &fenced, "another password");
    // One at the start's check; then waits of 1, 2, 4, 8 ... seconds between them, as long as the level lasts.
    let logins = network.counts().logins;
    assert!((1..=6).contains(&logins), "{logins} logins");
    Ok(())
}

#[tokio::test]
async fn the_next_level_comes_where_one_restarted_within_the_fence_and_lost_its_machine() -> Result<()> {
    let machine = Machine::new().await?;
    let scene = plan(&machine, machine.ipmi()).pausing("sending off").start().await?;
    let (fenced, ()) = tokio::try_join!(scene.fence_until_fenced(), async {
        scene.until_paused().await?;
        let (device, down) = (Machine::machine(), Duration::from_secs(1));
        machine.bmc.happen(Act::RestartBmc { device, down, estranged: true });
        scene.go_on()
    })?;
    by_the_next(&machine, &scene, &fenced, "restarted within the fence");
    assert_eq!(scene.fences().await?.remove(0).lost_sessions, ["bmc"]);
    Ok(())
}
