//! What is left of a fence on a Node that is back, and when it goes (K2, K7).

use std::time::Duration;

use futures::future::join_all;
use picket_core::ids::Generation;
use picket_release::{Left, ReleaseError};
use tokio::time::Instant;

use crate::cluster::Patch;
use crate::fault::{Fault, Kind};
use crate::identity::Met;
use crate::node;
use crate::note::{self, Note, Ours};
use crate::object::Node;
use crate::release::{OfNode, OutOfService};
use crate::taints::{self, AGAIN, FENCED};

/// A node that is back is seen ready for so long before new pods may come.
const SOAK: Duration = Duration::from_secs(30);
/// A kubelet reports every few seconds: a Node that was changed between the reading and the writing is read anew, so often.
const READ_ANEW: usize = 4;

/// What was seen of a Node that is to come back.
#[derive(Debug, Default)]
pub(crate) struct Back {
    /// In which generation: what was seen of one return says nothing of the next.
    of: Generation,
    /// Since when it is ready.
    ready_since: Option<Instant>,
    /// What its kubelet's lease said first.
    lease: Option<String>,
}

impl OfNode {
    /// What was seen of that Node in that generation.
    fn seen_back<T>(&self, uid: &str, of: Generation, what: impl FnOnce(&mut Back) -> T) -> T {
        let mut back = self.back.lock();
        let seen = back.entry(uid.to_owned()).or_default();
        if seen.of != of {
            *seen = Back { of, ..Back::default() };
        }
        what(seen)
    }
}

impl OutOfService {
    /// `Some`: what is waited for.
    pub(crate) async fn tidied(&self, left: &Left, until: Instant) -> Result<Option<String>, ReleaseError> {
        let of = self.of()?;
        self.cluster.is_meant(until).await?;
        let names = of.sought.touched(&self.cluster, &left.whose, until).await?;
        // Each for itself: one that cannot be told keeps nothing on the others.
        let tidied = join_all(names.iter().map(|name| self.tidied_one(of, name, left, until))).await;
        let waits: Result<Vec<Option<String>>, ReleaseError> = tidied.into_iter().collect();
        Ok(waits?.into_iter().flatten().next())
    }

    async fn tidied_one(
        &self,
        of: &OfNode,
        name: &str,
        left: &Left,
        until: Instant,
    ) -> Result<Option<String>, ReleaseError> {
        for _ in 0..READ_ANEW {
            match self.tidied_as_read(of, name, left, until).await {
                Err(fault) if fault.is_changed() && Instant::now() + AGAIN < until => {
                    tokio::time::sleep(AGAIN).await;
                }
                tidied => return Ok(tidied?),
            }
        }
        Ok(self.tidied_as_read(of, name, left, until).await?)
    }

    async fn tidied_as_read(
        &self,
        of: &OfNode,
        name: &str,
        left: &Left,
        until: Instant,
    ) -> Result<Option<String>, Fault> {
        let node = match node::read(&self.cluster, name, until).await {
            Err(fault) if fault.is(Kind::NotFound) => return Ok(None),
            read => read?,
        };
        let ours = &of.sought.ours;
        if let Some(other) = ours.others(&node) {
            tracing::warn!(node = name, other, "what is noted on it for somebody else is left to that one");
            return Ok(None);
        }
        let note = ours.note(&node);
        let is_later = note.as_ref().is_some_and(|note| note.generation > left.generation.0);
        let met = left.whose.met.as_deref().and_then(Met::read).filter(|met| met.node() == name);
        // Its kubelet may write a note and a finalizer again and again: they go in one change, and the node's return does not wait for that.
        if met.is_none() && !of.sought.concerns(&node, &left.whose.identities) {
            return if is_later { Ok(None) } else { self.cleared(&node, ours, until).await };
        }
        if is_later {
            return Ok(Some(format!("what a later fence of Node {name} left is that one's")));
        }
        if taints::stands(&node, ours) {
            taints::remove(&self.cluster, name, ours, until).await?;
            return Ok(Some("a taint that was removed just now".to_owned()));
        }
        // Nobody waits for us: the fence has ended. What is next goes by another look.
        if note::freeing(&node, &ours.owner).is_some() {
            self.free(ours, &node, until).await?;
            return Ok(Some("a finalizer that was removed just now".to_owned()));
        }
        let keeps_away = taints::value(&node, FENCED).is_some_and(|value| taints::is_of(&ours.owner, value));
        // Where its release was given up before an attempt of it, the note does not say so.
        let was_off = left.off || note.as_ref().is_some_and(|note| note.off);
        // It is kept for the machine that is gone, and for no other one.
        let is_another = left.gone && met.is_some_and(|met| met.differs(&node, false).is_some());
        if keeps_away && left.gone && !is_another {
            return Ok(None);
        }
        if keeps_away
            && was_off
            && !is_another
            && let Some(why) = self.is_not_back(of, &node, note.as_ref(), left.generation, until).await
        {
            return Ok(Some(why));
        }
        self.cleared(&node, ours, until).await
    }

    /// What is left of ours goes. There is nothing to wait for after that.
    async fn cleared(&self, node: &Node, ours: &Ours, until: Instant) -> Result<Option<String>, Fault> {
        let Some(patch) = taints::clearing(node, ours) else { return Ok(None) };
        let path = node::path(&node.metadata.name);
        let _: Node = self.cluster.patch(&path, Patch::Json, &patch, until).await?;
        Ok(None)
    }

    /// Ready for a while, after another boot, or with a kubelet that lives: what was ready before the off says nothing.
    pub(crate) async fn is_not_back(
        &self,
        of: &OfNode,
        node: &Node,
        note: Option<&Note>,
        generation: Generation,
        until: Instant,
    ) -> Option<String> {
        let booted = note.is_none_or(|note| note.boot_id != node.status.node_info.boot_id);
        let lease = if booted { None } else { node::lease(&self.cluster, &node.metadata.name, until).await };
        of.seen_back(&node.metadata.uid, generation, |back| {
            let lives = |lease: String| *back.lease.get_or_insert_with(|| lease.clone()) != lease;
            if !(booted || lease.is_some_and(lives)) || !node::is_ready(node) {
                back.ready_since = None;
                return Some(format!("Node {} to be ready, after another boot", node.metadata.name));
            }
            let soaks = back.ready_since.get_or_insert_with(Instant::now).elapsed() < SOAK;
            soaks.then(|| format!("Node {} to be ready for {SOAK:?}", node.metadata.name))
        })
    }
}
