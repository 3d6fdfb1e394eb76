//! The kind `kubernetes`: pods, then the taint `out-of-service`, until nothing of the node is attached (K2).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use picket_core::cluster_node::{Belongs, ClusterNode};
use picket_core::device::Identity;
use picket_core::ground::ReleasePermit;
use picket_core::order::ReleaseOrder;
use picket_core::power::Power;
use picket_core::restore::Lives;
use picket_reach::{LastWord, SettingFault, Settings};
use picket_release::{
    ForNode, Left, LetOn, Machine, Pace, Prepared, Progress, Quarantine, ReleaseError, Releaser, Subject,
    Whose,
};
use serde_json::{Map, Value};
use time::OffsetDateTime;
use tokio::time::Instant;

use crate::alone::Alone;
use crate::back::Back;
use crate::cluster::{ASKED, Cluster, Patch, SERVED};
use crate::deleting::RefusedPods;
use crate::fault::Fault;
use crate::finding::{FindBy, Sought};
use crate::identity::{Match, Met};
use crate::machines::Machines;
use crate::network_fences::Noted;
use crate::note::{Note, Ours, Round};
use crate::object::{Node, Pod};
use crate::pods::{Evictions, Fate};
use crate::settings::Asked;
use crate::stores::Stores;
use crate::taints::OUT_OF_SERVICE;
use crate::waits::Waits;
use crate::{belonging, finding, identity, node, pods, taints};

/// For so long after the taint is gone the attach-detach controller, pod GC and taint eviction may act on what they have read (K3).
pub(crate) const LINGERS: Duration = Duration::from_secs(30);

/// As the settings have it; of a node once it is bound to that.
#[derive(Debug)]
pub struct OutOfService {
    pub(crate) asked: Arc<Asked>,
    pub(crate) cluster: Arc<Cluster>,
    /// Those of Cluster API, where the settings say where they are.
    pub(crate) machines: Option<Arc<Machines>>,
    pub(crate) of: Option<OfNode>,
}

#[derive(Debug)]
pub(crate) struct OfNode {
    pub(crate) sought: Sought,
    /// By the UIDs of Nodes: what was seen of them after it was brought back.
    pub(crate) back: Mutex<BTreeMap<String, Back>>,
    /// What the next attempt goes by.
    pub(crate) read: Mutex<Option<Read>>,
    /// Pods that are left to taint eviction.
    pub(crate) evictions: Mutex<Evictions>,
    refused: Mutex<RefusedPods>,
    pub(crate) waits: Mutex<Waits>,
    /// Where nothing but its providerID says which machine its Node is.
    pub(crate) alone: Mutex<Alone>,
    /// Whose fence is to be undone once it is back.
    pub(crate) noted: Mutex<Noted>,
}

impl OfNode {
    /// Pods that were refused.
    pub(crate) fn refused(&self) -> MutexGuard<'_, RefusedPods> {
        self.refused.lock()
    }
}

/// A Node and its pods, as a quorum had them before the store said its last word.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) name: String,
    /// `None`: it was deleted, and it is known which one it was.
    pub(crate) node: Option<Node>,
    pub(crate) pods: Vec<Pod>,
    /// When that was: what goes does not change between what was told of it and what is done.
    pub(crate) at: OffsetDateTime,
    /// Of which round of the fence it is.
    pub(crate) round: u32,
    /// All Nodes: what two of them say of themselves says nothing.
    pub(crate) all: Arc<Vec<Node>>,
    /// UIDs of pods that were left to taint eviction for as long as that is waited for.
    pub(crate) overdue: BTreeSet<String>,
}

impl Read {
    /// Its pods that go, and those that taint eviction is about to delete.
    pub(crate) fn losing(&self) -> (Vec<&Pod>, Vec<&Pod>) {
        let of = |wanted: Fate| self.pods.iter().filter(move |pod| self.fate(pod, self.at) == wanted);
        (of(Fate::Goes).collect(), of(Fate::Evicted).collect())
    }

    /// Those of them that taint eviction is about to delete by now: between the reading and the permit a device may have had its turn (K4).
    pub(crate) fn evicted_by(&self, now: OffsetDateTime) -> Vec<&Pod> {
        let is_evicted = |pod: &&Pod| self.fate(pod, now) == Fate::Evicted;
        self.losing().0.into_iter().filter(is_evicted).collect()
    }

    fn fate(&self, pod: &Pod, now: OffsetDateTime) -> Fate {
        let gone = Node::default();
        match pods::fate(pod, self.node.as_ref().unwrap_or(&gone), now) {
            Fate::Evicted if self.overdue.contains(&pod.metadata.uid) => Fate::Goes,
            fate => fate,
        }
    }
}

impl OutOfService {
    /// Makes it of its table; all faults at once. Sends nothing.
    ///
    /// # Errors
    /// What is wrong in the table, and what would be right.
    pub fn make(settings: &Map<String, Value>) -> Result<Arc<dyn Releaser>, Vec<SettingFault>> {
        Ok(Arc::new(Self::read(settings)?))
    }

