//! `picket retire`: say that the hardware is gone for good.

use picket_proto::v1::RetireRequest;

use super::calls;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::session::Session;
use crate::{hosts, question};

/// Its arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Host lists: r1n07 or r1n[01-40,45]
    #[arg(required = true, value_name = "HOSTS")]
    hosts: Vec<String>,
    /// What became of them
    #[arg(long, required = true, value_name = "TEXT")]
    reason: String,
}

/// Retires the nodes, in the generation in which they were seen just now.
pub async fn run(args: &Args, session: &mut Session<'_>) -> Result<Exit, Fault> {
    let nodes = hosts::resolve(session, &args.hosts).await?;
    let asked = format!(
        "Retire {}? You say that the hardware is gone for good: its fence and all holds end with no proof that anything is off, and \
         nothing that was held is put back. It is a node no more until the settings bring another machine.",
        question::names(&hosts::names(&nodes))
    );
    question::ask(session.console, session.global.yes, &asked).await?;
    let mut answers = Vec::new();
    for node in nodes {
        let request = RetireRequest {
            node: Some(hosts::selector(&node.name)),
            reason: args.reason.clone(),
            expected_generation: Some(node.generation),
        };
        let mut client = session.client.clone();
        let answer = calls::one(session, client.retire(request), |answer| answer.node).await?;
        answers.push((node.name, answer));
    }
    calls::tell(session, &answers, "retired")
}
