//! What is counted and measured, and the text that Prometheus reads.
//!
//! **Purpose.** One table of all metrics ([`ALL`]), and one cheap handle ([`Metrics`]) with which every
//! room counts. The place where they, and a program's health, are told (`http`, a feature).
//! **Non-goals.** Nothing is decided by a metric.
//! **Boundary.** Knows no type of ours. What the store holds is looked at when somebody reads
//! (`gateway/observe`); only what happens is counted where it happens.
//!
//! # Invariants
//!
//! - A metric that is not in the table is not exported.
//! - The values of a label come from a list that the code or the settings bound: never the id of a fence,
//!   never what a caller wrote.
//! - Beyond [`MOST`] sets of labels a metric takes no new ones, and counts what it left out. Shown by
//!   `a_metric_has_no_more_sets_of_labels_than_it_may`.

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
