//! Kubernetes: the pods of a node that is proven off are deleted, and its volumes let go by the taint `out-of-service`.
//!
//! **Purpose.** The kind of release `kubernetes` ([`OutOfService`]): which Node it is, its pods, the taint, its VolumeAttachments, and
//! what is put back once it runs again; on request also what ceph-csi did to its addresses.
//! Whether the Node that a caller means is the one of a node. Whether a Node recovered, asked before anything is done to it ([`Alive`]).
//! **Non-goals.** No decision whether a node failed, nor whether a release is due. No cloud's volumes: the CSI driver detaches.
//! **Invariants.** A change names the UID of what it changes, and of a Node the version that was read, so that a late one is refused;
//! nothing is replaced whole, and what others set stays as it is. The permit is asked for its word before each request that
//! lets anything go, once the connection of that request stands. The
//! taint `out-of-service` is set only where no pod that could be deleted is left, so that nobody else deletes one by its name.
//! Nothing is sent twice by the client itself.

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
