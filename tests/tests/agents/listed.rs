//! The reviewed list against what Debian ships.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use picket_driver::{Context, DriverKind};
use picket_driver_agent::AgentKind;
use picket_driver_agent::list::{LIST, Proof};
use picket_engine::clock::SystemClock;
use picket_tests::{PeerError, Result};
use serde_json::json;

/// Where Debian's package has them.
const DIRECTORY: &str = "/usr/sbin";

fn installed() -> Result<BTreeSet<String>> {
    let output = std::process::Command::new("dpkg").args(["-L", "fence-agents"]).output();
    let output = output.map_err(PeerError::io("ask dpkg for Debian's fence agents"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let names = text.lines().map(Path::new).filter(|path| path.starts_with(DIRECTORY));
    let names = names.filter_map(|path| path.file_name()).map(|name| name.to_string_lossy().into_owned());
    let names: BTreeSet<String> = names.filter(|name| name.starts_with("fence_")).collect();
    match names.is_empty() {
        true => Err(PeerError::Missing { what: "fence_ipmilan".to_owned(), package: "fence-agents" }),
        false => Ok(names),
    }
}

#[test]
fn every_agent_of_debians_package_was_read_and_no_other() -> Result<()> {
    let listed: BTreeSet<String> = LIST.iter().map(|agent| agent.name.to_owned()).collect();
    assert_eq!(installed()?, listed);
    Ok(())
}

#[test]
fn every_agent_that_can_be_a_device_says_so_itself() -> Result<()> {
    installed()?;
    let context = Context { clock: Arc::new(SystemClock), random: Arc::new(|_: &mut [u8]| {}) };
    let kind = AgentKind::default();
    for agent in LIST.iter().filter(|agent| agent.proof != Proof::Never) {
        // Given nothing, it may lack parameters and no more: its metadata was read, and it can switch and tell.
        let settings = json!({ "agent": agent.name });
        let made = kind.make(settings.as_object().expect("a table"), &context);
        for fault in made.err().unwrap_or_default() {
            let about = matches!(fault.key.as_str(), "parameters" | "class");
            assert!(about, "{}: {}: {}", agent.name, fault.key, fault.message);
        }
    }
    Ok(())
}
