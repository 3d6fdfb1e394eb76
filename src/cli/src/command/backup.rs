//! `picket backup`: all that the gateway's store keeps, into a file.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use picket_proto::v1::{BackupAbout, BackupRequest, backup_response::Piece};
use serde::Serialize;
use tokio_stream::StreamExt;

use crate::console::Stream;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::session::Session;
use crate::style::Tone;

/// Its arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The file to make; one that is there is never overwritten
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

#[derive(Debug, Serialize)]
struct BackupReport {
    file: String,
    incarnation: String,
    nodes: u64,
    fences: u64,
    bytes: u64,
    exit_code: u8,
}

/// Takes a backup. The file is there only if it is whole and on the disk.
pub async fn run(args: &Args, session: &mut Session<'_>) -> Result<Exit, Fault> {
    let path = &args.file;
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let file = file.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Fault::Usage(format!(
            "{} is there already, and no backup is overwritten: name another file",
            path.display()
        )),
        _ => Fault::Usage(format!("cannot make {}: {error}", path.display())),
    })?;
    match take(session, file, path).await {
        Ok((about, bytes)) => tell(session, path, about, bytes),
        Err(fault) => {
            // What is not whole would be refused by a restore; better it is not there.
            let _ = std::fs::remove_file(path);
            Err(fault)
        }
    }
}

async fn take(session: &Session<'_>, file: File, path: &Path) -> Result<(BackupAbout, u64), Fault> {
    let mut client = session.client.clone();
    let mut stream = session.asked(client.backup(BackupRequest {})).await?.into_inner();
    let mut file = BufWriter::new(file);
    let (mut about, mut written) = (None, 0_u64);
    loop {
        let next = session.asked(async { stream.next().await.transpose() }).await?;
        match next.and_then(|piece| piece.piece) {
            Some(Piece::About(said)) => about = Some(said),
            Some(Piece::Lines(lines)) => {
                file.write_all(&lines).map_err(|error| cannot_write(path, &error))?;
                written += lines.len() as u64;
            }
            Some(Piece::End(end)) if end.bytes == written => break,
            Some(Piece::End(_)) => {
                return Err(Fault::Nonsense("the backup has another length than its end says"));
            }
            None => return Err(Fault::Nonsense("the backup ended before its end; take it again")),
        }
    }
    let flush = || -> io::Result<()> {
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
    };
    flush().map_err(|error| cannot_write(path, &error))?;
    Ok((about.ok_or(Fault::Nonsense("the backup does not say what it is"))?, written))
}

fn cannot_write(path: &Path, error: &io::Error) -> Fault {
    Fault::Usage(format!("cannot write {}: {error}", path.display()))
}

fn tell(session: &mut Session<'_>, path: &Path, about: BackupAbout, bytes: u64) -> Result<Exit, Fault> {
    let BackupAbout { incarnation, nodes, fences, .. } = about;
    if session.for_people() {
        let words = format!(
            "{}: {nodes} nodes and {fences} fences of the store's life {incarnation}; restore it with picketd restore",
            path.display()
        );
        let text = session.console.page(Stream::Out).text(Tone::Plain, &words);
        session.console.write(Stream::Out, &text)?;
    } else {
        let file = path.display().to_string();
        session.console.document(&BackupReport { file, incarnation, nodes, fences, bytes, exit_code: 0 })?;
    }
    Ok(Exit::Done)
}
