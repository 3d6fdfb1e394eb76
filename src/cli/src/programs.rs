//! The other programs of Picket, which a command starts: beside `picket` itself, or in PATH.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::fault::Fault;

/// Variables with this beginning are settings of the programs: those of whoever types are not those of what is started here.
const OURS: &str = "PICKET_";

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

/// A program without the settings that the environment of whoever types has for others of its kind.
pub fn command(program: &Path) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(program);
    for (variable, _) in std::env::vars_os() {
        if variable.as_encoded_bytes().starts_with(OURS.as_bytes()) {
            command.env_remove(variable);
        }
    }
    command
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
