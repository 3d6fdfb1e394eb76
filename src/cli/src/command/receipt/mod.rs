//! `picket receipt`: signed receipts that a node is dark.

mod file;
mod keys;
mod offline;
mod online;

use std::path::PathBuf;

use crate::console::Console;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::global::Global;
use crate::session::Session;

/// Its arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Have it signed that a node is dark: for a minute, or as long as the settings say, no on is sent to it
    Get(Get),
    /// Say whether a receipt holds
    Verify(Verify),
    /// Hand a receipt back early: only who got it does, once nobody relies on it any more
    Return(Return),
    /// List the public keys by which receipts are verified; with -o json for --keys
    Keys,
}

#[derive(Debug, clap::Args)]
struct Get {
    /// The node
    #[arg(value_name = "NODE")]
    node: String,
    /// The fence that is meant [default: the present one]
    #[arg(long, value_name = "ID")]
    fence: Option<String>,
    /// For whom it is; stands in the receipt
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    audience: String,
    /// Your own receipt that this one takes the place of: its file, or its id
    #[arg(long, value_name = "RECEIPT")]
    renew: Option<String>,
    /// Write the receipt to this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct Verify {
    /// The receipt's file; - for standard input
    #[arg(value_name = "RECEIPT")]
    receipt: PathBuf,
    /// Of which node it must be
    #[arg(long, value_name = "NODE")]
    node: Option<String>,
    /// Ask the node's devices too: On makes it void at once
    #[arg(long, conflicts_with = "offline")]
    fresh: bool,
    /// Ask nobody: what the signature proves, which is not that the receipt still holds
    #[arg(long, requires = "keys")]
    offline: bool,
    /// The public keys, as `picket receipt keys -o json` wrote them
    #[arg(long, value_name = "FILE", requires = "offline")]
    keys: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct Return {
    /// The receipt's file, or its id
    #[arg(value_name = "RECEIPT")]
    receipt: String,
}

/// What needs no gateway; `None`: it does.
pub fn alone(args: &Args, global: &Global, console: &mut Console) -> Option<Result<Exit, Fault>> {
    match &args.command {
        Command::Verify(verify) => {
            let keys = verify.keys.as_ref().filter(|_| verify.offline)?;
            Some(offline::verify(verify, keys, global.output, console))
        }
        _ => None,
    }
}

/// Asks the gateway.
pub async fn run(args: &Args, session: &mut Session<'_>) -> Result<Exit, Fault> {
    match &args.command {
        Command::Get(get) => online::get(get, session).await,
        Command::Verify(verify) => online::verify(verify, session).await,
        Command::Return(handed) => online::hand_back(handed, session).await,
        Command::Keys => keys::run(session).await,
    }
}
