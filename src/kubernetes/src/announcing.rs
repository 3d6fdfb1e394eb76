//! Before the off, and before the on: what is told of a fence while it runs, and what bars bringing a node back (K2, K7, K8).

use std::sync::PoisonError;
use std::time::Duration;

use picket_core::device::Identity;
use picket_core::ids::Generation;
use picket_release::{ReleaseError, Subject};
use serde_json::Value;
use tokio::time::Instant;

use crate::cluster::Patch;
use crate::fault::{Fault, Kind};
use crate::identity::Met;
use crate::node;
use crate::note::{self, Note};
use crate::object::Node;
use crate::release::{LINGERS, OutOfService};
use crate::remains::named;
use crate::rivals;
use crate::taints::{self, FENCED, Mark, OUT_OF_SERVICE};

/// The record is not kept waiting for longer: what lets volumes go is taken away besides, until it is seen to be gone.
const LET_BE: Duration = Duration::from_secs(5);

impl OutOfService {
    /// New pods go elsewhere from now on, the autoscaler lets the Node be, and whoever deletes it waits for us. Answers whom it met.
    pub(crate) async fn announced(
        &self,
        subject: &Subject,
        until: Instant,
    ) -> Result<Option<String>, ReleaseError> {
        let of = self.of()?;
        let read = async {
            let name = self.name(of, &subject.identities, subject.met.as_deref(), until).await?;
            node::read(&self.cluster, &name, until).await
        };
        let (meant, read) = tokio::join!(self.cluster.is_meant(until), read);
        meant?;
        let node = read?;
        let name = &node.metadata.name;
        self.known_by(of, &node, &subject.identities)?;
        let met = Met::of(&node).words();
        if subject.met.as_deref().and_then(Met::read).is_some_and(|met| met.differs(&node, true).is_some()) {
            return Err(ReleaseError::DidNotHappen(format!("another machine is Node {name} by now")));
        }
        let generation = subject.generation.0;
        if Note::of(&node, &self.asked.owner).is_some_and(|note| note.generation > generation) {
            return Err(ReleaseError::DidNotHappen(format!("a later fence has been at Node {name}")));
        }
        let mark =
            Mark { owner: self.asked.owner.clone(), node: of.sought.node.clone(), generation, term: None };
        let fenced = [(FENCED, "NoSchedule")];
        let patch = taints::setting(&node, &fenced, &mark, self.asked.keeps_node);
        self.change(&node, &patch, until).await?;
        Ok(Some(met))
    }

    /// Whether a fence would find its Node, and nothing that is in its way.
    pub(crate) async fn checked(
        &self,
        identities: &[Identity],
        until: Instant,
    ) -> Result<Vec<String>, ReleaseError> {
        let of = self.of()?;
        self.cluster.is_meant(until).await?;
        let name = self.name(of, identities, None, until).await?;
        let node = match node::read(&self.cluster, &name, until).await {
            Err(fault) if fault.is(Kind::NotFound) => {
                return Err(ReleaseError::DidNotHappen(format!("that cluster has no Node {name}")));
            }
            read => read?,
        };
        self.known_by(of, &node, identities)?;
        let mut told = rivals::of(&self.cluster, &node, until).await;
        told.extend(self.foreign(&node));
        Ok(told)
    }

    /// Whoever deletes that Node need not wait for us any more. False: it is not as it was read, and whoever asks looks again whether that is
    /// still so: a later fence, or leadership, may keep it.
    pub(crate) async fn free(&self, node: &Node, until: Instant) -> Result<bool, Fault> {
        let Some(change) = note::freeing(node, &self.asked.owner) else { return Ok(true) };
        let mut patch = taints::tests(node);
        patch.push(change);
        let path = node::path(&node.metadata.name);
        match self.cluster.patch::<Node>(&path, Patch::Json, &Value::Array(patch), until).await {
            Ok(_) => Ok(true),
            Err(fault) if fault.is(Kind::NotFound) => Ok(true),
            Err(fault) if fault.is_changed() => Ok(false),
            Err(fault) => Err(fault),
        }
    }

