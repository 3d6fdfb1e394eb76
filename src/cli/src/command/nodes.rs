//! `picket nodes`: list nodes.

use clap::ValueEnum;
use picket_proto::v1::{ListNodesRequest, Phase};
use serde::Serialize;

use crate::console::Stream;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::hosts;
use crate::session::Session;
use crate::view::node::NodeView;
use crate::view::{node_text, simulated};

/// Its arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Host lists: r1n07 or r1n[01-40,45] [default: all]
    #[arg(value_name = "HOSTS")]
    hosts: Vec<String>,
    /// Only those in one of these phases
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PHASE")]
    phase: Vec<PhaseName>,
    /// Ask their devices now
    #[arg(long)]
    fresh: bool,
    /// All columns whatever the terminal's width, with moments rather than ages
    #[arg(long)]
    wide: bool,
}

/// Phases by their names.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum PhaseName {
    /// Not fenced
    Normal,
    /// Being switched off and confirmed
    Fencing,
    /// Proven off, not all released
    Fenced,
    /// Proven off and released
    Released,
    /// Being brought back
    Unfencing,
    /// Not seen on
    PowerOnFailed,
    /// A person must decide
    NeedsOperator,
    /// Its hardware is gone for good
    Retired,
}

impl From<PhaseName> for Phase {
    fn from(name: PhaseName) -> Self {
        match name {
            PhaseName::Normal => Phase::Normal,
            PhaseName::Fencing => Phase::Fencing,
            PhaseName::Fenced => Phase::Fenced,
            PhaseName::Released => Phase::Released,
            PhaseName::Unfencing => Phase::Unfencing,
            PhaseName::PowerOnFailed => Phase::PowerOnFailed,
            PhaseName::NeedsOperator => Phase::NeedsOperator,
            PhaseName::Retired => Phase::Retired,
        }
    }
}

/// The document.
#[derive(Debug, Serialize)]
pub struct Nodes {
    /// The nodes.
    pub nodes: Vec<NodeView>,
    /// Where `watch` would go on.
    pub revision: String,
}

/// Lists them.
pub async fn run(args: &Args, session: &mut Session<'_>) -> Result<Exit, Fault> {
    let request = ListNodesRequest {
        nodes: hosts::set(&args.hosts),
        phases: args.phase.iter().map(|name| Phase::from(*name).into()).collect(),
        fresh: args.fresh,
        ..Default::default()
    };
    let (nodes, revision, troubles) = hosts::list(session, request).await?;
    for trouble in troubles {
        session.console.error(&trouble);
    }
    if session.for_people() {
        let page = session.console.page(Stream::Out);
        let text = node_text::table(&nodes, args.wide || page.width.is_none(), page)
            + &simulated::line_of(&nodes, page);
        session.console.write(Stream::Out, &text)?;
    } else {
        session.console.document(&Nodes { nodes: nodes.iter().map(NodeView::from).collect(), revision })?;
    }
    Ok(Exit::Done)
}
