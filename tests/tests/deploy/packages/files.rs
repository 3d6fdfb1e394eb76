//! What is in them: an .rpm and a .deb of the same programs are the same files.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use picket_tests::{PeerError, Result};

use super::{Form, Packages, succeeds};

/// Path, mode and owners of each file.
type Files = BTreeSet<(String, String, String)>;

fn files_of_the_deb(package: &Path) -> Result<Files> {
    let mut list = Command::new("dpkg-deb");
    list.arg("--contents").arg(package);
    let told = succeeds(list)?.out;
    let file = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let path = words[5].trim_start_matches('.').replace("vendor-completions", "site-functions");
        // It names its users by number alone.
        let owners = if words[1] == "0/0" { "root/root" } else { words[1] };
        (path, words[0].to_owned(), owners.to_owned())
    };
    // Only Debian wants the licence there.
    let licence = |path: &str| path == "/usr/share/doc/picket/copyright";
    let all = told.lines().filter(|line| line.starts_with('-')).map(file);
    Ok(all.filter(|(path, ..)| !licence(path)).collect())
}

fn files_of_the_rpm(package: &Path) -> Result<Files> {
    let each = "[%{FILENAMES}\t%{FILEMODES:perms}\t%{FILEUSERNAME}/%{FILEGROUPNAME}\n]";
    let told = asked(package, &["--queryformat", each])?;
    let file = |line: &str| {
        let mut words = line.split('\t').map(str::to_owned);
        let mut word = || words.next().expect("three words");
        (word(), word(), word())
    };
    Ok(told.lines().map(file).collect())
}

/// What rpm tells of a package that is not installed.
fn asked(package: &Path, how: &[&str]) -> Result<String> {
    let mut query = Command::new("rpm");
    query.args(["--query", "--package"]).args(how).arg(package);
    Ok(succeeds(query)?.out)
}

#[test]
fn the_rpm_has_the_files_of_the_deb_and_asks_for_what_they_want() -> Result<()> {
    let packages = Packages::made()?;
    let (deb, rpm) = (packages.file(Form::Deb, 1), packages.file(Form::Rpm, 1));
    let (of_deb, of_rpm) = (files_of_the_deb(&deb)?, files_of_the_rpm(&rpm)?);
    assert!(of_deb.len() > 100, "{of_deb:?}");
    assert_eq!(of_rpm, of_deb);
    assert_eq!(asked(&rpm, &["--configfiles"])?, "/etc/picket/picket.toml\n");
    let requires = asked(&rpm, &["--requires"])?;
    assert!(requires.contains("glibc >= 2.") && requires.contains("\nsystemd\n"), "{requires}");
    let scripts = asked(&rpm, &["--scripts"])?;
    for file in ["post.sh", "preun.sh", "postun.sh"] {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/package/rpm").join(file);
        let script = std::fs::read_to_string(&sources).map_err(PeerError::io("read a script"))?;
        assert!(scripts.contains(script.trim()), "{file}: {scripts}");
    }
    Ok(())
}
