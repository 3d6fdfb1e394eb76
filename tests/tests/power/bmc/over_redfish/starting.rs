//! A service that takes no off for a while, as one that starts: the node gets its off as soon as it would take it.

use std::time::Duration;

use picket_driver_sim::Fault;
use picket_tests::Result;

use super::machine::Machine;
use crate::bmc::scene::Plan;

/// The world's name for the BMC's IPMI.
const IPMI: &str = "n1";

/// Longer than a level that does not answer has.
const AWAY: Duration = Duration::from_secs(30);
/// From its return to the proof; a loaded machine needs more than the ten seconds that are promised.
const SOON: Duration = Duration::from_secs(45);

async fn is_fenced_once_it_is_back(fault: Fault) -> Result<()> {
    let machine = Machine::new().await?;
    // What was learned of a service serves as long as its session: this one was never logged in to.
    machine.fault(fault.clone());
    let scene = machine.scene("").await?;
    let (fenced, ()) = tokio::try_join!(scene.fence(), async {
        tokio::time::sleep(AWAY).await;
        assert!(machine.bmc.is_on(), "{fault:?}: it took no off");
        machine.mend();
        Ok(())
    })?;
    fenced.tell("back again");
    fenced.is_fenced();
    assert!(fenced.took < AWAY + SOON, "{fault:?}: {:?}", fenced.took);
    scene.released_while_off(1);
    Ok(())
}

#[tokio::test]
async fn one_that_is_starting_is_waited_for() -> Result<()> {
    is_fenced_once_it_is_back(Fault::Starting).await
}

/// The same board over IPMI: it says that it is busy, or says nothing.
#[tokio::test]
async fn over_ipmi_one_that_is_starting_is_waited_for() -> Result<()> {
    for fault in [Fault::Starting, Fault::Silent] {
        let machine = Machine::new().await?;
        machine.bmc.world().fault(IPMI, fault.clone());
        let scene = Plan::over(machine.truth(), &[("bmc", machine.ipmi())]).start().await?;
        let (fenced, ()) = tokio::try_join!(scene.fence(), async {
            tokio::time::sleep(AWAY).await;
            assert!(machine.bmc.is_on(), "{fault:?}: it took no off");
            machine.bmc.world().mend(IPMI);
            Ok(())
        })?;
        fenced.is_fenced();
        assert!(fenced.took < AWAY + SOON, "{fault:?}: {:?}", fenced.took);
        scene.released_while_off(1);
    }
    Ok(())
}

#[tokio::test]
async fn one_that_names_no_system_yet_is_waited_for() -> Result<()> {
    is_fenced_once_it_is_back(Fault::NamesNoSystem).await
}

#[tokio::test]
async fn one_whose_answers_are_cut_is_waited_for() -> Result<()> {
    is_fenced_once_it_is_back(Fault::CutsAnswers).await
}

#[tokio::test]
async fn one_that_redirects_is_fenced_all_the_same() -> Result<()> {
    let machine = Machine::new().await?;
    machine.fault(Fault::Redirects);
    let scene = machine.scene("").await?;
    scene.fence().await?.is_fenced();
    scene.released_while_off(1);
    Ok(())
}
