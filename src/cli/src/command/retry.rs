//! `picket retry`: try again what a person was asked about.

use std::time::Duration;

use picket_proto::v1::RetryRequest;

use super::request;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::follow::{self, FollowOptions};
use crate::motion::Motion;
use crate::session::Session;
use crate::{duration, hosts, question};

/// Its arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Host lists: r1n07 or r1n[01-40,45]
    #[arg(required = true, value_name = "HOSTS")]
    hosts: Vec<String>,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// How long this time [default: what the settings say]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    deadline: Option<Duration>,
    /// You looked at the machine after its BMC restarted, and it is off: the BMC is believed again
    #[arg(long)]
    seen_off: bool,
    #[command(flatten)]
    following: FollowOptions,
}

/// Tries the nodes again, in the generation in which they were seen just now, and follows each to its outcome.
pub async fn run(args: &Args, session: &mut Session<'_>) -> Result<Exit, Fault> {
    let nodes = hosts::resolve(session, &args.hosts).await?;
    let names = question::names(&hosts::names(&nodes));
    let asked = match args.seen_off {
        true => format!(
            "Try {names} again? Did you look at the machine itself, and is it off? The volumes are let go on your word and on that of a BMC \
             that restarted; if the machine runs, its data are destroyed."
        ),
        false => format!(
            "Try {names} again? What needs an operator is switched off once more, what failed to come on is switched on once more."
        ),
    };
    question::ask(session.console, session.global.yes, &asked).await?;
    let key = request::key(&args.following.key);
    let motions = nodes
        .iter()
        .map(|node| {
            let request = RetryRequest {
                node: Some(hosts::selector(&node.name)),
                reason: request::reason(&args.reason),
                idempotency_key: key.clone(),
                deadline: args.deadline.map(duration::to_wire),
                expected_generation: Some(node.generation),
                seen_off: args.seen_off,
            };
            (node.name.clone(), Motion::Retry(request))
        })
        .collect();
    let followed = follow::all(session, motions, &args.following).await?;
    follow::conclude(session, &followed)
}
