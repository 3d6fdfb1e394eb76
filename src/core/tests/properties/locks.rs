//! The locks hold: what opens the doors that kill can be made by nobody but the rules.
//!
//! Each case is a small program in `cases/`, compiled against this crate. Its first line says which error the compiler
//! must give, by code, since its words change; `// compiles` is the control that the others fail for that reason alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

const MANIFEST: &str = r#"[package]
name = "locks"
version = "0.0.0"
edition = "2024"

[workspace]

[dependencies]
picket-core = { path = "CORE" }
serde = "1"
"#;

fn cases() -> BTreeMap<String, String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/locks/cases");
    let files = std::fs::read_dir(directory).expect("the cases are beside this file");
    files
        .map(|file| {
            let path = file.expect("a directory entry").path();
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            (name, std::fs::read_to_string(path).expect("a readable case"))
        })
        .collect()
}

/// Where the compiler may keep what it made: with everything else of this build.
fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("locks")
}

/// The error codes of each case, from cargo's JSON.
fn compile(cases: &BTreeMap<String, String>) -> BTreeMap<String, BTreeSet<String>> {
    let package = target().join("package");
    let programs = package.join("examples");
    let _ = std::fs::remove_dir_all(&package);
    std::fs::create_dir_all(&programs).expect("a package of our own");
    std::fs::create_dir_all(package.join("src")).expect("its source folder");
    std::fs::write(package.join("src/lib.rs"), "").expect("an empty library");
    let core = env!("CARGO_MANIFEST_DIR");
    std::fs::write(package.join("Cargo.toml"), MANIFEST.replace("CORE", core)).expect("its manifest");
    // The same versions as everywhere: nothing is fetched.
    std::fs::copy(Path::new(core).join("../../Cargo.lock"), package.join("Cargo.lock"))
        .expect("the lock file");
    for (name, text) in cases {
        std::fs::write(programs.join(format!("{name}.rs")), text).expect("a case");
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["check", "--offline", "--examples", "--keep-going", "--message-format=json", "--quiet"])
        .current_dir(&package)
        .env("CARGO_TARGET_DIR", target().join("target"))
        .output()
        .expect("cargo can be started");
    let mut codes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let text = String::from_utf8_lossy(&output.stdout);
    for line in text.lines() {
        let message: Value = serde_json::from_str(line).expect("cargo's JSON");
        let name = message["target"]["name"].as_str().unwrap_or_default().to_owned();
        match message["reason"].as_str() {
            Some("compiler-message") if message["message"]["level"] == "error" => {
                if let Some(code) = message["message"]["code"]["code"].as_str() {
                    codes.entry(name).or_default().insert(code.to_owned());
                }
            }
            Some("compiler-artifact") => {
                codes.entry(name).or_default();
            }
            _ => {}
        }
    }
    assert!(!codes.is_empty(), "cargo said: {}", String::from_utf8_lossy(&output.stderr));
    codes
}

#[test]
fn nobody_else_makes_what_opens_a_door() {
    let cases = cases();
    assert!(cases.len() >= 12, "{:?}", cases.keys());
    let codes = compile(&cases);
    for (name, text) in &cases {
        let first = text.lines().next().unwrap_or_default();
        let expected: BTreeSet<String> = match first.strip_prefix("// error ") {
            Some(code) => BTreeSet::from([code.trim().to_owned()]),
            None => {
                assert_eq!(first, "// compiles", "{name}: its first line says what must come");
                BTreeSet::new()
            }
        };
        assert_eq!(codes.get(name), Some(&expected), "{name}");
    }
}
