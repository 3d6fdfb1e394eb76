//! The gRPC service `picket.v1`: proto to core and back, who calls, and how many at once.
//!
//! **Purpose.** The door of the gateway: checks what callers ask, asks the engine, and streams what becomes
//! of it.
//! **Non-goals.** No rule: what may happen is decided behind the engine's facade, and who may what by
//! core's roles.
//! **Boundary.** Sees the engine's facade and core's vocabulary, never a driver, a releaser or a store. Who
//! keeps denials is the gateway's matter.
//!
//! # Invariants
//!
//! - A caller who leaves stops nothing. Shown by `who_leaves_stops_nothing`.
//! - Nothing absent is good news: an outcome is told in the last message of a stream or not at all. Shown
//!   by `a_fence_tells_each_step_in_order_and_its_outcome_last`.
//! - Every error has a reason of `picket.v1.ErrorReason`, and says what was wrong, where, and what would be
//!   right.
//! - TCP without TLS is loopback alone (S1). Shown by `tcp_is_loopback_alone_and_a_taken_port_is_told`.
//! - Every refusal for lack of a role is told to [`DenialSink`]. Shown by
//!   `a_role_that_is_missing_is_named_and_nothing_is_begun`.
//! - A stream judges its caller anew by the labels of now before it tells anything, and ends with the roles
//!   by which it was let in. Shown by `a_watch_of_a_node_by_its_name_ends_with_the_label_that_let_it_in`,
//!   `who_follows_a_fence_is_told_no_more_once_the_label_that_let_them_in_is_gone`.

mod accept;
mod access_control;
mod admission;
mod calls;
mod connection;
mod convert;
mod digest;
mod errors;
mod fault;
mod follow;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod guard;
mod handshakes;
mod health;
mod listen;
mod natural_order;
mod page;
mod redaction;
mod revision;
mod select;
mod serve;
mod service;
mod tls;
mod too_large;

pub use access_control::AccessControl;
pub use admission::Limits;
pub use guard::{AccessRules, Denial, DenialSink, DiscardDenials};
pub use listen::{Addresses, ListenError, Listeners, SocketFile};
pub use serve::{ServeError, serve, serve_by, serve_with, serve_within};
pub use tls::{Tls, TlsFault, TlsFiles};
