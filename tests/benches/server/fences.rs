//! Fences in a second on the embedded store, beside the bare commits of the store that is below it.

use std::path::Path;
use std::time::{Duration, Instant};

use picket_proto::v1::{OutcomeKind, Phase};
use redb::{Database, TableDefinition};
use tokio::task::JoinSet;

use crate::Wrong;
use crate::child::{Child, name};
use crate::crowd::{Times, millis};
use crate::fence::ask;
use crate::options::Options;

const RECORDS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("records");
/// About what a record of a node that is being fenced has.
const RECORD: usize = 2 * 1024;
const FOR: Duration = Duration::from_secs(2);

/// Fences many at once; then commits as fast as the store takes it.
pub async fn beside(daemon: &Child, home: &Path, options: Options) -> Result<(), Wrong> {
    println!("\nFENCES: {} at once on the embedded store, by the shipped rules", options.fences);
    let mut fences = JoinSet::new();
    let began = Instant::now();
    let mut client = daemon.client().await?;
    // Those before were fenced for the watchers.
    for index in options.changes..options.changes + options.fences {
        if index % 100 == 0 {
            client = daemon.client().await?;
        }
        let mut client = client.clone();
        fences.spawn(async move {
            let mut stream = ask(&mut client, name(index)).await?;
            let (mut opened, mut last) = (None, None);
            while let Some(told) = stream.message().await? {
                let update = told.update.unwrap_or_default();
                if update.phase() == Phase::Fencing {
                    opened.get_or_insert_with(|| began.elapsed());
                }
                last = update.outcome.or(last);
            }
            match last.map(|outcome| outcome.kind()) {
                Some(OutcomeKind::Fenced) => Ok::<_, Wrong>((opened.unwrap_or_default(), began.elapsed())),
                other => Err(format!("{}: {other:?}", name(index)).into()),
            }
        });
    }
    let (mut opened, mut confirmed) = (Vec::new(), Vec::new());
    while let Some(ended) = fences.join_next().await {
        let (first, last) = ended??;
        opened.push(first);
        confirmed.push(last);
    }
    let (opened, confirmed) = (Times::of(opened), Times::of(confirmed));
    let rate = |times: &Times| options.fences as f64 / times.quantile(1.0).as_secs_f64();
    let line = |what: &str, times: &Times| {
        let (half, most) = (times.quantile(0.5), times.quantile(1.0));
        println!("  {what:<30} {:>6.0} /s   p50 {}   last {}", rate(times), millis(half), millis(most));
    };
    line("intent stored and told", &opened);
    line("confirmed off", &confirmed);
    let commits = tokio::task::block_in_place(|| commits(&home.join("bare.redb")))?;
    println!("  redb beside, one record of {RECORD} bytes a commit: {commits:.0} commits/s");
    println!("  ratio: {:.2} fences confirmed a bare commit", rate(&confirmed) / commits);
    Ok(())
}

/// Durable commits in a second, one after the other.
fn commits(file: &Path) -> Result<f64, Wrong> {
    let database = Database::create(file)?;
    let (began, mut count) = (Instant::now(), 0_u64);
    while began.elapsed() < FOR {
        let write = database.begin_write()?;
        write.open_table(RECORDS)?.insert(&count.to_be_bytes()[..], &[7; RECORD][..])?;
        write.commit()?;
        count += 1;
    }
    Ok(count as f64 / began.elapsed().as_secs_f64())
}
