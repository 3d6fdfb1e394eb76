//! A BMC that is silent over Redfish: its outlet is cut where there is one, and else a person may say what they saw.

use std::sync::Arc;

use picket_driver_sim::{Act, Fault};
use picket_proto::v1::{Grade, Node, Phase, Power, Reason};
use picket_tests::peers::Pdu;
use picket_tests::{Daemon, Fleet, Gateway, Result, Webhook};

use super::machine::Machine;
use super::{SHORT_SHARE, SOON};

/// Who may attest.
const WITNESS: &str = "[roles.people]\nrole = \"admin\"\ncallers = [\"uid:*\"]\n\
                       [roles.witness]\nrole = \"attest\"\ncallers = [\"uid:*\"]";

#[tokio::test]
async fn where_no_next_level_is_a_person_attests_once_the_plug_is_pulled() -> Result<()> {
    let machine = Machine::new().await?;
    machine.fault(Fault::OffIgnored);
    let scene = machine.scene(&format!("{SHORT_SHARE}\n{WITNESS}")).await?;
    scene.fence().await?.needs_operator(Reason::LevelsSpent);
    let attest = ["attest", "n1", "--yes", "--reason", "I pulled the plug"];
    let refused = scene.gateway.picket(&attest).await?;
    assert_eq!(refused.code, 8, "it says that it is on: {refused:?}");
    assert!(format!("{refused:?}").contains("bmc says that the node is on"), "{refused:?}");
    scene.never_released().await;

    machine.fault(Fault::Silent);
    machine.bmc.happen(Act::LoseMains { machine: Machine::machine() });
    let unread = |node: &Node| node.power.is_none_or(|power| power.power() == Power::Unknown);
    scene.until("the silence is seen", SOON, unread).await?;
    let attested = scene.gateway.picket(&attest).await?;
    assert_eq!(attested.code, 0, "{attested:?}\n{}", scene.gateway.log());
    scene.until("it is let go", SOON, |node| node.phase() == Phase::Released).await?;
    let fence = scene.fences().await?.remove(0);
    assert_eq!(fence.evidence.unwrap_or_default().grade(), Grade::Attested);
    scene.released_while_off(1);
    Ok(())
}

#[tokio::test]
async fn its_outlet_is_cut_where_there_is_one() -> Result<()> {
    let (machine, pdu) = (Machine::new().await?, Arc::new(Pdu::start(8).await?));
    machine.fault(Fault::Silent);
    // What the outlet feeds is on as long as both are.
    let truth = {
        let (own, pdu) = (machine.truth(), pdu.clone());
        Arc::new(move || own() && pdu.is_on(7))
    };
    let webhook = Webhook::with_witness(truth).await?;
    let settings = format!(
        "[rules]\nsilent_share = \"1s\"\n[nodes.n1]\nlevels = [[\"bmc\"], [\"outlet\"]]\nreleases = [\"detach\"]\n{}{}",
        machine.redfish().device("n1", "bmc"),
        pdu.device("n1", "outlet", 7, "verified = true"),
    );
    let fleet = Fleet::new().with(&settings).webhook("detach", &webhook.url(), "settle = \"0s\"");
    let mut gateway = Gateway::of(Daemon::Shipped, &fleet)?;
    gateway.begin(&[("SNMPCONFPATH", &pdu.secrets().display().to_string())]).await?;
    gateway.checked().await?;
    let fenced = gateway.picket(&["fence", "n1", "--yes", "--reason", "a test"]).await?;
    assert_eq!(fenced.code, 0, "{fenced:?}\n{}", gateway.log());
    let off: Vec<u32> = (1..=8).filter(|outlet| !pdu.is_on(*outlet)).collect();
    assert_eq!((off, machine.commands()), (vec![7], 0), "its outlet and no other; its BMC took nothing");
    let on: Vec<Option<bool>> = webhook.releases().iter().map(|hook| hook.on).collect();
    assert_eq!(on, [Some(false)]);
    Ok(())
}
