//! `picket plan`: what a fence would do, and what bars it.

use picket_proto::v1::PlanFenceRequest;

use super::fence::FenceOptions;
use super::pause::told;
use crate::console::Stream;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::hosts;
use crate::session::Session;
use crate::view::plan::{self, Plans};

/// Its arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Host lists: r1n07 or r1n[01-40,45]
    #[arg(required = true, value_name = "HOSTS")]
    hosts: Vec<String>,
    #[command(flatten)]
    options: FenceOptions,
}

/// Plans node by node. Nothing is stored and nothing is sent that changes power.
pub async fn run(args: &Args, session: &mut Session<'_>) -> Result<Exit, Fault> {
    let nodes = hosts::names(&hosts::resolve(session, &args.hosts).await?);
    let mut answers = Vec::new();
    for node in nodes {
        let request = PlanFenceRequest { fence: Some(args.options.request(&node)) };
        let mut client = session.client.clone();
        let answer = told(session.asked(client.plan_fence(request)).await)?;
        answers.push((node, answer.map(|answer| answer.into_inner())));
    }
    let end = Exit::worst(answers.iter().map(|(_, answer)| plan::exit(answer)));
    if session.for_people() {
        let page = session.console.page(Stream::Out);
        let all: Vec<String> = answers.iter().map(|(node, answer)| plan::text(node, answer, page)).collect();
        session.console.write(Stream::Out, &all.join("\n"))?;
    } else {
        session.console.document(&Plans::of(&answers, end))?;
    }
    Ok(end)
}
