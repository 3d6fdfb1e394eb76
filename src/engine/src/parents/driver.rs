//! The device of class parent: on while the child does not hold its parent, off once that is proven off with the child on it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use picket_core::device::{DeviceClass, Grade, MaxInFlight};
use picket_core::ids::{FenceId, NodeId, Term};
use picket_core::order::{HoldOrder, OffOrder, OnOrder, UnholdOrder};
use picket_core::parent::Placement;
use picket_core::power::{Epoch, Power, Reading};
use picket_core::time::BootTime;
use picket_driver::{
    Accepted, Call, DriverError, Effect, ErrorKind, HoldFound, HoldReport, Identified, PowerDriver, Traits,
};

use super::asks::{ParentAnswer, ParentAsk, ParentSeen};
use super::copies::{Copies, CopyHosts, Looks};
use super::nodes::{NOT_SEEN, Nodes, Parents};
use super::refusals::{failed, refused};

/// How long what one leadership asked of another node may take effect at the longest. A leader that was deposed stores nothing
/// (S6), so that this is more than the truth.
const LIFE: Duration = Duration::from_secs(60);

/// What the settings say of a node's parent.
#[derive(Clone, Debug)]
pub struct ParentSettings {
    /// The child.
    pub child: NodeId,
    /// The only node on which it may run; `None`: whichever the placement names.
    pub node: Option<NodeId>,
    /// The least grade of the parent's own evidence, and the grade of what is proven by it: hypervisor, learned or claimed.
    pub grade: Grade,
}

/// A node's parent, as a device of that node.
#[derive(Debug)]
pub struct ParentDriver {
    parents: Arc<Parents>,
    pub(super) settings: ParentSettings,
    /// Whoever places the node.
    pub(super) places: Arc<dyn PowerDriver>,
    traits: Traits,
    seen: Mutex<Seen>,
    /// Nodes that were asked to change something and have not answered: it may be done yet.
    unsettled: Mutex<BTreeSet<NodeId>>,
    pub(super) copy_hosts: CopyHosts,
}

/// The proof that was seen last: where it is void, or another one was made, another life of this device begins.
#[derive(Debug, Default)]
pub(super) struct Seen {
    proof: Option<(FenceId, u32, Term)>,
    epoch: u64,
}

impl Seen {
    fn life(&self) -> Epoch {
        Epoch { id: self.epoch, loss: None }
    }

    pub(super) fn proof(&mut self, proof: (FenceId, u32, Term)) -> Epoch {
        if self.proof.replace(proof).is_some_and(|before| before != proof) {
            self.epoch += 1;
        }
        self.life()
    }

    fn void(&mut self) -> Epoch {
        if self.proof.take().is_some() {
            self.epoch += 1;
        }
        self.life()
    }
}

impl ParentDriver {
    /// The parent of a node that `places` knows where to find. Calls take as long as that one's, and the parent's look before it.
    pub fn new(parents: &Arc<Parents>, settings: ParentSettings, places: Arc<dyn PowerDriver>) -> Self {
        let traits = Traits {
            class: DeviceClass::Parent,
            grade: settings.grade,
            has_epochs: true,
            max_in_flight: MaxInFlight { off: Some(LIFE), on: Some(LIFE) },
            call: places.traits().call * 2,
            endpoint: format!("parent of {}", settings.child),
        };
        let (seen, unsettled, copy_hosts) = Default::default();
        Self { parents: parents.clone(), settings, places, traits, seen, unsettled, copy_hosts }
    }