    pub(crate) fn read(settings: &Map<String, Value>) -> Result<Self, Vec<SettingFault>> {
        let mut settings = Settings::new(settings);
        let asked = Asked::read(&mut settings);
        let asked = settings.finish(asked)?;
        let cluster = Arc::new(asked.login.cluster());
        let machines = asked.machines.as_ref().map(|at| Arc::new(Machines::at(at, &cluster)));
        Ok(Self { asked: Arc::new(asked), cluster, machines, of: None })
    }

    pub(crate) fn of(&self) -> Result<&OfNode, Fault> {
        self.of.as_ref().ok_or_else(|| Fault::refused("it is bound to no node"))
    }

    /// The name of its Node.
    pub(crate) async fn name(
        &self,
        of: &OfNode,
        devices: &[Identity],
        met: Option<&str>,
        until: Instant,
    ) -> Result<String, Fault> {
        of.sought.name(&self.cluster, devices, met, until).await
    }

    /// Whether the Node is who was met when the fence began, and has not booted since it was first let go.
    pub(crate) fn is_the_same(
        &self,
        ours: &Ours,
        node: &Node,
        subject: &Subject,
    ) -> Result<(), ReleaseError> {
        let met = subject.met.as_deref().and_then(Met::read);
        if let Some(why) = met.and_then(|met| met.differs(node, true)) {
            return Err(ReleaseError::Replaced(why));
        }
        ours.note(node).map_or(Ok(()), |note| has_not_booted(&note, round_of(subject), node))
    }

    /// Whether the Node is the machine of which the devices are, and how that is known.
    pub(crate) fn known_by(
        &self,
        of: &OfNode,
        node: &Node,
        all: &[Node],
        devices: &[Identity],
    ) -> Result<&'static str, ReleaseError> {
        let provider_id = of.sought.provider_id.as_deref();
        let by = identity::is_this(node, all, devices, provider_id, self.asked.matched)
            .map_err(ReleaseError::DidNotHappen)?;
        of.is_known(by);
        Ok(by)
    }

    /// Somebody else's taint `out-of-service`, in words.
    pub(crate) fn foreign(&self, of: &OfNode, node: &Node) -> Option<String> {
        let ours = &of.sought.ours;
        let value = taints::value(node, OUT_OF_SERVICE).filter(|_| !taints::stands(node, ours))?;
        let whose = match ours.others(node).filter(|_| taints::is_of(&ours.owner, value)) {
            Some(other) => format!("the taint of {other},"),
            None => "somebody else's taint".to_owned(),
        };
        Some(format!(
            "{whose} {OUT_OF_SERVICE} ({value:?}), stands on Node {}: it is neither ours to use nor to remove",
            node.metadata.name
        ))
    }

    /// Changes the Node as it was read, at that word if there is one, or not at all.
    pub(crate) async fn change(
        &self,
        node: &Node,
        patch: &Value,
        word: Option<&LastWord>,
        until: Instant,
    ) -> Result<(), ReleaseError> {
        let name = &node.metadata.name;
        match self.cluster.patch_at::<Node>(word, &node::path(name), Patch::Json, patch, until).await {
            Ok(_) => Ok(()),
            Err(fault) if fault.is_changed() => {
                Err(ReleaseError::DidNotHappen(format!("Node {name} was changed since it was read: {fault}")))
            }
            Err(fault) => Err(fault.into()),
        }
    }
}

/// Of which round of its fence that is asked.
pub(crate) fn round_of(subject: &Subject) -> Round {
    (subject.generation, subject.round)
}

/// Nothing boots that is off: a machine has taken that Node for its own (K1).
pub(crate) fn has_not_booted(note: &Note, round: Round, node: &Node) -> Result<(), ReleaseError> {
    note.booted_since(round, node).map_or(Ok(()), |why| Err(ReleaseError::Replaced(why)))
}

#[async_trait]
impl Releaser for OutOfService {
    fn max_in_flight(&self) -> Option<Duration> {
        // It is given up after its own time, and the API server works on it no longer than its parameter says (K6).
        Some(ASKED + SERVED)
    }

    fn passes_on(&self) -> bool {
        true
    }

    fn remarks(&self) -> Vec<String> {
        let machines = self.machines.as_ref().and_then(|machines| machines.remark());
        self.cluster.remark().into_iter().chain(machines).collect()
    }

    fn pace(&self) -> Pace {
        self.asked.pace
    }

    fn quarantine(self: Arc<Self>) -> Option<Arc<dyn Quarantine>> {
        Some(self)
    }

