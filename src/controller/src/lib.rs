//! `picket-controller`: watches a Kubernetes' Nodes, and asks the gateway to fence those that failed.
//!
//! **Purpose.** Policies (`FencingPolicy`) say which Nodes are fenced and when; the mind ([`mind`]) decides by what was seen; the
//! hands watch, ask the gateway that leads, and tell in the cluster what becomes of it.
//! **Non-goals.** No power, no proof, no release, no budget: that is the gateway's. Nothing unsafe hangs on what is decided here: a fence that
//! is asked for wrongly costs a needless power cycle, and never a volume.
//! **Invariants.** What was not seen freshly is not judged. The same failure has the same key, whoever asks and however often. Who does
//! not lead asks nothing. Of a Node only metadata is changed, and only of the Node with that UID.
//! **Boundary.** Sees the wire (picket-proto) and the API server, and no rule of the gateway.

mod api;
mod arguments;
mod ask;
mod asked;
mod check;
mod control;
mod crd;
mod fault;
mod gateway;
mod health;
mod kured;
mod lead;
mod letting;
mod measured;
mod medik8s;
pub mod mind;
mod news;
mod object;
mod outcome;
mod remediation;
mod remembered;
mod request;
mod retired;
mod run;
mod settings;
mod spec;
mod table;
mod teller;
mod told;
mod unconfigured;
mod waits;
mod watch;

pub use arguments::{Arguments, Task};
pub use run::main;
