//! `picket receipt verify --offline`: what the signature proves, and no more.

use std::path::Path;
use std::time::SystemTime;

use picket_receipt::{ALGORITHM, Body};
use serde::Serialize;

use super::file::ReceiptFile;
use super::{Verify, keys};
use crate::console::{Console, Stream};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::global::Format;
use crate::style::Tone;
use crate::view::simulated;

/// What a verification came to.
#[derive(Debug, Serialize)]
pub struct VerdictView {
    /// `holds`, `expired`, `returned`, `void`, `not_ours`; offline `true_until`, `expired`, `not_ours`.
    pub verdict: String,
    /// Whether no gateway was asked.
    pub offline: bool,
    /// How long it still holds.
    pub lasts_s: Option<f64>,
    /// Before this no on is sent.
    pub until: Option<String>,
    /// In words.
    pub detail: String,
    /// What it says; null: it cannot be read.
    pub says: Option<Body>,
}

impl VerdictView {
    fn of(verdict: &str, detail: String, says: Option<Body>) -> Self {
        Self { verdict: verdict.to_owned(), offline: true, lasts_s: None, until: None, detail, says }
    }

    /// Tells it, and how the command ends.
    pub fn tell(&self, console: &mut Console) -> Result<Exit, Fault> {
        let (exit, tone) = match self.verdict.as_str() {
            "holds" | "true_until" => (Exit::Done, Tone::Good),
            "expired" | "returned" | "void" => (Exit::Overtaken, Tone::Bad),
            _ => (Exit::Failed, Tone::Bad),
        };
        if console.format != Format::Table {
            console.document(self)?;
            return Ok(exit);
        }
        let verdict = match (&self.until, self.verdict.as_str()) {
            (Some(until), "true_until") => format!("true until {until}"),
            (_, word) => word.replace('_', " "),
        };
        let page = console.page(Stream::Out);
        console.write(Stream::Out, &page.text(tone, &format!("{verdict}: {}", self.detail)))?;
        if self.says.as_ref().is_some_and(|body| body.simulated) {
            console.write(Stream::Out, &page.text(Tone::Bad, simulated::RECEIPT))?;
        }
        Ok(exit)
    }
}

/// Verifies without a gateway.
pub fn verify(args: &Verify, keys: &Path, form: Format, console: &mut Console) -> Result<Exit, Fault> {
    debug_assert_eq!(form, console.format);
    let keys = keys::read(keys)?;
    let receipt = ReceiptFile::read(&args.receipt)?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    judge(&receipt, args, &keys, u64::try_from(now.as_millis()).unwrap_or(u64::MAX))?.tell(console)
}

fn judge(
    receipt: &ReceiptFile,
    args: &Verify,
    keys: &picket_receipt::PublicKeys,
    now: u64,
) -> Result<VerdictView, Fault> {
    if receipt.algorithm != ALGORITHM {
        let detail = format!("it is signed with {:?}, and no receipt of Picket's is", receipt.algorithm);
        return Ok(VerdictView::of("not_ours", detail, None));
    }
    let verified = receipt.signed(&args.receipt)?.verify(keys);
    let said = verified.and_then(|body| Ok((body.statement()?, body)));
    let (said, body) = match said {
        Ok(said) => said,
        Err(forged) => return Ok(VerdictView::of("not_ours", forged.to_string(), None)),
    };
    if let Some(other) = other_node(args, &body) {
        return Ok(VerdictView::of("not_ours", other, Some(body)));
    }
    let until = said.expires_at.to_string();
    if said.expires_at.millis() <= now {
        let detail = format!("it ended at {until}, by this machine's clock");
        return Ok(VerdictView::of("expired", detail, Some(body)));
    }
    let detail = format!(
        "{} was read Off at {}, and Picket sends it no on before {until}. Whether it was handed back since, or is void, only \
         the gateway knows: verify it without --offline",
        said.node, said.off_at
    );
    Ok(VerdictView { until: Some(until), ..VerdictView::of("true_until", detail, Some(body)) })
}

/// That it is of another node than it must be, in words.
pub fn other_node(args: &Verify, body: &Body) -> Option<String> {
    let wanted = args.node.as_ref().filter(|wanted| **wanted != body.node)?;
    Some(format!("it is of node {}, and not of {wanted}", body.node))
}
