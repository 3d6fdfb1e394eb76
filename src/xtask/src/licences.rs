//! Whether everything that Picket is built from may be used in it.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::failure::Failure;
use crate::{place, run, spdx};

/// Licences that ask for no more than to be named.
const ALLOWED: &[&str] = &[
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Zlib",
];

/// Looks at each package that is used on this machine's kind.
pub fn check() -> Result<(), Failure> {
    eprintln!("\n+ licences of all packages, from cargo metadata");
    let metadata = place::metadata(&["--filter-platform", &host()?])?;
    let nodes = metadata["resolve"]["nodes"].as_array().map_or(&[][..], Vec::as_slice);
    let used: BTreeSet<&str> = nodes.iter().filter_map(|node| node["id"].as_str()).collect();
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let used = packages.iter().filter(|package| package["id"].as_str().is_some_and(|id| used.contains(id)));
    let mut count = 0;
    let faults: Vec<String> = used.inspect(|_| count += 1).filter_map(fault).collect();
    if count == 0 {
        return Err(Failure::new("cargo metadata names no package"));
    }
    if faults.is_empty() {
        println!("{count} packages, all of them {}", ALLOWED.join(", "));
        return Ok(());
    }
    Err(Failure::new(faults.join("; ")))
}

/// What is wrong with a package's licence.
fn fault(package: &Value) -> Option<String> {
    let text = |key: &str| package[key].as_str().unwrap_or_default();
    let name = format!("{} {}", text("name"), text("version"));
    match spdx::holds(text("license"), &|licence| ALLOWED.contains(&licence)) {
        Ok(true) => None,
        Ok(false) => Some(format!("{name} is {}, which is not allowed here", text("license"))),
        Err(why) => Some(format!("{name}: its licence {:?} cannot be read: {why}", text("license"))),
    }
}

/// The triple of this machine.
fn host() -> Result<String, Failure> {
    let mut command = std::process::Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    command.arg("-vV");
    let said = run::output(command)?;
    let said = String::from_utf8_lossy(&said);
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or(Failure::new("rustc -vV names no host"))
}
