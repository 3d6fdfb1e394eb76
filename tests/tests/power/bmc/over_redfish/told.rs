//! Boards of which one protocol says too little: the line that an operator reads has the board's own words, a check tells by its exit
//! code as well that a fence would not end, and the other protocol holds what this one cannot.

use picket_driver_sim::{Fault, RestorePolicy};
use picket_proto::v1::Reason;
use picket_tests::{Bmc, Result};

use super::machine::Machine;
use super::{DEVICE, SHORT_SHARE};
use crate::bmc::scene::Plan;

/// The world's name for the BMC's IPMI.
const IPMI: &str = "n1";

fn device(machine: &Machine, world: &str) -> Bmc {
    if world == IPMI { machine.ipmi() } else { machine.redfish() }
}

#[tokio::test]
async fn the_last_line_of_a_fence_has_the_board_s_own_words() -> Result<()> {
    let over_redfish = |fault, words| (DEVICE, fault, words);
    let over_ipmi = |fault, words| (IPMI, fault, words);
    for (world, fault, words) in [
        over_redfish(Fault::SaysNothing, "PowerState null"),
        over_redfish(Fault::OffRefused, "ForceOff: HTTP 500 (The request failed.)"),
        over_redfish(Fault::NamesNoSystem, "names no computer system"),
        over_ipmi(Fault::RakpRefused, "status 0x12, illegal or unrecognized parameter"),
        over_ipmi(Fault::OffRefused, "completion code 0xFF"),
        over_ipmi(Fault::SaysNonsense, "chassis status of 2 bytes"),
    ] {
        let machine = Machine::new().await?;
        machine.bmc.world().fault(world, fault.clone());
        let device = device(&machine, world);
        let scene = Plan::over(machine.truth(), &[("bmc", device)]).with(SHORT_SHARE).start().await?;
        let told = scene.fence().await?;
        told.needs_operator(Reason::LevelsSpent);
        let line = &told.outcome().detail;
        assert!(line.contains(words), "{fault:?}: no {words:?} in {line:?}");
        scene.never_released().await;
    }
    Ok(())
}

#[tokio::test]
async fn a_board_whose_power_cannot_be_read_is_not_ready_by_its_exit_code_too() -> Result<()> {
    for world in [DEVICE, IPMI] {
        let machine = Machine::new().await?;
        let device = device(&machine, world);
        let scene = Plan::over(machine.truth(), &[("bmc", device)]).start().await?;
        let right = scene.gateway.picket(&["check", "n1"]).await?;
        assert_eq!(right.code, 0, "{right:?}");
        machine.bmc.world().fault(world, Fault::SaysNonsense);
        let checked = scene.gateway.picket(&["check", "n1"]).await?;
        assert_eq!(checked.code, 1, "{checked:?}");
        let words = "neither on nor off: as long as that is so, no Off of it can be read";
        assert!(checked.out.contains(words), "{checked:?}");
    }
    Ok(())
}

/// It took our off, and refuses its repetition with a completion code of no reason.
#[tokio::test]
async fn over_ipmi_one_that_refuses_the_repeat_without_a_reason_is_off() -> Result<()> {
    let machine = Machine::new().await?;
    machine.bmc.world().fault(IPMI, Fault::AlreadyIsRefused);
    let scene = Plan::over(machine.truth(), &[("bmc", machine.ipmi())]).start().await?;
    scene.fence().await?.is_fenced();
    assert!(!machine.bmc.is_on());
    scene.released_while_off(1);
    Ok(())
}

/// Over Redfish its restore policy is a setting that waits for a restart of the host: the IPMI side of the same board holds it.
#[tokio::test]
async fn what_its_redfish_cannot_hold_its_ipmi_holds() -> Result<()> {
    let machine = Machine::new().await?;
    machine.fault(Fault::HoldsAsIdrac);
    let devices = [("bmc", machine.redfish()), ("ipmi", machine.ipmi())];
    let scene = Plan::over(machine.truth(), &devices).start().await?;
    let before = machine.bmc.world().hold("n1");
    let fenced = scene.fence().await?;
    let devices = &fenced.is_fenced().evidence().devices;
    let held: Vec<&str> = devices.iter().flat_map(|device| &device.hold).map(String::as_str).collect();
    assert!(held.contains(&"restore policy always-off"), "{devices:?}");
    assert_eq!(machine.bmc.world().hold("n1").restore, RestorePolicy::AlwaysOff);
    scene.unfence().await?.is_back();
    assert_eq!(machine.bmc.world().hold("n1").restore, before.restore, "as it was found");
    Ok(())
}
