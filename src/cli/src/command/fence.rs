//! `picket fence`: switch nodes off, prove it, let their volumes go.

use std::time::Duration;

use clap::ValueEnum;
use picket_proto::v1::{FenceRequest, FenceThen, FenceUntil, Grade, LimitOverride, QueueWish};

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
    #[command(flatten)]
    options: FenceOptions,
    /// When the command ends; releases go on all the same
    #[arg(long, value_enum, default_value_t, value_name = "POINT")]
    until: Until,
    /// Do nothing if the request arrives later than this from now
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    not_after: Option<Duration>,
    /// Do nothing unless the node is in this generation (one node only)
    #[arg(long, value_name = "NUMBER")]
    generation: Option<u64>,
    /// Go through it all, store and send nothing; `picket plan` tells more
    #[arg(long)]
    dry_run: bool,
    /// Where a limit or a pause bars it: wait for a turn, also if this command ends, no longer than this [default: what the
    /// settings say]. Without it such a request is blocked at once
    #[arg(long, value_name = "DURATION", num_args = 0..=1, require_equals = true, value_parser = duration::parse, conflicts_with = "dry_run")]
    queue: Option<Option<Duration>>,
    #[command(flatten)]
    following: FollowOptions,
}

/// What is asked of a fence, also of one that is only planned.
#[derive(Debug, clap::Args)]
pub struct FenceOptions {
    /// Why; stands in the hold and the history [default: who asked, by name]
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// The hold that keeps them off [default: your own name]
    #[arg(long, value_name = "NAME")]
    holder: Option<String>,
    /// What comes after the release
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    then: Then,
    /// The least grade of evidence [default: claimed]
    #[arg(long, value_enum, value_name = "GRADE")]
    minimum_grade: Option<Least>,
    /// From the intent to the confirmation [default: what the settings say]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    deadline: Option<Duration>,
    /// Set budget, cool-down and brake aside, for this reason; wants the role admin. A pause is not set aside: resume it
    #[arg(long, value_name = "REASON")]
    override_budget: Option<String>,
    /// Fence although it costs the gateways' store its quorum, for this reason; wants the role admin. Nothing can be confirmed
    /// or released then before a member is back
    #[arg(long, value_name = "REASON")]
    override_quorum: Option<String>,
}

/// When the command ends.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Until {
    /// When they are proven off
    Confirmed,
    /// When, besides, their volumes are released
    #[default]
    Released,
}

/// What comes after the release.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Then {
    /// They stay off until the hold is dropped
    #[default]
    StayOff,
    /// The hold is dropped; with no other left they are powered on
    PowerOn,
}

/// Grades that may be asked for.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Least {
    /// A person's word will do
    Attested,
    /// Trusted, not verified
    Claimed,
    /// Seen off by a device whose identity was learned from itself
    Learned,
    /// A cloud or a parent says so
    Hypervisor,
    /// Seen off
    Observed,
}

impl From<Until> for FenceUntil {
    fn from(until: Until) -> Self {
        match until {
            Until::Confirmed => FenceUntil::Confirmed,
            Until::Released => FenceUntil::Released,
        }
    }
}

impl From<Then> for FenceThen {
    fn from(then: Then) -> Self {
        match then {
            Then::StayOff => FenceThen::StayOff,
            Then::PowerOn => FenceThen::PowerOn,
        }
    }
}

impl From<Least> for Grade {
    fn from(least: Least) -> Self {
        match least {
            Least::Attested => Grade::Attested,
            Least::Claimed => Grade::Claimed,
            Least::Learned => Grade::Learned,
            Least::Hypervisor => Grade::Hypervisor,
            Least::Observed => Grade::Observed,
        }
    }
}

impl FenceOptions {
    /// The request, as far as it is wished for.
    pub fn request(&self, node: &str) -> FenceRequest {
        let aside = |reason: &Option<String>| reason.clone().map(|reason| LimitOverride { reason });
        FenceRequest {
            node: Some(hosts::selector(node)),
            reason: request::reason(&self.reason),
            holder: self.holder.clone().unwrap_or_default(),
            then: FenceThen::from(self.then).into(),
            minimum_grade: self.minimum_grade.map(|least| Grade::from(least).into()).unwrap_or_default(),
            deadline: self.deadline.map(duration::to_wire),
            override_budget: aside(&self.override_budget),
            override_quorum: aside(&self.override_quorum),
            ..FenceRequest::default()
        }
    }
}

impl Args {
    fn request(&self, node: &str, key: &str) -> FenceRequest {
        FenceRequest {
            idempotency_key: key.to_owned(),
            until: FenceUntil::from(self.until).into(),
            not_after: self.not_after.map(duration::hence),
            expected_generation: self.generation,
            dry_run: self.dry_run,
            queue: self.queue.map(|at_most| QueueWish { at_most: at_most.map(duration::to_wire) }),
            ..self.options.request(node)
        }
    }
}

/// Fences the nodes, in parallel, and follows each to its outcome.
pub async fn run(args: &Args, session: &mut Session<'_>) -> Result<Exit, Fault> {
    let nodes = hosts::names(&hosts::resolve(session, &args.hosts).await?);
    if args.generation.is_some() && nodes.len() > 1 {
        return Err(Fault::Usage("--generation is of one node: name only one".to_owned()));
    }
    if !args.dry_run {
        let one = nodes.len() == 1;
        let (it, is, stay) = if one { ("It", "is", "stays off") } else { ("They", "are", "stay off") };
        let then = match args.options.then {
            Then::StayOff => format!(" and {stay}"),
            Then::PowerOn => format!(
                "; once released your hold is dropped, and with no other left {} {is} powered on again",
                it.to_lowercase()
            ),
        };
        let asked = format!("Fence {}? {it} {is} switched off hard{then}.", question::names(&nodes));
        question::ask(session.console, session.global.yes, &asked).await?;
    }
    let key = request::key(&args.following.key);
    let motions = nodes.iter().map(|node| (node.clone(), Motion::Fence(args.request(node, &key)))).collect();
    let followed = follow::all(session, motions, &args.following).await?;
    follow::conclude(session, &followed)
}
