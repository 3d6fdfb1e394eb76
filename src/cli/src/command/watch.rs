//! `picket watch`: follow changes as they happen.

use std::time::Duration;

use picket_proto::v1::watch_nodes_response::Event;
use picket_proto::v1::{ErrorReason, WatchNodesRequest, WatchNodesResponse};
use prost_types::Timestamp;
use serde::Serialize;
use tokio_stream::StreamExt;
use tonic::Status;

use crate::console::Stream;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::gateway_error::GatewayError;
use crate::session::Session;
use crate::style::{Tone, clean};
use crate::view::node::NodeView;
use crate::view::node_text;
use crate::{duration, hosts};

/// Before the first and the later tries to get a broken stream back.
const WAIT: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));

/// Its arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Host lists: r1n07 or r1n[01-40,45] [default: all, also those that are added later]
    #[arg(value_name = "HOSTS")]
    hosts: Vec<String>,
    /// Go on after this revision: only changes after it
    #[arg(long, value_name = "REVISION")]
    revision: Option<String>,
}

/// One change, for scripts.
#[derive(Debug, Serialize)]
struct Change<'a> {
    at: String,
    revision: &'a str,
    node: Option<NodeView>,
    removed: Option<&'a str>,
    synced: bool,
}

/// Watches until somebody stops it, `--timeout` has passed (exit code 0: it was to last that long), or nobody reads on.
pub async fn run(args: &Args, session: &mut Session<'_>) -> Result<Exit, Fault> {
    let limit = session.global.timeout;
    tokio::select! {
        biased;
        _ = tokio::signal::ctrl_c() => Ok(Exit::Interrupted),
        () = tokio::time::sleep(limit.unwrap_or_default()), if limit.is_some() => Ok(Exit::Done),
        done = watch(args, session) => done,
    }
}

async fn watch(args: &Args, session: &mut Session<'_>) -> Result<Exit, Fault> {
    let mut request = WatchNodesRequest {
        nodes: hosts::set(&args.hosts),
        revision: args.revision.clone().unwrap_or_default(),
    };
    let (mut wait, mut seen) = (WAIT.0, args.revision.is_none());
    loop {
        let before = request.revision.clone();
        let Some(status) = follow(session, &mut request).await? else { return Ok(Exit::Done) };
        let told = GatewayError::from(&status);
        if request.revision != before {
            (wait, seen) = (WAIT.0, true);
        }
        // A revision of the caller's own that is gone is for the caller to know; one of ours is ours to mend.
        if told.reason() == ErrorReason::RevisionGone && seen && !request.revision.is_empty() {
            request.revision.clear();
            note(session, "the gateway no longer keeps what changed meanwhile; telling the present again")?;
            continue;
        }
        if !told.is_passing() {
            return Err(Fault::Gateway(Box::new(told)));
        }
        note(
            session,
            &format!("connection lost ({}); trying again in {}", told.message, duration::set(wait)),
        )?;
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(WAIT.1);
    }
}

/// Tells changes until the stream ends; why it did, or nothing if nobody reads on.
async fn follow(session: &mut Session<'_>, request: &mut WatchNodesRequest) -> Result<Option<Status>, Fault> {
    let mut client = session.client.clone();
    let mut changes = match client.watch_nodes(request.clone()).await {
        Ok(answer) => answer.into_inner(),
        Err(status) => return Ok(Some(status)),
    };
    while let Some(change) = changes.next().await {
        match change {
            Ok(change) => {
                tell(session, &change)?;
                if !change.revision.is_empty() {
                    request.revision = change.revision;
                }
            }
            Err(status) => return Ok(Some(status)),
        }
        if session.console.is_closed() {
            return Ok(None);
        }
    }
    Ok(Some(Status::unavailable("the stream ended")))
}

fn tell(session: &mut Session<'_>, change: &WatchNodesResponse) -> Result<(), Fault> {
    let at = duration::stamp(&Timestamp::from(std::time::SystemTime::now()));
    if !session.for_people() {
        let (mut node, mut removed, mut synced) = (None, None, false);
        match &change.event {
            Some(Event::Node(present)) => node = Some(NodeView::from(present)),
            Some(Event::Removed(name)) => removed = Some(name.as_str()),
            Some(Event::Synced(_)) => synced = true,
            None => return Ok(()),
        }
        session.console.record(&Change { at, revision: &change.revision, node, removed, synced })?;
        return Ok(());
    }
    let page = session.console.page(Stream::Out);
    let text = match &change.event {
        Some(Event::Node(node)) => node_text::change(node, &at, page),
        Some(Event::Removed(name)) => {
            format!("{} {}  removed from the settings\n", page.tone(Tone::Faint, &at), clean(name))
        }
        Some(Event::Synced(_)) | None => return Ok(()),
    };
    Ok(session.console.write(Stream::Out, &text)?)
}

/// A word about the watch itself, where it does not disturb what is told.
fn note(session: &mut Session<'_>, text: &str) -> Result<(), Fault> {
    Ok(session.console.write(Stream::Err, &format!("picket: {}\n", clean(text)))?)
}
