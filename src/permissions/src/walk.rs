//! The way to a file as the kernel walks it: each directory, each link, and what the links lead to.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::Metadata;
use std::io;
use std::path::{Component, Path, PathBuf};

use rustix::io::Errno;

use crate::LINKS;

/// One thing on the way.
#[derive(Debug)]
pub(crate) struct Step {
    /// Where it is, without a link in it but itself.
    pub(crate) path: PathBuf,
    /// Of the link itself, where it is one.
    pub(crate) about: Metadata,
    /// The way ends here.
    pub(crate) is_last: bool,
    /// A link led here, so that the asker's name is another one.
    pub(crate) is_behind_link: bool,
}

/// All steps from the root.
///
/// # Errors
/// Something on the way is not there, or cannot be looked at; or the links lead round in a circle.
pub(crate) fn steps(file: &Path) -> io::Result<Vec<Step>> {
    let file = std::path::absolute(file)?;
    let mut steps = Vec::new();
    let mut ahead = parts(&file);
    let (mut at, mut links) = (PathBuf::from("/"), 0);
    let about = std::fs::symlink_metadata(&at)?;
    steps.push(Step { path: at.clone(), about, is_last: ahead.is_empty(), is_behind_link: false });
    while let Some(part) = ahead.pop_front() {
        if part == ".." {
            // `at` has no link in it: its parent is the one that the kernel goes to. It was a step already.
            at.pop();
            continue;
        }
        let path = at.join(&part);
        let about = std::fs::symlink_metadata(&path)?;
        if !about.is_symlink() {
            at.clone_from(&path);
            steps.push(Step { path, about, is_last: ahead.is_empty(), is_behind_link: links > 0 });
            continue;
        }
        links += 1;
        if links > LINKS {
            return Err(Errno::LOOP.into());
        }
        let target = std::fs::read_link(&path)?;
        if target.is_absolute() {
            at = PathBuf::from("/");
        }
        let mut target = parts(&target);
        target.append(&mut ahead);
        ahead = target;
        steps.push(Step { path, about, is_last: false, is_behind_link: links > 1 });
    }
    Ok(steps)
}

/// The names in a path, without the root and without `.`.
fn parts(path: &Path) -> VecDeque<OsString> {
    let named = path.components().filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    named.map(|part| part.as_os_str().to_owned()).collect()
}
