//! The trait of a cluster that is told around a fence what it may do with the node.
//!
//! **Purpose.** A cluster gives work to a node by itself, lets go what is the node's by itself, and has others that repair machines. While
//! Picket fences the node, the cluster is told to leave it alone, and told otherwise once the node is back.
//! **Non-goals.** Nothing here lets a volume go: what does so is set up by an attempt under a permit alone, [`Releaser::attempt`].
//! **Invariants.** No call wants a permit, and each may be made at any time: it restricts what the cluster does, takes away what stands, or
//! reads.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use picket_answers::release::{Left, LetOn, Prepared, ReleaseError, Subject, Whose};
use picket_core::cluster_node::{Belongs, ClusterNode};
use picket_core::device::Identity;
use picket_core::power::Power;
use picket_core::restore::Lives;
use tokio::time::Instant;

use crate::releaser::Releaser;

/// What a cluster says of a machine of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// What its cloud calls it.
    pub provider_id: Option<String>,
    /// What it says of itself.
    pub identity: Identity,
}

/// A release that lets go in a cluster, as that cluster's quarantine of one node. Every call returns before its `until`.
#[async_trait]
pub trait Quarantine: Releaser {
    /// What an attempt sets up lets volumes go for as long as it stands (a taint). For how long it may still be acted on after it was seen to
    /// be gone.
    fn lingers(&self) -> Duration;

    /// Takes away what attempts for that node set up, whoever made them. `Ok`: it was seen to be gone, or not to be there, and what was
    /// sent before and goes by what was read is refused.
    async fn withdraw(&self, whose: &Whose, until: Instant) -> Result<(), ReleaseError>;

    /// Says that the node is being fenced, so that nothing new is given to it and nobody else lets go what is its (K2, K8): before it is
    /// off, beside the off, and never a condition of it. [`Quarantine::clean_up`] takes away what it sets up. Answers whom the cluster has
    /// for the node, in its own words.
    async fn cordon(&self, subject: &Subject, until: Instant) -> Result<Option<String>, ReleaseError> {
        let _ = (subject, until);
        Ok(None)
    }

    /// Keeps whoever else repairs machines away from the one that was met (K8), for as long as the node is fenced; nothing waits for it.
    /// [`Quarantine::readmit`] takes away what it sets up.
    async fn exclude(&self, subject: &Subject, until: Instant) -> Result<(), ReleaseError> {
        let _ = (subject, until);
        Ok(())
    }

    /// Whether the cluster has another machine for the node by now than was met when the fence began (K1): asked again and again while the
    /// node is kept off, where somebody was met. [`ReleaseError::Replaced`]: another one, and what was set up is taken from it.
    async fn compare(&self, subject: &Subject, until: Instant) -> Result<(), ReleaseError> {
        let _ = (subject, until);
        Ok(())
    }

    /// Takes away what is left of earlier fences of a node that is back, as soon as that may be. `Some`: what that waits for; it is asked
    /// again. What a later generation left is not touched: the gateway that asks may have stood still since.
    async fn clean_up(&self, left: &Left, until: Instant) -> Result<Option<String>, ReleaseError> {
        let _ = (left, until);
        Ok(None)
    }

    /// Takes away what [`Quarantine::exclude`] set up, once [`Quarantine::clean_up`] has nothing more to do. `Some`: what it waits for; it is asked
    /// again. What a later generation set up is not touched.
    async fn readmit(&self, left: &Left, until: Instant) -> Result<Option<String>, ReleaseError> {
        let _ = (left, until);
        Ok(None)
    }

    /// Whether what it takes away of a node that is back goes by whom it met in the fence, so that a gateway that leads since then is told that
    /// ([`Left::met_last`]).
    fn recalls(&self) -> bool {
        false
    }

    /// Reads what the next attempt goes by, before power is read and the store is asked for the last time: what such an attempt changes
    /// it changes only as it was read. Changes nothing.
    async fn before_attempt(&self, subject: &Subject, until: Instant) -> Result<Prepared, ReleaseError> {
        let _ = (subject, until);
        Ok(Prepared::default())
    }

    /// Looks once more before the node is switched on (K2). Changes nothing, but on whom it finds to be another machine.
    /// [`ReleaseError::DidNotHappen`], [`ReleaseError::Barred`]: the on must not go now, and why; [`ReleaseError::Replaced`]: as for
    /// [`Quarantine::compare`]; [`ReleaseError::Unknown`]: nobody answers.
    async fn before_on(&self, subject: &Subject, until: Instant) -> Result<LetOn, ReleaseError> {
        let _ = (subject, until);
        Ok(LetOn::default())
    }

    /// Whether whatever manages machines takes this one away for good (K8): switched on for that it is no failure of the fence, and a gateway
    /// that fences it again and again fights with its manager. Asked when a node was found on. In words.
    async fn is_being_deleted(&self, subject: &Subject, until: Instant) -> Option<String> {
        let _ = (subject, until);
        None
    }

    /// Whether the cluster knows the node, or may know it, by a name alone: by the settings, or as nothing else was found that says which
    /// machine it is. The fence's evidence is graded one step lower then: it says of a machine that it is off, and less of whom is let go (K1).
    /// Asked again for each proof.
    fn by_name_alone(&self) -> bool {
        false
    }

    /// Whether the release would find what it lets go, as far as that can be told beforehand: what is wrong, in words. Asked with each check
    /// of the node's devices. Changes nothing.
    async fn check(&self, identities: &[Identity], until: Instant) -> Vec<String> {
        let _ = (identities, until);
        Vec::new()
    }

    /// What all of the node's host devices read in a check, after what [`Quarantine::check`] found in the same one: on where one of them reads
    /// on, off where all do. A cluster that has a machine which lives, while they read off, has another one (K1).
    fn reads(&self, power: Power) {
        let _ = power;
    }

    /// By what the gateway's store is known again: what was noted in the cluster in the name of another store is neither used nor removed (K7).
    /// Told at the beginning of each leadership, before anything else is asked.
    fn serves(&self, store: &Arc<Lives>) {
        let _ = store;
    }

    /// What the cluster says of the machine that it has for the node, and who says so, in words: found without what the node's devices
    /// say, so that what was learned from a device can be compared with it (S13). `None`: it says nothing. Asked with each check. Changes
    /// nothing.
    async fn machine(&self, until: Instant) -> Option<(Identity, String)> {
        let _ = until;
        None
    }

    /// Whether that Node of Kubernetes is the one that the cluster has for the node, by whatever it finds it (K1). `None`: it knows no such
    /// Nodes. Asked before anything is begun for a caller who names one. Changes nothing.
    async fn has(&self, node: &ClusterNode, identities: &[Identity], until: Instant) -> Option<Belongs> {
        let _ = (node, identities, until);
        None
    }

    /// Whether a node's machine is found in the cluster otherwise than by the node's name.
    fn finds_otherwise(&self) -> bool {
        false
    }

    /// The machine that has this name in the cluster: a gateway that runs there knows by it which of its nodes that is (S17). Changes nothing.
    ///
    /// # Errors
    /// That is not told now.
    async fn machine_named(&self, name: &str, until: Instant) -> Result<Machine, String> {
        let _ = (name, until);
        Err("it knows no machines by name".to_owned())
    }
}
