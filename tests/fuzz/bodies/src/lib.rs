//! What is fuzzed: a body for every parser of what comes from outside.
//!
//! **Purpose.** Each body takes any bytes and panics where something does not hold. `cargo-fuzz` calls them with libFuzzer
//! (`tests/fuzz/fuzz_targets`), and the test `corpus` on stable, over the kept corpus and deterministic mutations of it.
//! **Non-goals.** No input of our own making is tested here: that the units do.
//!
//! # Invariants
//!
//! - A body is deterministic, leaves nothing behind, and asks nobody.

mod backups;
mod files;
mod mutate;
mod names;
mod receipts;
mod stored;

pub use mutate::{Mutator, Random};

/// A body, by the name of its corpus and of its target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// What it is given to; says whether it was taken as what it stands for.
    pub body: fn(&[u8]) -> bool,
    /// How much it costs: the bounded run gives it so many inputs.
    pub runs: u32,
    /// The most memory, in bytes, that one input may take at once.
    pub memory: usize,
}

const fn target(name: &'static str, body: fn(&[u8]) -> bool, runs: u32, memory: usize) -> Target {
    Target { name, body, runs, memory }
}

const MIB: usize = 1 << 20;

/// All of them.
pub const TARGETS: [Target; 15] = [
    target("ipmi_packet", picket_driver_ipmi::fuzz::packet, 20_000, MIB),
    target("ipmi_handshake", picket_driver_ipmi::fuzz::handshake, 3_000, MIB),
    target("ipmi_session", picket_driver_ipmi::fuzz::session, 3_000, MIB),
    target("ipmi_answers", picket_driver_ipmi::fuzz::answers, 20_000, MIB),
    target("settings", files::settings, 300, 64 * MIB),
    target("hostlist", names::hostlist, 3_000, 64 * MIB),
    target("roles", names::roles, 20_000, MIB),
    target("stored", stored::stored, 5_000, 16 * MIB),
    target("backup", backups::backup, 2_000, 64 * MIB),
    target("audit_line", picket_audit::fuzz::line, 10_000, 4 * MIB),
    target("audit_file", files::audit, 300, 16 * MIB),
    target("receipt", receipts::receipt, 2_000, 4 * MIB),
    target("request", picket_server::fuzz::request, 10_000, 4 * MIB),
    target("certificate", picket_server::fuzz::certificate_of_a_caller, 10_000, MIB),
    target("shown_certificate", picket_trust::fuzz::shown, 20_000, MIB),
];

/// The body of that name. A target of `fuzz_targets` names one that is there, or does not run.
pub fn run(name: &str, data: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    let _ = (target.unwrap_or_else(|| panic!("there is no body {name:?}")).body)(data);
}
