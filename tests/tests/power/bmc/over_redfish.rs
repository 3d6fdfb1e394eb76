//! The scenarios of devices, over Redfish: a simulated BMC that other people's clients take for one (`tests/tests/devices/fleet`), with all
//! its faults, before the real daemon. The world behind it knows what is true.

use std::time::Duration;

use picket_core::device::Identity;
use picket_driver_sim::{Act, Fault, RestorePolicy};
use picket_proto::v1::{FenceCause, Grade, OutcomeKind, Phase, Reason};
use picket_tests::Result;
use picket_tests::peers::eventually;

use crate::bmc::scene::{Plan, Scene, Told};
use machine::Machine;

mod by_default;
mod led_astray;
mod levels;
pub mod machine;
mod silent;
mod starting;
mod strangers;
mod told;
mod without_epochs;

/// A level is given up after 9 s rather than 180 s; the long window has to fit into that.
const SHORT_SHARE: &str =
    "[rules]\nlevel_share = \"9s\"\nfence_deadline = \"30s\"\nlongest_cycle = \"5s\"\nwatch = \"1s\"";
const SOON: Duration = Duration::from_secs(180);
/// The world's name for the BMC's Redfish; its IPMI has another, and faults of its own.
const DEVICE: &str = "n1-redfish";

#[tokio::test]
async fn a_fall_that_takes_its_time_is_waited_for_and_the_node_comes_back() -> Result<()> {
    let machine = Machine::new().await?;
    let fall = Duration::from_secs(8);
    machine.fault(Fault::OffTakes { least: fall, most: fall });
    machine.fault(Fault::SaysTransition);
    let scene = machine.scene("").await?;
    let fenced = scene.fence().await?;
    fenced.tell("a fall of 8 s");
    assert!(fenced.is_fenced().took >= fall, "{:?}", fenced.took);
    assert_eq!((fenced.evidence().grade(), fenced.long_window()), (Grade::Learned, ""));
    assert_eq!(machine.bmc.world().hold("n1").restore, RestorePolicy::AlwaysOff, "it is held");
    scene.released_while_off(1);
    scene.unfence().await?.is_back();
    assert!(machine.bmc.is_on());
    assert_ne!(machine.bmc.world().hold("n1").restore, RestorePolicy::AlwaysOff, "as it was found");
    Ok(())
}

#[tokio::test]
async fn a_reset_that_is_a_task_is_followed() -> Result<()> {
    let machine = Machine::with(true).await?;
    let scene = machine.scene("").await?;
    scene.fence().await?.is_fenced();
    assert!(!machine.bmc.is_on());
    scene.released_while_off(1);
    scene.unfence().await?.is_back();
    assert!(machine.bmc.is_on());
    Ok(())
}

/// Not off for as long as its level has; its node is not let go.
async fn is_never_off(fault: Fault) -> Result<()> {
    let machine = Machine::new().await?;
    let scene = machine.scene(SHORT_SHARE).await?;
    machine.fault(Fault::OffTakes { least: SOON, most: SOON });
    machine.fault(fault.clone());
    let left = scene.fence().await?;
    left.tell(&format!("{fault:?}"));
    left.needs_operator(Reason::LevelsSpent);
    scene.never_released().await;
    Ok(())
}

#[tokio::test]
async fn powering_off_is_not_off() -> Result<()> {
    is_never_off(Fault::SaysTransition).await
}

#[tokio::test]
async fn null_is_not_off() -> Result<()> {
    is_never_off(Fault::SaysNothing).await
}

#[tokio::test]
async fn silence_is_not_off() -> Result<()> {
    is_never_off(Fault::Silent).await
}

#[tokio::test]
async fn an_off_that_is_ignored_is_not_off() -> Result<()> {
    is_never_off(Fault::OffIgnored).await
}

#[tokio::test]
async fn an_off_that_is_refused_is_not_off() -> Result<()> {
    is_never_off(Fault::OffRefused).await
}

#[tokio::test]
async fn a_lie_about_the_off_is_a_contradiction_where_another_device_sees_it() -> Result<()> {
    let machine = Machine::new().await?;
    machine.fault(Fault::OffLied);
    machine.bmc.world().fault("n1", Fault::OffIgnored);
    let devices = [("liar", machine.redfish()), ("second", machine.ipmi())];
    let scene = Plan::over(machine.truth(), &devices).start().await?;
    let left = scene.fence().await?;
    left.tell("a liar and a witness");
    left.needs_operator(Reason::Contradiction);
    assert!(machine.bmc.is_on());
    scene.never_released().await;
    Ok(())
}

/// A machine that is off already gets an off all the same, and the long window.
async fn off_already(fault: Fault) -> Result<()> {
    let machine = Machine::new().await?;
    machine.fault(fault);
    machine.bmc.happen(Act::Foreign { machine: Machine::machine(), verb: picket_driver_sim::Verb::Off });
    let scene = machine.scene("").await?;
    let fenced = scene.fence().await?;
    fenced.tell("off already");
    fenced.is_fenced();
    assert!(!fenced.long_window().is_empty());
    assert!(machine.commands() >= 2, "our own off, and one that seals the window");
    scene.released_while_off(1);
    Ok(())
}

