//! etcd's own words: who leads it, how much was written, and what its bare writes cost.

use std::time::{Duration, Instant};

use picket_etcd_api::{Client, Error, PutRequest, RangeRequest};
use picket_tests::peers::EtcdCluster;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tonic::transport::Endpoint;

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
fn client(cluster: &EtcdCluster, member: usize) -> Result<Client, Wrong> {
    let endpoint = cluster.endpoints().into_iter().nth(member).ok_or("there is no such member")?;
    Ok(Client::new(Endpoint::from_shared(endpoint)?.connect_lazy()))
}

/// Which member leads etcd.
pub async fn leader(cluster: &EtcdCluster) -> Result<usize, Wrong> {
    for (member, endpoint) in cluster.endpoints().iter().enumerate() {
        if number(&metrics(endpoint).await?, "etcd_server_is_leader")? > 0.0 {
            return Ok(member);
        }
    }
    Err("no member of etcd's leads".into())
}

/// How much was written so far, as its first member counts it.
pub async fn written(cluster: &EtcdCluster) -> Result<Written, Wrong> {
    let answer = client(cluster, 0)?.range(RangeRequest::one("\u{0}")).await?;
    let revision = answer.header.ok_or("etcd tells no revision")?.revision;
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
        let client = client(cluster, writer % cluster.len())?;
        tasks.spawn(async move {
            let mut count = 0_u32;
            while began.elapsed() < FOR {
                let key = format!("/bare/{writer}").into_bytes();
                client.put(PutRequest { key, value: vec![7; RECORD], lease: 0 }).await?;
                count += 1;
            }
            Ok::<_, Error>(count)
        });
    }
    let mut count = 0;
    while let Some(ended) = tasks.join_next().await {
        count += ended??;
    }
    Ok(f64::from(count) / began.elapsed().as_secs_f64())
}
