//! The daemon in operation: metrics and health, reload, orphans, its end, the service manager, and what is in deploy/.

mod attest;
mod backup;
mod completions;
mod deploy;
mod exits;
mod first_node;
mod metrics;
mod notify;
mod orphans;
mod pages;
mod quickstart;
mod reload;
mod simulated;
mod stop;
mod three_machines;

use std::net::SocketAddr;
use std::time::Duration;

use picket_tests::peers::{IpmiSim, eventually, fresh_address};
use picket_tests::{Bmc, Fleet, Gateway, Result, Webhook};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const SOON: Duration = Duration::from_secs(60);

/// A BMC, a receiver, and a node over both.
async fn one_node() -> Result<(IpmiSim, Webhook, Fleet)> {
    let (bmc, webhook) = (IpmiSim::builder().holds().start().await?, Webhook::start().await?);
    let fleet = Fleet::new().node("n1", &device(&bmc), &["detach"]);
    let fleet = fleet.webhook("detach", &webhook.url(), "settle = \"0s\"");
    Ok((bmc, webhook, fleet))
}

/// A BMC as a device. ipmi_sim's own idle limit: so long the next gateway waits for the end of what a former one may have
/// sent.
fn device(bmc: &IpmiSim) -> Bmc {
    Bmc::simulated(bmc.address())
}

/// The fleet with metrics, and where.
fn with_metrics(fleet: Fleet) -> (Fleet, SocketAddr) {
    let address = fresh_address();
    (fleet.with(&format!("[metrics]\nlisten = \"{address}\"")), address)
}

/// What plain HTTP answers: the first line, and the body.
async fn http(address: SocketAddr, method: &str, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).await.expect("somebody listens");
    let request = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("answered");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head.lines().next().unwrap_or_default().to_owned(), body.to_owned())
}

/// Fences or unfences a node, to the end.
async fn does(gateway: &Gateway, verb: &str, node: &str) {
    let said = gateway.picket(&[verb, node, "--yes", "--reason", "a test"]).await.expect("it runs");
    assert_eq!(said.code, 0, "{said:?}\n{}", gateway.log());
}

/// Sends SIGHUP, and waits for what the log says of it from there on.
async fn reload(gateway: &mut Gateway) -> String {
    let before = gateway.log().len();
    gateway.process().expect("it runs").signal(rustix::process::Signal::HUP);
    let ended = ["the new settings hold", "refused as a whole"];
    let said = |log: String| log.get(before..).unwrap_or_default().to_owned();
    eventually("a reload", SOON, || ended.iter().any(|end| said(gateway.log()).contains(end)))
        .await
        .expect("it is told");
    said(gateway.log())
}
