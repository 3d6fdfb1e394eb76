//! `picket drill`: fence nodes on purpose and bring them back.

use picket_proto::v1::{DrillRequest, DrillResponse, drill_request};
use serde::Serialize;
use tokio_stream::StreamExt;

use super::request;
use crate::console::Stream;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::gateway_error::GatewayError;
use crate::motion::Motion;
use crate::session::Session;
use crate::style::{Tone, clean};
use crate::view::outcome::{self, OutcomeView};
use crate::{hosts, question};

/// Its arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The node
    #[arg(value_name = "NODE", required_unless_present = "group", conflicts_with = "group")]
    node: Option<String>,
    /// One of this group: the one whose last drill is the longest ago
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
    /// Why; stands in the history
    #[arg(long, required = true, value_name = "TEXT")]
    reason: String,
    /// Say what would happen, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// An idempotency key of your own, so that a script can repeat the command safely [default: a new one]
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

/// The document.
#[derive(Debug, Serialize)]
struct Drill {
    node: Option<String>,
    fence_id: Option<String>,
    outcome: Option<OutcomeView>,
    findings: Vec<String>,
    exit_code: u8,
    idempotency_key: String,
}

/// Drills the node, and follows it until it is back.
pub async fn run(args: &Args, session: &mut Session<'_>) -> Result<Exit, Fault> {
    let target = match (&args.node, &args.group) {
        (Some(node), _) => {
            let nodes = hosts::resolve(session, std::slice::from_ref(node)).await?;
            let [node] = nodes.as_slice() else {
                return Err(Fault::Usage(
                    "a drill is of one node at a time: name one, or a group".to_owned(),
                ));
            };
            drill_request::Target::Node(hosts::selector(&node.name))
        }
        (None, group) => drill_request::Target::Group(group.clone().unwrap_or_default()),
    };
    if !args.dry_run {
        let what = args
            .node
            .clone()
            .unwrap_or_else(|| format!("a node of {}", args.group.clone().unwrap_or_default()));
        let asked = format!(
            "Drill {what}? It is switched off hard, whatever runs on it, its volumes are let go, and it is brought back."
        );
        question::ask(session.console, session.global.yes, &asked).await?;
    }
    let key = request::key(&args.key);
    let request = DrillRequest {
        target: Some(target),
        reason: args.reason.clone(),
        idempotency_key: key.clone(),
        dry_run: args.dry_run,
    };
    let (last, exit) = match follow(session, &request).await? {
        DrillEnd::End(last) => *last,
        DrillEnd::TimedOut => return Ok(Exit::TimedOut),
        DrillEnd::Interrupted => return Ok(Exit::Interrupted),
    };
    let update = last.update.unwrap_or_default();
    let page = session.console.page(Stream::Out);
    if session.for_people() {
        let end = update.outcome.clone().unwrap_or_default();
        let tone = if exit == Exit::Done { Tone::Good } else { Tone::Bad };
        let mut text = page.of_node(&update.node, tone, &outcome::sentence(&end));
        let margin = " ".repeat(update.node.chars().count());
        for finding in &last.findings {
            text += &page.of_node(&margin, Tone::Plain, finding);
        }
        session.console.write(Stream::Out, &text)?;
    } else {
        session.console.document(&Drill {
            node: crate::view::filled(&update.node),
            fence_id: crate::view::filled(&update.fence_id),
            outcome: update.outcome.as_ref().map(OutcomeView::from),
            findings: last.findings,
            exit_code: exit.code(),
            idempotency_key: key,
        })?;
    }
    Ok(exit)
}

/// How following ended.
enum DrillEnd {
    End(Box<(DrillResponse, Exit)>),
    TimedOut,
    Interrupted,
}

/// Opens the stream, again with the same key where it broke, and tells what happens meanwhile.
async fn follow(session: &mut Session<'_>, request: &DrillRequest) -> Result<DrillEnd, Fault> {
    let limit = session.global.timeout;
    tokio::select! {
        biased;
        _ = tokio::signal::ctrl_c() => Ok(DrillEnd::Interrupted),
        () = tokio::time::sleep(limit.unwrap_or_default()), if limit.is_some() => Ok(DrillEnd::TimedOut),
        end = to_the_end(session, request) => end,
    }
}

async fn to_the_end(session: &mut Session<'_>, request: &DrillRequest) -> Result<DrillEnd, Fault> {
    const TRIES: u32 = 20;
    let mut left = TRIES;
    loop {
        let mut client = session.client.clone();
        let status = match client.drill(request.clone()).await {
            Ok(answer) => {
                let mut updates = answer.into_inner();
                loop {
                    match updates.next().await {
                        Some(Ok(told)) => {
                            left = TRIES;
                            let end = told.update.as_ref().and_then(|update| update.outcome.clone());
                            if let Some(end) = end {
                                let exit = Motion::Drill(request.clone()).exit(&end);
                                return Ok(DrillEnd::End(Box::new((told, exit))));
                            }
                            if session.for_people() {
                                let update = told.update.unwrap_or_default();
                                let line = format!("{}  {}\n", clean(&update.node), clean(&update.text));
                                session.console.write(Stream::Err, &line)?;
                            }
                        }
                        Some(Err(status)) => break status,
                        None => break tonic::Status::unavailable("the stream ended without an outcome"),
                    }
                }
            }
            Err(status) => status,
        };
        let told = GatewayError::from(&status);
        left = left.saturating_sub(1);
        if !told.is_passing() || left == 0 {
            return Err(Fault::Gateway(Box::new(told)));
        }
        tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    }
}
