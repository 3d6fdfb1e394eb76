//! `picket check`: ask devices now whether they could be used for a fence.

use std::collections::BTreeMap;

use picket_proto::v1::{
    CheckDevicesRequest, CheckDevicesResponse, Device, Limit, ListNodesRequest, NodeSet, Phase, Readiness,
    node_set,
};
use serde::Serialize;
use tokio_stream::StreamExt;

use crate::console::Stream;
use crate::duration;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::gateway_error::GatewayError;
use crate::hosts;
use crate::session::Session;
use crate::table::{Cell, Table};
use crate::view::node::DeviceView;
use crate::view::outcome::LimitView;
use crate::view::readiness::{self, FenceReadiness, could, usable_of};
use crate::view::words;

/// How long it may take to hear of the next device.
const NEXT: std::time::Duration = std::time::Duration::from_secs(60);

/// Up to so many devices all are told; of more, those that are not ready.
const ROWS: usize = 50;

/// Its arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Host lists: r1n07 or r1n[01-40,45] [default: all]
    #[arg(value_name = "HOSTS")]
    hosts: Vec<String>,
    /// All nodes of this group
    #[arg(long, value_name = "GROUP", conflicts_with = "hosts")]
    group: Option<String>,
    /// Only the device of that name
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// All columns, whatever the terminal's width
    #[arg(long)]
    wide: bool,
}

/// The document.
#[derive(Debug, Serialize)]
struct Checked {
    nodes: Vec<NodeChecked>,
    could_be_fenced: usize,
    exit_code: u8,
}

#[derive(Debug, Serialize)]
struct NodeChecked {
    node: String,
    could_be_fenced: bool,
    barred: Option<LimitView>,
    ready: usize,
    devices: Vec<DeviceChecked>,
}

#[derive(Debug, Serialize)]
struct DeviceChecked {
    #[serde(flatten)]
    device: DeviceView,
    took_s: Option<f64>,
}

/// The limit that would block a fence of each node now, by the node's name.
type Barred = BTreeMap<String, Limit>;

/// Checks them, tells each, and each fault once. Exit code 0 where the devices of every node could be used now, also where a limit blocks its fence.
pub async fn run(args: &Args, session: &mut Session<'_>) -> Result<Exit, Fault> {
    let set = match &args.group {
        Some(group) => Some(NodeSet { of: Some(node_set::Of::Group(group.clone())) }),
        None => hosts::set(&args.hosts),
    };
    let request = CheckDevicesRequest { nodes: set.clone(), device: args.device.clone().unwrap_or_default() };
    let mut client = session.client.clone();
    let mut stream = session.asked(client.check_devices(request)).await?.into_inner();
    let limit = session.global.timeout.unwrap_or(NEXT);
    let mut nodes: BTreeMap<String, Vec<CheckDevicesResponse>> = BTreeMap::new();
    let mut heard = 0;
    progress(session, "none has answered yet")?;
    loop {
        match tokio::time::timeout(limit, stream.next()).await {
            Err(_) => {
                progress_ends(session)?;
                return Err(Fault::TimedOut(limit));
            }
            Ok(None) => break,
            Ok(Some(Err(status))) => {
                progress_ends(session)?;
                return Err(Fault::Gateway(Box::new(GatewayError::from(&status))));
            }
            Ok(Some(Ok(told))) => {
                heard += 1;
                progress(session, &format!("{heard} answered, {} to go", told.left))?;
                nodes.entry(told.node.clone()).or_default().push(told);
            }
        }
    }
    progress_ends(session)?;
    let barred = weigh(session, set, &mut nodes).await?;
    let all: Vec<(String, Vec<CheckDevicesResponse>)> = nodes.into_iter().collect();
    let fine = all.iter().all(|(_, told)| could(&devices(told)));
    let exit = if fine { Exit::Done } else { Exit::Failed };
    if session.for_people() {
        let text = table(&all, &barred, args.wide, session);
        session.console.write(Stream::Out, &text)?;
    } else {
        session.console.document(&document(&all, &barred, exit))?;
    }
    Ok(exit)
}

