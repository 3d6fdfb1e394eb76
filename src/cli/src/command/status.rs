//! `picket status`: how nodes stand, in detail; without nodes, how the fleet stands.

use picket_proto::v1::ListNodesRequest;

use super::nodes::Nodes;
use crate::console::Stream;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::hosts;
use crate::session::Session;
use crate::view::node::NodeView;
use crate::view::node_text;

/// Its arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Host lists: r1n07 or r1n[01-40,45] [default: the fleet in short]
    #[arg(value_name = "HOSTS")]
    hosts: Vec<String>,
    /// Ask their devices now
    #[arg(long)]
    fresh: bool,
}

/// Tells it. The exit code says whether the gateway answered, not how the nodes are.
pub async fn run(args: &Args, session: &mut Session<'_>) -> Result<Exit, Fault> {
    let request =
        ListNodesRequest { nodes: hosts::set(&args.hosts), fresh: args.fresh, ..Default::default() };
    let (nodes, revision, troubles) = hosts::list(session, request).await?;
    for trouble in troubles {
        session.console.error(&trouble);
    }
    let page = session.console.page(Stream::Out);
    if !session.for_people() {
        session.console.document(&Nodes { nodes: nodes.iter().map(NodeView::from).collect(), revision })?;
    } else if args.hosts.is_empty() {
        let text = node_text::overview(&nodes, page);
        session.console.write(Stream::Out, &text)?;
    } else {
        let all: Vec<String> = nodes.iter().map(|node| node_text::detail(node, page)).collect();
        session.console.write(Stream::Out, &all.join("\n"))?;
    }
    Ok(Exit::Done)
}
