//! `picket.v1`: the wire.
//!
//! **Purpose.** What callers and gateways say to each other: messages, client and server, generated from
//! `picket/v1/*.proto`, where every field is described with its units and meaning; and which commands lead
//! out by which reason ([`exits`]).
//! **Non-goals.** No rule, no conversion: those stand in the server.
//!
//! # Invariants
//!
//! - The wire outlives the code: `README.md` beside the protos has the rules for changing them. Shown by
//!   `nothing_that_was_released_is_changed`.

#[cfg(feature = "client")]
pub mod client;
mod errors;
pub mod exits;

pub use errors::DOMAIN;

/// Everything of the package `picket.v1`.
#[allow(missing_docs, clippy::all, rustdoc::all)]
pub mod v1 {
    tonic::include_proto!("picket.v1");
}

/// The descriptors of the package and of what it imports, with comments: for reflection, and for tests of the rules.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/picket.v1.bin"));

/// The name under which the service is registered, for health checks.
pub const SERVICE_NAME: &str = "picket.v1.FencingService";
