//! `picket completions`: what a shell reads so that it completes.

use clap_complete::Shell;

use crate::complete;
use crate::console::{Console, Stream};
use crate::exit::Exit;
use crate::fault::Fault;

/// Its arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which shell
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

/// Writes it to standard output. The shell asks this program for words whenever somebody completes, and a gateway is then asked
/// for its nodes.
pub fn run(args: &Args, console: &mut Console) -> Result<Exit, Fault> {
    let text = complete::script(&args.shell.to_string())?;
    console.write(Stream::Out, &String::from_utf8_lossy(&text))?;
    Ok(Exit::Done)
}
