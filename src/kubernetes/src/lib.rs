//! Kubernetes: the pods of a node that is proven off are deleted, and its volumes are let go by the taint
//! `out-of-service`.
//!
//! **Purpose.** The kind of release `kubernetes` ([`OutOfService`]): which Node it is, its pods, the taint,
//! its VolumeAttachments, and what is put back once it runs again. On request also what ceph-csi did to its
//! addresses. Whether the Node that a caller means is the one of a node. Whether a Node recovered, asked
//! before anything is done to it ([`Alive`]).
//! **Non-goals.** No decision whether a node failed, nor whether a release is due. No cloud's volumes: the
//! CSI driver detaches.
//!
//! # Invariants
//!
//! - A change names the UID of what it changes, and of a Node the version and the taints that were read
//!   (K6). Shown by `a_patch_tests_all_that_was_read`,
//!   `what_was_changed_between_the_reading_and_the_writing_is_read_anew`.
//! - What an attempt goes by is read before the store's last word (`Releaser::prepare`), and its first
//!   change names that version. A gateway that stood still since then, with its whole machine, is refused
//!   (S6, S8). Shown by `a_gateway_that_stood_still_before_it_set_its_taint_sets_none`.
//! - Each request that lets anything go asks its permit once its connection stands, right before its first
//!   byte (S6). Shown by `what_lets_go_asks_its_permit_once_its_connection_stands`.
//! - Pods go first, by UID. The taint `out-of-service` is set only where no pod is left that could be
//!   deleted, so that nobody else deletes one by its name (K4). Shown by
//!   `a_hundred_pods_die_with_their_machine_and_none_that_is_made_anew_is_deleted_again`.
//! - The finalizer that keeps a deleted Node goes once nothing of the Node is left, or with the end of the
//!   fence (K8). Shown by `a_node_that_is_deleted_in_the_middle_stays_until_its_volume_is_free`.
//! - Entries of others stay as they are, byte for byte (K7). Shown by
//!   `only_this_installation_s_own_is_removed`.
//! - The client repeats nothing by itself.

mod alive;
mod alone;
mod announcing;
mod attachments;
mod attempt;
mod back;
mod belonging;
mod cidr;
mod client;
mod clock;
mod cluster;
mod deleting;
mod fault;
mod finding;
mod foreign;
mod identity;
mod machines;
mod network_fences;
mod node;
mod note;
mod object;
mod pods;
mod release;
mod remains;
mod rights;
mod rivals;
mod settings;
mod stores;
mod taints;
mod unattached;
mod waits;
mod webhooks;
mod withdrawing;

pub use alive::Alive;
pub use release::OutOfService;

#[cfg(test)]
mod tests;
