//! A folder that is made for one command alone.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::fault::Fault;

/// A folder for its owner alone. Dropped, it is removed with all that is in it, unless it is to be kept.
#[derive(Debug)]
pub struct PrivateFolder {
    path: PathBuf,
    is_kept: bool,
}

impl PrivateFolder {
    /// Makes it. `given`: where; else a new one in the temporary folder, whose name begins with `picket-` and `what`.
    ///
    /// # Errors
    /// It is there already, or cannot be made: nothing was made.
    pub fn make(what: &str, given: Option<&Path>) -> Result<Self, Fault> {
        let name = || {
            let id = uuid::Uuid::now_v7().simple().to_string();
            // Its end is random, and its beginning the time.
            let random = id.get(24..).unwrap_or(&id);
            std::env::temp_dir().join(format!("picket-{what}-{random}"))
        };
        let wrong = |path: &Path, error: std::io::Error| {
            let right = match error.kind() {
                std::io::ErrorKind::AlreadyExists => {
                    "it is there already, and all of it would be removed at the end: name a folder that is not there".to_owned()
                }
                _ => format!("it cannot be made: {error}"),
            };
            Fault::Usage(format!("the folder {}: {right}", path.display()))
        };
        let path = given.map_or_else(name, Path::to_owned);
        let path = std::path::absolute(&path).map_err(|error| wrong(&path, error))?;
        // Only what was not there before is ours to remove.
        DirBuilder::new().mode(0o700).create(&path).map_err(|error| wrong(&path, error))?;
        Ok(Self { path, is_kept: false })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// It stays: there is something to look at.
    pub fn keep(&mut self) {
        self.is_kept = true;
    }

    /// Whether it stays.
    pub fn is_kept(&self) -> bool {
        self.is_kept
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        if !self.is_kept {
            // What cannot be removed stays where its owner was told that it is.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_folder_is_its_owner_s_alone_and_goes_unless_it_is_kept() {
        let above = tempfile::tempdir().expect("a directory");
        let path = above.path().join("tour");
        let folder = PrivateFolder::make("test", Some(&path)).expect("made");
        let mode = path.metadata().expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        std::fs::write(path.join("picket.toml"), "").expect("written");
        drop(folder);
        assert!(!path.exists());
        let mut folder = PrivateFolder::make("test", Some(&path)).expect("made");
        folder.keep();
        assert!(folder.is_kept());
        drop(folder);
        assert!(path.exists());
    }

    #[test]
    fn a_folder_that_is_there_is_neither_used_nor_removed() {
        let above = tempfile::tempdir().expect("a directory");
        std::fs::write(above.path().join("a"), "mine").expect("written");
        let fault = PrivateFolder::make("test", Some(above.path())).expect_err("it is there").to_string();
        assert!(fault.contains("it is there already"), "{fault}");
        assert!(above.path().join("a").exists());
    }
}
