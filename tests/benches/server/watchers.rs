//! How long a change takes to the last of many watchers.

use std::time::{Duration, Instant};

use picket_proto::v1::watch_nodes_response::Event;
use picket_proto::v1::{Phase, ResumeRequest, WatchNodesRequest};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::Wrong;
use crate::child::{Child, name};
use crate::cost;
use crate::crowd::{Times, millis, ratio};
use crate::fence::ask;
use crate::options::Options;

const PATIENCE: Duration = Duration::from_secs(30);

/// Watchers, each with a stream of its own, ten to a connection.
struct Watchers {
    seen: mpsc::UnboundedReceiver<(String, Instant)>,
    count: usize,
    _streams: JoinSet<Result<(), Wrong>>,
}

impl Watchers {
    /// They go on from where the first of them was told the present.
    async fn begin(whom: &Child, count: usize) -> Result<Self, Wrong> {
        let mut client = whom.client().await?;
        let mut first = client.watch_nodes(WatchNodesRequest::default()).await?.into_inner();
        let revision = loop {
            let told = first.message().await?.ok_or("the watch ended")?;
            if let Some(Event::Synced(_)) = told.event {
                break told.revision;
            }
        };
        drop(first);
        let (tell, seen) = mpsc::unbounded_channel();
        let mut streams = JoinSet::new();
        for watcher in 0..count {
            if watcher % 10 == 0 {
                client = whom.client().await?;
            }
            let request = WatchNodesRequest { nodes: None, revision: revision.clone() };
            let mut stream = client.watch_nodes(request).await?.into_inner();
            let tell = tell.clone();
            streams.spawn(async move {
                while let Some(told) = stream.message().await? {
                    // Of a fence the first change alone counts.
                    let Some(Event::Node(node)) = told.event else { continue };
                    if matches!(node.phase(), Phase::Fencing | Phase::Normal) {
                        let _ = tell.send((node.name, Instant::now()));
                    }
                }
                Err("a watch ended".into())
            });
        }
        Ok(Self { seen, count, _streams: streams })
    }

    /// When the last of them was told of the node.
    async fn last(&mut self, node: &str) -> Result<Instant, Wrong> {
        let mut told = Vec::new();
        let all = async {
            while told.len() < self.count {
                let (of, at) = self.seen.recv().await.ok_or("the watches ended")?;
                if of == node {
                    told.push(at);
                }
            }
            Ok::<_, Wrong>(())
        };
        tokio::time::timeout(PATIENCE, all).await??;
        Ok(told.into_iter().max().unwrap_or_else(Instant::now))
    }

    /// What was told beyond that is not waited for.
    fn forget(&mut self) {
        while self.seen.try_recv().is_ok() {}
    }
}

/// Prints the delays; the daemon's memory with all watchers.
pub async fn beside(daemon: &Child, echo: &Child, options: Options) -> Result<u64, Wrong> {
    println!("\nWATCHERS: a change to the last of {}, from before it was asked for", options.watchers);
    let mut watchers = Watchers::begin(echo, options.watchers).await?;
    let mut client = echo.client().await?;
    let mut theirs = Vec::new();
    for _ in 0..options.changes {
        watchers.forget();
        let began = Instant::now();
        client.resume(ResumeRequest::default()).await?;
        theirs.push(watchers.last(&name(0)).await? - began);
    }
    drop(watchers);
    let mut watchers = Watchers::begin(daemon, options.watchers).await?;
    let resident = cost::resident(daemon.id());
    let (mut ours, mut after) = (Vec::new(), Vec::new());
    for change in 0..options.changes {
        watchers.forget();
        let began = Instant::now();
        let mut fence = ask(&mut daemon.client().await?, name(change)).await?;
        fence.message().await?.ok_or("the fence's stream ended")?;
        let stored = Instant::now();
        let last = watchers.last(&name(change)).await?;
        ours.push(last - began);
        after.push(last.saturating_duration_since(stored));
        // The next one begins once nothing more comes of this one.
        while fence.message().await?.is_some() {}
    }
    let (ours, after, theirs) = (Times::of(ours), Times::of(after), Times::of(theirs));
    let line = |who: &str, times: &Times| {
        println!("  {who:<44}p50 {}   most {}", millis(times.quantile(0.5)), millis(times.quantile(1.0)));
    };
    line("picket, a fence (stored, then told)", &ours);
    line("  of it after the caller's own first word", &after);
    line("echo, nothing stored", &theirs);
    println!("  ratio: {:.2}", ratio(ours.quantile(0.5), theirs.quantile(0.5)));
    Ok(resident)
}