    pub(super) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock()
    }

    pub(super) fn engine(&self) -> Result<Arc<dyn Nodes>, DriverError> {
        self.parents.engine().ok_or_else(|| refused(ErrorKind::NotLeader, "no engine runs"))
    }

    pub(super) fn child(&self) -> NodeId {
        self.settings.child.clone()
    }

    /// The node that a placement means; else why there is none, in words.
    fn meant(&self, engine: &dyn Nodes, placement: &Placement) -> Result<NodeId, String> {
        let Some(host) = placement.host.as_deref() else {
            return Err("it is not said where it runs".to_owned());
        };
        let named = engine.parent_named(host, self.places.cloud().as_deref())?;
        match &self.settings.node {
            Some(only) if *only != named => Err(format!("it runs on {named}, and the settings say {only}")),
            _ => Ok(named),
        }
    }

    /// The machine that is held for the child: of several, since it moved while it was fenced, the one on which it runs now.
    async fn held(&self, call: &Call) -> Result<Option<NodeId>, DriverError> {
        let held = self.engine()?.held_by(&self.settings.child);
        if held.len() < 2 {
            return Ok(held.into_iter().next());
        }
        let (_, meant) = self.whereabouts(call).await?;
        let now = held.iter().find(|parent| meant.as_ref() == Ok(*parent)).cloned();
        Ok(now.or_else(|| held.into_iter().next()))
    }

    /// Where the child runs now, whatever is known of that machine.
    pub(super) async fn whereabouts(
        &self,
        call: &Call,
    ) -> Result<(Placement, Result<NodeId, String>), DriverError> {
        let placement = self.places.placement(call).await?;
        let engine = self.engine()?;
        let meant = self.meant(&*engine, &placement);
        if let Ok(parent) = &meant {
            engine.runs_on(&self.settings.child, parent);
        }
        Ok((placement, meant))
    }

    async fn ask(
        &self,
        call: &Call,
        parent: &NodeId,
        ask: ParentAsk,
        changes: bool,
    ) -> Result<ParentAnswer, DriverError> {
        let engine = self.engine()?;
        if changes {
            call.may_send()?;
            self.unsettled.lock().insert(parent.clone());
        }
        match tokio::time::timeout_at(call.deadline(), engine.of_parent(parent, ask)).await {
            Ok(answer) => {
                let mut answer = answer.map_err(|error| failed(parent, &error));
                // A question has no effect, whatever became of it.
                if let Err(error) = &mut answer
                    && !changes
                {
                    error.effect = Effect::DidNotHappen;
                }
                if changes && answer.as_ref().err().is_none_or(|error| error.effect == Effect::DidNotHappen) {
                    self.unsettled.lock().remove(parent);
                }
                answer
            }
            Err(_) => {
                let effect = if changes { Effect::Unknown } else { Effect::DidNotHappen };
                Err(DriverError::new(ErrorKind::TimedOut, effect, format!("{parent} did not answer in time")))
            }
        }
    }

    /// Why that machine is not fenced for the child now: all that runs on it would go, although the child's own levels may stop it.
    fn out_of_turn(&self, parent: &NodeId) -> Result<Option<String>, DriverError> {
        let engine = self.engine()?;
        let is_turn = || engine.tries_its_parent(&self.settings.child);
        let may = engine.held_by(&self.settings.child).contains(parent) || is_turn();
        Ok((!may).then(|| format!("runs on {parent}, which is fenced for it once its own levels are spent")))
    }

    fn is_brought_back(&self) -> bool {
        self.parents.engine().is_some_and(|engine| engine.is_unfencing(&self.settings.child))
    }

    pub(super) fn reading(
        &self,
        power: Power,
        asked_at: BootTime,
        call: &Call,
        epoch: Epoch,
        said: String,
    ) -> Reading {
        Reading { power, asked_at, answered_at: call.now(), epoch: Some(epoch), said, lowered_by: None }
    }

    /// What was asked to be changed is done, or never will be: each node that has not answered says so.
    async fn settle(&self, call: &Call) -> Result<(), DriverError> {
        let asked: Vec<NodeId> = self.unsettled.lock().iter().cloned().collect();
        for parent in asked {
            match self.ask(call, &parent, ParentAsk::Settle, false).await {
                // What is no node any more does nothing.
                Err(error) if error.kind != ErrorKind::Settings => {
                    return Err(DriverError { effect: Effect::Unknown, ..error });
                }
                _ => drop(self.unsettled.lock().remove(&parent)),
            }
        }
        Ok(())
    }

    /// Nobody is held for the child: its parent keeps nothing off. It is on where its parent was seen on.
    async fn free(&self, call: &Call, asked_at: BootTime) -> Result<Reading, DriverError> {
        let (_, meant) = self.whereabouts(call).await?;
        let parent = meant.map_err(|why| refused(ErrorKind::Settings, why))?;
        let epoch = self.seen().void();
        if let Some(why) = self.engine()?.orphaned(&parent) {
            return Err(refused(ErrorKind::Settings, format!("{parent} is ORPHANED: {why}")));
        }
        let mut seems = self.engine()?.seems_on(&parent);
        if seems == Err(NOT_SEEN) {
            // Perhaps since nobody looked, as no check is due.
            self.ask(call, &parent, ParentAsk::Read, false).await?;
            seems = self.engine()?.seems_on(&parent);
        }
        let (power, said) = match seems {
            Ok(()) => (Power::On, format!("runs on {parent}, which it does not hold")),
            Err(word) => (Power::Unknown, format!("runs on {parent}, which {word}")),
        };
        Ok(self.reading(power, asked_at, call, epoch, said))
    }

    /// The node that is held is not proven off. Where the child runs elsewhere by now, its proof would be none of its.
    async fn unproven(&self, call: &Call, parent: &NodeId, why: String) -> (Power, String) {
        match self.whereabouts(call).await {
            Ok((Placement { moving: None, .. }, Ok(now))) if now != *parent => {
                (Power::On, format!("runs on {now}, and {parent} is held for it"))
            }
            _ => (Power::Unknown, format!("{parent} is not proven off: {why}")),
        }
    }
}

