//! A node that left the settings while the gateway was down, and while it was fenced.

use picket_tests::peers::IpmiSim;
use picket_tests::{Gateway, Result};

use crate::operation::{device, does, http, one_node, reload, with_metrics};

#[tokio::test]
async fn it_is_shown_and_left_alone_and_pages_until_its_settings_are_back() -> Result<()> {
    let (bmc, webhook, fleet) = one_node().await?;
    let other = IpmiSim::builder().holds().start().await?;
    let (fleet, address) = with_metrics(fleet);
    let fleet = fleet.node("n2", &device(&other), &["detach"]);
    let mut gateway = Gateway::start(&fleet).await?;
    does(&gateway, "fence", "n1").await;
    assert!(gateway.stop().await?.success());
    let whole = std::fs::read_to_string(gateway.settings_file()).expect("it is there");
    let (head, tail) = whole.split_once("[nodes.\"n1\"]").expect("its table");
    let after = tail.split_once("[releases").expect("the next table").1;
    std::fs::write(gateway.settings_file(), format!("{head}[releases{after}")).expect("written");
    gateway.begin(&[]).await?;
    assert!(gateway.log().contains("ORPHANED"), "{}", gateway.log());
    let status = gateway.picket(&["status", "n1"]).await?;
    assert!(status.out.contains("released, ORPHANED since"), "{status:?}");
    let device = format!("device bmc     ipmi at {}, host, level 1: not asked any more", bmc.address());
    assert!(status.out.contains(&device), "{status:?}");
    assert!(status.out.contains("release        detach: complete"), "{status:?}");
    assert!(status.out.contains("not in the settings any more"), "{status:?}");
    let (_, metrics) = http(address, "GET", "/metrics").await;
    assert!(metrics.contains("picket_nodes_orphaned 1"), "{metrics}");
    assert!(metrics.contains("picket_node_trouble{node=\"n1\",trouble=\"orphaned\"} 1"), "{metrics}");
    assert!(metrics.contains("picket_holds 1"), "{metrics}");
    for verb in ["fence", "unfence"] {
        let said = gateway.picket(&[verb, "n1", "--yes", "--reason", "a test"]).await?;
        assert!(said.code != 0 && format!("{}{}", said.out, said.err).contains("settings"), "{said:?}");
    }
    for words in [vec!["check", "n1"], vec!["drill", "n1", "--yes", "--reason", "a test"]] {
        let said = gateway.picket(&words).await?;
        assert!(
            said.code != 0 && format!("{}{}", said.out, said.err).contains("ORPHANED: the node is not in"),
            "{said:?}"
        );
    }
    assert!(!bmc.is_on()?, "nothing is sent to it");
    std::fs::write(gateway.settings_file(), whole).expect("written");
    let said = reload(&mut gateway).await;
    assert!(said.contains("nodes changed: n1") || said.contains("nodes added: n1"), "{said}");
    does(&gateway, "unfence", "n1").await;
    assert!(bmc.is_on()? && webhook.releases().len() == 1);
    let (_, metrics) = http(address, "GET", "/metrics").await;
    assert!(metrics.contains("picket_nodes_orphaned 0"), "{metrics}");
    Ok(())
}

#[tokio::test]
async fn retired_it_is_an_orphan_no_more() -> Result<()> {
    let (_bmc, _webhook, fleet) = one_node().await?;
    let other = IpmiSim::builder().holds().start().await?;
    let fleet = fleet.node("n2", &device(&other), &["detach"]);
    let mut gateway = Gateway::start(&fleet).await?;
    does(&gateway, "fence", "n1").await;
    assert!(gateway.stop().await?.success());
    let whole = std::fs::read_to_string(gateway.settings_file()).expect("it is there");
    let (head, tail) = whole.split_once("[nodes.\"n1\"]").expect("its table");
    let after = tail.split_once("[releases").expect("the next table").1;
    std::fs::write(gateway.settings_file(), format!("{head}[releases{after}")).expect("written");
    gateway.begin(&[]).await?;
    let said = gateway.picket(&["retire", "n1", "--yes", "--reason", "burnt"]).await?;
    assert_eq!((said.code, said.out.as_str()), (0, "n1  retired\n"), "{said:?}");
    Ok(())
}
