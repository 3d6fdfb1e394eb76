//! A thousand nodes, of which two have a BMC that answers nothing: how many could be fenced now, and what is in the way of the others.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use picket_driver_ipmi::crypto::Suite;
use picket_driver_sim::SimClock;
use picket_fleet::{Account, BmcOptions, Role, room_for};
use picket_tests::peers::{OPERATOR, PASSWORD, fresh_address};
use picket_tests::{Bmc, Fleet, Gateway, Result};

const NODES: usize = 1_000;
const DEAD: [usize; 2] = [122, 876];
/// A silent BMC is asked for as long as a call may take; the others are asked some at a time.
const SOON: Duration = Duration::from_secs(400);
/// What was not heard in its call on a busy machine is looked at again once a person asks for that.
const AGAIN: Duration = Duration::from_secs(30);

fn name(index: usize) -> String {
    format!("n{:04}", index + 1)
}

/// So many that nobody has, not even one of the others.
fn addresses() -> Vec<SocketAddr> {
    let mut seen = BTreeSet::new();
    std::iter::repeat_with(fresh_address).filter(|address| seen.insert(*address)).take(NODES).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_thousand_nodes_it_is_said_how_many_could_be_fenced_and_which_could_not() -> Result<()> {
    room_for(4 * NODES).expect("sockets for the machines");
    let addresses = addresses();
    let account = Account { name: OPERATOR.to_owned(), password: PASSWORD.to_owned(), role: Role::Operator };
    let accounts: Arc<[Account]> = Arc::new([account]);
    let living = addresses.iter().enumerate().filter(|(index, _)| !DEAD.contains(index));
    let options: Vec<BmcOptions> = living
        .map(|(index, address)| BmcOptions {
            name: name(index),
            ipmi: *address,
            accounts: accounts.clone(),
            suites: vec![Suite::Sha1, Suite::Sha256],
            sessions: 4,
            idle: Duration::from_secs(60),
            redfish: None,
            seed: index as u64,
        })
        .collect();
    let clock: Arc<dyn picket_core::time::Clock> = Arc::new(SimClock::new());
    let _bmcs = picket_fleet::Fleet::start(&options, &clock).await.expect("free addresses");
    let nodes = addresses.iter().enumerate();
    let fleet =
        nodes.fold(Fleet::new(), |fleet, (index, address)| fleet.node(&name(index), &Bmc::at(*address), &[]));
    let gateway = Gateway::start(&fleet).await?;
    let mut said = String::new();
    let deadline = tokio::time::Instant::now() + SOON;
    let mut looked = tokio::time::Instant::now();
    while !said.contains("Could be fenced now: 998 of 1000") {
        assert!(tokio::time::Instant::now() < deadline, "{said}\n{}", gateway.log());
        tokio::time::sleep(Duration::from_millis(200)).await;
        if looked.elapsed() > AGAIN {
            let checked = gateway.picket(&["check", "n[0001-1000]"]).await?;
            assert!([0, 1].contains(&checked.code), "{checked:?}");
            looked = tokio::time::Instant::now();
        }
        let status = gateway.picket(&["status"]).await?;
        assert_eq!(status.code, 0, "{status:?}");
        said = status.out;
    }
    let (_, others) = said.split_once("Could be fenced now: 998 of 1000").expect("it says so");
    for dead in DEAD.map(name) {
        assert!(others.contains(&dead), "{dead} is not named: {others}");
    }
    assert!(others.contains("unreachable") || others.contains("timed out"), "why is not said: {others}");
    Ok(())
}