/// What a person can do about a parent's grade, where it is the identity of its devices that lowers it.
fn remedy(grade: Grade) -> &'static str {
    match grade {
        Grade::Learned => ": give `identity` in its settings, or `grade = \"learned\"` in the child's",
        Grade::Attested | Grade::Claimed | Grade::Hypervisor | Grade::Observed => "",
    }
}

#[async_trait]
impl PowerDriver for ParentDriver {
    fn traits(&self) -> &Traits {
        &self.traits
    }

    /// On: no parent is held for the child and the one on which it runs is on, or the child runs elsewhere. Off: the parent that is
    /// held is proven off and read so just now, and the child, asked for after that, runs on it alone and is not about to move.
    async fn read_power(&self, call: &Call) -> Result<Reading, DriverError> {
        let asked_at = call.now();
        let Some(parent) = self.held(call).await? else { return self.free(call, asked_at).await };
        let look = ParentAsk::Look { child: self.child(), is_held: true };
        // Beside each other: their parent's Off is to be young yet once those of the copies' machines are told, too.
        let looker = self.looker(call)?;
        let own = self.ask(call, &parent, look, false);
        let is_off = |answer: &ParentAnswer| matches!(answer, ParentAnswer::Seen(ParentSeen::Off(_)));
        let (seen, copies) = self.copy_hosts.beside(own, is_off, &looker).await?;
        let ParentAnswer::Seen(seen) = seen else {
            return Err(DriverError::unsupported("its parent answered something else"));
        };
        let (power, said) = match seen {
            ParentSeen::Off(off) if off.grade() >= self.settings.grade => {
                return self.by_proof(call, &off, copies).await;
            }
            ParentSeen::Off(off) => {
                let (is, least) = (off.grade(), self.settings.grade);
                let why = format!(
                    "{parent} is proven off with the grade {is:?}, less than {least:?}{}",
                    remedy(is)
                );
                (Power::Unknown, why)
            }
            // What is to be let go is held until it is.
            ParentSeen::Void(why) if self.is_brought_back() => (Power::Unknown, format!("{parent} {why}")),
            ParentSeen::Void(why) => (Power::On, format!("{parent} {why}")),
            ParentSeen::Unproven(why) => self.unproven(call, &parent, why).await,
        };
        let epoch = if power == Power::On { self.seen().void() } else { self.seen().life() };
        Ok(self.reading(power, asked_at, call, epoch, said))
    }

