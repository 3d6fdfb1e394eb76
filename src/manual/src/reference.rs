//! The reference pages of the programs, from the same definitions: the test below holds them to the programs, and writes them for
//! `cargo xtask pages`.

use clap::{Command, CommandFactory};

/// Behind this many columns a line of a page is wrapped.
const WIDTH: usize = 110;

/// Each page's file in docs/reference, and its text.
fn pages() -> Vec<(&'static str, String)> {
    let page = |from: &str, title: &str, more: &str, text: &str| {
        format!("<!-- `cargo xtask pages` makes this page from {from}. -->\n\n# {title}\n\n{more}\n{text}")
    };
    let of = |command: Command, from: &str, more: &str| {
        let (name, text) = (command.get_name().to_owned(), described(command));
        page(from, &name, more, &text)
    };
    let commands = page(
        "the definition of the commands in src/cli",
        "Commands",
        "[In scripts](../scripts.md) has the exit codes and the documents. The other programs have pages of their own:\n\
         [picketd](picketd.md), [picket-controller](picket-controller.md), [picket-fleet](picket-fleet.md),\n\
         [fence_picket](fence-picket.md).",
        &described(picket_cli::args::Cli::command()),
    );
    let agent = page(
        "the list of fence_picket's options in src/cli",
        "fence_picket",
        "[Pacemaker](../pacemaker.md) tells how it is used. Pacemaker gives the same options by their names on standard input.",
        &block("fence_picket", 2, &picket_cli::agent::help()),
    );
    vec![
        ("cli.md", commands),
        (
            "picketd.md",
            of(
                picket_gateway::Arguments::command(),
                "the definition of picketd's arguments",
                "[Operation](../operation.md) tells how it is run.",
            ),
        ),
        (
            "picket-controller.md",
            of(
                picket_controller::Arguments::command(),
                "the definition of picket-controller's arguments",
                "[The controller](../controller.md) tells what it does.",
            ),
        ),
        (
            "picket-fleet.md",
            of(
                picket_fleet::Arguments::command(),
                "the definition of picket-fleet's arguments",
                "[Rehearse](../rehearse.md) tells how it is used.",
            ),
        ),
        ("fence-picket.md", agent),
    ]
}

fn described(mut root: Command) -> String {
    root.build();
    let mut out = String::new();
    add(&root, root.get_name(), 2, &mut out);
    out
}

fn add(command: &Command, path: &str, level: usize, out: &mut String) {
    // Options of all commands stand once, at the top.
    let is_top = level == 2;
    let shown = command.clone().term_width(WIDTH).mut_args(|arg| {
        let own = ["help", "version"].iter().any(|id| arg.get_id() == id);
        let hidden = arg.is_hide_set() || own || (!is_top && arg.is_global_set());
        arg.hide(hidden).hide_env_values(true)
    });
    *out += &block(path, level, &shown.clone().render_long_help().to_string());
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help") {
        add(sub, &format!("{path} {}", sub.get_name()), level + 1, out);
    }
}

fn block(path: &str, level: usize, help: &str) -> String {
    let help: String = help.lines().map(|line| line.trim_end().to_owned() + "\n").collect();
    format!("\n{} {path}\n\n```text\n{}\n```\n", "#".repeat(level.min(4)), help.trim_end())
}

#[test]
fn the_page_of_each_program_is_what_it_says() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    for (name, page) in pages() {
        let path = folder.join(name);
        if std::env::var_os("PICKET_BLESS").is_some() {
            std::fs::write(&path, &page).expect("it can be written");
        }
        let shown = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(shown == page, "docs/reference/{name} differs: cargo xtask pages writes it");
    }
}
