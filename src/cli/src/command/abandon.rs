//! `picket abandon`: give up a release, by name.

use picket_proto::v1::{AbandonReleaseRequest, Node, ReleaseStage};

use crate::console::Stream;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::gateway_error::GatewayError;
use crate::session::Session;
use crate::style::Tone;
use crate::view::node_text;
use crate::view::result::{ResultView, Results};
use crate::{hosts, question};

/// Its arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Host lists: r1n07 or r1n[01-40,45]
    #[arg(value_name = "HOSTS")]
    hosts: String,
    /// The release's name: `picket status` shows it
    #[arg(value_name = "RELEASE")]
    release: String,
    /// How you know that its volumes are free, or why that does not matter
    #[arg(long, required = true, value_name = "TEXT")]
    reason: String,
}

/// Gives the release up, node by node, in the generation in which they were seen just now.
pub async fn run(args: &Args, session: &mut Session<'_>) -> Result<Exit, Fault> {
    let nodes = hosts::resolve(session, std::slice::from_ref(&args.hosts)).await?;
    let asked = format!(
        "Abandon the release {} of {}? From then on you answer for its volumes.",
        args.release,
        question::names(&hosts::names(&nodes))
    );
    question::ask(session.console, session.global.yes, &asked).await?;
    let mut answers = Vec::new();
    for node in &nodes {
        answers.push((node.name.clone(), one(args, session, node).await?));
    }
    let exit = Exit::worst(
        answers.iter().map(|(_, answer)| answer.as_ref().err().map_or(Exit::Done, GatewayError::exit)),
    );
    if !session.for_people() {
        let results = answers.iter().map(|(node, answer)| ResultView::of_call(node, answer)).collect();
        session.console.document(&Results::of_calls(results, exit))?;
        return Ok(exit);
    }
    let page = session.console.page(Stream::Out);
    for (node, answer) in &answers {
        let (tone, text) = match answer {
            Ok(now) => {
                let (tone, done) = came_to(now, &args.release);
                (tone, format!("release {} {done}; the node is {}", args.release, node_text::phase(now)))
            }
            Err(told) => (Tone::Bad, format!("refused: {}", told.to_string().replace('\n', "; "))),
        };
        session.console.write(Stream::Out, &page.of_node(node, tone, &text))?;
    }
    Ok(exit)
}

/// What stands is taken away first: the word has ended attempts that nothing bounds, and no more.
fn came_to(node: &Node, release: &str) -> (Tone, &'static str) {
    let stage = node.releases.iter().find(|one| one.name == release).map(|one| one.stage());
    match stage {
        None | Some(ReleaseStage::Abandoned | ReleaseStage::Complete) => (Tone::Good, "abandoned"),
        Some(_) => (
            Tone::Busy,
            "is not given up yet: its attempts have ended by your word, what it set up is taken away; abandon it again after that",
        ),
    }
}

/// One node; what the gateway refuses is of that node, what breaks the way there ends the command.
async fn one(args: &Args, session: &Session<'_>, node: &Node) -> Result<Result<Node, GatewayError>, Fault> {
    let request = AbandonReleaseRequest {
        node: Some(hosts::selector(&node.name)),
        release: args.release.clone(),
        reason: args.reason.clone(),
        expected_generation: Some(node.generation),
    };
    let mut client = session.client.clone();
    match session.asked(client.abandon_release(request)).await {
        Ok(answer) => answer
            .into_inner()
            .node
            .map(Ok)
            .ok_or(Fault::Nonsense("it abandoned a release and says nothing of the node")),
        Err(Fault::Gateway(told)) if !told.is_passing() => Ok(Err(*told)),
        Err(fault) => Err(fault),
    }
}
