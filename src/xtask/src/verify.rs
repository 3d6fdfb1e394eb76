//! `cargo xtask verify`: reads the sources, and says all that is wrong with them at once.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use crate::builds::NO_PROTOC;
use crate::failure::Failure;
use crate::test::mutants;
use crate::{builds, invariants, licences, packages, pages, place, reference, run, words};

/// A check of the sources, by what it looks at.
type Check = (&'static str, fn() -> Result<(), Failure>);

/// What a gateway may be built with, one by one. EC2's client is not among it: alone it is another build than that for the tests, of minutes
/// and gigabytes. Beside the gateway stands the rest of the workspace: what both need has the same features then as in the builds before, and
/// is not built once more for each part. The tests are left out, since they want a gateway with all parts.
const ALONE: [&str; 7] = ["etcd", "ipmi", "redfish", "agent", "openstack", "gcp", "kubernetes"];

/// Formatting, clippy, a gateway of few parts, documentation, the pages, the invariants, names, licences, that nothing wants protoc, the fuzz targets' manifest. All
/// are looked at, whichever fails.
pub fn verify() -> Result<(), Failure> {
    packages::ensure(packages::FOR_BUILD, false)?;
    let checks: [Check; 13] = [
        ("formatting (cargo xtask fix mends it)", || cargo(&["fmt", "--all", "--check"], &[])),
        ("clippy", || clippy(&["--workspace"])),
        ("a gateway without any part", || clippy(&["-p", "picket-gateway", "--no-default-features"])),
        ("a gateway with one part alone", || {
            let looked = ALONE.map(|part| {
                let features = format!("picket-gateway/{part}");
                let rest = ["--workspace", "--exclude", "picket-tests", "--no-default-features"];
                clippy(&[&rest[..], &["--features", &features]].concat())
            });
            looked.into_iter().collect()
        }),
        ("documentation", documentation),
        ("the pages", pages::check),
        ("the invariants and the map", invariants::check),
        ("names that say nothing", words::check),
        ("pages that are made from the sources", reference::check),
        ("licences", licences::check),
        ("a build without protoc", builds::check),
        ("the lines that weaken the law", mutants::check),
        // It lies outside of the workspace, and its targets want a compiler that is not asked for here.
        ("the fuzz targets' manifest", || {
            let mut command = place::cargo();
            command.args(["read-manifest", "--manifest-path", "tests/fuzz/bodies/Cargo.toml"]);
            run::output(command).map(drop)
        }),
    ];
    let failed: Vec<String> = checks
        .into_iter()
        .filter_map(|(name, check)| check().err().map(|Failure(why)| format!("{name}: {why}")))
        .collect();
    if failed.is_empty() {
        println!(
            "\nverified: formatting, clippy, a gateway with one part alone, documentation, pages, invariants, names, licences, no protoc, mutants"
        );
        return Ok(());
    }
    Err(Failure::new(format!("not as it should be:\n  {}", failed.join("\n  "))))
}

/// What clippy refuses.
const DENIED: [&str; 2] = ["--deny", "warnings"];

fn clippy(what: &[&str]) -> Result<(), Failure> {
    cargo(&[&["clippy", "--all-targets", "--locked"], what, &["--"], &DENIED].concat(), &[])
}

/// By clippy's own compiler and with the features of a build that has tests, so that rustdoc takes what the check by clippy has compiled.
/// Where a clippy to come names these variables otherwise, all is compiled once more, and nothing else changes.
fn documentation() -> Result<(), Failure> {
    let driver = place::cargo().get_program().to_owned();
    let driver = Path::new(&driver).with_file_name("clippy-driver");
    let denied: String = DENIED.map(|word| format!("{word}__CLIPPY_HACKERY__")).concat();
    let mut environment = vec![("RUSTDOCFLAGS", "--deny warnings".into())];
    if driver.is_file() {
        environment
            .extend([("RUSTC_WORKSPACE_WRAPPER", driver.into_os_string()), ("CLIPPY_ARGS", denied.into())]);
    }
    cargo(&["doc", "--workspace", "--no-deps", "--locked", "--lib", "--examples"], &environment)
}

fn cargo(arguments: &[&str], environment: &[(&str, OsString)]) -> Result<(), Failure> {
    let mut command: Command = place::cargo();
    command
        .args(arguments)
        .env(NO_PROTOC.0, NO_PROTOC.1)
        .envs(environment.iter().map(|(name, value)| (name, value)));
    run::shown(command)
}
