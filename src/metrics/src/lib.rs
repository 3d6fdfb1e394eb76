//! What is counted and measured, and the text that Prometheus reads.
//!
//! **Purpose.** One table of all metrics ([`ALL`]), and one cheap handle ([`Metrics`]) with which every room counts.
//! The place where they, and a program's health, are told (`http`, a feature).
//! **Non-goals.** Nothing is decided by a metric.
//! **Invariants.** A metric that is not in the table is not exported. The values of a label come from a list that the
//! code or the settings bound: never the id of a fence, never what a caller wrote. Beyond [`MOST`] sets of labels a
//! metric takes no new ones, and counts what it left out.
//! **Boundary.** Knows no type of ours.

#[cfg(feature = "http")]
mod flight;
mod handle;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "http")]
mod room;
mod table;

pub use handle::{MOST, Metrics};
pub use table::*;
