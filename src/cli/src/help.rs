//! What `picket` says of itself: the commands by what one wants, each command in a line, options, exit codes.

use clap::Command;

use crate::exit;
use crate::style::{Page, Tone};

/// What this program is for.
const PURPOSE: &str = "Switches failed nodes off, proves that they are off, lets their volumes go.";

/// The commands by what one wants; each stands here once.
const GROUPS: &[(&str, &[&str])] = &[
    ("See", &["status", "nodes", "watch", "history", "plan", "gateways"]),
    ("Fence", &["fence", "unfence", "hold", "unhold"]),
    ("If it asks", &["retry", "attest", "abandon", "stand-down", "retire", "accept-identity"]),
    ("Limit", &["pause", "drain", "resume"]),
    ("Rehearse", &["check", "drill"]),
    ("Keep", &["receipt", "backup"]),
    ("Set up", &["quickstart", "init", "pki", "kubeconfig", "completions", "help", "version"]),
];

/// What to type first, and what comes of it.
const EXAMPLES: &[(&str, &str)] = &[
    ("status", "how the fleet stands"),
    ("fence r1n07 --reason hangs", "off, proven, released"),
    ("unfence r1n07", "and back"),
];

/// Where more is said.
const MORE: &[(&str, &str)] = &[
    ("help commands", "each command in a line"),
    ("help fence", "one command, with its options"),
    ("help options", "options of all commands, endpoints"),
    ("help exit-codes", "how commands end, for scripts"),
];

/// How a gateway is found.
const ENDPOINT: &str = "The endpoint is the first of: --endpoint, --context, PICKET_ENDPOINT, PICKET_CONTEXT, `current` of the file \
     with contexts, unix:/run/picket/picket.sock. https wants a CA, a certificate and its key: --ca-file, --cert-file, --key-file, \
     PICKET_CA_FILE and so on, or those of the context. NO_COLOR switches colours off.";

/// What `picket`, `picket --help` and `picket help` say; `program`: how it was run.
pub fn overview(program: &str, page: Page) -> String {
    let mut out = page.text(Tone::Plain, PURPOSE);
    out += &format!("\nUsage: {program} [OPTIONS] <COMMAND>\n\n");
    for (want, commands) in GROUPS {
        out += &page.beside(&format!("  {want:<13}"), 15, Tone::Plain, &commands.join(", "));
    }
    out.push('\n');
    out += &typed(program, EXAMPLES, page);
    out.push('\n');
    out + &typed(program, MORE, page)
}

/// Commands as they are typed, and what each does.
fn typed(program: &str, lines: &[(&str, &str)], page: Page) -> String {
    let widest = lines.iter().map(|(command, _)| command.len()).max().unwrap_or(0) + program.len() + 1;
    let line = |(command, does): &(&str, &str)| {
        let command = format!("{program} {command}");
        page.beside(&format!("  {command:<widest$}  "), widest + 4, Tone::Faint, does)
    };
    lines.iter().map(line).collect()
}

/// Each command with what it does, by what one wants.
pub fn commands(root: &Command, page: Page) -> String {
    let mut out = String::new();
    for (want, names) in GROUPS {
        out += &format!("{want}\n");
        for name in *names {
            let about = root.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            out += &page.beside(&format!("  {name:<17}"), 19, Tone::Plain, &about);
        }
    }
    out
}

/// The options of all commands, and how a gateway is found.
pub fn options(root: &Command, page: Page) -> String {
    let mut out = String::from("Options of all commands\n");
    for option in root.get_arguments().filter(|option| option.is_global_set()) {
        let long = option.get_long().unwrap_or_default();
        let short = option.get_short().map(|short| format!("-{short}, ")).unwrap_or_default();
        let value = option.get_value_names().and_then(|names| names.first());
        let value = value.filter(|_| option.get_action().takes_values()).map(|value| format!(" <{value}>"));
        let name = format!("  {short}--{long}{}", value.unwrap_or_default());
        let mut text = option.get_help().map(ToString::to_string).unwrap_or_default();
        if let Some(variable) = option.get_env() {
            text += &format!(" [or {}]", variable.display());
        }
        let margin = name.chars().count().max(22) + 2;
        out += &page.beside(&format!("{name:<margin$}"), margin, Tone::Plain, &text);
    }
    out.push('\n');
    out + &page.text(Tone::Plain, ENDPOINT)
}

/// How commands end.
pub fn exit_codes(page: Page) -> String {
    let mut out = page.text(Tone::Plain, "Exit codes; of several nodes the worst counts");
    for (code, means) in exit::MEANINGS {
        out += &page.beside(&format!("  {code:<4}"), 6, Tone::Plain, means);
    }
    out.push('\n');
    out + &page.text(Tone::Plain, exit::DOCUMENT)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn every_command_stands_in_one_group_and_no_other_does() {
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let mut sorted = grouped.clone();
        sorted.sort_unstable();
        let root = Cli::command();
        let mut all: Vec<&str> = root.get_subcommands().map(Command::get_name).collect();
        all.sort_unstable();
        assert_eq!(sorted, all);
    }

    #[test]
    fn it_fits_a_screen() {
        for width in [60, 80] {
            let text = overview("picket", Page { colours: false, width: Some(width) });
            assert!(text.lines().count() <= 24, "{}: {text}", text.lines().count());
            assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
        }
    }
}
