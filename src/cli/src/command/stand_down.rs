//! `picket stand-down`: say that nodes were alive, and undo their fences without a power-on.

use picket_proto::v1::StandDownRequest;

use super::request;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::follow::{self, FollowOptions};
use crate::motion::Motion;
use crate::session::Session;
use crate::{hosts, question};

/// Its arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Host lists: r1n07 or r1n[01-40,45]
    #[arg(required = true, value_name = "HOSTS")]
    hosts: Vec<String>,
    /// How you know that they were alive
    #[arg(long, required = true, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    following: FollowOptions,
}

/// Stands the nodes down, in the generation in which they were seen just now, and follows each to its outcome.
pub async fn run(args: &Args, session: &mut Session<'_>) -> Result<Exit, Fault> {
    let nodes = hosts::resolve(session, &args.hosts).await?;
    let asked = format!(
        "Stand {} down? You say that the machine was alive all the time: nothing of it is released, every hold on it is dropped.",
        question::names(&hosts::names(&nodes))
    );
    question::ask(session.console, session.global.yes, &asked).await?;
    let key = request::key(&args.following.key);
    let motions = nodes
        .iter()
        .map(|node| {
            let request = StandDownRequest {
                node: Some(hosts::selector(&node.name)),
                reason: args.reason.clone(),
                idempotency_key: key.clone(),
                expected_generation: Some(node.generation),
            };
            (node.name.clone(), Motion::StandDown(request))
        })
        .collect();
    let followed = follow::all(session, motions, &args.following).await?;
    follow::conclude(session, &followed)
}
