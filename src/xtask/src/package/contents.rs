//! What is in a package: one list for all forms, laid out in a folder as it will lie on the machine.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{PROGRAMS, make};
use crate::failure::Failure;
use crate::{place, run};

/// Where programs go. Pacemaker looks for fence agents in `/usr/sbin` alone.
const AGENT: &str = "fence_picket";
/// Pages and examples keep their places to one another, so that their links hold.
const DOC: &str = "usr/share/doc/picket";
/// It goes before the presets of the system.
const PRESET: &str = "usr/lib/systemd/system-preset/50-picket.preset";
/// The unit of the sources is for who installs by hand.
const BY_HAND: &str = "/usr/local/bin/";

/// A file of a package.
#[derive(Debug, PartialEq, Eq)]
pub struct File {
    /// On the machine, without a slash in front.
    pub path: String,
    /// Its mode.
    pub mode: u32,
    /// An administrator's from the first day on: an upgrade does not replace it.
    pub is_config: bool,
}

/// All of them, in the order of their paths.
#[derive(Debug)]
pub struct Contents {
    /// The folder in which they lie, each at its path.
    pub stage: PathBuf,
    /// What they are.
    pub files: Vec<File>,
}

impl Contents {
    /// Lays them out in a folder of `work`.
    pub fn gather(programs: &Path, work: &Path) -> Result<Self, Failure> {
        let mut all = Self { stage: work.join("stage"), files: Vec::new() };
        for (_, program) in &PROGRAMS[..PROGRAMS.len() - 1] {
            let folder = if *program == AGENT { "sbin" } else { "bin" };
            all.put(&format!("usr/{folder}/{program}"), 0o755, &read(&programs.join(program))?)?;
        }
        let source = |path: &str| read(&place::top().join(path));
        let unit = String::from_utf8_lossy(&source("deploy/systemd/picketd.service")?).into_owned();
        all.put("usr/lib/systemd/system/picketd.service", 0o644, unit_of(&unit)?.as_bytes())?;
        all.put("usr/lib/sysusers.d/picket.conf", 0o644, &source("deploy/systemd/picket.conf")?)?;
        all.put("usr/lib/tmpfiles.d/picket.conf", 0o644, &source("deploy/systemd/picket.tmpfiles.conf")?)?;
        all.put(PRESET, 0o644, &source("deploy/package/picket.preset")?)?;
        all.put("etc/picket/picket.toml", 0o644, &source("deploy/package/picket.toml")?)?;
        all.documents()?;
        all.manual(&programs.join("picket-manual"), work)?;
        all.completions(&programs.join("picket"))?;
        all.files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(all)
    }

    fn put(&mut self, path: &str, mode: u32, content: &[u8]) -> Result<(), Failure> {
        let place = self.stage.join(path);
        make(place.parent().unwrap_or(&self.stage))?;
        std::fs::write(&place, content).map_err(Failure::of(place.display()))?;
        std::fs::set_permissions(&place, PermissionsExt::from_mode(mode))
            .map_err(Failure::of(place.display()))?;
        self.files.push(File { path: path.to_owned(), mode, is_config: path.starts_with("etc/") });
        Ok(())
    }

    /// What git knows, and nothing else that lies about.
    fn documents(&mut self) -> Result<(), Failure> {
        let mut ask = Command::new("git");
        ask.args(["ls-files", "README.md", "CHANGELOG.md", "LICENSE", "docs", "deploy"]);
        ask.current_dir(place::top());
        let told = run::output(ask)?;
        let told = String::from_utf8_lossy(&told).into_owned();
        for path in told.lines().filter(|path| !path.starts_with("deploy/package/")) {
            self.put(&format!("{DOC}/{path}"), 0o644, &read(&place::top().join(path))?)?;
        }
        Ok(())
    }

    fn manual(&mut self, program: &Path, work: &Path) -> Result<(), Failure> {
        let pages = work.join("manual");
        make(&pages)?;
        let mut write = Command::new(program);
        write.arg(&pages);
        run::output(write)?;
        let mut names = names(&pages)?;
        let mut pack = Command::new("gzip");
        // Neither the time nor the name of the file is kept in it.
        pack.args(["--best", "--no-name"]).args(&names).current_dir(&pages);
        run::output(pack)?;
        names.sort();
        for name in names {
            let section = name.rsplit('.').next().unwrap_or_default();
            let page = format!("{name}.gz");
            self.put(&format!("usr/share/man/man{section}/{page}"), 0o644, &read(&pages.join(page))?)?;
        }
        Ok(())
    }

    fn completions(&mut self, picket: &Path) -> Result<(), Failure> {
        for (shell, path) in [
            ("bash", "usr/share/bash-completion/completions/picket"),
            ("zsh", "usr/share/zsh/site-functions/_picket"),
            ("fish", "usr/share/fish/vendor_completions.d/picket.fish"),
        ] {
            let mut write = Command::new(picket);
            write.args(["completions", shell]);
            self.put(path, 0o644, &run::output(write)?)?;
        }
        Ok(())
    }
}

fn names(folder: &Path) -> Result<Vec<String>, Failure> {
    let entries = std::fs::read_dir(folder).map_err(Failure::of(folder.display()))?;
    Ok(entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect())
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(file).map_err(Failure::of(file.display()))
}

/// The unit with the programs where a package puts them, and without the words on top, which are for who installs by hand.
fn unit_of(text: &str) -> Result<String, Failure> {
    let begins = text.find("[Unit]").ok_or(Failure::new("deploy/systemd/picketd.service has no [Unit]"))?;
    let unit = &text[begins..];
    if !unit.contains(&format!("ExecStart={BY_HAND}picketd")) {
        return Err(Failure::new(format!(
            "deploy/systemd/picketd.service does not start {BY_HAND}picketd: a package puts its own place there"
        )));
    }
    Ok(unit.replace(BY_HAND, "/usr/bin/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_of_a_package_starts_the_program_of_the_package() {
        let text =
            String::from_utf8(read(&place::top().join("deploy/systemd/picketd.service")).expect("read"));
        let unit = unit_of(&text.expect("text")).expect("it starts picketd");
        assert!(unit.starts_with("[Unit]") && unit.contains("\nExecStart=/usr/bin/picketd "), "{unit}");
        assert!(!unit.contains("/usr/local"), "{unit}");
        assert!(unit_of("[Unit]\nExecStart=/opt/picketd\n").is_err());
    }

    #[test]
    fn what_is_laid_out_is_what_is_listed_and_settings_are_an_administrator_s() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut all = Contents { stage: folder.path().join("stage"), files: Vec::new() };
        all.put("usr/bin/x", 0o755, b"x").expect("laid out");
        all.put("etc/picket/picket.toml", 0o644, b"y").expect("laid out");
        let config: Vec<bool> = all.files.iter().map(|file| file.is_config).collect();
        assert_eq!(config, [false, true]);
        let mode = std::fs::metadata(all.stage.join("usr/bin/x")).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o755);
    }
}
