//! A Node that is known by its providerID alone (K1, S13).
//!
//! # Invariants
//!
//! - A Node keeps its providerID whatever machine registers under its name. So what is let go by a
//!   providerID alone has to show no life. Shown by
//!   `a_node_that_lives_while_its_machine_is_off_lets_nothing_go`,
//!   `a_node_whose_kubelet_lives_after_the_proof_is_another_machine_s`.
//! - What is known here is this process's, and nothing of it is stored.

use std::time::Duration;

use picket_core::power::Power;
use picket_release::{ReleaseError, Subject};
use tokio::time::Instant;

use crate::fault::Fault;
use crate::identity::{BY_PROVIDER_ID, BY_UUID, Met};
use crate::node;
use crate::note::Round;
use crate::object::{CsiNode, CsiNodeDriver, List, Node};
use crate::release::{OfNode, OutOfService, round_of};

/// A kubelet that lives renews its lease every ten seconds, unless its settings say otherwise (`nodeLeaseDurationSeconds`, a quarter of it).
const QUIET: Duration = Duration::from_secs(20);
/// What was on its way when the machine was switched off may land once.
const LATE: u32 = 1;

/// CSI drivers that call a node as its cloud calls the instance on which they run: as the last part of that cloud's providerID does. They register with the
/// kubelet at each start, which writes that to the CSINode of its Node.
const BY_INSTANCE: [(&str, &str); 2] =
    [("ebs.csi.aws.com", "aws://"), ("cinder.csi.openstack.org", "openstack://")];

/// What is known of the machine of such a Node.
#[derive(Debug, Default)]
pub(crate) struct Alone {
    /// How the Node was known last.
    known: Option<&'static str>,
    /// A device of the node names its machine's UUID without being asked.
    names_uuid: bool,
    /// Whom the last check found, and whether that one was ready.
    found: Option<(Met, bool)>,
    /// Who had the Node when a check read the node's devices on.
    was_on: Option<Met>,
    /// The last check read all of the node's devices off.
    reads_off: bool,
    /// The lease as it was found first after that.
    lease: Option<String>,
    /// Why another machine has the Node, as checks found it.
    stranger: Option<String>,
    /// The same, as a check found it whose devices were not heard yet.
    maybe: Option<String>,
    /// The round in which that was said to a person, of a Node that had been met in it.
    told_in: Option<Round>,
    /// The first round after that in which nobody is met yet: a person's retry alone takes back whom the fence met.
    meant_since: Option<Round>,
    /// The lease since the proof of a round.
    pulse: Option<Pulse>,
}

#[derive(Debug)]
struct Pulse {
    of: Round,
    uid: String,
    lease: Option<String>,
    /// Since when it is that one, by our clock.
    since: Instant,
    renewed: u32,
}

/// Why nothing is let go yet.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Bar {
    /// It may be that it lives.
    NotYet(String),
    /// It is another machine's.
    Another(String),
}

impl Alone {
    pub(crate) fn of_devices(names_uuid: bool) -> Self {
        Self { names_uuid, ..Self::default() }
    }

    /// Whether nothing but a providerID may say which machine the Node is. Before anything was found that is so.
    fn is_so(&self) -> bool {
        self.known.map_or(!self.names_uuid, |known| known != BY_UUID)
    }

    /// A check found that Node, with that lease.
    fn found(&mut self, node: &Node, lease: Option<String>) {
        let is_ready = node::is_ready(node);
        self.maybe = None;
        if self.reads_off {
            match (&self.lease, &lease) {
                (Some(was), Some(is)) if was != is && is_ready => self.maybe = Some(lives(node)),
                (None, Some(_)) => self.lease = lease,
                _ => {}
            }
        }
        self.found = Some((Met::of(node), is_ready));
    }

    /// What the node's devices read at the check that found it.
    fn reads(&mut self, power: Power) {
        self.reads_off = power == Power::Off;
        if !self.reads_off {
            self.lease = None;
        }
        let (found, maybe) = (self.found.take(), self.maybe.take());
        if let Some(stranger) = maybe.filter(|_| self.reads_off) {
            self.stranger = Some(stranger);
        }
        if power == Power::On {
            self.stranger = None;
            if let Some((met, true)) = found {
                self.was_on = Some(met);
            }
        }
    }

