//! A store in etcd that several gateways share, and the election of one of them.
//!
//! **Purpose.** The store and the elector of a fleet with several gateways. They are one crate because they share the
//! connection and the leadership: what a leader writes is compared with the very key that it won.
//! **Non-goals.** No consensus of our own: what is agreed is agreed by etcd. No permit is made here; an elector renews a
//! lease, and core judges it. Nothing is restored, and no certificate made.
//! **Invariants.** Every write is one transaction that compares the leader's key (by the revision in which we won it), the
//! term, the store's life and the record's version (S6). A term is won in the transaction that takes leadership. Reads are
//! linearizable. A request without an answer is *unknown* unless etcd surely did not take it; it is sent a second time
//! only where it compares what makes it happen once. A lease counts from when its
//! keep-alive was *sent*, and one that ended is never renewed. What is stored has the form of [`picket_store::format`].

mod changes;
mod connection;
mod election;
mod keys;
mod life;
mod observer;
mod page;
mod shared;
mod store;

pub use connection::Version;
pub use election::{AcceptedSettings, Candidate, EtcdElection, short};
pub use shared::{Etcd, Random};
pub use store::{EtcdStore, Snapshot};
