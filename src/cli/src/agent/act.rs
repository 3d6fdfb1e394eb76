//! What each action asks of the gateway.

use std::time::{Duration, Instant};

use picket_proto::v1::{
    FenceRequest, FenceThen, GetNodeRequest, ListNodesRequest, Node, Phase, Power, UnfenceRequest,
};

use super::Ended;
use super::options::{Action, Options};
use crate::certificates::Certificates;
use crate::console::{Console, Stream};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::follow::{self, FollowOptions};
use crate::global::{Format, Global};
use crate::hosts;
use crate::motion::{FollowEnd, Motion};
use crate::session::Session;
use crate::view::update;

/// For how long a broken way to the gateways is tried again: longer than a change of leadership takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// How much older than the question a reading may be that is told as one of now: a reading may have been under way already.
const UNDER_WAY: Duration = Duration::from_secs(5);

/// Acts, and says in words how it went.
pub(super) async fn act(options: &Options, console: &mut Console) -> Result<Ended, Fault> {
    if matches!(options.action, Action::Off | Action::Reboot) {
        tokio::time::sleep(options.delay).await;
    }
    let mut session = Session::open(global(options), console).await?;
    let node = options.plug.clone().unwrap_or_default();
    let (ended, words) = match options.action {
        Action::Off | Action::Reboot => fence(options, &node, &mut session).await?,
        Action::On => on(options, &node, &mut session).await?,
        Action::Status => status(&node, &session).await?,
        Action::Monitor | Action::ValidateAll => monitor(options, &session).await?,
        Action::List | Action::ListStatus => list(options, &session).await?,
        // These ask nobody, and were told before.
        Action::Metadata | Action::Help | Action::Version => return Ok(Ended::Failed),
    };
    let is_list = matches!(options.action, Action::List | Action::ListStatus);
    if ended == Ended::Failed {
        session.console.error(&words);
    } else if is_list || !options.quiet {
        session.console.write(Stream::Out, &words)?;
    }
    Ok(ended)
}

fn global(options: &Options) -> Global {
    Global {
        endpoint: options.endpoint.clone(),
        context: options.context.clone(),
        config: options.config.clone(),
        certificates: Certificates {
            ca_file: options.ca_file.clone(),
            cert_file: options.cert_file.clone(),
            key_file: options.key_file.clone(),
        },
        output: Format::Table,
        yes: true,
        timeout: options.timeout,
    }
}

fn reason(options: &Options) -> String {
    options.reason.clone().unwrap_or_else(|| "a cluster's fence agent asked (fence_picket)".to_owned())
}

/// Follows one node to its end; why not, in words, where it did not come to what was asked for.
async fn follow(session: &mut Session<'_>, node: &str, motion: Motion) -> Result<Result<(), String>, Fault> {
    // Each call of an agent is a request of its own: who asks again joins the fence that is open.
    let following = FollowOptions { key: None, parallel: 1, patience: PATIENCE };
    let followed = follow::all(session, vec![(node.to_owned(), motion)], &following).await?;
    let Some(followed) = followed.first() else {
        return Err(Fault::Nonsense("nobody followed the node"));
    };
    if followed.exit() == Exit::Done {
        // The cluster starts the node's resources elsewhere once this agent succeeds, and the real machine still runs (S1).
        if followed.latest.as_ref().is_some_and(update::is_simulated) {
            return Ok(Err("the gateway is simulated and switches no real machine".to_owned()));
        }
        return Ok(Ok(()));
    }
    let why = match &followed.end {
        FollowEnd::Outcome(outcome) => {
            let kind = outcome.kind().as_str_name().trim_start_matches("OUTCOME_KIND_").to_lowercase();
            format!("{}: {}", kind.replace('_', " "), outcome.detail)
        }
        FollowEnd::Refused(told) => told.to_string(),
        FollowEnd::Lost(why) => why.clone(),
        FollowEnd::TimedOut => "the time was over first; what was begun goes on".to_owned(),
        FollowEnd::Interrupted => "interrupted; what was begun goes on".to_owned(),
    };
    Ok(Err(why))
}

fn key() -> String {
    uuid::Uuid::now_v7().to_string()
}

async fn fence(options: &Options, node: &str, session: &mut Session<'_>) -> Result<(Ended, String), Fault> {
    let then = match options.action {
        Action::Reboot => FenceThen::PowerOn,
        _ => FenceThen::StayOff,
    };
    let request = FenceRequest {
        node: Some(hosts::selector(node)),
        reason: reason(options),
        idempotency_key: key(),
        holder: options.holder.clone(),
        then: then.into(),
        until: options.until.into(),
        minimum_grade: options.minimum_grade.map(i32::from).unwrap_or_default(),
        ..FenceRequest::default()
    };
    Ok(match follow(session, node, Motion::Fence(request)).await? {
        Ok(()) if then == FenceThen::PowerOn => (
            Ended::Done,
            "Success: Powered OFF, proven; it is powered on again unless others hold it\n".to_owned(),
        ),
        Ok(()) => (Ended::Done, "Success: Powered OFF, proven\n".to_owned()),
        Err(why) => (Ended::Failed, format!("{node} is not proven off: {why}")),
    })
}

