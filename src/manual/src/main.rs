//! Writes the pages of the manual into a folder: what `man picket-fence` shows once a package is installed.
//!
//! **Purpose.** A page for each program and each of its commands, from the very definitions that read their
//! command lines.
//! **Non-goals.** It is in no package. No words of its own but where the other pages lie.
//!
//! # Invariants
//!
//! - The same sources give the same bytes: no day, no path, and nothing of the environment stands in a page.
//!   Shown by `each_program_and_each_command_has_a_page_and_the_same_again`.

#[cfg(test)]
mod reference;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::CommandFactory;
use clap_mangen::Man;

/// Where packages put what is longer than a page of the manual.
const PAGES: &str = "/usr/share/doc/picket/docs/README.md";

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: picket-manual FOLDER, which is there");
        return ExitCode::FAILURE;
    };
    match write(&folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("picket-manual: {}: {error}", folder.display());
            ExitCode::FAILURE
        }
    }
}

/// Each page is `NAME.SECTION`; programs that run on their own are in section 8.
fn write(folder: &Path) -> Result<(), Box<dyn Error>> {
    for (command, section) in [
        (picket_cli::args::Cli::command(), "1"),
        (picket_gateway::Arguments::command(), "8"),
        (picket_controller::Arguments::command(), "8"),
        (picket_fleet::Arguments::command(), "1"),
    ] {
        let mut command = command.disable_help_subcommand(true);
        command.build();
        each(command, section, folder)?;
    }
    std::fs::write(folder.join("fence_picket.8"), agent())?;
    Ok(())
}

fn each(command: clap::Command, section: &str, folder: &Path) -> Result<(), Box<dyn Error>> {
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        each(command.clone(), section, folder)?;
    }
    // The commit is told by the program: a page is the same for all builds of a version.
    let program = command.long_version(None).after_long_help(format!("The pages lie in {PAGES}."));
    let man = Man::new(program).section(section).source(version()).manual("Picket");
    let mut page = Vec::new();
    man.render(&mut page)?;
    std::fs::write(folder.join(man.get_filename()), page)?;
    Ok(())
}

fn version() -> String {
    format!("Picket {}", env!("CARGO_PKG_VERSION"))
}

/// `fence_picket` reads its options as fence agents do: its own help is its page.
fn agent() -> String {
    let help = picket_cli::agent::help();
    let (about, rest) = help.split_once('\n').unwrap_or((&help, ""));
    let about = about.split_once(": ").map_or(about, |(_, about)| about);
    let title = format!(".TH fence_picket 8 \"\" \"{}\" \"Picket\"\n", version());
    let name = format!(".SH NAME\nfence_picket \\- {}\n", plain(about));
    let synopsis = ".SH SYNOPSIS\n\\fBfence_picket\\fR [\\fIOPTIONS\\fR]\n";
    let options = format!(".SH OPTIONS\n.nf\n{}\n.fi\n", plain(rest.trim()));
    let others = ".SH SEE ALSO\n\\fBpicket\\fR(1), /usr/share/doc/picket/docs/pacemaker.md\n";
    title + &name + synopsis + &options + others
}

/// Text that roff takes as it is: no hyphen becomes a dash, and no line a request.
fn plain(text: &str) -> String {
    let escaped = text.replace('\\', "\\e").replace('-', "\\-");
    let lines = escaped
        .lines()
        .map(|line| if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line.to_owned() });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_and_each_command_has_a_page_and_the_same_again() {
        let pages = || {
            let folder = tempfile::tempdir().expect("a folder");
            write(folder.path()).expect("written");
            let entries = std::fs::read_dir(folder.path()).expect("it is there").flatten();
            let mut pages: Vec<(String, String)> = entries
                .map(|entry| {
                    let name = entry.file_name().into_string().expect("text");
                    (name, std::fs::read_to_string(entry.path()).expect("text"))
                })
                .collect();
            pages.sort();
            pages
        };
        let made = pages();
        for wanted in ["picket.1", "picket-fence.1", "picketd.8", "picketd-restore.8", "picket-controller.8"]
            .into_iter()
            .chain(["picket-fleet.1", "fence_picket.8"])
        {
            let (_, page) = made.iter().find(|(name, _)| name == wanted).expect(wanted);
            assert!(
                page.contains(".SH NAME") && page.contains(env!("CARGO_PKG_VERSION")),
                "{wanted}: {page}"
            );
            assert!(!page.contains("commit"), "{wanted} tells of one build");
        }
        assert_eq!(made, pages());
    }

    #[test]
    fn no_line_of_text_is_a_request_of_roff() {
        assert_eq!(plain(".TH\na\\b --c\n'x"), "\\&.TH\na\\eb \\-\\-c\n\\&'x");
    }
}
