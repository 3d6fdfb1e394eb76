//! Words for a shell that completes a command line, also those that only the running gateway knows.
//!
//! # Invariants
//!
//! - Completing asks for the list of nodes and for nothing else: it has no effect.
//! - Where no gateway answers within [`LIMIT`] the words that need one are left out, and nothing is said.
//!   Shown by `where_no_gateway_answers_nothing_is_said_and_nobody_waits`.
//! - A word that a shell could read as more than a word is never offered: callers choose the names of
//!   holders. Shown by `what_a_shell_would_run_is_never_offered`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Arg, Command, CommandFactory, FromArgMatches};
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use picket_proto::v1::{ListNodesRequest, Node};

use crate::args::Cli;
use crate::command::completions::VARIABLE;
use crate::context;
use crate::exit::Exit;
use crate::global::Global;
use crate::view::words;

/// How long a gateway is waited for: somebody has pressed a key.
const LIMIT: Duration = Duration::from_secs(1);

/// Nodes a page.
const PAGE: i32 = 500;

/// What the gateway knows the words of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CompletionKind {
    Node,
    Holder,
    Device,
    Release,
    Group,
}

/// A word, and what it is where that helps.
type Word = (String, Option<String>);

/// Answers a shell that completes. `None`: none asks, and the command line is a command.
pub(crate) fn answer() -> Option<ExitCode> {
    let here = std::env::current_dir().ok();
    let answered = CompleteEnv::with_factory(definition)
        .var(VARIABLE)
        .try_complete(std::env::args_os(), here.as_deref());
    match answered {
        Ok(false) => None,
        Ok(true) => Some(Exit::Done.into()),
        // Whatever is told here stands in the middle of what somebody types.
        Err(_) => Some(Exit::Failed.into()),
    }
}

/// The commands, with the words that the gateway knows.
fn definition() -> Command {
    with_words(Cli::command())
}

fn with_words(command: Command) -> Command {
    let words = |arg: Arg| match kind(&arg) {
        Some(kind) => arg.add(ArgValueCandidates::new(move || candidates(kind))),
        None => arg,
    };
    command.mut_args(words).mut_subcommands(with_words)
}

/// What an argument is a name of.
fn kind(arg: &Arg) -> Option<CompletionKind> {
    let value = arg.get_value_names().and_then(|names| names.first());
    match (value.map(|name| name.as_str()), arg.get_id().as_str()) {
        (Some("HOSTS" | "NODE"), _) => Some(CompletionKind::Node),
        (Some("DEVICE"), _) => Some(CompletionKind::Device),
        (Some("RELEASE"), _) => Some(CompletionKind::Release),
        (_, "holder") => Some(CompletionKind::Holder),
        (_, "group") => Some(CompletionKind::Group),
        _ => None,
    }
}

fn candidates(kind: CompletionKind) -> Vec<CompletionCandidate> {
    let typed: Vec<OsString> = std::env::args_os().skip_while(|word| word != "--").skip(1).collect();
    let candidate = |(word, about): Word| CompletionCandidate::new(word).help(about.map(Into::into));
    known(kind, &nodes(&typed), &typed).into_iter().map(candidate).collect()
}

/// The nodes of the gateway that the typed words mean, as many as it tells in time.
fn nodes(typed: &[OsString]) -> Vec<Node> {
    let mut nodes = Vec::new();
    let global = Cli::command().ignore_errors(true).try_get_matches_from(typed);
    let global = global.and_then(|matches| Global::from_arg_matches(&matches));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    if let (Ok(global), Ok(runtime)) = (global, runtime) {
        // Those that came in time count, whatever became of the others.
        let _ = runtime.block_on(async { tokio::time::timeout(LIMIT, list(&global, &mut nodes)).await });
        runtime.shutdown_background();
    }
    nodes
}

/// `None`: no gateway tells more.
async fn list(global: &Global, nodes: &mut Vec<Node>) -> Option<()> {
    let endpoint = context::endpoint(global, |name| std::env::var(name).ok()).ok()?;
    let mut client = endpoint.connect().await.ok()?;
    let mut request = ListNodesRequest { page_size: PAGE, ..Default::default() };
    loop {
        let page = client.list_nodes(request.clone()).await.ok()?.into_inner();
        nodes.extend(page.nodes);
        if page.next_page_token.is_empty() || page.next_page_token == request.page_token {
            return Some(());
        }
        request.page_token = page.next_page_token;
    }
}

