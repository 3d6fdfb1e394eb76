//! Before the off, before an attempt, and before the on: what is told of a fence while it runs, what an attempt goes by, and what bars bringing a node back (K2, K7, K8).

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::join_all;
use picket_core::device::Identity;
use picket_core::ids::Generation;
use picket_release::{Left, LetOn, Prepared, ReleaseError, Subject};
use serde_json::Value;
use tokio::time::Instant;

use crate::cluster::Patch;
use crate::fault::{Fault, Kind};
use crate::finding::FRESH;
use crate::foreign;
use crate::identity::{self, Met};
use crate::node;
use crate::note::{self, Note, Ours};
use crate::object::Node;
use crate::pods;
use crate::release::{OfNode, OutOfService, Read, round_of};
use crate::remains::named;
use crate::rivals;
use crate::taints::{self, FENCED, Mark};

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
        of.meets(subject);
        let read = async {
            let name = self.name(of, &subject.identities, subject.met.as_deref(), until).await?;
            node::read(&self.cluster, &name, until).await
        };
        let all = self.cluster.nodes(FRESH, until);
        let (meant, read, all) = tokio::join!(self.cluster.is_meant(until), read, all);
        meant?;
        let node = read?;
        let name = &node.metadata.name;
        self.known_by(of, &node, &all?, &subject.identities)?;
        let met = self.met(&node).words();
        if subject.met.as_deref().and_then(Met::read).is_some_and(|met| met.differs(&node, true).is_some()) {
            return Err(ReleaseError::DidNotHappen(format!("another machine is Node {name} by now")));
        }
        let generation = subject.generation.0;
        let ours = &of.sought.ours;
        if ours.note(&node).is_some_and(|note| note.generation > generation) {
            return Err(ReleaseError::DidNotHappen(format!("a later fence has been at Node {name}")));
        }
        if let Some(why) = foreign::of_another_store(&node, ours) {
            return Err(ReleaseError::Barred(why));
        }
        // Its note is that one's as long as what it set up stands.
        if ours.others(&node).is_some()
            && let Some(why) = self.foreign(of, &node)
        {
            return Err(ReleaseError::Barred(why));
        }
        let mark = Mark { ours: ours.clone(), round: round_of(subject), term: None };
        let fenced = [(FENCED, "NoSchedule")];
        // Also where a webhook refuses that, it is told at that Node.
        of.waits().is_of(&met);
        let patch = taints::setting(&node, &fenced, &mark, self.asked.keeps_node);
        self.change(&node, &patch, None, until).await?;
        Ok(Some(met))
    }

    /// What the next attempt goes by. Answers whom it met.
    pub(crate) async fn prepared(&self, subject: &Subject, until: Instant) -> Result<Prepared, ReleaseError> {
        let of = self.of()?;
        // Another cluster does not know the Node, which is no word that it was deleted.
        self.cluster.is_where(subject.met.as_deref())?;
        let finding = self.name(of, &subject.identities, subject.met.as_deref(), until);
        let (meant, name) = tokio::join!(self.cluster.is_meant(until), finding);
        meant?;
        let name = name?;
        let node = node::read(&self.cluster, &name, until);
        let (pods, all) = (pods::of(&self.cluster, &name, until), self.cluster.nodes(FRESH, until));
        let (node, pods, all) = tokio::join!(node, pods, all);
        let all = all?;
        let node = match node {
            // Its name was that machine's, and is nobody's.
            Err(fault) if fault.is(Kind::NotFound) && subject.met.is_some() => None,
            read => Some(read?),
        };
        let mut met = None;
        if let Some(node) = &node {
            if let Err(replaced) = self.is_the_same(&of.sought.ours, node, subject) {
                self.let_be(&of.sought.ours, node, subject.generation, until).await;
                return Err(replaced);
            }
            if let Some(why) = foreign::of_another_store(node, &of.sought.ours) {
                return Err(ReleaseError::Barred(why));
            }
            // Who is another machine is not who was met.
            if self.known_by(of, node, &all, &subject.identities)? == identity::BY_PROVIDER_ID {
                self.shows_no_life(of, node, (round_of(subject), subject.met.is_some()), until).await?;
            }
            met = Some(self.met(node).words());
        } else {
            // The pods that were listed may be those of a machine that took the name meanwhile.
            match node::read(&self.cluster, &name, until).await {
                Err(fault) if fault.is(Kind::NotFound) => {}
                Err(fault) => return Err(fault.into()),
                Ok(_) => {
                    return Err(ReleaseError::DidNotHappen(format!("Node {name} was made anew just now")));
                }
            }
        }
        let (at, round) = (self.cluster.clock.now(), subject.round);
        let mut read = Read { name, node, pods: pods?, at, round, all, overdue: BTreeSet::new() };
        let overdue = {
            let mut evictions = of.evictions.lock();
            evictions.seen(round_of(subject), (&read.pods, &read.losing().1), Instant::now())
        };
        read.overdue = overdue;
        let goes = if self.asked.leaves_pods { Vec::new() } else { read.losing().0 };
        let beside = (!goes.is_empty()).then(|| pods::named(&goes));
        let stands = read.node.as_ref().is_some_and(|node| taints::stands(node, &of.sought.ours));
        *of.read.lock() = Some(read);
        Ok(Prepared { met, beside, stands })
    }

    /// Nobody else remediates the Machine of the Node that was met.
    pub(crate) async fn spared(&self, subject: &Subject, until: Instant) -> Result<(), ReleaseError> {
        let met = subject.met.as_deref().and_then(Met::read);
        let machine = async {
            match (&self.machines, &met) {
                (Some(machines), Some(met)) => {
                    machines.spare(met, &self.of()?.sought.ours, subject.generation, until).await
                }
                _ => Ok(()),
            }
        };
        let (spared, stopped) = tokio::join!(machine, self.stop_undoing(subject, until));
        Ok(spared.and(stopped)?)
    }

    /// Whoever remediates Machines may have it again.
    pub(crate) async fn unspared(&self, left: &Left, until: Instant) -> Result<Option<String>, ReleaseError> {
        let machine = async {
            match &self.machines {
                Some(machines) => machines.free(&self.of()?.sought.ours, left.generation, until).await,
                None => Ok(None),
            }
        };
        // Each for itself: what one waits for, the other does not.
        let (freed, undone) = tokio::join!(machine, self.undone(left, until));
        let waits: Vec<String> = freed?.into_iter().chain(undone?).collect();
        Ok((!waits.is_empty()).then(|| waits.join("; ")))
    }

    /// Whether a fence would find its Node, may do what it does, and has nothing in its way; in words what is wrong.
    pub(crate) async fn checked(&self, identities: &[Identity], until: Instant) -> Vec<String> {
        // What the login may not do is said also where that is why nothing is found.
        let lacking = self.cluster.lacking(rivals::FRESH, until);
        let (lacking, found) = tokio::join!(lacking, self.found(identities, until));
        let lacking = lacking.map(|lacking| (*lacking).clone());
        match (lacking, found) {
            (Ok(lacking), Ok(told)) => told.into_iter().chain(lacking).collect(),
            (Err(fault), Ok(told)) => told.into_iter().chain([fault.to_string()]).collect(),
            (Ok(lacking), Err(error)) => [error.into_words()].into_iter().chain(lacking).collect(),
            // Mostly for the same reason.
            (Err(_), Err(error)) => vec![error.into_words()],
        }
    }

    async fn found(&self, identities: &[Identity], until: Instant) -> Result<Vec<String>, ReleaseError> {
        let of = self.of()?;
        of.looks_anew();
        self.cluster.is_meant(until).await?;
        let name = self.name(of, identities, None, until).await?;
        let node = match node::read(&self.cluster, &name, until).await {
            Err(fault) if fault.is(Kind::NotFound) => {
                return Err(ReleaseError::DidNotHappen(format!("that cluster has no Node {name}")));
            }
            read => read?,
        };
        let all = self.cluster.nodes(rivals::FRESH, until).await?;
        let by = self.known_by(of, &node, &all, identities)?;
        let mut told = rivals::of(&self.cluster, &node, until).await;
        if by == identity::BY_PROVIDER_ID {
            told.extend(self.found_alone(of, &node, until).await);
        }
        match self.cluster.nobodys(rivals::FRESH, until).await {
            Ok(all) => told.extend(all.iter().filter(|one| one.node == name).map(|one| one.words.clone())),
            Err(fault) => told.push(fault.to_string()),
        }
        match self.cluster.ceph(self.asked.undoes_network_fences, rivals::FRESH, until).await {
            Ok(of_ceph) => told.extend(of_ceph.iter().cloned()),
            Err(fault) => told.push(fault.to_string()),
        }
        told.extend(self.foreign(of, &node));
        told.extend(self.cluster.clock.remark());
        let ours = &of.sought.ours;
        ours.stores.sees(Note::of(&node, &ours.owner).and_then(|note| note.store).as_deref());
        told.extend(foreign::of_another_store(&node, ours));
        told.extend(foreign::left(&node, &ours.owner));
        if let Some(machines) = &self.machines {
            told.extend(machines.check(&Met::of(&node), until).await);
        }
        Ok(told)
    }

    /// What Kubernetes says of the machine of the Node that has the node's name, or its providerID. By what the node's devices say of
    /// themselves nobody is found here: that Node would say nothing more of them.
    pub(crate) async fn machine_of_its_node(&self, until: Instant) -> Option<(Identity, String)> {
        let of = self.of().ok()?;
        self.cluster.is_meant(until).await.ok()?;
        let name = self.name(of, &[], None, until).await.ok()?;
        let node = node::read(&self.cluster, &name, until).await.ok()?;
        if !of.sought.is(&node, &[]) {
            return None;
        }
        let uuid = Identity::usable_uuid(&node.status.node_info.system_uuid)?;
        let all = self.cluster.nodes(rivals::FRESH, until).await.ok()?;
        if identity::who_shares_its_uuid(&node, &all).is_some() {
            return None;
        }
        let identity = Identity { uuid: Some(uuid), serial: None };
        Some((identity, format!("Node {name} in Kubernetes has the same system UUID")))
    }

    /// Whether the Machine of the Node that was met is taken away. Who is not reached says nothing.
    pub(crate) async fn machine_is_going(&self, subject: &Subject, until: Instant) -> Option<String> {
        let met = subject.met.as_deref().and_then(Met::read)?;
        match self.machines.as_ref()?.is_going(&met, until).await {
            Ok(going) => going,
            Err(fault) => {
                tracing::warn!(node = met.node(), %fault, "whether its Machine is being deleted is not told");
                None
            }
        }
    }

    /// Whoever deletes that Node need not wait for us any more. False: it is not as it was read, and whoever asks looks again whether that is
    /// still so: a later fence, or leadership, may keep it.
    pub(crate) async fn free(&self, ours: &Ours, node: &Node, until: Instant) -> Result<bool, Fault> {
        let change = note::freeing(node, &ours.owner).filter(|_| ours.others(node).is_none());
        let Some(change) = change else { return Ok(true) };
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
    pub(crate) async fn let_be(&self, ours: &Ours, node: &Node, generation: Generation, until: Instant) {
        let name = &node.metadata.name;
        let is_later = |node: &Node| ours.note(node).is_some_and(|note| note.generation > generation.0);
        if is_later(node) {
            return;
        }
        let until = until.min(Instant::now() + LET_BE);
        let mut node = node.clone();
        while let Some(patch) = taints::letting_be(&node, ours) {
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

    /// What bars the on: a taint that lets volumes go while it stands, whoever set it, and another machine under the node's name. Where nobody was
    /// met, every Node that may be the machine's is asked of.
    pub(crate) async fn is_let_on(&self, subject: &Subject, until: Instant) -> Result<LetOn, ReleaseError> {
        let of = self.of()?;
        self.cluster.is_where(subject.met.as_deref()).map_err(Fault::of_a_look)?;
        self.cluster.is_meant(until).await.map_err(Fault::of_a_look)?;
        let names = match of.sought.met(subject.met.as_deref()) {
            Some(name) => vec![name],
            None => {
                let finding = of.sought.letting_go(&self.cluster, &subject.identities, until);
                finding.await.map_err(Fault::of_a_look)?
            }
        };
        let asked = join_all(names.iter().map(|name| self.lets_one_on(of, name, subject, until))).await;
        // What stands goes first, whatever else bars it; and what bars it bars it also where something else is not known.
        if asked.iter().any(|one| one.as_ref().is_ok_and(|one| one.stands)) {
            return Ok(LetOn { stands: true, found: None });
        }
        let is_barred = |one: &Result<_, ReleaseError>| {
            matches!(
                one,
                Err(ReleaseError::DidNotHappen(_) | ReleaseError::Barred(_) | ReleaseError::Replaced(_))
            )
        };
        let (barred, rest): (Vec<_>, Vec<_>) = asked.into_iter().partition(is_barred);
        let found: Result<Vec<LetOn>, ReleaseError> = barred.into_iter().chain(rest).collect();
        let found: Vec<String> = found?.into_iter().filter_map(|one| one.found).collect();
        Ok(LetOn { stands: false, found: (!found.is_empty()).then(|| found.join("; ")) })
    }

    /// Compared while the node is kept off, whatever else is asked of it. Who is not there is nobody else.
    pub(crate) async fn recognised(&self, subject: &Subject, until: Instant) -> Result<(), ReleaseError> {
        let of = self.of()?;
        let Some(name) = of.sought.met(subject.met.as_deref()) else { return Ok(()) };
        self.cluster.is_where(subject.met.as_deref()).map_err(Fault::of_a_look)?;
        self.cluster.is_meant(until).await.map_err(Fault::of_a_look)?;
        let node = match node::read(&self.cluster, &name, until).await {
            Err(fault) if fault.is(Kind::NotFound) => return Ok(()),
            read => read.map_err(Fault::of_a_look)?,
        };
        self.is_who_stays(of, &node, subject, until).await?;
        self.still_shows_no_life(of, &node, (round_of(subject), subject.met.is_some()), until).await
    }

    /// Whether that Node is the machine's still that was met; else it is let be. One that was made anew for it is its own. What booted is told while
    /// the node is kept off alone: the on comes in a generation of its own, and is asked for again where it may have booted the machine.
    async fn is_who_stays(
        &self,
        of: &OfNode,
        node: &Node,
        subject: &Subject,
        until: Instant,
    ) -> Result<(), ReleaseError> {
        let met = subject.met.as_deref().and_then(Met::read);
        let differs = met.and_then(|met| met.differs(node, false));
        let note = of.sought.ours.note(node);
        let booted = || note.and_then(|note| note.booted_since(round_of(subject), node));
        let Some(why) = differs.or_else(booted) else { return Ok(()) };
        self.let_be(&of.sought.ours, node, subject.generation, until).await;
        Err(ReleaseError::Replaced(why))
    }

    async fn lets_one_on(
        &self,
        of: &OfNode,
        name: &str,
        subject: &Subject,
        until: Instant,
    ) -> Result<LetOn, ReleaseError> {
        let node = match node::read(&self.cluster, name, until).await {
            // With the Node its taints are gone.
            Err(fault) if fault.is(Kind::NotFound) => return Ok(LetOn::default()),
            read => read.map_err(Fault::of_a_look)?,
        };
        // Of a Node that the record never met no fence let anything go: that it booted since is its note's word alone, and its kubelet may have
        // written that.
        if of.sought.met(subject.met.as_deref()).is_some() {
            self.is_who_stays(of, &node, subject, until).await?;
        }
        if let Some(why) = self.foreign(of, &node) {
            return Err(ReleaseError::Barred(why));
        }
        if taints::stands(&node, &of.sought.ours) {
            return Ok(LetOn { stands: true, found: None });
        }
        let left = self.left(name, &node, until).await.map_err(Fault::of_a_look)?;
        let words: Vec<String> = [left.volumes, left.goes, left.waits].into_iter().flatten().collect();
        let found = (!words.is_empty()).then(|| format!("bound to Node {name} since: {}", named(&words)));
        Ok(LetOn { stands: false, found })
    }
}

fn is_of_the_same(one: &Node, other: &Node) -> bool {
    let boot = |node: &Node| node.status.node_info.boot_id.clone();
    Met::of(one) == Met::of(other) && boot(one) == boot(other)
}
