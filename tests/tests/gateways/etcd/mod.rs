//! The store and the election in a real etcd.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

mod agree;
mod away;
mod backup;
mod house;
mod leading;
mod locked;
mod raw;
mod space;
mod standing;
mod unknown;
mod watching;

#[path = "../../../../src/store/tests/it/common/mod.rs"]
mod common;
