//! `picket history`: fences as they were.

use std::collections::BTreeMap;
use std::time::Duration;

use picket_proto::v1::{Fence, FenceView as Depth, GetFenceRequest, ListFencesRequest};
use serde::Serialize;
use tonic::Code;

use super::audit;
use crate::console::{Console, Stream};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::gateway_error::GatewayError;
use crate::global::Global;
use crate::session::Session;
use crate::view::fence::FenceView;
use crate::view::fence_text;
use crate::{duration, hosts};

/// Its arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Host lists: r1n07 or r1n[01-40,45] [default: all]
    #[arg(value_name = "HOSTS")]
    hosts: Vec<String>,
    /// One fence as a timeline; the end of its id is enough where it fits no other
    #[arg(long, value_name = "ID", conflicts_with_all = ["limit", "open"])]
    fence: Option<String>,
    /// With --fence: every device exchange as it was, equal ones too
    #[arg(long, requires = "fence")]
    raw: bool,
    /// At most so many, newest first
    #[arg(long, value_name = "NUMBER", default_value = "20", value_parser = clap::value_parser!(u16).range(1..))]
    limit: u16,
    /// Only those opened within this time
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    since: Option<Duration>,
    /// Only those that have not ended
    #[arg(long)]
    open: bool,
    /// Whole ids, and moments rather than ages
    #[arg(long)]
    wide: bool,
    #[command(flatten)]
    audit: audit::AuditArgs,
}

impl Args {
    /// Whether the audit's entries are told, a line each.
    pub fn exports(&self) -> bool {
        self.audit.export
    }
}

/// The document of a list.
#[derive(Debug, Serialize)]
struct Fences {
    fences: Vec<FenceView>,
}

/// What needs no gateway: reading the audit's files. `None`: a gateway is asked.
pub fn alone(args: &Args, global: &Global, console: &mut Console) -> Option<Result<Exit, Fault>> {
    if args.audit.export {
        return Some(audit::export(&args.audit, args.since, args.fence.as_deref()));
    }
    let offline = args.audit.verify && args.audit.offline;
    offline.then(|| audit::verify(&args.audit, &[], global.output, console))
}

/// Tells it.
pub async fn run(args: &Args, session: &mut Session<'_>) -> Result<Exit, Fault> {
    if args.audit.verify {
        let anchors = audit::anchors(&everything(&[], session).await?);
        let form = session.global.output;
        return audit::verify(&args.audit, &anchors, form, session.console);
    }
    if let Some(id) = &args.fence {
        if args.since.is_some() {
            return Err(Fault::Usage(
                "--since goes with --fence only where the audit is exported".to_owned(),
            ));
        }
        return one(id, &args.hosts, args.raw, session).await;
    }
    let fences = list(args, session).await?;
    if session.for_people() {
        let page = session.console.page(Stream::Out);
        let text = fence_text::table(&fences, args.wide || page.width.is_none(), page);
        session.console.write(Stream::Out, &text)?;
    } else {
        session.console.document(&Fences { fences: fences.iter().map(FenceView::from).collect() })?;
    }
    Ok(Exit::Done)
}

async fn one(id: &str, hosts: &[String], raw: bool, session: &mut Session<'_>) -> Result<Exit, Fault> {
    let request = GetFenceRequest { fence_id: whole(id, hosts, session).await?, view: Depth::Full.into() };
    let mut client = session.client.clone();
    let answer = session.asked(client.get_fence(request)).await?.into_inner();
    let fence = answer.fence.ok_or(Fault::Nonsense("no fence where one was asked for"))?;
    if session.for_people() {
        let text = fence_text::detail(&fence, raw, session.console.page(Stream::Out));
        session.console.write(Stream::Out, &text)?;
    } else {
        session.console.document(&FenceView::from(&fence))?;
    }
    Ok(Exit::Done)
}

/// The id of which this is the end, of one of these hosts where any are named; a whole one as it is.
async fn whole(id: &str, hosts: &[String], session: &Session<'_>) -> Result<String, Fault> {
    if uuid::Uuid::try_parse(id).is_ok() && hosts.is_empty() {
        return Ok(id.to_owned());
    }
    let all = everything(hosts, session).await?;
    let fits: Vec<&str> =
        all.iter().map(|fence| fence.id.as_str()).filter(|known| known.ends_with(id)).collect();
    match fits.as_slice() {
        [one] => Ok((*one).to_owned()),
        [] => {
            let of = if hosts.is_empty() { String::new() } else { format!(" of {}", hosts.join(",")) };
            let message = format!("there is no fence{of} whose id ends with {id:?}");
            let help = vec!["picket history lists them, with --wide whole ids".to_owned()];
            let told = GatewayError::of_this_side(Code::NotFound, message, help, BTreeMap::new());
            Err(Fault::Gateway(Box::new(told)))
        }
        many => Err(Fault::Usage(format!("{id:?} fits {} fences: {}", many.len(), many.join(", ")))),
    }
}

/// Every fence that the gateway keeps, of these hosts where any are named.
async fn everything(hosts: &[String], session: &Session<'_>) -> Result<Vec<Fence>, Fault> {
    let request =
        ListFencesRequest { nodes: hosts::set(hosts), view: Depth::Basic.into(), ..Default::default() };
    pages(request, usize::MAX, session).await
}

async fn list(args: &Args, session: &Session<'_>) -> Result<Vec<Fence>, Fault> {
    let request = ListFencesRequest {
        nodes: hosts::set(&args.hosts),
        opened_after: args.since.map(duration::ago),
        open_only: args.open,
        view: Depth::Basic.into(),
        ..Default::default()
    };
    pages(request, usize::from(args.limit), session).await
}

async fn pages(
    mut request: ListFencesRequest,
    limit: usize,
    session: &Session<'_>,
) -> Result<Vec<Fence>, Fault> {
    let mut fences: Vec<Fence> = Vec::new();
    loop {
        let wanted = (limit - fences.len()).min(500);
        request.page_size = i32::try_from(wanted).unwrap_or(500);
        let mut client = session.client.clone();
        let answer = session.asked(client.list_fences(request.clone())).await?.into_inner();
        fences.extend(answer.fences);
        fences.truncate(limit);
        if answer.next_page_token.is_empty() || fences.len() == limit {
            return Ok(fences);
        }
        if answer.next_page_token == request.page_token {
            return Err(Fault::Nonsense("the same page follows itself"));
        }
        request.page_token = answer.next_page_token;
    }
}
