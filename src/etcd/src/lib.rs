//! A store in etcd that several gateways share, and the election of one of them.
//!
//! **Purpose.** The store and the elector of a fleet with several gateways. They are one crate because they
//! share the connection and the leadership: what a leader writes is compared with the very key that it won.
//! **Non-goals.** No consensus of our own: what is agreed is agreed by etcd. No permit is made here; an
//! elector renews a lease, and core judges it. Nothing is restored, and no certificate made.
//!
//! # Invariants
//!
//! - Every write, and every check, is one transaction. It compares the leader's key (by the revision in
//!   which we won it), the term, the store's life and the record's version (S6). Shown by
//!   `who_slept_through_its_lease_changes_nothing_and_may_send_nothing`,
//!   `whose_key_is_gone_leads_no_more_also_where_nobody_else_leads`.
//! - A term is won in the transaction that takes leadership. Shown by `terms_only_grow_whoever_stands`.
//! - Reads are linearizable. A check reads a key also where everything holds: etcd answers a transaction
//!   without a reading from what one member has.
//! - A request without an answer is *unknown* unless etcd surely did not take it (S10). A write is sent a
//!   second time, to the next member, because it compares the version and so happens once. Shown by
//!   `a_write_whose_answer_was_cut_off_is_unknown_and_was_done`,
//!   `a_write_whose_answer_was_cut_off_is_found_by_the_next_member`.
//! - A lease counts from when its keep-alive was *sent*, ends a margin early, and is never renewed once it
//!   ended. Shown by `a_permit_ends_before_its_lease_and_stays_ended`.
//! - What is stored has the form of [`picket_store::format`], and the semantics are those of every store.
//!   Shown by `etcd_and_the_model_agree`.

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
