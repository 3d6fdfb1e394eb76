//! Fences in a second on etcd, beside the embedded store; and how much etcd writes for each.

use std::time::{Duration, Instant};

use picket_proto::v1::{OutcomeKind, Phase};
use picket_tests::Client;
use picket_tests::peers::EtcdCluster;
use tokio::task::JoinSet;

use crate::Wrong;
use crate::cluster::{self, Written};
use crate::crowd::{Times, millis, ratio};
use crate::daemon::Daemon;
use crate::fence::ask;
use crate::options::Options;

/// Writers at once of the bare puts.
const WRITERS: usize = 64;
/// Nodes a connection.
const EACH: usize = 100;

/// What a round came to.
struct Round {
    /// From the question to when its intent was stored and told, one fence after the other.
    singly: Times,
    /// The same with all at once, from the first question.
    opened: Times,
    /// Until each was confirmed.
    confirmed: Times,
    /// What was said of those that were not.
    others: Vec<String>,
}

impl Round {
    /// So many of them in a second.
    fn per_second(&self, times: &Times, nodes: usize) -> f64 {
        (nodes - self.others.len()) as f64 / times.quantile(1.0).as_secs_f64().max(1e-9)
    }
}

/// Rounds on either store in turn.
pub async fn beside(options: Options) -> Result<(), Wrong> {
    let (nodes, singly) = (options.nodes, options.singly);
    println!(
        "\nFENCES: {nodes} simulated nodes at once, {singly} before them one after the other, by the shipped rules"
    );
    let etcd = EtcdCluster::durable(3).await?;
    let (mut on_etcd, mut embedded, mut writes) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..options.rounds {
        let home = tempfile::tempdir()?;
        let store = format!("[store]\npath = {:?}\n", home.path().join("picket.redb"));
        embedded.push(one(&store, options).await?.0);
        let store = format!(
            "[store]\nkind = \"etcd\"\nendpoints = {:?}\nallow_anonymous = true\nprefix = \"/round{round}/\"\n",
            etcd.endpoints()
        );
        let (took, wrote) = counted(&etcd, &store, options).await?;
        on_etcd.push(took);
        writes.push(wrote);
    }
    for (who, rounds) in [("etcd", &on_etcd), ("embedded", &embedded)] {
        for (round, others) in
            rounds.iter().map(|round| &round.others).enumerate().filter(|(_, o)| !o.is_empty())
        {
            let count = others.len();
            println!(
                "  round {round} on {who}: {count} of {nodes} were NOT CONFIRMED; the first: {}",
                others[0]
            );
        }
    }
    let (on_etcd, embedded) = (middle(on_etcd)?, middle(embedded)?);
    println!("  one after the other: from the question to \"its intent is stored\"");
    for (who, round) in [("etcd", &on_etcd), ("embedded", &embedded)] {
        let [half, most] = [0.5, 0.99].map(|share| millis(round.singly.quantile(share)));
        println!("    {who:<10} p50 {half:>10}   p99 {most:>10}");
    }
    println!(
        "    ratio: {:.2} times the embedded store's p50",
        ratio(on_etcd.singly.quantile(0.5), embedded.singly.quantile(0.5))
    );
    for (what, of) in [
        ("intent stored and told", (|round| &round.opened) as fn(&Round) -> &Times),
        ("confirmed off", |round| &round.confirmed),
    ] {
        println!("  {nodes} at once: {what}");
        for (who, round) in [("etcd", &on_etcd), ("embedded", &embedded)] {
            let [half, most] = [0.5, 0.99].map(|share| millis(of(round).quantile(share)));
            println!(
                "    {who:<10} {:>7.0} /s   p50 {half:>11}   p99 {most:>11}",
                round.per_second(of(round), nodes)
            );
        }
        let [ours, theirs] = [&on_etcd, &embedded].map(|round| round.per_second(of(round), nodes));
        println!("    ratio: {:.2} of the embedded store's", ours / theirs);
    }
    let fences = (nodes + singly) as f64;
    let all: Vec<String> = writes.iter().map(|wrote| format!("{:.2}", wrote.0 / fences)).collect();
    let entries: Vec<String> = writes.iter().map(|wrote| format!("{:.2}", wrote.1 / fences)).collect();
    println!(
        "  etcd's writes for each fence, from the request to the proof (by etcd's own counts, round by round)"
    );
    println!("    transactions that change something (its revision)               {}", all.join("  "));
    println!("    entries in its log (etcd_server_proposals_committed_total)      {}", entries.join("  "));
    let (alone, many) = (cluster::puts(&etcd, 1).await?, cluster::puts(&etcd, WRITERS).await?);
    println!(
        "  etcd beside, bare puts of 2 KiB: {alone:.0} /s one after the other, {many:.0} /s by {WRITERS} at once"
    );
    let of_etcd = on_etcd.per_second(&on_etcd.opened, nodes);
    println!("    ratio: {:.2} intents stored a bare put of the {WRITERS}", of_etcd / many);
    Ok(())
}

