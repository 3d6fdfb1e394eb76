//! `picket attest`: vouch that nodes are off.

use picket_proto::v1::{AttestRequest, ListNodesRequest, Node, Power};

use super::request;
use crate::console::Stream;
use crate::duration;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::follow::{self, FollowOptions};
use crate::motion::Motion;
use crate::session::Session;
use crate::style::{Page, Tone};
use crate::view::words;
use crate::{hosts, question};

/// Its arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Host lists: r1n07 or r1n[01-40,45]
    #[arg(required = true, value_name = "HOSTS")]
    hosts: Vec<String>,
    /// How you know that they are off: you went there and pulled the plug
    #[arg(long, required = true, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    following: FollowOptions,
}

/// Shows what the devices say now, asks, and vouches for each node in the generation in which it was seen; then follows its
/// releases.
pub async fn run(args: &Args, session: &mut Session<'_>) -> Result<Exit, Fault> {
    let nodes = look(args, session).await?;
    let names: Vec<String> = nodes.iter().map(|(name, _)| name.clone()).collect();
    let asked = format!(
        "Vouch that {} off? Volumes are let go on your word: if one still runs, its data is lost.",
        match names.as_slice() {
            [one] => format!("{one} is"),
            names => format!("{} are", question::names(names)),
        }
    );
    question::ask(session.console, session.global.yes, &asked).await?;
    let key = request::key(&args.following.key);
    let motions = nodes
        .iter()
        .map(|(name, generation)| {
            let request = AttestRequest {
                node: Some(hosts::selector(name)),
                reason: args.reason.clone(),
                idempotency_key: key.clone(),
                expected_generation: *generation,
            };
            (name.clone(), Motion::Attest(request))
        })
        .collect();
    let followed = follow::all(session, motions, &args.following).await?;
    follow::conclude(session, &followed)
}

/// The nodes, each with the generation in which it is seen; tells what their devices say now.
///
/// The role attest does not let its caller look. Without the role viewer one node can still be named: it is vouched for as
/// it is then, and the gateway still refuses where a device says On.
async fn look(args: &Args, session: &mut Session<'_>) -> Result<Vec<(String, Option<u64>)>, Fault> {
    let request = ListNodesRequest { nodes: hosts::set(&args.hosts), fresh: true, ..Default::default() };
    let mut told = match hosts::list(session, request).await {
        Ok((nodes, _, _)) => {
            let page = session.console.page(Stream::Err);
            for node in &nodes {
                session.console.write(Stream::Err, &said(node, page))?;
            }
            return Ok(nodes.into_iter().map(|node| (node.name, Some(node.generation))).collect());
        }
        Err(Fault::Gateway(told)) if told.code == "permission_denied" => told,
        Err(other) => return Err(other),
    };
    match args.hosts.as_slice() {
        [name] if name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) => {
            let text = format!(
                "{name}: you may not look at it ({}): what its devices say is not shown, and whether it was fenced anew \
                 meanwhile is not compared",
                told.message
            );
            let text = session.console.page(Stream::Err).text(Tone::Plain, &text);
            session.console.write(Stream::Err, &text)?;
            Ok(vec![(name.clone(), None)])
        }
        _ => {
            told.message += "; without it vouch for one node at a time, by its plain name";
            Err(Fault::Gateway(told))
        }
    }
}

/// What the devices of a node say now, a line each.
fn said(node: &Node, page: Page) -> String {
    let mut text = String::new();
    for device in &node.devices {
        let words = match &device.reading {
            Some(reading) => {
                let power = words::spoken(words::power(reading.power));
                let age = reading.age.as_ref().map(duration::of_wire).unwrap_or_default();
                let warning = if reading.power == i32::from(Power::On) { "  <- it says On" } else { "" };
                format!("{power}, {} ago ({}){warning}", duration::whole(age), reading.said)
            }
            None => "not read".to_owned(),
        };
        text += &page.of_node(&node.name, Tone::Plain, &format!("{}: {words}", device.id));
    }
    text
}