    fn of_node(&self, node: &ForNode<'_>) -> Result<Option<Arc<dyn Releaser>>, String> {
        let provider_id = node.provider_id.map(str::to_owned);
        let (by, owner) = (self.asked.find_by, self.asked.owner.clone());
        if by == FindBy::ProviderId && provider_id.is_none() {
            return Err(
                "find_by = \"provider_id\" needs the node's provider_id: its table has none".to_owned()
            );
        }
        let names_uuid = node.devices.values().any(|device| device.names().uuid.is_some());
        let ours = Ours { owner, node: node.id.to_string(), stores: Stores::default() };
        let of = OfNode {
            sought: Sought { by, ours, provider_id },
            back: Mutex::default(),
            read: Mutex::default(),
            evictions: Mutex::default(),
            refused: Mutex::default(),
            waits: Mutex::default(),
            alone: Mutex::new(Alone::of_devices(names_uuid)),
            noted: Mutex::default(),
        };
        let (asked, cluster, machines) = (self.asked.clone(), self.cluster.clone(), self.machines.clone());
        Ok(Some(Arc::new(Self { asked, cluster, machines, of: Some(of) })))
    }

    async fn attempt(
        &self,
        _order: &ReleaseOrder,
        permit: &ReleasePermit<'_>,
        until: Instant,
    ) -> Result<Progress, ReleaseError> {
        self.noted(self.attempted(permit, until).await)
    }

    async fn observe(&self, subject: &Subject, until: Instant) -> Result<Progress, ReleaseError> {
        let (observed, ()) = tokio::join!(self.observed(subject, until), self.tell(subject, until));
        self.noted(observed)
    }
}

#[async_trait]
impl Quarantine for OutOfService {
    fn lingers(&self) -> Duration {
        LINGERS
    }

    fn by_name_alone(&self) -> bool {
        let by_provider_id = || self.of.as_ref().is_some_and(OfNode::may_be_by_provider_id_alone);
        self.asked.matched == Match::Name || by_provider_id()
    }

    fn reads(&self, power: Power) {
        if let Some(of) = &self.of {
            of.reads(power);
        }
    }

    fn serves(&self, store: &Arc<Lives>) {
        if let Some(of) = &self.of {
            of.sought.ours.stores.serves(store);
        }
    }

    fn finds_otherwise(&self) -> bool {
        self.asked.find_by != FindBy::Name
    }

    async fn machine_named(&self, name: &str, until: Instant) -> Result<Machine, String> {
        let machine = finding::machine_named(&self.cluster, name, until).await;
        match machine.map_err(|fault| fault.to_string())? {
            Machine { provider_id: None, .. } if self.asked.find_by == FindBy::ProviderId => {
                Err(format!("Node {name} has no providerID"))
            }
            Machine { identity, .. } if self.asked.find_by == FindBy::SystemUuid && identity.is_empty() => {
                Err(format!("Node {name} has no system UUID of its own: set gateway.node"))
            }
            machine => Ok(machine),
        }
    }

    async fn cordon(&self, subject: &Subject, until: Instant) -> Result<Option<String>, ReleaseError> {
        self.waits_of(subject);
        let announced = self.noted_if_wrong(self.announced(subject, until).await);
        match &announced {
            Ok(met) => self.notes(subject, met.as_deref()),
            Err(_) => self.tell(subject, until).await,
        }
        announced
    }

    async fn exclude(&self, subject: &Subject, until: Instant) -> Result<(), ReleaseError> {
        self.notes(subject, None);
        self.spared(subject, until).await
    }

    fn recalls(&self) -> bool {
        self.asked.undoes_network_fences
    }

    async fn readmit(&self, left: &Left, until: Instant) -> Result<Option<String>, ReleaseError> {
        self.unspared(left, until).await
    }

    async fn before_attempt(&self, subject: &Subject, until: Instant) -> Result<Prepared, ReleaseError> {
        let (prepared, ()) = tokio::join!(self.prepared(subject, until), self.tell(subject, until));
        let met = prepared.as_ref().ok().and_then(|prepared| prepared.met.as_deref());
        self.notes(subject, met);
        self.noted_if_wrong(prepared)
    }

    async fn is_being_deleted(&self, subject: &Subject, until: Instant) -> Option<String> {
        self.machine_is_going(subject, until).await
    }

    async fn check(&self, identities: &[Identity], until: Instant) -> Vec<String> {
        self.checked(identities, until).await
    }

    async fn machine(&self, until: Instant) -> Option<(Identity, String)> {
        self.machine_of_its_node(until).await
    }

    async fn has(&self, node: &ClusterNode, identities: &[Identity], until: Instant) -> Option<Belongs> {
        let of = self.of.as_ref()?;
        Some(belonging::belongs(&of.sought, &self.cluster, node, identities, until).await)
    }

    async fn before_on(&self, subject: &Subject, until: Instant) -> Result<LetOn, ReleaseError> {
        self.notes(subject, None);
        self.is_let_on(subject, until).await
    }

    async fn compare(&self, subject: &Subject, until: Instant) -> Result<(), ReleaseError> {
        self.notes(subject, None);
        self.recognised(subject, until).await
    }

    async fn withdraw(&self, whose: &Whose, until: Instant) -> Result<(), ReleaseError> {
        Ok(self.withdrawn(whose, until).await?)
    }

    async fn clean_up(&self, left: &Left, until: Instant) -> Result<Option<String>, ReleaseError> {
        self.tidied(left, until).await
    }
}
