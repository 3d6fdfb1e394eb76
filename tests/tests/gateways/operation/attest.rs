//! A person's word on a node behind a real BMC: refused while that says on, and the only way left where it says nothing.

use std::time::Duration;

use picket_proto::v1::{FenceRequest, NodeSelector, node_selector};
use picket_tests::peers::Knob;
use picket_tests::{Gateway, PeerError, Result};
use tokio::time::{Instant, sleep};

use crate::operation::{SOON, one_node};

pub const PEOPLE: &str = r#"
[roles.people]
role = "admin"
callers = ["uid:*"]
[roles.witness]
role = "attest"
callers = ["uid:*"]
"#;

/// Asks for the fence of `n1`, and leaves: it goes on.
async fn begin(gateway: &Gateway) -> Result<()> {
    let by = Some(node_selector::By::Name("n1".to_owned()));
    let request = FenceRequest {
        node: Some(NodeSelector { by }),
        reason: "a test".to_owned(),
        ..FenceRequest::default()
    };
    let mut updates =
        gateway.client().await?.fence(request).await.map_err(PeerError::call("Fence"))?.into_inner();
    updates.message().await.map_err(PeerError::call("Fence"))?;
    Ok(())
}

async fn until_status(gateway: &Gateway, words: &str) -> Result<()> {
    let deadline = Instant::now() + SOON;
    loop {
        let said = gateway.picket(&["status", "n1"]).await?;
        if said.out.contains(words) {
            return Ok(());
        }
        assert!(Instant::now() < deadline, "{words:?} not in {said:?}\n{}", gateway.log());
        sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn a_word_is_refused_while_the_bmc_says_on_and_the_way_out_once_it_is_silent() -> Result<()> {
    let (mut bmc, webhook, fleet) = one_node().await?;
    // The off is acknowledged, and nothing happens.
    bmc.set(Knob::IgnoreOff)?;
    let gateway = Gateway::start(&fleet.with(PEOPLE)).await?;
    gateway.checked().await?;
    begin(&gateway).await?;
    until_status(&gateway, "fencing").await?;

    let attest = ["attest", "n1", "--yes", "--reason", "I pulled the plug"];
    let said = gateway.picket(&attest).await?;
    let text = format!("{}{}", said.out, said.err);
    assert_eq!(said.code, 8, "{said:?}");
    for words in ["bmc says that the node is on", "pull its plug", "until no device says on"] {
        assert!(text.contains(words), "{words:?} not in {text}");
    }
    assert!(webhook.releases().is_empty() && bmc.is_on()?);
    until_status(&gateway, "fencing").await?;

    // Somebody pulls the plug of everything: the BMC does not answer either.
    bmc.press(false)?;
    bmc.process().kill();
    for other in [
        &["unfence", "n1", "--yes", "--reason", "a test"][..],
        &["retry", "n1", "--yes", "--reason", "a test"],
        &["stand-down", "n1", "--yes", "--reason", "a test"],
        &["retire", "n1", "--yes", "--reason", "a test"],
        &["abandon", "n1", "detach", "--yes", "--reason", "a test"],
    ] {
        let refused = gateway.picket(other).await?;
        assert_eq!(refused.code, 8, "{other:?}: {refused:?}");
    }
    let vouched = gateway.picket(&attest).await?;
    assert_eq!(vouched.code, 0, "{vouched:?}\n{}", gateway.log());
    assert_eq!(webhook.releases().len(), 1, "volumes are let go on that word");
    let status = gateway.picket(&["status", "n1"]).await?;
    assert!(status.out.contains("released"), "{status:?}");
    let fence = status.out.split_whitespace().skip_while(|word| *word != "fence").nth(1).expect("its fence");
    let told = gateway.picket(&["history", "--fence", fence.trim_end_matches(',')]).await?;
    assert!(told.out.contains("attested by uid:0: I pulled the plug"), "{told:?}");
    Ok(())
}
