//! `picket drain`: let no new fence start, and wait until none is under way: before a backup, a move or an upgrade.

use std::time::Duration;

use picket_proto::v1::{ListNodesRequest, Node, PauseRequest, PauseScope, Phase, pause_scope};
use serde::Serialize;
use tokio::time::{Instant, sleep};

use crate::console::Stream;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::session::Session;
use crate::style::Tone;
use crate::view::{node_text, restored};
use crate::{duration, hosts};

/// How often it is looked whether anything is under way still.
const LOOK: Duration = Duration::from_secs(1);

/// Its arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// For how long no new fence starts: 1s to 30d; it ends by itself, or with picket resume --everything
    #[arg(long = "for", value_name = "DURATION", default_value = "1h", value_parser = duration::parse)]
    lasts: Duration,
    /// Why; whoever is blocked by it reads this
    #[arg(long, required = true, value_name = "TEXT")]
    reason: String,
}

#[derive(Debug, Serialize)]
struct Drained {
    drained: bool,
    /// What is under way still.
    nodes: Vec<String>,
    exit_code: u8,
}

/// Pauses everything, and waits; `--timeout` bounds it. The pause stays in either case.
pub async fn run(args: &Args, session: &mut Session<'_>) -> Result<Exit, Fault> {
    let began = Instant::now();
    let request = PauseRequest {
        scope: Some(PauseScope { of: Some(pause_scope::Of::Everything(true)) }),
        reason: args.reason.clone(),
        lasts: Some(duration::to_wire(args.lasts)),
    };
    let mut client = session.client.clone();
    session.asked(client.pause(request)).await?;
    let paused = Instant::now();
    let page = session.console.page(Stream::Err);
    let mut told = String::new();
    loop {
        let asked = Instant::now();
        let listed = hosts::list_aged(session, ListNodesRequest::default()).await?;
        let busy: Vec<&Node> = listed.nodes.iter().filter(|node| is_under_way(node)).collect();
        // What a follower read before the pause was stored may lack a fence that had begun by then.
        if busy.is_empty() && asked.duration_since(paused) >= listed.age {
            break;
        }
        let words: Vec<String> =
            busy.iter().map(|node| format!("{} is {}", node.name, node_text::phase(node))).collect();
        let words = words.join(", ");
        if session.for_people() && words != told {
            session.console.write(Stream::Err, &page.text(Tone::Busy, &format!("waiting: {words}")))?;
            told = words;
        }
        if let Some(limit) = session.global.timeout.filter(|limit| began.elapsed() >= *limit) {
            if !session.for_people() {
                let nodes = busy.iter().map(|node| node.name.clone()).collect();
                let exit_code = Exit::TimedOut.code();
                session.console.document(&Drained { drained: false, nodes, exit_code })?;
                return Ok(Exit::TimedOut);
            }
            return Err(Fault::TimedOut(limit));
        }
        sleep(LOOK).await;
    }
    if session.for_people() {
        let words = "drained: no fence is under way, and none starts; end it with picket resume --everything";
        let page = session.console.page(Stream::Out);
        session.console.write(Stream::Out, &page.text(Tone::Good, words))?;
    } else {
        session.console.document(&Drained { drained: true, nodes: Vec::new(), exit_code: 0 })?;
    }
    Ok(Exit::Done)
}

/// Nodes that are kept off, released, or wait for a person, stand still.
fn is_under_way(node: &Node) -> bool {
    match node.phase() {
        Phase::Fencing | Phase::Unfencing => true,
        // What a restored store keeps off stands still as well.
        Phase::Fenced => !restored::is_kept_off(node),
        _ => false,
    }
}