    /// The Node is another machine's: what is ours on it goes at once, and what was to be said is said (K1). Nothing else is done to it, and what a
    /// later fence has set there is that one's.
    pub(crate) async fn let_be(&self, node: &Node, generation: Generation, until: Instant) {
        let (name, owner) = (&node.metadata.name, &self.asked.owner);
        let is_later = |node: &Node| Note::of(node, owner).is_some_and(|note| note.generation > generation.0);
        if is_later(node) {
            return;
        }
        let until = until.min(Instant::now() + LET_BE);
        let mut node = node.clone();
        while let Some(patch) = taints::letting_be(&node, owner) {
            match self.cluster.patch::<Node>(&node::path(name), Patch::Json, &patch, until).await {
                Err(fault) if fault.is_changed() && Instant::now() + taints::AGAIN < until => {
                    tokio::time::sleep(taints::AGAIN).await;
                }
                Err(fault) => {
                    tracing::warn!(node = name, %fault, "what is ours stands on another machine's Node");
                    return;
                }
                Ok(_) => return,
            }
            // Of whom it was judged, and of nobody else.
            match node::read(&self.cluster, name, until).await {
                Ok(read) if is_of_the_same(&read, &node) && !is_later(&read) => node = read,
                _ => return,
            }
        }
    }

    /// What bars the on: a taint that lets volumes go while it stands, whoever set it, and another machine under the node's name.
    pub(crate) async fn is_let_on(
        &self,
        subject: &Subject,
        until: Instant,
    ) -> Result<Option<String>, ReleaseError> {
        let of = self.of()?;
        self.cluster.is_meant(until).await.map_err(Fault::of_a_look)?;
        let finding = self.name(of, &subject.identities, subject.met.as_deref(), until);
        let read = async { node::read(&self.cluster, &finding.await?, until).await };
        let node = match read.await {
            Err(fault) if fault.is(Kind::NotFound) => return Ok(None),
            read => read.map_err(Fault::of_a_look)?,
        };
        let name = &node.metadata.name;
        let met = subject.met.as_deref().and_then(Met::read);
        if let Some(why) = met.and_then(|met| met.differs(&node, false)) {
            return Err(ReleaseError::DidNotHappen(why));
        }
        if let Some(why) = self.foreign(&node) {
            return Err(ReleaseError::DidNotHappen(why));
        }
        if taints::value(&node, OUT_OF_SERVICE).is_some() {
            // Of a life of which nothing is known here any more. It may be gone from now on, whatever is answered.
            of.back.lock().unwrap_or_else(PoisonError::into_inner).cleared = Some(Instant::now());
            let gone = taints::remove(&self.cluster, name, &self.asked.owner, until).await;
            gone.map_err(|fault| ReleaseError::DidNotHappen(format!("our own taint stands: {fault}")))?;
        }
        let cleared = of.back.lock().unwrap_or_else(PoisonError::into_inner).cleared;
        if let Some(left) = cleared.and_then(|at| LINGERS.checked_sub(at.elapsed())) {
            return Err(ReleaseError::DidNotHappen(format!(
                "the taint {OUT_OF_SERVICE} was on Node {name}, and may be acted on for {left:?} still"
            )));
        }
        let left = self.left(name, &node, until).await.map_err(Fault::of_a_look)?;
        let words: Vec<String> = [left.volumes, left.goes, left.waits].into_iter().flatten().collect();
        Ok((!words.is_empty()).then(|| format!("bound to Node {name} since: {}", named(&words))))
    }
}

fn is_of_the_same(one: &Node, other: &Node) -> bool {
    let boot = |node: &Node| node.status.node_info.boot_id.clone();
    Met::of(one) == Met::of(other) && boot(one) == boot(other)
}
