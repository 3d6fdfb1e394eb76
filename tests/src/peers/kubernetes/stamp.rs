//! By which the programs of the tests' Kubernetes are known: xtask, which builds them, and the tests, which look for them, read this.

use std::io::Result;
use std::path::{Path, PathBuf};

/// What the programs are built of, below `tests/peers/kubernetes`.
pub const MODULES: [&str; 6] = ["controlplane", "attacher", "csidisk", "helm", "images", "kwok"];

/// What is built.
pub const VERSION: &str = "v1.35.4";

/// The folder of all programs of these sources, in the cache.
pub fn folder(sources: &Path) -> Result<PathBuf> {
    let of_all: Result<String> = MODULES.iter().map(|module| of(&sources.join(module))).collect();
    Ok(Path::new("go").join(format!("kubernetes-{VERSION}-{:016x}", hash(of_all?.as_bytes()))))
}

/// Another one for each content of a folder. Not to be relied upon against anybody who wants two to have the same.
pub fn of(folder: &Path) -> Result<String> {
    let mut all = Vec::new();
    for file in files(folder)? {
        all.extend(file.strip_prefix(folder).unwrap_or(&file).as_os_str().as_encoded_bytes());
        all.push(0);
        let content = std::fs::read(&file)?;
        all.extend((content.len() as u64).to_le_bytes());
        all.extend(content);
    }
    Ok(format!("{:016x}", hash(&all)))
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// FNV-1a of 64 bits: the standard library's own may be another one with the next compiler, and everything would be built anew.
fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
