//! The gRPC service `picket.v1`: proto to core and back, who calls, and how many at once.
//!
//! **Purpose.** The door of the gateway: checks what callers ask, asks the engine, and streams what becomes of it.
//! **Non-goals.** No rule: what may happen is decided behind the engine's facade, and who may what by core's roles.
//! **Invariants.** A caller who leaves stops nothing. Nothing absent is good news: an outcome is told in the last
//! message of a stream or not at all. Every error has a reason of `picket.v1.ErrorReason`, and says what was wrong,
//! where, and what would be right. TCP without TLS is loopback alone. Every refusal for lack of a role is told to
//! [`Denials`].
//! **Boundary.** Sees the engine's facade and core's vocabulary, never a driver, a releaser or a store.

mod accept;
mod calls;
mod connection;
mod convert;
mod digest;
mod door;
mod errors;
mod fault;
mod follow;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod guard;
mod handshakes;
mod health;
mod hiding;
mod house;
mod listen;
mod names;
mod page;
mod revision;
mod select;
mod serve;
mod service;
mod tls;
mod too_large;

pub use door::Limits;
pub use guard::{Denial, Denials, HouseRules, Untold};
pub use house::House;
pub use listen::{Addresses, ListenError, Listeners, SocketFile};
pub use serve::{ServeError, serve, serve_by, serve_house, serve_within};
pub use tls::{Tls, TlsFault, TlsFiles};