    /// Why nothing of that Node's is let go in that round, in which the machine was proven off. `registered`: as which other one.
    fn bar(
        &mut self,
        (of, is_met): (Round, bool),
        node: &Node,
        (lease, registered): (Option<String>, Option<String>),
        now: Instant,
    ) -> Option<Bar> {
        let name = &node.metadata.name;
        let changed = || self.was_on.as_ref()?.differs(node, false);
        let another = registered.or_else(|| self.stranger.clone()).or_else(|| {
            changed().map(|_| {
                format!(
                    "replaced: another machine has Node {name} than when the node's devices were read on last, and its providerID says \
                     nothing of that"
                )
            })
        });
        self.meets(of, is_met);
        let is_meant = self.meant_since.is_some_and(|since| since.0 == of.0 && since.1 <= of.1);
        if let Some(why) = another.filter(|_| !is_meant) {
            self.told_in = Some(of).filter(|_| is_met);
            return Some(Bar::Another(why));
        }
        let renewed = self.renewed(of, node, lease, now);
        let pulse = self.pulse.as_ref()?;
        if renewed > LATE {
            return Some(Bar::Another(lives(node)));
        }
        let is_quiet = now.duration_since(pulse.since) >= QUIET;
        let may_live = match node::is_ready(node) {
            true => !is_quiet || pulse.lease.is_none(),
            false => renewed > 0 && !is_quiet,
        };
        may_live.then(|| {
            Bar::NotYet(format!(
                "Node {name} is known by its providerID alone, and may be that of another machine, which lives: it is let go once it is not \
                 ready, or its kubelet's lease was not renewed for {QUIET:?}"
            ))
        })
    }

    /// The Node is asked for in that round; whether one was met in this fence, and not taken back.
    fn meets(&mut self, of: Round, is_met: bool) {
        let is_later = self.told_in.is_some_and(|told| told.0 == of.0 && told.1 < of.1);
        if !is_met && is_later {
            self.meant_since = self.meant_since.filter(|since| since.0 == of.0).or(Some(of));
        }
    }

    /// How often its lease was renewed since the proof of that round.
    fn renewed(&mut self, of: Round, node: &Node, lease: Option<String>, now: Instant) -> u32 {
        let uid = &node.metadata.uid;
        match self.pulse.as_mut().filter(|pulse| pulse.of == of && pulse.uid == *uid) {
            Some(pulse) => {
                if lease.is_some() && pulse.lease != lease {
                    pulse.renewed += u32::from(pulse.lease.is_some());
                    (pulse.lease, pulse.since) = (lease, now);
                }
                pulse.renewed
            }
            None => {
                self.pulse = Some(Pulse { of, uid: uid.clone(), lease, since: now, renewed: 0 });
                0
            }
        }
    }
}

/// Why the machine on which a CSI driver registered last as that Node is not that of its providerID.
fn registered_as_another(node: &Node, registered: &[CsiNode]) -> Option<String> {
    let name = &node.metadata.name;
    let provider_id = &node.spec.provider_id;
    let instance = provider_id.rsplit('/').next().unwrap_or_default();
    let of_node = registered.iter().filter(|one| one.metadata.name == *name);
    let mut drivers = of_node.flat_map(|one| one.spec.drivers.iter().flatten());
    let says_instance = |driver: &CsiNodeDriver| {
        BY_INSTANCE.iter().any(|(name, cloud)| driver.name == *name && provider_id.starts_with(cloud))
    };
    let is_another =
        |driver: &&CsiNodeDriver| says_instance(driver) && !driver.node_id.eq_ignore_ascii_case(instance);
    drivers.find(is_another).map(|driver| {
        format!(
            "replaced: another machine has Node {name}: its CSI driver {} registered on {}, and its providerID is {provider_id}",
            driver.name, driver.node_id
        )
    })
}