    /// Fences the machine on which the child runs, and holds it. One that is not held for it yet waits for its turn.
    async fn power_off(&self, _order: &OffOrder, call: &Call) -> Result<Accepted, DriverError> {
        let asked_at = call.now();
        let (placement, meant) = self.whereabouts(call).await?;
        if let Some(why) = placement.moving {
            let detail = format!("it may be about to run elsewhere: {why}");
            return Err(refused(ErrorKind::Refused, detail));
        }
        // That parent's Off would prove nothing, and all else that runs there would go for it.
        if let Copies::MayRun(why) = self.copies(&placement, Looks::default(), call).await? {
            return Err(refused(ErrorKind::Refused, why));
        }
        let parent = meant.map_err(|why| refused(ErrorKind::Settings, why))?;
        if let Some(why) = self.out_of_turn(&parent)? {
            return Err(refused(ErrorKind::Refused, why));
        }
        let by = self.engine()?.askers(&self.settings.child);
        let hold = ParentAsk::Hold { child: self.child(), least: self.settings.grade, by };
        let ParentAnswer::Held { already } = self.ask(call, &parent, hold, true).await? else {
            return Err(DriverError::unsupported("its parent answered something else"));
        };
        let epoch = self.seen().life();
        Ok(Accepted { asked_at, answered_at: call.now(), epoch: Some(epoch), already })
    }

    /// Lets go of every machine that is held for the child. With no other hold left its parent comes back.
    async fn power_on(&self, _order: OnOrder, call: &Call) -> Result<Accepted, DriverError> {
        let asked_at = call.now();
        // A hold that was asked for, and came in the meantime, is let go, too.
        self.settle(call).await.map_err(|error| DriverError { effect: Effect::DidNotHappen, ..error })?;
        let held = self.engine()?.held_by(&self.settings.child);
        let already = held.is_empty();
        let mut refused = None;
        for parent in held {
            let asked = self.ask(call, &parent, ParentAsk::LetGo { child: self.child() }, true).await;
            refused = refused.or(asked.err());
        }
        if let Some(error) = refused {
            return Err(error);
        }
        let epoch = self.seen().void();
        Ok(Accepted { asked_at, answered_at: call.now(), epoch: Some(epoch), already })
    }

    async fn placement(&self, call: &Call) -> Result<Placement, DriverError> {
        Ok(self.whereabouts(call).await?.0)
    }

    fn only_parent(&self) -> Option<&NodeId> {
        self.settings.node.as_ref()
    }

    /// What is placed must be the node itself.
    async fn identify(&self, call: &Call) -> Result<Identified, DriverError> {
        // Another node's proof is no life of what places it.
        Ok(Identified { epoch: None, ..self.places.identify(call).await? })
    }

    async fn inspect_hold(&self, _call: &Call) -> Result<HoldFound, DriverError> {
        Ok(HoldFound::new())
    }

    fn engaged(&self, _now: &HoldFound) -> Vec<String> {
        Vec::new()
    }

    async fn engage_hold(&self, _order: &HoldOrder, _call: &Call) -> Result<HoldReport, DriverError> {
        Ok(HoldReport { engaged: Vec::new(), detail: "its off is a hold on its parent".to_owned() })
    }

    async fn disengage_hold(&self, _order: &UnholdOrder, _call: &Call) -> Result<HoldReport, DriverError> {
        Ok(HoldReport::default())
    }

    /// Waits until the parent's task is done with what it was asked. A parent has no session to end.
    async fn quiesce(&self, call: &Call) -> Result<(), DriverError> {
        self.settle(call).await
    }
}
