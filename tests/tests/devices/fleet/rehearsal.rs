//! `picket-fleet`'s settings as a whole: what they say there is, is there, and what they say happens, happens.

use crate::fleet::scene::{Result, clock, eventually};
use picket_fleet::{Fleet, Settings};
use picket_tests::peers::{Ipmitool, PowerWord, fresh_address};

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_from_settings_answers_and_its_events_happen() -> Result<()> {
    let address = fresh_address();
    let text = format!(
        "[accounts.admin]\npassword = \"secret12\"\nrole = \"administrator\"\n[groups.r]\ncount = 1\n\
         ipmi = \"{address}\"\nfaults = [\"off_ignored\"]\n[[events]]\nat = \"1s\"\nnodes = \"all\"\nwhat = \"mend\"\n"
    );
    let settings = Settings::parse(&text).expect("they are right");
    let fleet = Fleet::start(&settings.bmcs, &clock()).await.expect("a free address");
    let bmc = fleet.bmc("r-1").expect("it is there");
    for (name, fault) in &settings.faults {
        fleet.bmc(name).expect("it is there").fault(fault.clone());
    }
    let tool = Ipmitool::new(address).suite(17);
    tool.run("chassis power off").await?;
    assert!(bmc.is_on(), "the off was ignored");
    settings.events[0].what.happen_to(bmc);
    eventually("an off is obeyed", async || {
        tool.run("chassis power off").await.is_ok() && matches!(tool.power().await, Ok(PowerWord::Off))
    })
    .await;
    assert!(!bmc.is_on());
    Ok(())
}
