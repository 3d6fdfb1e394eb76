//! Following nodes on their way: each on a stream of its own, in parallel, until each has its end.

mod stream;

use std::sync::Arc;
use std::time::Duration;

use stream::Event;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::duration;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::motion::{FollowEnd, FollowedNode, Motion, NodeProgress};
use crate::progress::Progress;
use crate::session::Session;
use crate::view;

/// Between two drawings of live progress.
const TICK: Duration = Duration::from_millis(200);

/// What commands that follow nodes on their way take.
#[derive(Clone, Debug, clap::Args)]
pub struct FollowOptions {
    /// An idempotency key of your own, so that a script can repeat the command safely [default: a new one]
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// How many nodes at once are asked for
    #[arg(long, value_name = "NUMBER", default_value = "64", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub parallel: u16,
    /// For how long a broken connection is tried again before it is given up
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration::parse)]
    pub patience: Duration,
}

/// Until somebody ends this process, or its terminal is closed.
async fn told_to_end() {
    let told = async |kind| match signal(kind) {
        Ok(mut signal) => drop(signal.recv().await),
        Err(_) => std::future::pending().await,
    };
    tokio::select! {
        () = told(SignalKind::terminate()) => {}
        () = told(SignalKind::hangup()) => {}
    }
}

/// Follows all of them, shows how they fare, and answers with how each ended.
pub async fn all(
    session: &mut Session<'_>,
    motions: Vec<(String, Motion)>,
    following: &FollowOptions,
) -> Result<Vec<FollowedNode>, Fault> {
    let mut lines: Vec<NodeProgress> = motions.into_iter().map(NodeProgress::new).collect();
    let mut progress = Progress::of(session.console);
    let (tell, mut events) = mpsc::unbounded_channel();
    let turns = Arc::new(Semaphore::new(following.parallel.into()));
    let mut tasks = JoinSet::new();
    for (index, line) in lines.iter().enumerate() {
        let (client, motion, tell) = (session.client.clone(), line.motion.clone(), tell.clone());
        let (turns, patience) = (Arc::clone(&turns), following.patience);
        tasks.spawn(async move {
            // The semaphore is never closed; without a turn there is nobody to follow for.
            let Ok(_turn) = turns.acquire().await else { return };
            stream::follow(client, &motion, patience, |event| tell.send((index, event)).is_ok()).await;
        });
    }
    drop(tell);

    let begun = Instant::now();
    let limit = session.global.timeout.map(|limit| begun + limit);
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let mut ended = std::pin::pin!(told_to_end());
    let rest = loop {
        tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => break FollowEnd::Interrupted,
            // Who is ended at once would leave a terminal that does not show what is typed.
            () = &mut ended, if progress.is_live() => break FollowEnd::Interrupted,
            () = tokio::time::sleep_until(limit.unwrap_or(begun)), if limit.is_some() => break FollowEnd::TimedOut,
            event = events.recv() => match event {
                None => break FollowEnd::Lost("nobody followed it any more".to_owned()),
                Some((index, event)) => apply(&mut lines, index, event, &mut progress, session)?,
            },
            _ = tick.tick(), if progress.is_live() => progress.draw(session.console, &lines)?,
        }
    };
    // Abandoning a stream stops nothing: what was begun goes on.
    tasks.abort_all();
    for index in 0..lines.len() {
        if lines[index].followed.is_none() {
            apply(&mut lines, index, Event::End(rest.clone()), &mut progress, session)?;
        }
    }
    progress.finish(session.console, &lines)?;
    Ok(lines.into_iter().filter_map(|line| line.followed).collect())
}

fn apply(
    lines: &mut [NodeProgress],
    index: usize,
    event: Event,
    progress: &mut Progress,
    session: &mut Session<'_>,
) -> Result<(), Fault> {
    let line = &mut lines[index];
    match event {
        Event::Asked => {
            line.started.get_or_insert_with(Instant::now);
        }
        Event::Update(update) => {
            line.take(*update);
            progress.update(session.console, lines, index)?;
        }
        Event::Broken { why, again_in } => {
            line.broken = Some(why);
            progress.broken(session.console, lines, index, again_in)?;
        }
        Event::End(end) => {
            line.end(end);
            progress.end(session.console, lines, index)?;
        }
    }
    Ok(())
}

/// The last word of a command that followed nodes: the document for scripts, and the worst exit code.
pub fn conclude(session: &mut Session<'_>, followed: &[FollowedNode]) -> Result<Exit, Fault> {
    let exit = Exit::worst(followed.iter().map(FollowedNode::exit));
    if !session.for_people() {
        session.console.document(&view::result::Results::of_followed(followed, exit))?;
    }
    Ok(exit)
}
