//! The store and the election in a real etcd.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

mod agree;
mod house;

#[path = "../../../src/store/tests/common/mod.rs"]
mod common;