#[tokio::test]
async fn a_machine_that_is_off_already_gets_an_off_all_the_same() -> Result<()> {
    off_already(Fault::AlreadyIsUnsaid).await
}

#[tokio::test]
async fn so_does_one_whose_service_refuses_it_as_already_off() -> Result<()> {
    off_already(Fault::AlreadyIsError).await
}

/// It took our off, and refuses the repetition at the end of the long window without a reason.
#[tokio::test]
async fn one_whose_service_refuses_the_repeat_without_a_reason_is_off() -> Result<()> {
    let machine = Machine::new().await?;
    machine.fault(Fault::AlreadyIsRefused);
    let scene = Plan::over(machine.truth(), &[("bmc", machine.without_epochs())]).start().await?;
    let fenced = scene.fence().await?;
    fenced.tell("a repeat that is refused");
    fenced.is_fenced();
    assert!(machine.commands() >= 2, "our own off, and the one that seals the window");
    scene.released_while_off(1);
    Ok(())
}

#[tokio::test]
async fn a_node_in_the_gap_of_a_foreign_cycle_is_caught_when_it_comes_up() -> Result<()> {
    let machine = Machine::new().await?;
    let scene = machine.scene("").await?;
    let gap = Duration::from_secs(8);
    machine.bmc.happen(Act::ForeignCycle { machine: Machine::machine(), off_for: gap });
    let fenced = scene.fence().await?;
    fenced.tell("in the gap of a foreign power cycle");
    fenced.is_fenced();
    let edges = machine.edges();
    let [.., fell, rose, caught] = &edges[..] else { panic!("{edges:?}") };
    assert!(!fell.on && rose.on && !caught.on, "it fell, came up, and was caught: {edges:?}");
    assert_eq!((rose.at.since(fell.at), caught.by.as_str()), (gap, DEVICE), "{edges:?}");
    scene.released_while_off(1);
    scene.never_on_again(&machine).await
}

impl Scene {
    /// It stays off for a while longer.
    async fn never_on_again(&self, machine: &Machine) -> Result<()> {
        tokio::time::sleep(crate::bmc::scene::LISTEN).await;
        assert!(!machine.bmc.is_on());
        Ok(())
    }
}

/// Fences, and does that where the daemon stops.
async fn meddled_at(point: &str, plan: Plan, meddle: impl FnOnce()) -> Result<(Scene, Told)> {
    let scene = plan.pausing(point).start().await?;
    let (told, ()) = tokio::try_join!(scene.fence(), async {
        scene.until_paused().await?;
        meddle();
        scene.go_on()
    })?;
    told.tell(&format!("at {point:?}"));
    Ok((scene, told))
}

/// Fences, and restarts the BMC where the daemon stops.
async fn restarted_at(point: &str, estranged: bool) -> Result<(Machine, Scene, Told)> {
    let machine = Machine::new().await?;
    let plan = Plan::over(machine.truth(), &[("bmc", machine.redfish())]);
    let restart = || machine.bmc.restart(Duration::from_secs(1), estranged);
    let (scene, told) = meddled_at(point, plan, restart).await?;
    Ok((machine, scene, told))
}

async fn never_confirmed(point: &str) -> Result<()> {
    let (machine, scene, left) = restarted_at(point, true).await?;
    left.needs_operator(Reason::BmcRestarted);
    assert!(machine.bmc.is_on(), "it says off, and its machine lives");
    scene.never_released().await;
    scene.retry().await?.needs_operator(Reason::BmcRestarted);
    scene.never_released().await;
    Ok(())
}

#[tokio::test]
async fn a_lying_bmc_that_restarts_before_the_hold_is_never_believed() -> Result<()> {
    never_confirmed("sending hold").await
}

#[tokio::test]
async fn a_lying_bmc_that_restarts_before_the_off_is_never_believed() -> Result<()> {
    never_confirmed("sending off").await
}

#[tokio::test]
async fn a_restarted_bmc_that_says_on_and_falls_is_believed() -> Result<()> {
    let (machine, scene, fenced) = restarted_at("sending off", false).await?;
    fenced.is_fenced();
    assert!(!machine.bmc.is_on());
    scene.released_while_off(1);
    Ok(())
}

#[tokio::test]
async fn a_bmc_of_another_machine_gets_neither_hold_nor_off() -> Result<()> {
    let machine = Machine::new().await?;
    let scene = machine.scene("").await?;
    let another = Identity { uuid: Some("8d3f2f1e64a14c2e9d430f5a0a2b6c41".to_owned()), serial: None };
    machine.fault(Fault::SaysIdentity(another));
    let left = scene.fence().await?;
    left.tell("another machine's BMC");
    left.needs_operator(Reason::IdentityMismatch);
    assert_eq!(machine.commands(), 0);
    assert_ne!(machine.bmc.world().hold("n1").restore, RestorePolicy::AlwaysOff);
    scene.never_released().await;
    Ok(())
}

