//! What a program says of its build: `--version`, where `-V` is one line.
//!
//! **Purpose.** A report of a fault names the very sources by it.
//! **Non-goals.** No build script and no question to git: either would build anew what did not change.
//!
//! # Invariants
//!
//! - The commit is the one that `cargo xtask package` names. Every other build says that it does not know
//!   its own.

/// The variable in which `cargo xtask package` names the commit: some hexadecimal digits, and `-dirty` after them where the tree had
/// changes. Cargo builds this crate anew when it changes, and what depends on it.
const COMMIT: Option<&str> = option_env!("PICKET_COMMIT");

/// What comes after the program's name: the version on the first line, then the commit, the features and the target, a line each.
/// A program without features of its own has no line for them.
pub fn long(features: &[&str]) -> String {
    told(COMMIT, features)
}

fn told(commit: Option<&str>, features: &[&str]) -> String {
    let mut text = format!(
        "{}\ncommit: {}\n",
        env!("CARGO_PKG_VERSION"),
        commit.unwrap_or("unknown (not built by cargo xtask package)")
    );
    if !features.is_empty() {
        text += &format!("features: {}\n", features.join(" "));
    }
    text + &format!("target: {}", target())
}

/// As `x86_64-linux-gnu`.
fn target() -> String {
    let libc = if cfg!(target_env = "musl") { "musl" } else { "gnu" };
    format!("{}-{}-{libc}", std::env::consts::ARCH, std::env::consts::OS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_the_commit_the_features_and_the_target_have_a_line_each() {
        let version = env!("CARGO_PKG_VERSION");
        let target = target();
        assert_eq!(
            told(Some("95d93a91-dirty"), &["etcd", "ipmi"]),
            format!("{version}\ncommit: 95d93a91-dirty\nfeatures: etcd ipmi\ntarget: {target}")
        );
        let plain = told(None, &[]);
        assert!(plain.contains("\ncommit: unknown") && !plain.contains("features"), "{plain}");
    }
}
