//! Levels with outlets by an agent that do not come to a proof: what follows is the next level, or a person, and never a release.

use std::time::Duration;

use picket_tests::peers::{IpmiSim, Pdu, eventually, fresh_address};
use picket_tests::{Result, Webhook};

use crate::agents::pdu::{by_ipmi, started};
use crate::agents::scene::said_to;

/// A level's share: the long window of an agent's, and room for its runs, each of which takes seconds on a machine that is busy with other tests.
const RULES: &str = "[rules]\nsilent_share = \"1s\"\nlevel_share = \"75s\"\nfence_deadline = \"120s\"\n";

/// One of two supplies off is not off: the machine goes on by the other one.
#[tokio::test]
async fn one_of_two_outlets_off_is_not_off() -> Result<()> {
    let (pdu, webhook, silent) = (Pdu::start(8).await?, Webhook::start().await?, fresh_address());
    pdu.stick(6, true)?;
    let nodes = format!(
        "{RULES}[nodes.n1]\nlevels = [[\"bmc\"], [\"a\", \"b\"]]\nreleases = [\"detach\"]\n{}{}{}",
        by_ipmi("n1", silent),
        pdu.device("n1", "a", 7, "verified = true"),
        pdu.device("n1", "b", 6, "verified = true"),
    );
    let gateway = started(&pdu, &nodes, &webhook).await?;
    let fenced = said_to(&gateway, "fence").await?;
    let said = format!("{fenced:?}\n{}", gateway.log());
    assert!(fenced.code != 0 && fenced.out.contains("needs an operator (levels spent)"), "{said}");
    assert_eq!((pdu.is_on(7), pdu.is_on(6)), (false, true), "{said}");
    assert!(!gateway.log().contains("the node is confirmed off"), "{said}");
    assert!(webhook.releases().is_empty(), "{said}");
    // Its relay is mended: a person asks again, and now both fall.
    pdu.stick(6, false)?;
    let again = said_to(&gateway, "retry").await?;
    assert_eq!((again.code, pdu.is_on(7), pdu.is_on(6)), (0, false, false), "{again:?}\n{}", gateway.log());
    assert_eq!(webhook.releases().len(), 1, "{again:?}");
    Ok(())
}

#[tokio::test]
async fn where_an_outlet_is_not_switched_the_next_level_is_tried() -> Result<()> {
    let (pdu, webhook, bmc) = (Pdu::start(8).await?, Webhook::start().await?, IpmiSim::start().await?);
    pdu.stick(7, true)?;
    let nodes = format!(
        "{RULES}[nodes.n1]\nlevels = [[\"outlet\"], [\"bmc\"]]\nreleases = [\"detach\"]\n{}{}",
        by_ipmi("n1", bmc.address()),
        pdu.device("n1", "outlet", 7, "verified = true"),
    );
    let gateway = started(&pdu, &nodes, &webhook).await?;
    let fenced = said_to(&gateway, "fence").await?;
    let said = format!("{fenced:?}\n{}", gateway.log());
    assert_eq!((fenced.code, bmc.is_on()?, pdu.is_on(7)), (0, false, true), "{said}");
    assert_eq!(webhook.releases().len(), 1, "{said}");
    Ok(())
}

/// An outlet whose wiring nobody verified proves less than a BMC: where more is asked for, that one is asked next.
#[tokio::test]
async fn where_an_outlet_proves_too_little_the_next_level_is_tried() -> Result<()> {
    let (pdu, webhook) = (Pdu::start(8).await?, Webhook::start().await?);
    let bmc = IpmiSim::start().await?;
    let nodes = format!(
        "{RULES}[nodes.n1]\nlevels = [[\"outlet\"], [\"bmc\"]]\nreleases = [\"detach\"]\n{}{}",
        by_ipmi("n1", bmc.address()),
        pdu.device("n1", "outlet", 7, ""),
    );
    let gateway = started(&pdu, &nodes, &webhook).await?;
    let least = ["fence", "n1", "--yes", "--reason", "a test", "--minimum-grade", "learned"];
    // With its outlet goes the machine; its BMC has power from elsewhere.
    let falls = async {
        eventually("the outlet falls", Duration::from_secs(60), || !pdu.is_on(7)).await?;
        bmc.press(false)
    };
    let (fenced, ()) = tokio::try_join!(gateway.picket(&least), falls)?;
    let said = format!("{fenced:?}\n{}", gateway.log());
    assert_eq!((fenced.code, bmc.is_on()?), (0, false), "{said}");
    assert!(gateway.log().contains("less than was asked for"), "{said}");
    assert!(bmc.commands().iter().any(|command| command.what == "off"), "{said}");
    assert_eq!(webhook.releases().len(), 1, "{said}");
    Ok(())
}
