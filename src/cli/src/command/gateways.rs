//! `picket gateways`: which gateways there are, and which of them leads.

use picket_proto::v1::{Gateway, ListGatewaysRequest, ListGatewaysResponse};
use serde::Serialize;

use crate::console::Stream;
use crate::duration::stamp;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::session::Session;
use crate::style::Tone;
use crate::table::{Cell, Table};
use crate::view::simulated;

/// Its arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// All columns, whatever the terminal's width
    #[arg(long)]
    wide: bool,
}

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
    /// The digest of the settings by which was led last. Null: not known.
    settings: Option<String>,
    /// The one that answered is simulated, and switches no real machine.
    simulated: bool,
}

#[derive(Debug, Serialize)]
struct One {
    name: String,
    leads: bool,
    endpoints: Vec<String>,
    version: String,
    /// Why it does not stand for election. Null: it does.
    aside: Option<String>,
    /// The digest of its settings. Null: not known.
    settings: Option<String>,
}

impl From<Gateway> for One {
    fn from(gateway: Gateway) -> Self {
        let Gateway { name, leads, endpoints, version, aside, settings } = gateway;
        Self { name, leads, endpoints, version, aside: said(aside), settings: said(settings) }
    }
}

/// `None`: nothing was said.
fn said(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

/// Lists them. Ends with 5 where nobody leads.
pub async fn run(args: &Args, session: &mut Session<'_>) -> Result<Exit, Fault> {
    let mut client = session.client.clone();
    let answer = session.asked(client.list_gateways(ListGatewaysRequest {})).await?.into_inner();
    let exit = if answer.term == 0 { Exit::Unreachable } else { Exit::Done };
    if session.for_people() {
        let text = table(&answer, args.wide, session);
        session.console.write(Stream::Out, &text)?;
    } else {
        session.console.document(&Document {
            gateways: answer.gateways.into_iter().map(One::from).collect(),
            answered_by: answer.answered_by,
            term: answer.term,
            trouble: said(answer.trouble),
            since: answer.since.as_ref().map(stamp),
            settings: said(answer.settings),
            simulated: answer.simulated,
        })?;
    }
    Ok(exit)
}

fn table(answer: &ListGatewaysResponse, wide: bool, session: &Session<'_>) -> String {
    let page = session.console.page(Stream::Out);
    // Settings are told only where they are not the same everywhere: else they say nothing.
    let others = others(answer);
    let mut heads = vec!["GATEWAY", "VERSION", "ENDPOINTS"];
    if !others.is_empty() {
        heads.push("SETTINGS");
    }
    heads.push("PART");
    let mut table = Table::new(&heads).spare(&["VERSION", "ENDPOINTS"]);
    for gateway in &answer.gateways {
        let part = match (gateway.leads, gateway.aside.as_str()) {
            (true, _) => Cell::new(Tone::Good, &format!("leads, term {}", answer.term)),
            (false, "") => Cell::from("stands by"),
            (false, why) => Cell::new(Tone::Bad, &format!("does not stand: {why}")),
        };
        let endpoints = gateway.endpoints.join(", ");
        let mut cells = vec![gateway.name.as_str().into(), gateway.version.as_str().into(), endpoints.into()];
        if !others.is_empty() {
            let tone = if others.contains(&gateway.name.as_str()) { Tone::Bad } else { Tone::Good };
            cells.push(Cell::new(tone, short(&gateway.settings)));
        }
        cells.push(part);
        table.row(cells);
    }
    let mut text =
        table.render(if wide { page.wide() } else { page }) + &simulated::line(answer.simulated, page);
    if !others.is_empty() {
        text += &page.text(Tone::Bad, &advice(answer, &others));
    }
    if !answer.trouble.is_empty() {
        let since = answer.since.as_ref().map(|since| format!(" since {}", stamp(since))).unwrap_or_default();
        let head = if answer.term == 0 { "nobody leads" } else { "the store is not read here" };
        text += &page.text(Tone::Bad, &format!("{head}{since}: {}", answer.trouble));
    }
    text
}

/// The gateways whose settings are not those by which was led last, by name.
fn others(answer: &ListGatewaysResponse) -> Vec<&str> {
    let led_by = answer.settings.as_str();
    let differs =
        |gateway: &&Gateway| !led_by.is_empty() && !gateway.settings.is_empty() && gateway.settings != led_by;
    answer.gateways.iter().filter(differs).map(|gateway| gateway.name.as_str()).collect()
}

/// What to do where settings differ.
fn advice(answer: &ListGatewaysResponse, others: &[&str]) -> String {
    let (led_by, who) = (short(&answer.settings), others.join(", "));
    let verbs = if others.len() == 1 { "has others and does" } else { "have others and do" };
    let first =
        format!("the fleet was led last by the settings {led_by}; {who} {verbs} not stand for election:");
    match answer.gateways.iter().find(|gateway| gateway.leads) {
        Some(leader) => format!(
            "{first} make the settings the same, and reload first {} (which leads), then the others",
            leader.name
        ),
        None => format!(
            "{first} if those are the right ones, run picketd accept-settings on a machine that has them, once; else put the \
             old ones back and reload"
        ),
    }
}

/// Enough of a digest to tell two apart.
fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}
