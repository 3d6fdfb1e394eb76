//! The folder for temporary files of one run. It goes with the run; what a run left that was killed, the next one takes away.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::failure::Failure;

const PREFIX: &str = "picket-tests-";
/// A test that was ended may be followed for a moment by what it started, which still writes.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(250);

/// Below the machine's own folder for temporary files, by the number of this process.
pub fn make() -> Result<PathBuf, Failure> {
    let above = std::env::temp_dir();
    forget_the_dead(&above)?;
    let folder = above.join(format!("{PREFIX}{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(Failure::of(folder.display()))?;
    Ok(folder)
}

/// Removes it.
pub fn forget(folder: &Path) -> Result<(), Failure> {
    let mut tries = 0;
    loop {
        match std::fs::remove_dir_all(folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tries += 1;
                if tries == TRIES {
                    return Err(Failure::of(folder.display())(error));
                }
                std::thread::sleep(PAUSE);
            }
            _ => return Ok(()),
        }
    }
}

/// Folders of runs that live no more.
fn forget_the_dead(above: &Path) -> Result<(), Failure> {
    let entries = std::fs::read_dir(above).map_err(Failure::of(above.display()))?;
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(process) = name.strip_prefix(PREFIX) else { continue };
        let is_number = !process.is_empty() && process.bytes().all(|byte| byte.is_ascii_digit());
        if is_number && !Path::new("/proc").join(process).exists() {
            forget(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_dead_left_goes_and_what_the_living_have_stays() {
        let above = tempfile::tempdir().expect("a folder");
        // No process has such a number: the kernel's highest has seven digits.
        let names =
            [format!("{PREFIX}{}", std::process::id()), format!("{PREFIX}99999999"), format!("{PREFIX}x")];
        for name in &names {
            std::fs::create_dir_all(above.path().join(name).join("some/files")).expect("made");
        }
        forget_the_dead(above.path()).expect("it may");
        let stays = names.each_ref().map(|name| above.path().join(name).exists());
        assert_eq!(stays, [true, false, true]);
    }
}
