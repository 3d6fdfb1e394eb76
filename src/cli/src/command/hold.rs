//! `picket hold` and `picket unhold`: named reasons to keep nodes off.

use picket_proto::v1::{DropHoldRequest, HoldRequest};

use super::calls;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::hosts;
use crate::session::Session;

/// The arguments of both.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Host lists: r1n07 or r1n[01-40,45]
    #[arg(required = true, value_name = "HOSTS")]
    hosts: Vec<String>,
    /// Why; stands in the history
    #[arg(long, required = true, value_name = "TEXT")]
    reason: String,
    /// Whose hold; roles say for whom you may act [default: your own]
    #[arg(long, value_name = "NAME")]
    holder: Option<String>,
    /// Do nothing unless the node is in this generation (one node only)
    #[arg(long, value_name = "NUMBER")]
    generation: Option<u64>,
}

impl Args {
    /// The nodes, checked against the generation.
    async fn nodes(&self, session: &Session<'_>) -> Result<Vec<String>, Fault> {
        let nodes = hosts::names(&hosts::resolve(session, &self.hosts).await?);
        if self.generation.is_some() && nodes.len() > 1 {
            return Err(Fault::Usage("--generation is of one node: name only one".to_owned()));
        }
        Ok(nodes)
    }
}

/// Places the hold on each node, or renews its reason. Asks nothing: a hold only keeps off what is off.
pub async fn run(args: &Args, session: &mut Session<'_>) -> Result<Exit, Fault> {
    let mut answers = Vec::new();
    for node in args.nodes(session).await? {
        let request = HoldRequest {
            node: Some(hosts::selector(&node)),
            holder: args.holder.clone().unwrap_or_default(),
            reason: args.reason.clone(),
            expected_generation: args.generation,
        };
        let mut client = session.client.clone();
        let answer = calls::one(session, client.hold(request), |answer| answer.node).await?;
        answers.push((node, answer));
    }
    calls::tell(session, &answers, "held")
}

/// Drops the hold of each node, and waits for nothing: with none left the node is brought back.
pub async fn run_unhold(args: &Args, session: &mut Session<'_>) -> Result<Exit, Fault> {
    let mut answers = Vec::new();
    for node in args.nodes(session).await? {
        let request = DropHoldRequest {
            node: Some(hosts::selector(&node)),
            holder: args.holder.clone().unwrap_or_default(),
            reason: args.reason.clone(),
            expected_generation: args.generation,
        };
        let mut client = session.client.clone();
        let answer = calls::one(session, client.drop_hold(request), |answer| answer.node).await?;
        answers.push((node, answer));
    }
    calls::tell(session, &answers, "hold dropped")
}
