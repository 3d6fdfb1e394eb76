//! `picket completions`: what a shell reads so that it completes.

use clap_complete::Shell;
use clap_complete::env::Shells;

use crate::console::{Console, Stream};
use crate::exit::Exit;
use crate::fault::Fault;

/// The variable by which a shell's function asks for completions.
pub const VARIABLE: &str = "PICKET_COMPLETE";

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
    let text = script(&args.shell.to_string())?;
    console.write(Stream::Out, &String::from_utf8_lossy(&text))?;
    if console.is_terminal(Stream::Out) {
        // A person reads it, and nothing completes by that.
        let hint = format!("\nThis is for the shell to read:\n  {}\n", read_by(args.shell));
        console.write(Stream::Err, &hint)?;
    }
    Ok(Exit::Done)
}

/// What a shell reads so that it completes `picket`; nothing of a shell that is not known.
fn script(shell: &str) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    if let Some(shell) = Shells::builtins().completer(shell) {
        shell.write_registration(VARIABLE, "picket", "picket", "picket", &mut text)?;
    }
    Ok(text)
}

/// What is typed in that shell, or stands in its settings.
fn read_by(shell: Shell) -> &'static str {
    match shell {
        Shell::Zsh => "source <(picket completions zsh)",
        Shell::Fish => "picket completions fish | source",
        Shell::Elvish => "eval (picket completions elvish | slurp)",
        Shell::PowerShell => "picket completions powershell | Out-String | iex",
        _ => "source <(picket completions bash)",
    }
}
