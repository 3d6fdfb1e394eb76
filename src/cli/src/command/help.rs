//! `picket help`: all commands, one of them, the options of all, exit codes.

use crate::console::{Console, Stream};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::help;

/// Its arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A command (receipt get), or one of: commands, options, exit-codes [default: the commands by what one wants]
    #[arg(value_name = "TOPIC")]
    topic: Vec<String>,
}

/// Tells it on standard output, of all commands from `root` on. An unknown topic is a usage error.
pub fn run(args: &Args, root: &mut clap::Command, console: &mut Console) -> Result<Exit, Fault> {
    let page = console.page(Stream::Out);
    root.build();
    let topic: Vec<&str> = args.topic.iter().map(String::as_str).collect();
    let text = match topic.as_slice() {
        [] => help::overview(root.get_bin_name().unwrap_or("picket"), page),
        ["commands"] => help::commands(root, page),
        ["options"] => help::options(root, page),
        ["exit-codes"] => help::exit_codes(page),
        path => {
            let mut command = root;
            for name in path {
                command = command.find_subcommand_mut(name).ok_or_else(|| {
                    Fault::Usage(format!("there is no command {name:?}: picket help commands lists them"))
                })?;
            }
            command.render_long_help().to_string()
        }
    };
    console.write(Stream::Out, &text)?;
    Ok(Exit::Done)
}