/// A round on etcd, with what etcd wrote meanwhile.
async fn counted(etcd: &EtcdCluster, store: &str, options: Options) -> Result<(Round, (f64, f64)), Wrong> {
    let (daemon, before) = begun(store, options, Some(etcd)).await?;
    let round = told(&daemon, fence_all(&daemon, options).await)?;
    let after = cluster::written(etcd).await?;
    let before = before.ok_or("etcd was not asked")?;
    let transactions = (after.revision - before.revision) as f64;
    Ok((round, (transactions, after.proposals - before.proposals)))
}

async fn one(store: &str, options: Options) -> Result<(Round, Option<Written>), Wrong> {
    let (daemon, before) = begun(store, options, None).await?;
    Ok((told(&daemon, fence_all(&daemon, options).await)?, before))
}

/// What went wrong, with what the daemon said of it.
fn told<T>(daemon: &Daemon, result: Result<T, Wrong>) -> Result<T, Wrong> {
    result.map_err(|wrong| format!("{wrong}\nits log:\n{}", daemon.log()).into())
}

/// A daemon that has looked at all of its nodes; what etcd had written by then.
async fn begun(
    store: &str,
    options: Options,
    etcd: Option<&EtcdCluster>,
) -> Result<(Daemon, Option<Written>), Wrong> {
    let last = options.nodes + options.singly - 1;
    // The default limits are for callers who behave; here one caller does the work of many.
    let settings = format!(
        "[budget]\nat_once = 100000\ncool_down = \"0s\"\nbrake_least = 100000\nmin_not_fenced = 0\n[limits]\nrate = 100000\n\
         burst = 100000\ncalls = 4096\ncalls_each = 4096\nconnections_each = 768\n{store}\
         [nodes.\"n[00000-{last:05}]\".devices.bmc]\ndriver = \"sim\"\nmachine = \"{{node}}\"\n"
    );
    let mut daemon = Daemon::new("g0", &settings)?;
    daemon.start().await?;
    daemon.checked().await?;
    let before = match etcd {
        Some(etcd) => Some(cluster::written(etcd).await?),
        None => None,
    };
    Ok((daemon, before))
}

/// The round with the middle rate of confirmations.
fn middle(mut rounds: Vec<Round>) -> Result<Round, Wrong> {
    rounds.sort_by_key(|round| round.confirmed.quantile(1.0));
    let at = rounds.len() / 2;
    rounds.into_iter().nth(at).ok_or_else(|| "no round".into())
}

fn name(index: usize) -> String {
    format!("n{index:05}")
}

/// A fence: when its intent was told and when it was proven, since the first was asked for; or what was said instead.
type Followed = Result<(Duration, Duration), String>;

/// Follows a fence to its proof.
async fn follow(client: &mut Client, index: usize, began: Instant) -> Result<Followed, Wrong> {
    let mut stream = ask(client, name(index)).await?;
    let (mut opened, mut last) = (None, None);
    while let Some(told) = stream.message().await? {
        let update = told.update.unwrap_or_default();
        if update.phase() == Phase::Fencing {
            opened.get_or_insert_with(|| began.elapsed());
        }
        last = update.outcome.or(last);
    }
    Ok(match last {
        Some(outcome) if outcome.kind() == OutcomeKind::Fenced => {
            Ok((opened.unwrap_or_default(), began.elapsed()))
        }
        Some(outcome) => {
            Err(format!("n{index:05} after {:?}: {:?}: {}", began.elapsed(), outcome.kind(), outcome.detail))
        }
        None => return Err(format!("n{index:05}: its stream ended without an outcome").into()),
    })
}

/// First some, each once the intent of the one before is stored; then all others at once.
async fn fence_all(daemon: &Daemon, options: Options) -> Result<Round, Wrong> {
    let mut client = daemon.client().await?;
    let (mut singly, mut fences) = (Vec::new(), JoinSet::new());
    for index in 0..options.singly {
        let began = Instant::now();
        let mut stream = ask(&mut client, name(index)).await?;
        while let Some(told) = stream.message().await? {
            if told.update.unwrap_or_default().phase() == Phase::Fencing {
                break;
            }
        }
        singly.push(began.elapsed());
        // It is followed to its end beside the next one.
        fences.spawn(async move {
            while stream.message().await?.is_some() {}
            Ok::<Followed, Wrong>(Ok((Duration::ZERO, Duration::ZERO)))
        });
    }
    while let Some(ended) = fences.join_next().await {
        ended??.map_err(Wrong::from)?;
    }
    let began = Instant::now();
    for index in options.singly..options.singly + options.nodes {
        if index % EACH == 0 {
            client = daemon.client().await?;
        }
        let mut client = client.clone();
        fences.spawn(async move { follow(&mut client, index, began).await });
    }
    let (mut opened, mut confirmed, mut others) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(ended) = fences.join_next().await {
        match ended?? {
            Ok((first, last)) => {
                opened.push(first);
                confirmed.push(last);
            }
            Err(why) => others.push(why),
        }
    }
    Ok(Round {
        singly: Times::of(singly),
        opened: Times::of(opened),
        confirmed: Times::of(confirmed),
        others,
    })
}
