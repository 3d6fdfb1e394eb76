//! The reference page of the commands, from clap: a test holds it to the program.

use clap::{Command, CommandFactory};

use crate::args::Cli;

/// Behind this many columns a line of the page is wrapped.
const WIDTH: usize = 110;

fn described(command: &Command, path: &str, level: usize, out: &mut String) {
    // Options of all commands stand once, at the top.
    let is_top = level == 2;
    let shown = command.clone().term_width(WIDTH).mut_args(|arg| {
        let own = ["help", "version"].iter().any(|id| arg.get_id() == id);
        let hidden = arg.is_hide_set() || own || (!is_top && arg.is_global_set());
        arg.hide(hidden).hide_env_values(true)
    });
    let help = shown.clone().render_long_help().to_string();
    let help: String = help.lines().map(|line| line.trim_end().to_owned() + "\n").collect();
    *out += &format!("\n{} {path}\n\n```text\n{}\n```\n", "#".repeat(level.min(4)), help.trim_end());
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help") {
        described(sub, &format!("{path} {}", sub.get_name()), level + 1, out);
    }
}

fn page() -> String {
    let mut root = Cli::command();
    root.build();
    let mut out = String::from(
        "<!-- `cargo xtask pages` makes this page from the definition of the commands in src/cli. -->\n\n\
         # Commands\n\n\
         [In scripts](../scripts.md) has the exit codes and the documents. [picketd](picketd.md) has a page of its own.\n",
    );
    described(&root, "picket", 2, &mut out);
    out
}

#[test]
fn the_page_of_the_commands_is_what_they_say() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/cli.md");
    if std::env::var_os("PICKET_BLESS").is_some() {
        std::fs::write(path, page()).expect("it can be written");
    }
    let shown = std::fs::read_to_string(path).unwrap_or_default();
    assert!(shown == page(), "docs/reference/cli.md differs: cargo xtask pages writes it");
}