#[tokio::test]
async fn busy_lossy_and_with_another_certificate_of_the_same_authority_it_is_fenced() -> Result<()> {
    let machine = Machine::new().await?;
    let scene = machine.scene("").await?;
    machine.fault(Fault::Busy { times: 3 });
    machine.fault(Fault::Loss { percent: 10 });
    machine.bmc.change_certificate();
    machine.bmc.lose_sessions();
    assert_eq!(machine.bmc.handshakes(), 0, "nobody has seen it yet");
    let fenced = scene.fence().await?;
    fenced.tell("503, loss, another certificate, sessions lost");
    fenced.is_fenced();
    assert!(machine.bmc.handshakes() > 0, "and the daemon has");
    scene.released_while_off(1);
    Ok(())
}

#[tokio::test]
async fn without_a_session_left_it_goes_by_name_and_password_where_the_settings_say_so() -> Result<()> {
    let machine = Machine::new().await?;
    machine.fault(Fault::SessionsFull);
    let device = machine.redfish().with("authentication = \"session_or_basic\"\nmax_life = \"5s\"");
    let scene = Plan::over(machine.truth(), &[("bmc", device)]).start().await?;
    scene.fence().await?.is_fenced();
    scene.released_while_off(1);
    machine.mend();
    scene.unfence().await?.is_back();
    Ok(())
}

#[tokio::test]
async fn without_a_session_left_nothing_is_sent_where_they_do_not() -> Result<()> {
    let machine = Machine::new().await?;
    machine.fault(Fault::SessionsFull);
    let scene = machine.scene(SHORT_SHARE).await?;
    let left = scene.fence().await?;
    left.needs_operator(Reason::LevelsSpent);
    assert!(left.outcome().detail.contains("session"), "{}", left.outcome().detail);
    assert!(machine.bmc.is_on());
    scene.never_released().await;
    Ok(())
}

#[tokio::test]
async fn whoever_switches_it_on_has_it_fenced_again() -> Result<()> {
    let machine = Machine::new().await?;
    let scene = machine.scene("[rules]\nwatch = \"1s\"").await?;
    scene.fence().await?.is_fenced();
    machine.bmc.happen(Act::PressButton { machine: Machine::machine() });
    scene
        .until("it is fenced again", SOON, |node| node.breaches == 1 && node.phase() == Phase::Released)
        .await?;
    assert!(!machine.bmc.is_on());
    let causes: Vec<FenceCause> = scene.fences().await?.iter().map(|fence| fence.cause()).collect();
    assert_eq!(causes, [FenceCause::Breach, FenceCause::Asked]);
    scene.released_while_off(2);
    Ok(())
}

#[tokio::test]
async fn after_a_loss_of_the_mains_a_held_machine_stays_off_and_another_is_fenced_again() -> Result<()> {
    for is_held in [true, false] {
        let machine = Machine::new().await?;
        machine.bmc.world().set_restore("n1", RestorePolicy::AlwaysOn);
        if !is_held {
            machine.fault(Fault::HoldUnsupported);
        }
        let scene = machine.scene("[rules]\nwatch = \"1s\"").await?;
        scene.fence().await?.is_fenced();
        machine.bmc.happen(Act::LoseMains { machine: Machine::machine() });
        // Its power supply holds up for a second.
        let silent = || machine.bmc.world().is_silent(DEVICE, machine.bmc.now());
        eventually("without power it is silent", SOON, silent).await?;
        machine.bmc.happen(Act::RestoreMains { machine: Machine::machine() });
        if is_held {
            scene.never_on_again(&machine).await?;
            assert_eq!(scene.node().await?.breaches, 0);
        } else {
            let again = |node: &picket_proto::v1::Node| node.breaches == 1 && node.phase() == Phase::Released;
            scene.until("it is fenced again", SOON, again).await?;
        }
        assert!(!machine.bmc.is_on());
    }
    Ok(())
}

#[tokio::test]
async fn an_on_that_is_dropped_is_tried_again_and_then_left_to_a_person() -> Result<()> {
    let machine = Machine::new().await?;
    let scene = machine.scene("[rules]\non_deadline = \"5s\"").await?;
    scene.fence().await?.is_fenced();
    machine.fault(Fault::OnDropped { times: 100 });
    let failed = scene.unfence().await?;
    assert_eq!(failed.outcome().kind(), OutcomeKind::PowerOnFailed);
    assert!(!machine.bmc.is_on());
    machine.mend();
    let generation = scene.node().await?.generation;
    scene.retry().await?.is_back();
    assert_eq!(scene.node().await?.generation, generation, "under the same generation");
    assert!(machine.bmc.is_on());
    scene.released_while_off(1);
    Ok(())
}
