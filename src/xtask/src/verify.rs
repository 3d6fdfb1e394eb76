//! `cargo xtask verify`: reads the sources, and says all that is wrong with them at once.

use std::process::Command;

use crate::failure::Failure;
use crate::test::mutants;
use crate::{licences, packages, place, run};

/// A check of the sources, by what it looks at.
type Check = (&'static str, fn() -> Result<(), Failure>);

/// What a gateway may be built with, one by one. EC2's client is not among it: alone it is another build than that for the tests, of minutes
/// and gigabytes.
const ALONE: [&str; 8] = ["", "etcd", "ipmi", "redfish", "agent", "openstack", "gcp", "kubernetes"];

/// Formatting, clippy, a gateway of few parts, documentation, licences, the fuzz targets' manifest. All are looked at, whichever fails.
pub fn verify() -> Result<(), Failure> {
    packages::ensure(packages::FOR_BUILD, false)?;
    let checks: [Check; 7] = [
        ("formatting (cargo xtask fix mends it)", || cargo(&["fmt", "--all", "--check"], &[])),
        ("clippy", || {
            cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "--deny", "warnings"], &[])
        }),
        ("a gateway with one part alone", || {
            let looked = ALONE.map(|part| {
                let features = ["--no-default-features", "--features", part];
                let gateway = ["clippy", "-p", "picket-gateway", "--all-targets", "--locked"];
                cargo(&[&gateway[..], &features, &["--", "--deny", "warnings"]].concat(), &[])
            });
            looked.into_iter().collect()
        }),
        ("documentation", || {
            cargo(&["doc", "--workspace", "--no-deps", "--locked"], &[("RUSTDOCFLAGS", "--deny warnings")])
        }),
        ("licences", licences::check),
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
            "\nverified: formatting, clippy, a gateway with one part alone, documentation, licences, mutants"
        );
        return Ok(());
    }
    Err(Failure::new(format!("not as it should be:\n  {}", failed.join("\n  "))))
}

fn cargo(arguments: &[&str], environment: &[(&str, &str)]) -> Result<(), Failure> {
    let mut command: Command = place::cargo();
    command.args(arguments).envs(environment.iter().copied());
    run::shown(command)
}
