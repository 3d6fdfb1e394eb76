//! `picket unfence`: drop a hold; with none left bring the nodes back.

use std::time::Duration;

use picket_proto::v1::UnfenceRequest;

use super::request;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::follow::{self, FollowOptions};
use crate::motion::Motion;
use crate::session::Session;
use crate::{duration, hosts};

/// Its arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Host lists: r1n07 or r1n[01-40,45]
    #[arg(required = true, value_name = "HOSTS")]
    hosts: Vec<String>,
    /// Why; stands in the history [default: who asked, by name]
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Whose hold is dropped; whoever reaches the gateway may drop anybody's [default: your own]
    #[arg(long, value_name = "NAME")]
    holder: Option<String>,
    /// How long a node may take until it is seen on [default: what the settings say]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    deadline: Option<Duration>,
    /// Do nothing if the request arrives later than this from now
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    not_after: Option<Duration>,
    /// Do nothing unless the node is in this generation (one node only)
    #[arg(long, value_name = "NUMBER")]
    generation: Option<u64>,
    #[command(flatten)]
    following: FollowOptions,
}

/// Unfences the nodes, in parallel, and follows each to its outcome. Asks nothing: the gateway powers on only what is
/// proven off, released, and held by nobody.
pub async fn run(args: &Args, session: &mut Session<'_>) -> Result<Exit, Fault> {
    let nodes = hosts::names(&hosts::resolve(session, &args.hosts).await?);
    if args.generation.is_some() && nodes.len() > 1 {
        return Err(Fault::Usage("--generation is of one node: name only one".to_owned()));
    }
    let key = request::key(&args.following.key);
    let motions = nodes
        .iter()
        .map(|node| {
            let request = UnfenceRequest {
                node: Some(hosts::selector(node)),
                reason: request::reason(&args.reason),
                idempotency_key: key.clone(),
                holder: args.holder.clone().unwrap_or_default(),
                deadline: args.deadline.map(duration::to_wire),
                not_after: args.not_after.map(duration::hence),
                expected_generation: args.generation,
            };
            (node.clone(), Motion::Unfence(request))
        })
        .collect();
    let followed = follow::all(session, motions, &args.following).await?;
    follow::conclude(session, &followed)
}
