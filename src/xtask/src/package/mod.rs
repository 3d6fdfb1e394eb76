//! `cargo xtask package`: what is installed from, for readers without Rust: a .deb, an .rpm, a tarball, the
//! image, an SBOM, and the sums of them all.
//!
//! The packages are made by tools that others wrote (cargo-deb, cargo-generate-rpm, cargo-cyclonedx), of
//! programs that cargo-zigbuild links against glibc 2.28.
//!
//! # Invariants
//!
//! - The same commit gives the same bytes (`--check`): tools and zig are named by version, and the commit's
//!   time is the only one.
//! - A program names no path of the machine that built it. Shown by
//!   `a_target_folder_within_the_sources_is_renamed_after_them`.
//! - A program that asks for a newer symbol of glibc is not packed. Shown by
//!   `a_program_that_asks_for_more_is_refused_and_one_that_does_not_is_not`.

mod build;
mod commit;
mod contents;
mod glibc;
mod pack;
mod sbom;
mod sums;

use std::path::{Path, PathBuf};

use self::commit::Commit;
use self::contents::Contents;
use crate::failure::Failure;
use crate::{image, packages, place};

/// Whose programs are packed: crate and program. The last one writes the manual, and is in no package.
const PROGRAMS: [(&str, &str); 6] = [
    ("picket-gateway", "picketd"),
    ("picket-cli", "picket"),
    ("picket-cli", "fence_picket"),
    ("picket-controller", "picket-controller"),
    ("picket-fleet", "picket-fleet"),
    ("picket-manual", "picket-manual"),
];

/// What the command line says.
#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    /// Missing Debian packages are installed without a question.
    pub yes: bool,
    /// Where to; none: `packages` in the target folder.
    pub out: Option<PathBuf>,
    /// A folder with programs that are built already, for whatever system they are.
    pub from: Option<PathBuf>,
    /// Of the .deb and the .rpm, which grows where the same version is packed anew.
    pub revision: u64,
    /// Make everything twice, and compare.
    pub check: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { yes: false, out: None, from: None, revision: 1, check: false }
    }
}

/// Makes them, and says which they are.
pub fn package(options: &Options) -> Result<(), Failure> {
    packages::ensure(packages::FOR_PACKAGES, options.yes)?;
    let target = place::target()?;
    let out = match &options.out {
        Some(given) => empty(given)?,
        None => {
            let ours = target.join("packages");
            forget(&ours)?;
            ours
        }
    };
    let sums = made(options, &target, &out)?;
    if options.check {
        // A build of its own, from nothing, in another folder: what a path or an older build leaves behind would be seen.
        let again = target.join("again");
        forget(&again)?;
        let others = made(options, &again, &again.join("packages"))?;
        sums::same(&sums, &others)?;
        forget(&again)?;
        println!("twice the same bytes");
    }
    print!("{sums}");
    Ok(())
}

/// Makes them once, of a build in that target folder. The sums.
fn made(options: &Options, target: &Path, out: &Path) -> Result<String, Failure> {
    let commit = Commit::read()?;
    let programs = match &options.from {
        Some(given) => given.clone(),
        None => build::build(target, &commit)?,
    };
    let packed = PROGRAMS.iter().map(|(_, program)| programs.join(program)).take(PROGRAMS.len() - 1);
    let least = glibc::least(&packed.collect::<Vec<_>>(), options.from.is_none())?;
    // Within the folder that this call alone writes to: others may pack at the same time.
    let work = out.join("work");
    let contents = Contents::gather(&programs, &work)?;
    let job = pack::Job::prepare(work.clone(), contents, &commit, least, options.revision)?;
    job.deb(out)?;
    job.rpm(out)?;
    job.tarball(out)?;
    sbom::write(&job, out)?;
    image::image(&image::Options { out: Some(out.to_owned()), profile: None, from: Some(programs) })?;
    forget(&work)?;
    sums::write(out)
}

/// What packs programs that are built already, so that nobody builds it in the middle of a test.
pub fn tools(yes: bool) -> Result<(), Failure> {
    packages::ensure(packages::FOR_PACKAGES, yes)?;
    [pack::DEB, pack::RPM, sbom::CYCLONEDX].iter().try_for_each(|tool| tool.program().map(drop))
}

/// A folder that somebody named: nothing of theirs is taken away, or summed up with what is packed.
fn empty(folder: &Path) -> Result<PathBuf, Failure> {
    match std::fs::read_dir(folder).map(Iterator::count) {
        Ok(0) => {}
        Ok(_) => {
            return Err(Failure::new(format!(
                "{} is not empty: name a folder that is empty, or one that is not there yet",
                folder.display()
            )));
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(Failure::of(folder.display())(error)),
    }
    // The tools work in another folder.
    std::path::absolute(folder).map_err(Failure::of(folder.display()))
}

fn make(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(Failure::of(folder.display()))
}

fn forget(folder: &Path) -> Result<(), Failure> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Failure::of(folder.display())(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_something_in_it_is_left_as_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(empty(folder.path()).is_ok() && empty(&folder.path().join("new")).is_ok());
        std::fs::write(folder.path().join("mine"), "").expect("written");
        let refused = empty(folder.path());
        assert!(refused.is_err_and(|Failure(why)| why.contains("is not empty")));
        assert!(folder.path().join("mine").exists());
    }
}
