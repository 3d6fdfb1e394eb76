//! Many at once, through the gateway.

use std::sync::Arc;
use std::time::{Duration, Instant};

use picket_proto::v1::OutcomeKind;
use picket_tests::Client;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::Wrong;
use crate::beside::Agent;
use crate::daemon::Daemon;
use crate::fence::ask;
use crate::parts::Counts;
use crate::places::Place;

/// Nodes a connection.
const EACH: usize = 100;

/// Fences so many fresh instances at once, and prints what that took.
pub async fn measure(place: &dyn Place, nodes: usize, agent: &Agent) -> Result<(), Wrong> {
    let instances = place.instances(nodes).await?;
    let mut settings = String::from(
        "[budget]\nat_once = 100000\ncool_down = \"0s\"\nbrake_least = 100000\nmin_not_fenced = 0\n[limits]\nrate = 100000\n\
         burst = 100000\ncalls = 4096\ncalls_each = 4096\nconnections_each = 768\n[store]\n",
    );
    let home = tempfile::tempdir()?;
    settings += &format!("path = {:?}\n{}", home.path().join("picket.redb"), place.rules());
    for (index, instance) in instances.iter().enumerate() {
        settings += &format!("[nodes.{}.devices.cloud]\n{}\n", name(index), place.device(instance));
    }
    let mut daemon = Daemon::new("g0", &settings)?;
    daemon.start().await?;
    daemon.checked().await?;
    place.fill_limits().await?;
    let before = place.counts().await?;
    let began = Instant::now();
    let mut took = Vec::new();
    let fenced = fence_all(&daemon, (nodes, place.at_once()), began, &mut took).await;
    let after = place.counts().await?;
    fenced.map_err(|wrong| format!("{wrong}\nits log:\n{}", daemon.log()))?;
    let on = place.still_on(&instances).await?;
    if !on.is_empty() {
        return Err(format!("SAID OFF AND ARE NOT: {}", on.join(", ")).into());
    }
    took.sort_unstable();
    print(nodes, &after.since(&before), &took, agent);
    Ok(())
}

fn print(nodes: usize, counts: &Counts, took: &[Duration], agent: &Agent) {
    let last = took.last().copied().unwrap_or_default().as_secs_f64();
    let half = took[took.len() / 2].as_secs_f64();
    let each = counts.all() as f64 / nodes as f64;
    println!("  {nodes} at once: half of them proven off after {half:.1} s, all after {last:.1} s");
    println!(
        "    requests: {} ({each:.3} an instance, {:.3} of the agent's; {} refused by limits)",
        counts.all(),
        each / agent.requests(),
        counts.limited()
    );
    println!("      {}", counts.words());
    let alone = agent.took().as_secs_f64() * nodes as f64;
    println!(
        "    the agent, one after the other: {alone:.1} s, by what one of its took; {:.1} times as long",
        alone / last
    );
}

fn name(index: usize) -> String {
    format!("n{index:05}")
}

/// Fences all, so many at a time, each by a call of its own; when each was proven off.
async fn fence_all(
    daemon: &Daemon,
    (nodes, at_once): (usize, usize),
    began: Instant,
    took: &mut Vec<Duration>,
) -> Result<(), Wrong> {
    let (mut fences, mut client) = (JoinSet::new(), daemon.client().await?);
    let turns = Arc::new(Semaphore::new(at_once));
    for index in 0..nodes {
        if index % EACH == EACH - 1 {
            client = daemon.client().await?;
        }
        let (mut client, turns) = (client.clone(), turns.clone());
        fences.spawn(async move {
            let _turn = turns.acquire().await?;
            follow(&mut client, index).await.map(|()| began.elapsed())
        });
    }
    while let Some(ended) = fences.join_next().await {
        took.push(ended??);
    }
    Ok(())
}

/// Follows a fence to its proof.
async fn follow(client: &mut Client, index: usize) -> Result<(), Wrong> {
    let mut stream = ask(client, name(index)).await?;
    let mut last = None;
    while let Some(told) = stream.message().await? {
        last = told.update.unwrap_or_default().outcome.or(last);
    }
    match last {
        Some(outcome) if outcome.kind() == OutcomeKind::Fenced => Ok(()),
        Some(outcome) => Err(format!("{}: {:?}: {}", name(index), outcome.kind(), outcome.detail).into()),
        None => Err(format!("{}: its stream ended without an outcome", name(index)).into()),
    }
}
