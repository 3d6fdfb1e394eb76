//! BMCs that do not let us in, or that are not there.

use std::net::UdpSocket;

use picket_tests::peers::{IpmiSim, fresh_address};
use picket_tests::{Bmc, Fleet, Gateway, Result, Said, Webhook};

/// A gateway over one node with this device, which is given up soon; it was looked at once.
async fn gateway(bmc: &Bmc, webhook: &Webhook) -> Result<Gateway> {
    let fleet = Fleet::new()
        .with("[rules]\nsilent_share = \"1s\"\nfence_deadline = \"20s\"")
        .node("n1", bmc, &["detach"])
        .webhook("detach", &webhook.url(), "");
    let gateway = Gateway::start(&fleet).await?;
    gateway.checked().await?;
    Ok(gateway)
}

/// What is said of the node, and of a fence that comes to nothing.
async fn tried(gateway: &Gateway, webhook: &Webhook) -> Result<(Said, Said)> {
    let status = gateway.picket(&["status", "n1"]).await?;
    assert_eq!(status.code, 0, "{status:?}");
    let fence = gateway.picket(&["fence", "n1", "--yes", "--reason", "a test"]).await?;
    assert_eq!(fence.code, 4, "{fence:?}");
    assert!(webhook.releases().is_empty());
    Ok((status, fence))
}

fn has(said: &Said, words: &[&str]) {
    let text = said.out.clone() + &said.err;
    for word in words {
        assert!(text.contains(word), "no {word:?} in {text}");
    }
}

#[tokio::test]
async fn a_wrong_password_is_told_with_the_account_and_what_to_look_at() -> Result<()> {
    let (sim, webhook) = (IpmiSim::start().await?, Webhook::start().await?);
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "wr0ng-one").expect("it can be written");
    let fleet = format!(
        "[rules]\nsilent_share = \"1s\"\nfence_deadline = \"20s\"\n[nodes.n1]\nreleases = [\"detach\"]\n[nodes.n1.devices.bmc]\ndriver = \"ipmi\"\n\
         host = \"{}\"\nport = {}\nusername = \"operator\"\ncipher_suites = [3]\npassword_file = {:?}",
        sim.address().ip(),
        sim.address().port(),
        file.path()
    );
    let fleet = Fleet::new().with(&fleet).webhook("detach", &webhook.url(), "");
    let gateway = Gateway::start(&fleet).await?;
    gateway.checked().await?;
    let (status, fence) = tried(&gateway, &webhook).await?;
    let at = sim.address().to_string();
    has(&status, &["authentication", &at, "operator", "password"]);
    has(&fence, &["needs operator (levels spent): no answer for", "authentication", "password"]);
    for text in [status.out, fence.out, gateway.log()] {
        assert!(!text.contains("wr0ng-one"), "{text}");
    }
    assert!(sim.is_on()?);
    Ok(())
}

#[tokio::test]
async fn an_account_that_is_not_there_is_told() -> Result<()> {
    let (sim, webhook) = (IpmiSim::start().await?, Webhook::start().await?);
    let gateway = gateway(&Bmc::at(sim.address()).user("nobody"), &webhook).await?;
    let (status, _fence) = tried(&gateway, &webhook).await?;
    has(&status, &["authentication", "nobody"]);
    Ok(())
}

#[tokio::test]
async fn a_bmc_that_is_not_there_is_told_with_its_address() -> Result<()> {
    let webhook = Webhook::start().await?;
    let address = fresh_address();
    let gateway = gateway(&Bmc::at(address), &webhook).await?;
    let (status, fence) = tried(&gateway, &webhook).await?;
    has(&status, &["unreachable", &address.to_string(), "refused"]);
    has(&fence, &["levels spent", "no answer for"]);
    Ok(())
}

#[tokio::test]
async fn a_bmc_that_says_nothing_is_told_with_its_address() -> Result<()> {
    let webhook = Webhook::start().await?;
    let address = fresh_address();
    let _deaf = UdpSocket::bind(address).expect("an address of its own");
    let gateway = gateway(&Bmc::at(address), &webhook).await?;
    let (status, fence) = tried(&gateway, &webhook).await?;
    has(&status, &["timed out", &address.to_string()]);
    has(&fence, &["levels spent", "no answer for"]);
    Ok(())
}
