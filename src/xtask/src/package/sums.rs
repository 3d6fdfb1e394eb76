//! SHA256SUMS, as `sha256sum --check` reads it.

use std::collections::BTreeMap;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::failure::Failure;

/// Its name.
const NAME: &str = "SHA256SUMS";

/// Writes it over all files of the folder, in the order of their names; its text.
pub fn write(folder: &Path) -> Result<String, Failure> {
    let entries = std::fs::read_dir(folder).map_err(Failure::of(folder.display()))?;
    let mut files: Vec<_> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort();
    let mut text = String::new();
    for file in files {
        let content = std::fs::read(&file).map_err(Failure::of(file.display()))?;
        let sum: String = Sha256::digest(&content).iter().map(|byte| format!("{byte:02x}")).collect();
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        text += &format!("{sum}  {name}\n");
    }
    let place = folder.join(NAME);
    std::fs::write(&place, &text).map_err(Failure::of(place.display()))?;
    Ok(text)
}

/// Whether two say the same; else which files differ, or are in one of them alone.
pub fn same(one: &str, other: &str) -> Result<(), Failure> {
    let by_name = |text: &str| -> BTreeMap<String, String> {
        let lines = text.lines().filter_map(|line| line.split_once("  "));
        lines.map(|(sum, name)| (name.to_owned(), sum.to_owned())).collect()
    };
    let (one, other) = (by_name(one), by_name(other));
    let names = one.keys().chain(other.keys().filter(|name| !one.contains_key(*name)));
    let differ: Vec<&str> =
        names.filter(|name| one.get(*name) != other.get(*name)).map(String::as_str).collect();
    if differ.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!("made twice, these have other bytes: {}", differ.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_s_own_program_takes_them_and_finds_a_change() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("b"), "two").expect("written");
        std::fs::write(folder.path().join("a"), "one").expect("written");
        let text = write(folder.path()).expect("written");
        assert!(text.lines().next().is_some_and(|line| line.ends_with("  a")), "{text}");
        let check = || {
            let mut command = std::process::Command::new("sha256sum");
            command.args(["--check", "--strict", NAME]).current_dir(folder.path());
            command.output().expect("sha256sum").status.success()
        };
        assert!(check());
        std::fs::write(folder.path().join("b"), "two!").expect("written");
        assert!(!check());
    }

    #[test]
    fn what_differs_is_named() {
        assert_eq!(same("1  a\n2  b\n", "2  b\n1  a\n"), Ok(()));
        let Err(Failure(why)) = same("1  a\n2  b\n", "1  a\n3  b\n4  c\n") else {
            panic!("they are the same")
        };
        assert!(why.ends_with(": b, c"), "{why}");
    }
}
