//! `picket-controller`: watches a Kubernetes' Nodes, and asks the gateway to fence those that failed.
//!
//! **Purpose.** Policies (`FencingPolicy`) say which Nodes are fenced and when; the decider ([`decider`]) decides by what was seen; the
//! hands watch, ask the gateway that leads, and tell in the cluster what becomes of it.
//! **Non-goals.** No power, no proof, no release, no budget: that is the gateway's. Nothing unsafe hangs on what is decided here: a fence that
//! is asked for wrongly costs a needless power cycle, and never a volume.
//! **Invariants.** What was not seen freshly is not judged. The same failure has the same key, whoever asks and however often. Who does
//! not lead asks nothing. Of a Node only metadata is changed, and only of the Node with that UID.
//! **Boundary.** Sees the wire (picket-proto) and the API server, and no rule of the gateway.

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
