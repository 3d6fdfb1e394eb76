//! `picket-controller`: watches a Kubernetes' Nodes, and asks the gateway to fence those that failed.
//!
//! **Purpose.** Policies (`FencingPolicy`) say which Nodes are fenced and when. The [`decider`] decides by
//! what was seen. The rest watches (`watch`, `lead`), asks the gateway that leads (`ask`, `outcome`), and
//! tells in the cluster what becomes of it (`event_recorder`, `events`). One task, `control`, changes the decider.
//! **Non-goals.** No power, no proof, no release, no budget: those are the gateway's. Nothing unsafe
//! depends on what is decided here: a fence that is asked for wrongly costs a needless power cycle, and
//! never a volume.
//! **Boundary.** Sees the wire (picket-proto) and the API server, and no rule of the gateway.
//!
//! # Invariants
//!
//! - What was not seen freshly is not judged. Shown by `while_nobody_looks_nothing_counts`.
//! - The same failure has the same key, whoever asks and however often. Shown by
//!   `another_controller_finds_the_same_key_whenever_it_begins`.
//! - A replica that does not lead asks nothing. Shown by
//!   `of_two_one_asks_and_the_other_goes_on_where_it_dies`.
//! - Of a Node only metadata is patched, with a test of its UID (K1).

mod api;
mod arguments;
mod check;
mod control;
mod crd;
pub mod decider;
mod event_recorder;
mod events;
mod fault;
mod fence_request;
mod gateway;
mod health;
mod hold_release;
mod kured;
mod leader_election;
mod measured;
mod medik8s;
mod object;
mod outcome;
mod policy_events;
mod remediation;
mod remediation_cache;
mod request;
mod request_note;
mod retired;
mod run;
mod settings;
mod spec;
mod table;
mod unconfigured;
mod waits;
mod watch;

pub use arguments::{Arguments, Task};
pub use run::main;
