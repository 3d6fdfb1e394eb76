//! The bad network is as bad as it was told to be.

use std::time::{Duration, Instant};

use picket_tests::Result;
use picket_tests::peers::{Faults, HANGS, IpmiSim, Ipmitool, PowerWord, UdpFault, eventually, fresh_address};
use tokio::net::UdpSocket;
use tokio::time::timeout;

/// A server that sends each datagram back, and a client of it through a bad network.
async fn echo_through(seed: u64) -> Result<(UdpFault, UdpSocket)> {
    let address = fresh_address();
    let server = UdpSocket::bind(address).await.expect("its own address");
    tokio::spawn(async move {
        let mut datagram = [0; 2048];
        while let Ok((length, from)) = server.recv_from(&mut datagram).await {
            let _ = server.send_to(&datagram[..length], from).await;
        }
    });
    let network = UdpFault::start(address, seed).await?;
    let client = UdpSocket::bind((network.address().ip(), 0)).await.expect("a client's socket");
    client.connect(network.address()).await.expect("connect");
    Ok((network, client))
}

/// Waits for so many answers, and says how many come in all until none comes for a while.
async fn answers(client: &UdpSocket, wanted: usize) -> usize {
    let mut count = 0;
    let mut datagram = [0; 2048];
    loop {
        let patience = if count < wanted { HANGS } else { QUIET };
        match timeout(patience, client.recv(&mut datagram)).await {
            Ok(Ok(_)) => count += 1,
            _ => return count,
        }
    }
}

const QUIET: Duration = Duration::from_millis(200);

#[tokio::test]
async fn it_loses_its_share_and_the_same_share_for_the_same_seed() -> Result<()> {
    let mut lost = Vec::new();
    for _ in 0..2 {
        let (network, client) = echo_through(42).await?;
        network.requests(Faults { loss: 0.2, ..Faults::default() });
        for sent in 1..=500 {
            client.send(b"datagram").await.expect("send");
            // No faster than the relay: a socket's buffer loses too, and by other dice.
            eventually("it is relayed", QUIET * 50, || network.counts().requests == sent).await?;
        }
        let settled = || network.counts().lost + network.counts().answers == 500;
        eventually("the rest is answered", QUIET * 50, settled).await?;
        let counts = network.counts();
        assert!((60..140).contains(&counts.lost), "{counts:?}");
        lost.push(counts.lost);
    }
    assert_eq!(lost[0], lost[1]);
    Ok(())
}

#[tokio::test]
async fn it_loses_the_next_and_cuts_and_heals() -> Result<()> {
    let (network, client) = echo_through(1).await?;
    network.answers(Faults { lose_next: 2, ..Faults::default() });
    for _ in 0..5 {
        client.send(b"datagram").await.expect("send");
    }
    assert_eq!(answers(&client, 3).await, 3);
    network.both(Faults { cut: true, ..Faults::default() });
    client.send(b"datagram").await.expect("send");
    assert_eq!(answers(&client, 0).await, 0);
    network.both(Faults::default());
    client.send(b"datagram").await.expect("send");
    assert_eq!(answers(&client, 1).await, 1);
    Ok(())
}

#[tokio::test]
async fn it_delays_and_sends_late_copies() -> Result<()> {
    let (network, client) = echo_through(1).await?;
    let late = Duration::from_millis(400);
    network.requests(Faults {
        delay: Duration::from_millis(100),
        copies: 2,
        copy_delay: late,
        ..Faults::default()
    });
    let asked = Instant::now();
    client.send(b"datagram").await.expect("send");
    let mut came = Vec::new();
    let mut datagram = [0; 2048];
    while came.len() < 3 {
        timeout(HANGS, client.recv(&mut datagram)).await.expect("three copies").expect("receive");
        came.push(asked.elapsed());
    }
    for (copy, after) in came.iter().enumerate() {
        let due = Duration::from_millis(100) + late * u32::try_from(copy).expect("three");
        assert!(*after >= due, "copy {copy} after {after:?}");
    }
    Ok(())
}

#[tokio::test]
async fn ipmitool_gets_through_a_bad_one() -> Result<()> {
    let bmc = IpmiSim::start().await?;
    let network = UdpFault::start(bmc.address(), 7).await?;
    let tool = Ipmitool::new(network.address());
    assert_eq!(tool.power().await?, PowerWord::On);
    let clean = network.counts();
    network.both(Faults { copies: 1, ..Faults::default() });
    tool.run("chassis power off").await?;
    assert!(!bmc.is_on()?);
    assert!(network.counts().requests > clean.requests);
    Ok(())
}