fn lives(node: &Node) -> String {
    let name = &node.metadata.name;
    format!(
        "replaced: Node {name} lives while the node's devices read off (its kubelet renews its lease): another machine has it, and its \
         providerID says nothing of that"
    )
}

impl OfNode {
    /// Whether its Node may be known by its providerID alone.
    pub(crate) fn may_be_by_provider_id_alone(&self) -> bool {
        self.sought.provider_id.is_some() && self.alone.lock().is_so()
    }

    pub(crate) fn meets(&self, subject: &Subject) {
        self.alone.lock().meets(round_of(subject), subject.met.is_some());
    }

    pub(crate) fn is_known(&self, by: &'static str) {
        self.alone.lock().known = Some(by);
    }

    pub(crate) fn reads(&self, power: Power) {
        self.alone.lock().reads(power);
    }

    /// A check begins: what an earlier one found that came to no end says nothing of what this one reads.
    pub(crate) fn looks_anew(&self) {
        let mut alone = self.alone.lock();
        (alone.found, alone.maybe) = (None, None);
    }
}

impl OutOfService {
    /// What a check tells of a Node that is known so.
    pub(crate) async fn found_alone(&self, of: &OfNode, node: &Node, until: Instant) -> Vec<String> {
        let name = &node.metadata.name;
        let lease = node::lease(&self.cluster, name, until);
        let (lease, registered) = tokio::join!(lease, self.registered(node, until));
        let registered = registered.unwrap_or_else(|fault| Some(fault.to_string()));
        let mut alone = of.alone.lock();
        alone.found(node, lease);
        let told = format!(
            "Node {name} is known by its providerID alone, which it keeps whatever machine registers under its name: a fence's evidence is \
             graded one step lower; with the system UUID that the machine itself says (/sys/class/dmi/id/product_uuid) in the `identity` of \
             its device it is known by that"
        );
        std::iter::once(told).chain(registered).chain(alone.stranger.clone()).collect()
    }

    /// Why a CSI driver says that another machine has that Node.
    async fn registered(&self, node: &Node, until: Instant) -> Result<Option<String>, Fault> {
        let name = &node.metadata.name;
        let path = format!("/apis/storage.k8s.io/v1/csinodes?fieldSelector=metadata.name%3D{name}");
        let all: List<CsiNode> = self.cluster.get(&path, until).await?;
        Ok(registered_as_another(node, &all.items))
    }

    /// Whether nothing shows that a machine of that Node lives, though the node's was proven off in that round.
    pub(crate) async fn shows_no_life(
        &self,
        of: &OfNode,
        node: &Node,
        round: (Round, bool),
        until: Instant,
    ) -> Result<(), ReleaseError> {
        let lease = node::lease(&self.cluster, &node.metadata.name, until);
        let (lease, registered) = tokio::join!(lease, self.registered(node, until));
        let bar = of.alone.lock().bar(round, node, (lease, registered?), Instant::now());
        match bar {
            None => Ok(()),
            Some(Bar::NotYet(why)) => Err(ReleaseError::DidNotHappen(why)),
            Some(Bar::Another(why)) => {
                self.let_be(&of.sought.ours, node, round.0.0, until).await;
                Err(ReleaseError::Replaced(why))
            }
        }
    }

    /// The same of a node that is kept off, where it was known so in that round.
    pub(crate) async fn still_shows_no_life(
        &self,
        of: &OfNode,
        node: &Node,
        round: (Round, bool),
        until: Instant,
    ) -> Result<(), ReleaseError> {
        let is_watched = |alone: &Alone| {
            alone.known == Some(BY_PROVIDER_ID)
                && alone.pulse.as_ref().is_some_and(|pulse| pulse.of == round.0)
        };
        if !is_watched(&of.alone.lock()) {
            return Ok(());
        }
        match self.shows_no_life(of, node, round, until).await {
            Err(replaced @ ReleaseError::Replaced(_)) => Err(replaced),
            _ => Ok(()),
        }
    }
}
