//! The stores: both agree with one model, survive a kill, and read what older versions wrote.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

mod agree;
mod backup;
mod common;
mod file;
mod golden;
mod kill;
