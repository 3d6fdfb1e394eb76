//! The arguments.

use std::ffi::OsString;
use std::path::Path;
use std::sync::LazyLock;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::command::{
    abandon, accept_identity, attest, backup, check, completions, drain, drill, fence, gateways, help,
    history, hold, init, kubeconfig, nodes, pause, pki, plan, quickstart, receipt, resume, retire, retry,
    stand_down, status, unfence, watch,
};
use crate::global::Global;
use crate::help as words;
use crate::style::Page;

/// Switches failed nodes off through a Picket gateway, which proves that they are off and only then lets their volumes
/// go.
#[derive(Debug, Parser)]
#[command(name = "picket", version, long_version = VERSION.as_str(), disable_help_subcommand = true)]
pub struct Cli {
    /// What all commands take.
    #[command(flatten)]
    pub global: Global,
    /// Which command.
    #[command(subcommand)]
    pub command: Command,
}

/// Which build this is.
pub static VERSION: LazyLock<String> = LazyLock::new(|| picket_version::long(&[]));

/// Under this name kubectl runs it as `kubectl picket`.
const PLUGIN: &str = "kubectl-picket";

/// Columns of help that goes to a pipe.
const COLUMNS: usize = 80;

impl Cli {
    /// Reads a command line, whose first word is how the command was run: its usage calls it so.
    ///
    /// # Errors
    /// It cannot be read; or it asks for help or the version, which are told as one as well.
    pub fn read(words: &[OsString]) -> Result<Self, clap::Error> {
        Self::read_on(words, Page { colours: false, width: None })
    }

    /// The same where help goes to that page.
    ///
    /// # Errors
    /// As above.
    pub fn read_on(words: &[OsString], page: Page) -> Result<Self, clap::Error> {
        let mut command = Self::definition(words, page);
        let matches = command.try_get_matches_from_mut(words).map_err(nearest_first)?;
        Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    }
}

/// Clap has the nearest of the commands that may be meant at the end: `fence` after `resume`, its opposite, for `fense`.
fn nearest_first(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::Strings(names)) = error.remove(ContextKind::SuggestedSubcommand) {
        let names = names.into_iter().rev().collect();
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(names));
    }
    error
}

