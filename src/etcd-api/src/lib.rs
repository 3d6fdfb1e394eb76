//! etcd's API (v3), as much of it as Picket speaks.
//!
//! **Purpose.** The messages of `etcdserverpb.proto`, where every field is described, what makes the usual
//! ones, and a client that sends them over a channel that it is given.
//! **Non-goals.** No connection is made here, and no TLS. No error is judged: the caller knows whether a
//! request may have had an effect. What tests alone ask of etcd is not in it: they ask by JSON over HTTP,
//! in other words than the product's.
//!
//! # Invariants
//!
//! - Each request says that the member must have a leader, and who asks, once that is known. The call that
//!   gets a token says none. Shown by `every_call_wants_a_leader_and_has_the_token_once_there_is_one`.
//! - Nothing is sent a second time.
//! - No reading of keys is answered by one member alone, nor is the list of the members (of etcd 3.5 and
//!   later).
//! - A keep-alive is a stream of its own. What is not known to be renewed does not count as renewed. Shown
//!   by `only_a_lease_that_lasts_on_was_renewed`.

mod client;
mod made;

pub use client::{Client, Error, Watch};
pub use wire::event::EventType;
pub use wire::range_request::{SortOrder, SortTarget};
pub use wire::{
    Compare, Event, KeyValue, LeaseGrantRequest, LeaseGrantResponse, LeaseRevokeResponse, Member,
    MemberListResponse, PutRequest, PutResponse, RangeRequest, RangeResponse, RequestOp, ResponseHeader,
    StatusResponse, TxnRequest, TxnResponse, WatchCreateRequest, WatchResponse,
};

/// Everything of the package `etcdserverpb` that is spoken here; servers, too, so that a test may stand in for etcd.
#[allow(missing_docs, clippy::all, rustdoc::all)]
pub mod wire {
    tonic::include_proto!("etcdserverpb");
}