/// Drops the hold. Of a node that nobody fenced there is none to drop: it is on, or a person switched it off.
async fn on(options: &Options, node: &str, session: &mut Session<'_>) -> Result<(Ended, String), Fault> {
    let (found, power) = look(node, session).await?;
    if found.phase() == Phase::Normal {
        return Ok(match power {
            Power::On => (Ended::Done, "Success: Already ON\n".to_owned()),
            _ => {
                let words = "it was not fenced, and only what was fenced is powered on; switch it on by hand";
                (Ended::Failed, format!("{node} does not read On: {words}"))
            }
        });
    }
    let request = UnfenceRequest {
        node: Some(hosts::selector(node)),
        reason: reason(options),
        idempotency_key: key(),
        holder: options.holder.clone(),
        ..UnfenceRequest::default()
    };
    Ok(match follow(session, node, Motion::Unfence(request)).await? {
        Ok(()) => (Ended::Done, "Success: Powered ON\n".to_owned()),
        Err(why) => (Ended::Failed, format!("{node} is not powered on: {why}")),
    })
}

/// The node, and its power as it was read now.
async fn look(node: &str, session: &Session<'_>) -> Result<(Node, Power), Fault> {
    let asked = Instant::now();
    let request = GetNodeRequest { node: Some(hosts::selector(node)), fresh: true };
    let mut client = session.client.clone();
    let answer = session.asked(client.get_node(request)).await?.into_inner();
    let found = answer.node.ok_or(Fault::Nonsense("no node"))?;
    let power = power(&found, asked.elapsed() + UNDER_WAY);
    Ok((found, power))
}

/// What it reads, where that is not older. A proof without a reading is no reading: only an explicit Off is told as off.
fn power(node: &Node, oldest: Duration) -> Power {
    let Some(read) = &node.power else { return Power::Unknown };
    let is_of_now = read.age.and_then(|age| Duration::try_from(age).ok()).is_some_and(|age| age <= oldest);
    match read.power() {
        power @ (Power::On | Power::Off) if is_of_now => power,
        _ => Power::Unknown,
    }
}

async fn status(node: &str, session: &Session<'_>) -> Result<(Ended, String), Fault> {
    let (found, power) = look(node, session).await?;
    Ok(match power {
        Power::On => (Ended::Done, "Status: ON\n".to_owned()),
        Power::Off => (Ended::Off, "Status: OFF\n".to_owned()),
        _ => (Ended::Failed, format!("the power of {node} cannot be read now: {}", found.detail)),
    })
}

/// Whether a fence could be asked for: a gateway answers, one leads, and knows the node.
async fn monitor(options: &Options, session: &Session<'_>) -> Result<(Ended, String), Fault> {
    let served = match &options.plug {
        Some(node) => {
            let request = GetNodeRequest { node: Some(hosts::selector(node)), fresh: false };
            let mut client = session.client.clone();
            session.asked(client.get_node(request)).await?.into_inner().served
        }
        None => {
            let mut client = session.client.clone();
            let request = ListNodesRequest { page_size: 1, ..ListNodesRequest::default() };
            session.asked(client.list_nodes(request)).await?.into_inner().served
        }
    };
    let leads = served.is_some_and(|served| served.leads || !served.leader.is_empty());
    Ok(if leads {
        (Ended::Done, "Success: a gateway leads, and answers\n".to_owned())
    } else {
        (Ended::Failed, "gateways answer, and none of them leads: nothing can be fenced now".to_owned())
    })
}

async fn list(options: &Options, session: &Session<'_>) -> Result<(Ended, String), Fault> {
    let fresh = options.action == Action::ListStatus;
    let request = ListNodesRequest { fresh, ..ListNodesRequest::default() };
    let asked = Instant::now();
    let (nodes, _, _) = hosts::list(session, request).await?;
    let (separator, oldest) = (&options.separator, asked.elapsed() + UNDER_WAY);
    let line = |node: &Node| {
        let power = match power(node, oldest) {
            Power::On => "ON",
            Power::Off => "OFF",
            _ => "UNKNOWN",
        };
        // Plug, alias, and the state if it is wished for. There are no aliases here.
        let state = if fresh { format!("{separator}{power}") } else { String::new() };
        format!("{}{separator}{state}\n", node.name)
    };
    Ok((Ended::Done, nodes.iter().map(line).collect()))
}

#[cfg(test)]
mod tests {
    use picket_proto::v1::NodePower;

    use super::*;

    #[test]
    fn only_an_explicit_off_of_now_is_off() {
        let node = |power: Power, age: Option<i64>| Node {
            phase: Phase::Released.into(),
            proven: true,
            power: Some(NodePower {
                power: power.into(),
                age: age.map(|seconds| prost_types::Duration { seconds, nanos: 0 }),
                ..NodePower::default()
            }),
            ..Node::default()
        };
        let told = |node: Node| power(&node, Duration::from_secs(6));
        assert_eq!(told(node(Power::Off, Some(1))), Power::Off);
        assert_eq!(told(node(Power::On, Some(1))), Power::On);
        assert_eq!(told(node(Power::Off, Some(60))), Power::Unknown, "read long ago");
        assert_eq!(told(node(Power::Off, Some(-1))), Power::Unknown, "no age");
        assert_eq!(told(node(Power::Off, None)), Power::Unknown, "nobody knows when");
        assert_eq!(told(node(Power::Unspecified, Some(1))), Power::Unknown);
        assert_eq!(told(node(Power::Unknown, Some(1))), Power::Unknown, "a proof is no reading");
        assert_eq!(told(Node { power: None, ..node(Power::Off, Some(1)) }), Power::Unknown);
    }
}