/// Adds what no device says of itself: one that answers, and ignored the last off of its node, is not ready. Returns the limits that
/// would block a fence.
async fn weigh(
    session: &Session<'_>,
    nodes: Option<NodeSet>,
    checked: &mut BTreeMap<String, Vec<CheckDevicesResponse>>,
) -> Result<Barred, Fault> {
    let mut barred = Barred::new();
    if checked.is_empty() {
        return Ok(barred);
    }
    let phases = vec![Phase::NeedsOperator.into(), Phase::Normal.into()];
    let (nodes, ..) = hosts::list(session, ListNodesRequest { nodes, phases, ..Default::default() }).await?;
    for node in nodes {
        let Some(told) = checked.get_mut(&node.name) else { continue };
        for told in told {
            told.device = told.device.take().map(|device| readiness::worth(&node, &device));
        }
        barred.extend(node.barred.map(|limit| (node.name, limit)));
    }
    Ok(barred)
}

/// How many devices have answered, where somebody looks on; the next text that is told takes its place.
fn progress(session: &mut Session<'_>, text: &str) -> Result<(), Fault> {
    if session.for_people() && session.console.is_terminal(Stream::Err) {
        session.console.write(Stream::Err, &format!("\x1b[Jasking devices: {text}\r"))?;
    }
    Ok(())
}

/// The line of [`progress`] is taken away.
fn progress_ends(session: &mut Session<'_>) -> Result<(), Fault> {
    if session.for_people() && session.console.is_terminal(Stream::Err) {
        session.console.write(Stream::Err, "\x1b[J")?;
    }
    Ok(())
}

fn devices(told: &[CheckDevicesResponse]) -> Vec<Device> {
    told.iter().filter_map(|one| one.device.clone()).collect()
}

fn document(all: &[(String, Vec<CheckDevicesResponse>)], barred: &Barred, exit: Exit) -> Checked {
    let nodes = all.iter().map(|(node, told)| {
        let of = devices(told);
        NodeChecked {
            node: node.clone(),
            could_be_fenced: could(&of),
            barred: barred.get(node).map(LimitView::from),
            ready: usable_of(&of),
            devices: told
                .iter()
                .filter_map(|one| {
                    let took_s = one.took.as_ref().map(duration::of_wire).map(|took| took.as_secs_f64());
                    Some(DeviceChecked { device: DeviceView::from(one.device.as_ref()?), took_s })
                })
                .collect(),
        }
    });
    let nodes: Vec<NodeChecked> = nodes.collect();
    let could_be_fenced = nodes.iter().filter(|node| node.could_be_fenced).count();
    Checked { nodes, could_be_fenced, exit_code: exit.code() }
}

fn table(
    all: &[(String, Vec<CheckDevicesResponse>)],
    barred: &Barred,
    wide: bool,
    session: &Session<'_>,
) -> String {
    let page = session.console.page(Stream::Out);
    let mut table = Table::new(&["NODE", "DEVICE", "READY", "POWER", "TOOK"]).spare(&["TOOK"]);
    let mut listed: Vec<(&str, &Device)> = Vec::new();
    let short = all.iter().map(|(_, told)| told.len()).sum::<usize>() <= ROWS;
    for (node, told) in all {
        for one in told {
            let Some(device) = &one.device else { continue };
            if !short && device.readiness == i32::from(Readiness::Ready) {
                continue;
            }
            let readiness = words::readiness(device.readiness)
                .unwrap_or_else(|| "not_checked".to_owned())
                .replace('_', " ");
            let power = device.reading.as_ref().and_then(|reading| words::power(reading.power));
            listed.push((node.as_str(), device));
            table.row(vec![
                node.as_str().into(),
                device.id.as_str().into(),
                Cell::new(words::readiness_tone(device.readiness), &readiness),
                words::spoken(power).into(),
                one.took
                    .as_ref()
                    .map(|took| duration::words(duration::of_wire(took)))
                    .unwrap_or_default()
                    .into(),
            ]);
        }
    }
    let nodes: Vec<FenceReadiness<'_>> = all
        .iter()
        .map(|(node, told)| FenceReadiness {
            node,
            devices: devices(told),
            barred: barred.get(node).cloned(),
        })
        .collect();
    table.render(if wide { page.wide() } else { page })
        + &readiness::told(&readiness::faults(listed), wide || page.width.is_none(), page)
        + "\n"
        + &readiness::short_summary(&nodes, page)
}