impl Cli {
    /// All commands and their options, called as the command was run.
    pub fn definition(typed: &[OsString], page: Page) -> clap::Command {
        let program = typed.first().and_then(|word| Path::new(word).file_name());
        let name = if program.is_some_and(|name| name == PLUGIN) { "kubectl picket" } else { "picket" };
        let width = page.width.unwrap_or(COLUMNS);
        let page = Page { width: Some(width), ..page };
        Cli::command().bin_name(name).term_width(width).override_help(words::overview(name, page))
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Switch nodes off, prove it, let their volumes go
    Fence(fence::Args),
    /// Drop a hold; with none left bring the nodes back
    Unfence(unfence::Args),
    /// How nodes stand, in detail; without nodes: how the fleet stands
    Status(status::Args),
    /// List nodes
    #[command(visible_alias = "list")]
    Nodes(nodes::Args),
    /// Which gateways there are, and which of them leads
    Gateways(gateways::Args),
    /// Follow changes as they happen
    Watch(watch::Args),
    /// Fences as they were, with evidence and timings
    History(history::Args),
    /// What a fence would do, step by step, and what bars it; sends nothing
    Plan(plan::Args),
    /// Let no new fence start: anywhere, in a group, or of nodes
    Pause(pause::Args),
    /// Let no new fence start, and wait until none is under way: before a backup or a move
    Drain(drain::Args),
    /// End a pause early; of everything, the brake as well
    Resume(resume::Args),
    /// Try again what a person was asked about
    Retry(retry::Args),
    /// Give up a release, by name: you answer for the volumes
    Abandon(abandon::Args),
    /// Say that nodes were alive: undo their fences without a power-on
    StandDown(stand_down::Args),
    /// Vouch that nodes are off: their volumes are let go on your word
    Attest(attest::Args),
    /// Say that the hardware of nodes is gone for good
    Retire(retire::Args),
    /// Keep nodes off that are off, for a named reason
    Hold(hold::Args),
    /// Drop a hold without waiting; with none left bring the nodes back
    Unhold(hold::Args),
    /// Ask devices now whether nodes could be fenced
    Check(check::Args),
    /// Fence a node on purpose and bring it back: verifies the wiring
    Drill(drill::Args),
    /// Accept what a device says it is, after a board was exchanged
    AcceptIdentity(accept_identity::Args),
    /// Signed receipts that a node is dark: get, verify, return, keys
    Receipt(receipt::Args),
    /// Take a backup of all that the gateway's store keeps
    Backup(backup::Args),
    /// Fence a simulated machine here and now: no hardware, no root, no settings
    Quickstart(quickstart::Args),
    /// Try a first node's BMC by reads alone, and write the gateway's settings
    Init(init::Args),
    /// Keys and certificates for a first installation
    Pki(pki::Args),
    /// A kubeconfig for a role that is shipped, and what makes its account
    Kubeconfig(kubeconfig::Args),
    /// Completions for a shell
    Completions(completions::Args),
    /// What a command does, and its options
    Help(help::Args),
    /// The version of this program
    Version,
}

impl Command {
    /// Whether it tells one record after the other, rather than one document.
    pub fn tells_records(&self) -> bool {
        match self {
            Command::Watch(_) => true,
            Command::History(args) => args.exports(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::global::Format;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(line.split_whitespace())
    }

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn as_kubectl_s_plugin_it_is_called_as_it_was_run() {
        let told = |line: &str| {
            let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            Cli::read(&words).expect_err(line).to_string()
        };
        assert!(
            told("/usr/local/bin/kubectl-picket --help")
                .contains("Usage: kubectl picket [OPTIONS] <COMMAND>")
        );
        assert!(told("kubectl-picket fence --help").contains("Usage: kubectl picket fence "));
        assert!(told("kubectl-picket fence").contains("Usage: kubectl picket fence "));
        assert!(told("/usr/local/bin/picket fence --help").contains("Usage: picket fence "));
        let words = ["kubectl-picket", "fence", "n1", "--reason", "x"].map(OsString::from);
        assert!(matches!(Cli::read(&words).expect("it is right").command, Command::Fence(_)));
    }

    #[test]
    fn of_commands_that_may_be_meant_the_nearest_is_first() {
        let words = ["picket", "fense", "db1"].map(OsString::from);
        let told = Cli::read(&words).expect_err("there is none").to_string();
        let at = |name: &str| told.find(&format!("'{name}'")).unwrap_or_else(|| panic!("no {name}: {told}"));
        assert!(at("fence") < at("unfence"), "{told}");
    }

    #[test]
    fn global_arguments_stand_before_or_after_the_command() {
        for line in ["picket -o json --yes fence n1", "picket fence n1 -o json --yes"] {
            let cli = parse(line).expect(line);
            assert!(cli.global.yes && cli.global.output == Format::Json, "{line}");
        }
    }

    #[test]
    fn usage_errors_are_told() {
        for line in [
            "picket",
            "picket fence",
            "picket fence n1 --until sometime",
            "picket fence n1 --deadline 5",
            "picket fence n1 --parallel 0",
            "picket fence n1 --endpoint unix:/a --context b",
            "picket abandon n1 storage",
            "picket fence n1 --queue=5",
            "picket fence n1 --queue --dry-run",
            "picket pause --everything --reason x",
            "picket pause --reason x --for 1h",
            "picket pause n1 --group rack=r1 --reason x --for 1h",
            "picket resume --reason x",
            "picket stand-down n1",
            "picket history --fence 0 --open",
            "picket history --raw",
        ] {
            assert_eq!(parse(line).expect_err(line).exit_code(), 2, "{line}");
        }
    }
}
