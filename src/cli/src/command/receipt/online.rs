//! `picket receipt get`, `verify` and `return`: by the gateway.

use std::path::Path;

use picket_proto::v1::{
    GetReceiptRequest, Receipt, ReceiptVerdict, ReturnReceiptRequest, VerifyReceiptRequest,
};
use picket_receipt::Body;
use serde::Serialize;

use super::file::{self, ReceiptFile};
use super::offline::{VerdictView, other_node};
use super::{Get, Return, Verify};
use crate::console::Stream;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::session::Session;
use crate::style::Tone;
use crate::view::{seconds, simulated};
use crate::{duration, hosts};

#[derive(Serialize)]
struct Got<'a> {
    id: &'a str,
    node: &'a str,
    lasts_s: Option<f64>,
    until: &'a str,
    receipt: &'a ReceiptFile,
    says: &'a Body,
}

/// Gets a receipt.
pub async fn get(args: &Get, session: &mut Session<'_>) -> Result<Exit, Fault> {
    let request = GetReceiptRequest {
        node: Some(hosts::selector(&args.node)),
        fence_id: args.fence.clone().unwrap_or_default(),
        renews: args.renew.as_deref().map(id).transpose()?.unwrap_or_default(),
        audience: args.audience.clone(),
    };
    let mut client = session.client.clone();
    let answer = session.asked(client.get_receipt(request)).await?.into_inner();
    let receipt = answer.receipt.ok_or(Fault::Nonsense("it issued a receipt and does not give it"))?;
    let body = file::said(&receipt.body).ok_or(Fault::Nonsense("it issued a receipt that cannot be read"))?;
    let given = ReceiptFile::from(&receipt);
    if let Some(out) = &args.out {
        write(out, &given)?;
    }
    let lasts = seconds(&answer.lasts);
    if !session.for_people() {
        let (id, node, until) = (&body.id, &body.node, &body.expires_at);
        session.console.document(&Got { id, node, lasts_s: lasts, until, receipt: &given, says: &body })?;
        return Ok(Exit::Done);
    }
    let lasts = answer.lasts.map(|span| duration::set(duration::of_wire(&span))).unwrap_or_default();
    let page = session.console.page(Stream::Out);
    let head = format!("receipt {}: no on is sent before {} ({lasts} from now)", body.id, body.expires_at);
    let grade = body.grade.trim_start_matches("GRADE_").to_ascii_lowercase();
    let proof = format!(
        "read Off at {}, {grade}; fence {}, generation {}, key {}",
        body.off_at, body.fence_id, body.generation, receipt.key_id
    );
    let place = match &args.out {
        Some(out) => format!("written to {}", out.display()),
        None => "not written anywhere: give it on with --out FILE, or -o json".to_owned(),
    };
    let margin = " ".repeat(body.node.chars().count());
    let mut text = page.of_node(&body.node, Tone::Good, &head);
    if body.simulated {
        text += &page.of_node(&margin, Tone::Bad, simulated::RECEIPT);
    }
    text += &page.of_node(&margin, Tone::Plain, &proof);
    text += &page.of_node(&margin, Tone::Faint, &place);
    session.console.write(Stream::Out, &text)?;
    Ok(Exit::Done)
}

fn write(path: &Path, receipt: &ReceiptFile) -> Result<(), Fault> {
    let text = serde_json::to_string_pretty(receipt).map_err(|error| Fault::Output(error.into()))? + "\n";
    std::fs::write(path, text).map_err(|error| {
        Fault::Usage(format!(
            "{} cannot be written: {error}; the receipt was issued, and bars the node's power-on until it expires",
            path.display()
        ))
    })
}

/// Whether a receipt holds.
pub async fn verify(args: &Verify, session: &mut Session<'_>) -> Result<Exit, Fault> {
    let receipt: Receipt = ReceiptFile::read(&args.receipt)?.wire(&args.receipt)?;
    let says = file::said(&receipt.body);
    let mut verdict = VerdictView {
        verdict: "not_ours".to_owned(),
        offline: false,
        lasts_s: None,
        until: None,
        detail: String::new(),
        says,
    };
    if let Some(other) = verdict.says.as_ref().and_then(|body| other_node(args, body)) {
        verdict.detail = other;
        return verdict.tell(session.console);
    }
    let request = VerifyReceiptRequest { receipt: Some(receipt), fresh: args.fresh };
    let mut client = session.client.clone();
    let answer = session.asked(client.verify_receipt(request)).await?.into_inner();
    verdict.verdict = match answer.verdict() {
        ReceiptVerdict::Unspecified => {
            return Err(Fault::Nonsense("it does not say what the receipt is worth"));
        }
        known => known.as_str_name().trim_start_matches("RECEIPT_VERDICT_").to_ascii_lowercase(),
    };
    verdict.detail = answer.detail;
    if answer.verdict == i32::from(ReceiptVerdict::Holds) {
        verdict.lasts_s = seconds(&answer.lasts);
        verdict.until = verdict.says.as_ref().map(|body| body.expires_at.clone());
    }
    verdict.tell(session.console)
}

#[derive(Serialize)]
struct Returned<'a> {
    id: &'a str,
    returned: bool,
}

/// Hands a receipt back.
pub async fn hand_back(args: &Return, session: &mut Session<'_>) -> Result<Exit, Fault> {
    let id = id(&args.receipt)?;
    let mut client = session.client.clone();
    session.asked(client.return_receipt(ReturnReceiptRequest { receipt_id: id.clone() })).await?;
    if session.for_people() {
        let text = format!("receipt {id} is handed back: it bars the node's power-on no more");
        let text = session.console.page(Stream::Out).text(Tone::Plain, &text);
        session.console.write(Stream::Out, &text)?;
    } else {
        session.console.document(&Returned { id: &id, returned: true })?;
    }
    Ok(Exit::Done)
}

/// The id that was given, or that of the receipt in the file that was.
fn id(given: &str) -> Result<String, Fault> {
    if let Ok(id) = given.parse::<uuid::Uuid>() {
        return Ok(id.to_string());
    }
    let path = Path::new(given);
    if given != "-" && !path.exists() {
        return Err(Fault::Usage(format!("{given:?} is neither a receipt's id nor a file with one")));
    }
    let signed = ReceiptFile::read(path)?.signed(path)?;
    let body =
        Body::read(&signed.body).map_err(|fault| Fault::Usage(format!("{}: {fault}", path.display())))?;
    Ok(body.id)
}
