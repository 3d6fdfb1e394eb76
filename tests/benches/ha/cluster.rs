//! etcd's own words: who leads it, how much was written, and what its bare writes cost.

use std::time::{Duration, Instant};

use etcd_client::Client;
use picket_tests::peers::EtcdCluster;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::Wrong;

/// About what a record of a node that is being fenced has.
const RECORD: usize = 2 * 1024;
const FOR: Duration = Duration::from_secs(2);

/// What all of etcd has written.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    /// Its revision: one for each transaction that changes something.
    pub revision: i64,
    /// Entries in its log: the transactions, and what etcd and its leases need besides.
    pub proposals: f64,
}

/// A client of one member alone.
async fn client(cluster: &EtcdCluster, member: usize) -> Result<Client, Wrong> {
    let endpoint = cluster.endpoints().into_iter().nth(member).ok_or("there is no such member")?;
    Ok(Client::connect([endpoint], None).await?)
}

/// Which member leads etcd.
pub async fn leader(cluster: &EtcdCluster) -> Result<usize, Wrong> {
    for member in 0..cluster.len() {
        let status = client(cluster, member).await?.status().await?;
        if status.header().is_some_and(|header| header.member_id() == status.leader()) {
            return Ok(member);
        }
    }
    Err("no member of etcd's leads".into())
}

/// How much was written so far, as its first member counts it.
pub async fn written(cluster: &EtcdCluster) -> Result<Written, Wrong> {
    let status = client(cluster, 0).await?.get("\u{0}", None).await?;
    let revision = status.header().ok_or("etcd tells no revision")?.revision();
    let metrics = metrics(&cluster.endpoints()[0]).await?;
    Ok(Written { revision, proposals: number(&metrics, "etcd_server_proposals_committed_total")? })
}

/// The page of its metrics, by plain HTTP.
async fn metrics(endpoint: &str) -> Result<String, Wrong> {
    let address = endpoint.strip_prefix("http://").ok_or("the bench's etcd has no TLS")?;
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET /metrics HTTP/1.0\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut page = String::new();
    stream.read_to_string(&mut page).await?;
    Ok(page)
}

fn number(page: &str, name: &str) -> Result<f64, Wrong> {
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    Ok(line.ok_or_else(|| format!("etcd has no metric {name}"))?.trim().parse()?)
}

/// Bare puts in a second, by so many writers at once, each one after the other.
pub async fn puts(cluster: &EtcdCluster, writers: usize) -> Result<f64, Wrong> {
    let (mut tasks, began) = (JoinSet::new(), Instant::now());
    for writer in 0..writers {
        let mut client = client(cluster, writer % cluster.len()).await?;
        tasks.spawn(async move {
            let mut count = 0_u32;
            while began.elapsed() < FOR {
                client.put(format!("/bare/{writer}"), vec![7; RECORD], None).await?;
                count += 1;
            }
            Ok::<_, etcd_client::Error>(count)
        });
    }
    let mut count = 0;
    while let Some(ended) = tasks.join_next().await {
        count += ended??;
    }
    Ok(f64::from(count) / began.elapsed().as_secs_f64())
}
