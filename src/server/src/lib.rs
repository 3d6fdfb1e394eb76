//! The gRPC service `picket.v1`: proto to core and back, who calls, and how many at once.
//!
//! **Purpose.** The outer side of the gateway: checks what callers ask, asks the engine, and streams what becomes of it.
//! **Non-goals.** No rule: what may happen is decided behind the engine's facade, and who may what by core's roles.
//! **Invariants.** A caller who leaves stops nothing. Nothing absent is good news: an outcome is told in the last
//! message of a stream or not at all. Every error has a reason of `picket.v1.ErrorReason`, and says what was wrong,
//! where, and what would be right. TCP without TLS is loopback alone. Every refusal for lack of a role is told to
//! [`DenialSink`].
//! **Boundary.** Sees the engine's facade and core's vocabulary, never a driver, a releaser or a store.

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
