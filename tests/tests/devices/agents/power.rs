//! `fence_ipmilan` before `ipmi_sim`.

use picket_tests::peers::{IpmiSim, Ipmitool, PASSWORD, PowerWord};
use picket_tests::{Gateway, Result, Webhook};

use crate::agents::scene::{fence_ipmilan, fleet, said_to};

#[tokio::test]
async fn a_node_is_fenced_released_and_brought_back_by_fence_ipmilan() -> Result<()> {
    let (bmc, webhook) = (IpmiSim::start().await?, Webhook::start().await?);
    let gateway = Gateway::start(&fleet(&fence_ipmilan(bmc.address()), &webhook)).await?;
    gateway.checked().await?;
    // An agent knows no holds, and does not say whose machine it is: it could be used, and not as well as it might.
    let nodes = gateway.picket(&["nodes"]).await?;
    assert!(nodes.out.contains("1/1 degraded"), "{nodes:?}\n{}", gateway.log());
    let check = gateway.picket(&["check", "n1"]).await?;
    assert!(
        check.out.contains("fence_ipmilan puts what it is told as password into the arguments"),
        "{check:?}"
    );
    let fenced = said_to(&gateway, "fence").await?;
    assert_eq!((fenced.code, bmc.is_on()?), (0, false), "{fenced:?}\n{}", gateway.log());
    assert_eq!(webhook.releases().len(), 1, "{fenced:?}");
    assert_eq!(Ipmitool::new(bmc.address()).power().await?, PowerWord::Off);
    // Every run ended well: nothing is left open, and the on waits for nobody.
    let back = said_to(&gateway, "unfence").await?;
    assert_eq!((back.code, bmc.is_on()?), (0, true), "{back:?}\n{}", gateway.log());
    assert!(!gateway.log().contains(PASSWORD), "{}", gateway.log());
    Ok(())
}

#[tokio::test]
async fn a_bmc_that_is_not_there_is_told_and_nothing_is_released() -> Result<()> {
    let (bmc, webhook) = (IpmiSim::start().await?, Webhook::start().await?);
    let address = bmc.address();
    drop(bmc);
    let node = fence_ipmilan(address).replace("longest_cycle", "call = \"10s\"\nlongest_cycle");
    let gateway = Gateway::start(&fleet(
        &format!("[rules]\nsilent_share = \"1s\"\nlevel_share = \"25s\"\nfence_deadline = \"27s\"\n{node}"),
        &webhook,
    ))
    .await?;
    gateway.checked().await?;
    let status = gateway.picket(&["status", "n1"]).await?;
    assert!(status.out.contains("fence_ipmilan") && !status.out.contains(PASSWORD), "{status:?}");
    let fenced = said_to(&gateway, "fence").await?;
    let said = format!("{fenced:?}\n{}", gateway.log());
    assert!(fenced.code != 0 && fenced.out.contains("needs an operator (levels spent)"), "{said}");
    assert!(!gateway.log().contains("the node is confirmed off") && !said.contains(PASSWORD), "{said}");
    assert!(webhook.releases().is_empty(), "{said}");
    Ok(())
}
