//! `picket completions`: completions for a shell.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;
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

/// Writes them to standard output.
pub fn run(args: &Args, console: &mut Console) -> Result<Exit, Fault> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "picket", &mut text);
    console.write(Stream::Out, &String::from_utf8_lossy(&text))?;
    Ok(Exit::Done)
}
