//! What was not said on the command line is asked for, where somebody sits at a terminal.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use super::Args;
use super::node_request::NodeRequest;
use super::settings_folder::SettingsFolder;
use crate::console::{Console, Stream};
use crate::fault::Fault;
use crate::no_echo::NoEcho;

/// As the gateway has it.
const LONGEST_NAME: usize = 253;

/// What is wanted: from the arguments, else asked for.
///
/// # Errors
/// Something is missing and nobody can be asked, or cannot be right. The BMC was asked nothing.
pub async fn request(
    args: &Args,
    settings_folder: &SettingsFolder,
    console: &mut Console,
) -> Result<NodeRequest, Fault> {
    let asks = io::stdin().is_terminal() && console.is_terminal(Stream::Err);
    let needed = [("NODE", &args.node), ("--address", &args.address), ("--user", &args.user)];
    let missing: Vec<&str> =
        needed.iter().filter(|(_, given)| given.is_none()).map(|(name, _)| *name).collect();
    if !asks && !missing.is_empty() {
        return Err(Fault::Usage(format!(
            "{} missing, and nobody can be asked here, since this is no terminal: picket init NODE --address HOST --user USER \
             --password-file FILE",
            match &missing[..] {
                [one] => format!("{one} is"),
                several => format!("{} are", several.join(", ")),
            }
        )));
    }
    let node = or_ask(&args.node, console, "Name of the node").await?;
    checked(&node)?;
    let address = or_ask(&args.address, console, "Name or address of its BMC").await?;
    let user = or_ask(&args.user, console, "User at the BMC").await?;
    let file = match &args.password_file {
        Some(file) => file.clone(),
        None if asks => {
            let default = settings_folder.password_file().display().to_string();
            let said = line(console, &format!("File with that user's password [{default}]"), true).await?;
            PathBuf::from(if said.is_empty() { default } else { said })
        }
        None => settings_folder.password_file(),
    };
    let wrong = |error| Fault::Usage(format!("--password-file {}: {error}", file.display()));
    let file = std::path::absolute(&file).map_err(wrong)?;
    let (password, is_new) = match asks && is_missing(&file) {
        true => {
            (hidden(console, &format!("{}. Password of {user} (not shown)", made(args.dry_run))).await?, true)
        }
        false => (settings_folder.secret(&file)?, false),
    };
    let absolute = |path: &PathBuf| {
        std::path::absolute(path).map_err(|error| Fault::Usage(format!("--bmc-ca: {error}")))
    };
    Ok(NodeRequest {
        node,
        address,
        user,
        password_file: file,
        password,
        is_new,
        port: args.port,
        allow_suite_3: args.allow_suite_3,
        ca: args.bmc_ca.as_ref().map(absolute).transpose()?,
        certificate: args.bmc_certificate.clone(),
        system: args.system.clone(),
    })
}

/// Says whether a password file that is missing will be made.
fn made(is_dry: bool) -> &'static str {
    if is_dry {
        "It is not there, and a dry run does not make it"
    } else {
        "It is not there and will be made"
    }
}

fn is_missing(file: &Path) -> bool {
    matches!(file.symlink_metadata(), Err(error) if error.kind() == io::ErrorKind::NotFound)
}

/// A name is one node, and no list of hosts.
fn checked(node: &str) -> Result<(), Fault> {
    let is_right = node.len() <= LONGEST_NAME
        && node.starts_with(|c: char| c.is_ascii_alphanumeric())
        && node.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    match is_right {
        true => Ok(()),
        false => Err(Fault::Usage(format!(
            "{node:?} is no name of a node: it has 1 to {LONGEST_NAME} letters, digits, '-', '_' or '.', the first a letter or digit; \
             init takes one node, and a rack is a template (docs/bare-metal.md)"
        ))),
    }
}

async fn or_ask(given: &Option<String>, console: &mut Console, question: &str) -> Result<String, Fault> {
    match given {
        Some(given) => Ok(given.clone()),
        None => line(console, question, false).await,
    }
}

/// One line. `may_be_empty`: Enter alone is an answer.
async fn line(console: &mut Console, question: &str, may_be_empty: bool) -> Result<String, Fault> {
    console.write(Stream::Err, &format!("{question}: "))?;
    let said = read().await?.trim().to_owned();
    match said.is_empty() && !may_be_empty {
        true => Err(Fault::Usage(format!("{question}: nothing was said, and nothing was written"))),
        false => Ok(said),
    }
}

/// A line that the terminal does not show.
async fn hidden(console: &mut Console, question: &str) -> Result<Vec<u8>, Fault> {
    console.write(Stream::Err, &format!("{question}: "))?;
    let quiet = NoEcho::begin();
    // Ctrl-C must find the terminal as it was.
    let said = tokio::select! {
        said = read() => said,
        _ = tokio::signal::ctrl_c() => Err(Fault::Usage("interrupted: nothing was written".to_owned())),
    };
    drop(quiet);
    console.write(Stream::Err, "\n")?;
    let said = said?.trim_end_matches(['\n', '\r']).to_owned();
    match said.is_empty() {
        true => Err(Fault::Usage("no password was typed, and nothing was written".to_owned())),
        false => Ok(said.into_bytes()),
    }
}

async fn read() -> Result<String, Fault> {
    let read = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        io::stdin().read_line(&mut line).map(|_| line)
    });
    Ok(read.await.map_err(io::Error::other)??)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_node() {
        for right in ["n1", "r1n01.example.org", "A_b-c"] {
            assert!(checked(right).is_ok(), "{right}");
        }
        for wrong in ["", "-n1", "r1n[01-40]", "a b", "n1,n2", "ä", &"n".repeat(254)] {
            assert!(checked(wrong).is_err(), "{wrong}");
        }
    }
}
