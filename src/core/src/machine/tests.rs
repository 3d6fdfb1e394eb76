//! The state machine: every transition of "Life of a node", every refusal, and what stands in the ledger before it is sent.

#![allow(clippy::unwrap_used)] // A fixture that cannot be made ends its test.

mod breach;
mod confirming;
mod fencing;
mod holding;
mod identity;
mod joining;
mod parts;
mod people;
mod receipting;
mod recording;
mod recovered;
mod releasing;
mod restoring;
mod standing;
mod trying_again;
mod unfencing;
