//! Whether files and types are called by words that a reader of the code knows: `src/words.txt` has those that are not, and the folders in which
//! they are looked for.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::failure::Failure;
use crate::{place, run};

/// Where the words stand.
const LIST: &str = "src/words.txt";
/// What is before the name of a type.
const TYPES: [&str; 5] = ["struct", "enum", "trait", "type", "union"];

/// The list, as it is read.
#[derive(Debug, Default)]
struct Words<'a> {
    /// With an end of `/`.
    folders: Vec<String>,
    /// By the word: what the field says instead.
    instead: BTreeMap<&'a str, &'a str>,
}

impl<'a> Words<'a> {
    fn read(text: &'a str) -> Self {
        let mut words = Self::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            if let Some(folders) = line.strip_prefix("in ") {
                words.folders.extend(folders.split_whitespace().map(|folder| format!("{folder}/src/")));
            } else if let Some((word, instead)) = line.split_once(": ") {
                words.instead.insert(word, instead);
            }
        }
        words
    }

    /// What is wrong with a file, a line each.
    fn faults(&self, file: &str, text: &str) -> Vec<String> {
        if !self.folders.iter().any(|folder| file.starts_with(folder)) {
            return Vec::new();
        }
        let stem = Path::new(file).file_stem().and_then(|stem| stem.to_str());
        let stem = stem.map(|stem| (format!("the file {file}"), stem));
        let types = text.lines().zip(1..).filter_map(|(line, number): (_, usize)| {
            Some((format!("{file}:{number}: the type"), type_in(line)?))
        });
        let instead = |name: &str| self.instead.get(&*name.to_ascii_lowercase());
        let one =
            |(what, name): (String, &str)| Some(format!("{what} is called {name}: say {}", instead(name)?));
        stem.into_iter().chain(types).filter_map(one).collect()
    }
}

/// The type that a line defines.
fn type_in(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().skip_while(|word| word.starts_with("pub"));
    if !TYPES.contains(&words.next()?) {
        return None;
    }
    let name = words.next()?;
    name.split(|letter: char| !letter.is_alphanumeric()).next()
}

/// Looks at all sources that git has or would take.
///
/// # Errors
/// Each file and type that is called by such a word, with what to say instead.
pub fn check() -> Result<(), Failure> {
    eprintln!("\n+ words that are not the field's");
    let read = |name: &str| std::fs::read_to_string(place::top().join(name));
    let list = read(LIST).map_err(Failure::of(LIST))?;
    let words = Words::read(&list);
    let mut command = Command::new("git");
    command
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.rs"])
        .current_dir(place::top());
    let listed = run::output(command)?;
    let names = listed.split(|byte| *byte == 0).map(|name| String::from_utf8_lossy(name).into_owned());
    // What was just removed is not there any more.
    let faults: Vec<String> =
        names.filter_map(|name| Some(words.faults(&name, &read(&name).ok()?))).flatten().collect();
    if faults.is_empty() {
        return Ok(());
    }
    Err(Failure::new(faults.join("\n    ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: &str = "# Words.\nin src/a src/b\n\ntold: error, or report\nby: what it decides\n";

    #[test]
    fn files_and_types_of_such_words_are_found_in_the_folders_that_are_listed() {
        let text = "struct Told(u8);\npub(crate) enum By {\nstruct ToldTwice;\n/// struct Told\nfn told() {}\ntype Told<T> = T;\n";
        let words = Words::read(LISTED);
        assert_eq!(
            words.faults("src/a/src/told.rs", text),
            [
                "the file src/a/src/told.rs is called told: say error, or report",
                "src/a/src/told.rs:1: the type is called Told: say error, or report",
                "src/a/src/told.rs:2: the type is called By: say what it decides",
                "src/a/src/told.rs:6: the type is called Told: say error, or report",
            ]
        );
        assert_eq!(words.faults("src/b/src/error.rs", "struct Told;").len(), 1);
        assert_eq!(words.faults("src/c/src/told.rs", text), [""; 0], "it is not listed");
    }

    #[test]
    fn each_folder_of_the_list_is_there_and_each_word_has_another() {
        let list = std::fs::read_to_string(place::top().join(LIST)).expect("it is there");
        let words = Words::read(&list);
        let missing: Vec<_> =
            words.folders.iter().filter(|folder| !place::top().join(folder).is_dir()).collect();
        assert!(missing.is_empty(), "{missing:?}");
        let lines = list.lines().filter(|line| !line.is_empty() && !line.starts_with(['#'])).count();
        let folders = list.lines().filter(|line| line.starts_with("in ")).count();
        assert_eq!(lines - folders, words.instead.len(), "a line is none of both, or stands twice");
    }
}
