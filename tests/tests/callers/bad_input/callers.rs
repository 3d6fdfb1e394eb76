//! What callers ask wrongly.

use picket_proto::v1::{FenceRequest, NodeSelector, node_selector};
use picket_tests::peers::IpmiSim;
use picket_tests::{Bmc, Fleet, Gateway, Result};
use tonic::Code;

/// A gateway over n1 to n12, of which n1 alone has a BMC that is there.
async fn gateway() -> Result<(IpmiSim, Gateway)> {
    let bmc = IpmiSim::start().await?;
    let mut fleet = Fleet::new().node("n1", &Bmc::at(bmc.address()), &[]);
    for number in 2..=12 {
        let nobody = std::net::SocketAddr::from(([127, 0, 0, number], 9));
        fleet = fleet.node(&format!("n{number}"), &Bmc::at(nobody), &[]);
    }
    let gateway = Gateway::start(&fleet).await?;
    Ok((bmc, gateway))
}

#[tokio::test]
async fn an_unknown_node_is_told_with_names_like_it() -> Result<()> {
    let (bmc, gateway) = gateway().await?;
    for arguments in [
        &["fence", "n13", "--yes", "--reason", "a test"][..],
        &["status", "n13"],
        &["unfence", "n13", "--yes", "--reason", "x"],
    ] {
        let said = gateway.picket(arguments).await?;
        assert_eq!(said.code, 6, "{said:?}");
        let text = said.out + &said.err;
        assert!(
            text.contains("there is no node \"n13\"; did you mean n1, n10, n11?"),
            "{arguments:?}: {text}"
        );
    }
    assert!(bmc.is_on()?);
    Ok(())
}

#[tokio::test]
async fn a_host_list_that_does_not_parse_is_told_with_its_column() -> Result<()> {
    let (bmc, gateway) = gateway().await?;
    for (hosts, word) in [("n[1-", "column 5"), ("n[3-1]", "column 3"), ("n1,,n2", "column 4")] {
        let said = gateway.picket(&["fence", hosts, "--yes", "--reason", "a test"]).await?;
        assert!(said.code == 2 && said.err.contains(word), "{hosts}: {said:?}");
    }
    assert!(bmc.is_on()?);
    Ok(())
}

#[tokio::test]
async fn a_message_that_is_too_large_is_told_with_its_limit() -> Result<()> {
    let (bmc, gateway) = gateway().await?;
    let node = NodeSelector { by: Some(node_selector::By::Name("n1".to_owned())) };
    for (length, word) in [
        (1_025, "has 1025 bytes: at most 1024"),
        (70_000, "larger than 65536 bytes"),
        (5 << 20, "larger than"),
    ] {
        let request =
            FenceRequest { node: Some(node.clone()), reason: "x".repeat(length), ..FenceRequest::default() };
        let refused = gateway.client().await?.fence(request).await.expect_err("refused");
        assert_eq!(refused.code(), Code::InvalidArgument, "{length}: {refused}");
        assert!(refused.message().contains(word), "{length}: {refused}");
    }
    let said = gateway.picket(&["fence", "n1", "--yes", "--reason", &"x".repeat(70_000)]).await?;
    assert!(said.code == 2 && (said.out + &said.err).contains("larger than 65536 bytes"), "{}", said.code);
    assert!(bmc.is_on()?);
    let after = gateway.picket(&["nodes"]).await?;
    assert_eq!(after.code, 0, "it goes on: {after:?}");
    Ok(())
}
