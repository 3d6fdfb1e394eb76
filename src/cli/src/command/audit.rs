//! `picket history --verify` and `--export`: the audit's files, read where they are.
//!
//! An auditor asks the history for it, on the gateway's machine or over a copy of the files, and not the gateway itself:
//! whoever could change the files could change what a running daemon says of them. The gateway is asked for its fences
//! alone, whose records name entries of the chain.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use picket_audit::{Anchor, Report};
use picket_proto::v1::Fence;
use serde::Serialize;

use crate::console::{Console, Stream};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::global::Format;
use crate::style::Tone;

/// What has to do with the audit's files.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "The audit")]
pub struct AuditArgs {
    /// Recompute the audit's chain and compare it with the fences that the gateway keeps; says the first entry that
    /// does not fit
    #[arg(long, conflicts_with_all = ["hosts", "fence", "limit", "since", "open", "export"])]
    pub verify: bool,
    /// Write the audit as JSON lines, as they stand in its files: all, or with --since or --fence a part
    #[arg(long, conflicts_with_all = ["hosts", "limit", "open"])]
    pub export: bool,
    /// The audit's directory, or one file of it; it belongs to the gateway's user
    #[arg(long, value_name = "PATH", default_value = "/var/lib/picket/picket.audit")]
    pub audit: PathBuf,
    /// Verify without a gateway: an end that was cut off is not seen then
    #[arg(long, requires = "verify")]
    pub offline: bool,
}

/// What the fences' records say of the chain.
pub fn anchors(fences: &[Fence]) -> Vec<Anchor> {
    let anchor = |fence: &Fence| {
        let head = fence.audit_head.as_ref()?;
        let at = fence.ended_at.as_ref().or(fence.opened_at.as_ref())?;
        let at = u64::try_from(at.seconds).unwrap_or(0).saturating_mul(1_000);
        Some(Anchor { fence: fence.id.clone(), seq: head.seq, hash: head.hash.clone(), at })
    };
    fences.iter().filter_map(anchor).collect()
}

/// The document of a verification.
#[derive(Debug, Serialize)]
struct Verified<'a> {
    whole: bool,
    offline: bool,
    files: usize,
    entries: u64,
    first: u64,
    last: u64,
    fences: usize,
    fences_older: usize,
    lost: u64,
    killed: u64,
    notes: &'a [String],
    fault: Option<FaultView<'a>>,
}

#[derive(Debug, Serialize)]
struct FaultView<'a> {
    file: &'a str,
    line: u64,
    what: &'a str,
}

/// Verifies, and tells what was found. A chain that does not fit is a failure.
pub fn verify(
    args: &AuditArgs,
    anchors: &[Anchor],
    form: Format,
    console: &mut Console,
) -> Result<Exit, Fault> {
    let report = picket_audit::verify(&args.audit, anchors).map_err(|error| unreadable(&error))?;
    match form {
        Format::Table => {
            let page = console.page(Stream::Out);
            let lines = text(args, &report);
            let lines: String = lines.lines().map(|line| page.text(Tone::Plain, line)).collect();
            console.write(Stream::Out, &lines)?;
        }
        Format::Json | Format::Yaml => console.document(&Verified {
            whole: report.fault.is_none(),
            offline: args.offline,
            files: report.files,
            entries: report.entries,
            first: report.first,
            last: report.last,
            fences: report.anchors,
            fences_older: report.older,
            lost: report.lost,
            killed: report.killed,
            notes: &report.notes,
            fault: report.fault.as_ref().map(|fault| FaultView {
                file: &fault.file,
                line: fault.line,
                what: &fault.what,
            }),
        })?,
    }
    match &report.fault {
        None => Ok(Exit::Done),
        Some(fault) => {
            console.error(&format!("the audit in {} does not fit: {fault}", args.audit.display()));
            Ok(Exit::Failed)
        }
    }
}

fn text(args: &AuditArgs, report: &Report) -> String {
    let mut text = match report.fault {
        None => format!(
            "{}: whole, entries {} to {} in {} files\n",
            args.audit.display(),
            report.first,
            report.last,
            report.files
        ),
        Some(_) => format!("{}: {} entries fit, and then no more\n", args.audit.display(), report.entries),
    };
    if args.offline {
        text += "no gateway was asked: an end that was cut off would not be seen\n";
    } else if report.fault.is_none() {
        text += &format!("compared with the fences that you may see ({}): all fit", report.anchors);
        if report.older > 0 {
            text += &format!("; {} more are older than what is kept", report.older);
        }
        text += "\n";
    }
    if report.lost > 0 {
        text +=
            &format!("{} entries were never written; the chain says when and why (\"gap\")\n", report.lost);
    }
    if report.killed > 0 {
        text += &format!(
            "{} times a gateway began where the one before was killed: what that did last may be missing\n",
            report.killed
        );
    }
    report.notes.iter().fold(text, |text, note| text + note + "\n")
}

/// Writes the files' lines to standard output.
pub fn export(args: &AuditArgs, since: Option<Duration>, fence: Option<&str>) -> Result<Exit, Fault> {
    let since = since.map(|span| {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(now.saturating_sub(span).as_millis()).unwrap_or(u64::MAX)
    });
    let mut out = io::BufWriter::new(io::stdout().lock());
    let written = picket_audit::export(&args.audit, since, fence, &mut out);
    let written = written.and_then(|()| {
        out.flush().map_err(|source| picket_audit::ReadError::Io { path: "standard output".into(), source })
    });
    match written {
        Ok(()) => Ok(Exit::Done),
        // Whoever read the output has left (`picket history --export | head`).
        Err(picket_audit::ReadError::Io { source, .. }) if source.kind() == io::ErrorKind::BrokenPipe => {
            Ok(Exit::Done)
        }
        Err(error) => Err(unreadable(&error)),
    }
}

fn unreadable(error: &picket_audit::ReadError) -> Fault {
    let absent = match error {
        picket_audit::ReadError::Nothing(_) => true,
        picket_audit::ReadError::Io { source, .. } => source.kind() == io::ErrorKind::NotFound,
    };
    let help = if absent {
        "it stands beside the gateway's store, on its machine: name it with --audit DIR"
    } else {
        "the audit belongs to the gateway's user: sudo -u picket picket history ..."
    };
    Fault::Usage(format!("{error}; {help}"))
}
