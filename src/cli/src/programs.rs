//! The other programs of Picket, which a command starts: beside `picket` itself, or in PATH.
//!
//! # Invariants
//!
//! - What a command started ends with it, also where the command is killed: the kernel sends SIGTERM then
//!   (prctl(2), `PR_SET_PDEATHSIG`). A process can ask for that for itself alone. So `picket` starts
//!   itself, asks, and becomes the program under the same number. Shown by `a_kill_ends_both_programs`.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};

use crate::fault::Fault;

/// Variables with this beginning are settings of the programs: those of whoever types are not those of what is started here.
const OURS: &str = "PICKET_";

/// The first word of a `picket` that becomes another program; then: who started it, the program, its words.
const BECOME: &str = "__become";
/// What a shell returns for a program that is there and cannot be run.
const NOT_RUN: u8 = 126;

/// Where the program is.
///
/// # Errors
/// It is in none of the folders, which are named with what would be right. Nothing was started.
pub fn find(name: &str) -> Result<PathBuf, Fault> {
    // The running file and not the link to it: a package puts the programs side by side.
    let own = std::env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent).map(Path::to_owned);
    let path = std::env::var_os("PATH").unwrap_or_default();
    // A relative folder would be another one wherever somebody stands.
    let path = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    let folders: Vec<PathBuf> = beside.into_iter().chain(path).collect();
    among(&folders, name).ok_or_else(|| Fault::Usage(missing(&folders, name)))
}

/// A program that ends with this process, without the settings that the environment of whoever types has for others of its kind.
/// It is to be spawned by the main thread, with whose end it ends.
///
/// # Errors
/// Nobody knows which file the running `picket` is: nothing was started.
pub fn command(program: &Path) -> Result<tokio::process::Command, Fault> {
    let own = std::env::current_exe()
        .map_err(|error| Fault::Failed(format!("cannot find the running picket: {error}")))?;
    let mut command = tokio::process::Command::new(own);
    command.arg(BECOME).arg(getpid().as_raw_nonzero().to_string()).arg(program);
    for (variable, _) in std::env::vars_os() {
        if variable.as_encoded_bytes().starts_with(OURS.as_bytes()) {
            command.env_remove(variable);
        }
    }
    Ok(command)
}

/// Becomes the program, where `words` of the command line are those of [`command`]. Returns where they are not, and where it
/// cannot: standard error says why then.
pub fn become_one(words: &[OsString]) -> Option<ExitCode> {
    let [_, first, starter, program, rest @ ..] = words else { return None };
    if first != BECOME {
        return None;
    }
    let error = match is_ours(Path::new(program)).and_then(|()| bound(starter)) {
        Ok(()) => std::process::Command::new(program).args(rest).exec(),
        Err(error) => error,
    };
    eprintln!("{} cannot be started: {error}", Path::new(program).display());
    Some(NOT_RUN.into())
}

/// Nothing else is started so: whoever may run `picket` as somebody else gets no shell by it.
fn is_ours(program: &Path) -> io::Result<()> {
    let is_found = |name| find(name).is_ok_and(|found| found == program);
    match std::env::current_exe()? == program || ["picketd", "picket-fleet"].into_iter().any(is_found) {
        true => Ok(()),
        false => Err(io::Error::other("it is no program of Picket's")),
    }
}

/// From here on this process ends with the one that started it.
fn bound(starter: &OsStr) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::TERM))?;
    let starter = starter.to_str().and_then(|number| number.parse().ok()).and_then(Pid::from_raw);
    // Whoever ended before the kernel knew sends nothing.
    match starter.is_some() && getppid() == starter {
        true => Ok(()),
        false => Err(io::Error::other("the picket that started it has ended")),
    }
}

fn among(folders: &[PathBuf], name: &str) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        path.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
    };
    folders.iter().map(|folder| folder.join(name)).find(is_program)
}

fn missing(folders: &[PathBuf], name: &str) -> String {
    let (package, _) = [("picket-gateway", "picketd"), ("picket-fleet", "picket-fleet")]
        .into_iter()
        .find(|(_, program)| *program == name)
        .unwrap_or((name, name));
    let mut looked: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
    looked.dedup();
    format!(
        "the program {name} was not found, neither beside picket nor in PATH ({}).\n\
         Install it into one of these folders: it is in the same package as picket. From the source it is built by:\n\
         cargo build --release -p {package}",
        looked.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_folder_with_a_file_that_can_be_run_counts() {
        let (one, two) = (tempfile::tempdir().expect("one"), tempfile::tempdir().expect("two"));
        let folders = [one.path().to_owned(), two.path().to_owned()];
        let mode = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
        };
        assert_eq!(among(&folders, "picketd"), None);
        std::fs::write(one.path().join("picketd"), "").expect("written");
        mode(&one.path().join("picketd"), 0o644);
        std::fs::create_dir(one.path().join("picket-fleet")).expect("made");
        std::fs::write(two.path().join("picketd"), "").expect("written");
        mode(&two.path().join("picketd"), 0o755);
        assert_eq!(among(&folders, "picketd"), Some(two.path().join("picketd")));
        assert_eq!(among(&folders, "picket-fleet"), None, "a folder is no program");
        mode(&one.path().join("picketd"), 0o755);
        assert_eq!(among(&folders, "picketd"), Some(one.path().join("picketd")));
    }

    #[test]
    fn what_is_missing_is_told_with_the_folders_and_what_would_be_right() {
        let said = missing(&["/opt/picket".into(), "/usr/bin".into()], "picketd");
        for part in ["picketd was not found", "/opt/picket, /usr/bin", "-p picket-gateway"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(missing(&[], "picket-fleet").contains("-p picket-fleet"));
    }
}