/// The words of a kind; where nodes are named on the line already, those of these nodes alone.
fn known(kind: CompletionKind, nodes: &[Node], typed: &[OsString]) -> Vec<Word> {
    let is_named = |node: &&Node| typed.iter().any(|word| *word == *node.name);
    let any = kind != CompletionKind::Node && nodes.iter().any(|node| is_named(&node));
    let meant = nodes.iter().filter(|node| !any || is_named(node));
    let of_nodes = |words: &dyn Fn(&Node) -> Vec<String>| {
        let words: BTreeSet<String> = meant.clone().flat_map(words).collect();
        words.into_iter().map(|word| (word, None)).collect()
    };
    let mut words: Vec<Word> = match kind {
        CompletionKind::Node => meant
            .clone()
            .map(|node| (node.name.clone(), Some(words::spoken(words::phase(node.phase)))))
            .collect(),
        CompletionKind::Holder => {
            of_nodes(&|node| node.holds.iter().map(|hold| hold.holder.clone()).collect())
        }
        CompletionKind::Device => {
            of_nodes(&|node| node.devices.iter().map(|device| device.id.clone()).collect())
        }
        CompletionKind::Release => {
            of_nodes(&|node| node.releases.iter().map(|release| release.name.clone()).collect())
        }
        CompletionKind::Group => of_nodes(&|node| node.groups.clone()),
    };
    words.retain(|(word, _)| is_a_word(word));
    words
}

/// Whether every shell takes it for one word and for no more: `$(...)` as the name of a holder would be run once it is entered.
fn is_a_word(text: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "._:@/=+,%-".contains(letter);
    !text.is_empty() && !text.starts_with('-') && text.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use picket_proto::v1::{Device, Hold};

    use super::*;

    fn node(name: &str, device: &str, holder: &str) -> Node {
        Node {
            name: name.to_owned(),
            devices: vec![Device { id: device.to_owned(), ..Default::default() }],
            holds: vec![Hold { holder: holder.to_owned(), ..Default::default() }],
            groups: vec!["rack=r1".to_owned()],
            ..Default::default()
        }
    }

    fn told(kind: CompletionKind, typed: &str) -> Vec<String> {
        let nodes = [node("n1", "bmc", "ops"), node("n2", "pdu-a", "db/1")];
        let typed: Vec<OsString> = typed.split(' ').map(OsString::from).collect();
        known(kind, &nodes, &typed).into_iter().map(|(word, _)| word).collect()
    }

    #[test]
    fn words_are_those_of_the_nodes_that_are_named() {
        assert_eq!(told(CompletionKind::Node, "picket fence n1 "), ["n1", "n2"]);
        assert_eq!(told(CompletionKind::Device, "picket check --device "), ["bmc", "pdu-a"]);
        assert_eq!(told(CompletionKind::Device, "picket accept-identity n2 "), ["pdu-a"]);
        assert_eq!(told(CompletionKind::Holder, "picket unfence n2 --holder "), ["db/1"]);
        assert_eq!(told(CompletionKind::Group, "picket check --group "), ["rack=r1"]);
    }

    /// A controller chooses the names of its holders, and somebody else presses the keys.
    #[test]
    fn what_a_shell_would_run_is_never_offered() {
        for holder in
            ["$(reboot)", "`reboot`", "a;reboot", "a b", "a'b", "~root", "-y", "a\nb", "!!", "*", ""]
        {
            let nodes = [node("n1", "bmc", holder)];
            assert_eq!(known(CompletionKind::Holder, &nodes, &[]), [], "{holder:?}");
        }
    }

    #[test]
    fn each_argument_that_names_something_has_its_words() {
        fn all(command: &Command, found: &mut BTreeSet<String>) {
            let named = command.get_arguments().filter(|arg| kind(arg).is_some());
            found.extend(named.map(|arg| format!("{} {}", command.get_name(), arg.get_id())));
            command.get_subcommands().for_each(|command| all(command, found));
        }
        let mut found = BTreeSet::new();
        all(&Cli::command(), &mut found);
        for wanted in [
            "fence hosts",
            "unfence holder",
            "accept-identity node",
            "accept-identity device",
            "abandon release",
            "pause group",
            "check device",
        ] {
            assert!(found.contains(wanted), "{wanted}: {found:?}");
        }
    }
}
