//! `picket gateways`: which gateways there are, and which of them leads.

use picket_proto::v1::{Gateway, ListGatewaysRequest, ListGatewaysResponse};
use serde::Serialize;

use crate::console::Stream;
use crate::duration::stamp;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::session::Session;
use crate::style::{Tone, clean};
use crate::table::{Cell, Table};

/// Its arguments: none.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// The document.
#[derive(Debug, Serialize)]
struct Document {
    gateways: Vec<One>,
    /// The one that answered.
    answered_by: String,
    /// The leader's term; 0: nobody leads.
    term: u64,
    /// Why nobody leads, or is known to. Null: somebody does.
    trouble: Option<String>,
    /// Since when.
    since: Option<String>,
}

#[derive(Debug, Serialize)]
struct One {
    name: String,
    leads: bool,
    endpoints: Vec<String>,
    version: String,
    /// Why it does not stand for election. Null: it does.
    aside: Option<String>,
}

impl From<Gateway> for One {
    fn from(gateway: Gateway) -> Self {
        let Gateway { name, leads, endpoints, version, aside } = gateway;
        Self { name, leads, endpoints, version, aside: Some(aside).filter(|aside| !aside.is_empty()) }
    }
}

/// Lists them. Ends with 5 where nobody leads.
pub async fn run(_: &Args, session: &mut Session<'_>) -> Result<Exit, Fault> {
    let mut client = session.client.clone();
    let answer = session.asked(client.list_gateways(ListGatewaysRequest {})).await?.into_inner();
    let exit = if answer.term == 0 { Exit::Unreachable } else { Exit::Done };
    if session.for_people() {
        let text = table(&answer, session);
        session.console.write(Stream::Out, &text)?;
    } else {
        let trouble = Some(answer.trouble).filter(|trouble| !trouble.is_empty());
        session.console.document(&Document {
            gateways: answer.gateways.into_iter().map(One::from).collect(),
            answered_by: answer.answered_by,
            term: answer.term,
            trouble,
            since: answer.since.as_ref().map(stamp),
        })?;
    }
    Ok(exit)
}

fn table(answer: &ListGatewaysResponse, session: &Session<'_>) -> String {
    let paint = session.console.paint(Stream::Out);
    let mut table = Table::new(&["GATEWAY", "PART", "VERSION", "ENDPOINTS"]);
    for gateway in &answer.gateways {
        let part = match (gateway.leads, gateway.aside.as_str()) {
            (true, _) => Cell::new(Tone::Good, &format!("leads, term {}", answer.term)),
            (false, "") => Cell::from("stands by"),
            (false, why) => Cell::new(Tone::Bad, &format!("does not stand: {why}")),
        };
        let endpoints = gateway.endpoints.join(", ");
        let cells = [gateway.name.as_str().into(), part, gateway.version.as_str().into(), endpoints.into()];
        table.row(cells.into());
    }
    let mut text = table.render(paint);
    if !answer.trouble.is_empty() {
        let since = answer.since.as_ref().map(|since| format!(" since {}", stamp(since))).unwrap_or_default();
        let head = if answer.term == 0 { "nobody leads" } else { "the store is not read here" };
        text.push_str(&paint.tone(Tone::Bad, &clean(&format!("{head}{since}: {}\n", answer.trouble))));
    }
    text
}
