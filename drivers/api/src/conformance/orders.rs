//! Orders for tests, made the only way there is: the state machine decides, a store takes it, the lock opens.
//! The store forgets everything.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use picket_answers::device::HoldFound;
use picket_core::confirm::{ConfirmedOff, Judge, Verdict};
use picket_core::device::{DeviceSpec, Grade, IdentityMatch};
use picket_core::election::{Election, ElectionError, Leadership, Lease, Won, lead};
use picket_core::event::{Event, FenceRequest, Holder, Person, PlannedRelease};
use picket_core::gate;
use picket_core::ground::{AttestedOff, Look, ReleaseGround, ReleasePermit};
use picket_core::ids::{DeviceId, FenceId, Incarnation, NodeId, ReleaseId, Revision, Term, Version};
use picket_core::machine;
use picket_core::order::{HoldOrder, OffOrder, OnOrder, Opened, PendingOn, ReleaseOrder, UnholdOrder};
use picket_core::power::{Epoch, Power, Reading};
use picket_core::record::{Fence, HoldState, NodeRecord, Then};
use picket_core::rules::Rules;
use picket_core::step;
use picket_core::store::{FenceQuery, Guard, KeyEntry, Note, Store, StoreError, Stored, Write, Written};
use picket_core::time::{BootTime, Clock, WallTime};
use picket_core::topology::{Level, Topology};

use crate::driver::Traits;

const RELEASE: &str = "release";
/// The judge confirms after fewer readings than these, where all of them say Off.
const READINGS: u32 = 100;

/// Makes orders for one device, each from a node record of its own.
#[derive(Debug)]
pub struct Orders {
    clock: Arc<dyn Clock>,
    spec: DeviceSpec,
    leadership: Arc<Leadership>,
}

fn words(error: impl std::fmt::Display) -> String {
    format!("an order cannot be made: {error}")
}

impl Orders {
    /// For a device with these traits, under a leadership that lasts until it is ended.
    pub async fn new(traits: &Traits, clock: Arc<dyn Clock>) -> Result<Self, String> {
        let leadership = lead(&Alone, clock.clone(), Duration::from_secs(3_600)).await.map_err(words)?;
        let spec = traits.spec(DeviceId::new("device").map_err(words)?, &Rules::default());
        Ok(Self { clock, spec, leadership })
    }

    /// The permit under which they are sent.
    pub fn permit(&self) -> Arc<Leadership> {
        self.leadership.clone()
    }

    /// An off.
    pub async fn off(&self) -> Result<OffOrder, String> {
        self.off_in(None).await
    }

    /// An off that is stored with the session of that name.
    pub async fn off_in(&self, session: Option<String>) -> Result<OffOrder, String> {
        let mut draft = self.fenced().await?;
        let devices = vec![self.spec.id.clone()];
        match draft
            .apply(self.within(session, Event::OffIntent { devices, identified: Vec::new() }))
            .await?
            .pop()
        {
            Some(Opened::Off(order)) => Ok(order),
            other => Err(words(format!("{other:?} is no off"))),
        }
    }

    /// An off of a node that is held, where that was found.
    pub async fn off_found(&self, found: &HoldFound) -> Result<OffOrder, String> {
        let mut draft = self.fenced().await?;
        self.engage(&mut draft, found).await?;
        let devices = vec![self.spec.id.clone()];
        match draft.apply(Event::OffIntent { devices, identified: Vec::new() }).await?.pop() {
            Some(Opened::Off(order)) => Ok(order),
            other => Err(words(format!("{other:?} is no off"))),
        }
    }

    /// A hold, of what was found.
    pub async fn hold(&self, found: &HoldFound) -> Result<HoldOrder, String> {
        match self.fenced().await?.apply(self.hold_intent(found)).await?.pop() {
            Some(Opened::Hold(order)) => Ok(order),
            other => Err(words(format!("{other:?} is no hold"))),
        }
    }

    /// The undoing of a hold.
    pub async fn unhold(&self, found: &HoldFound) -> Result<UnholdOrder, String> {
        let mut draft = self.fenced().await?;
        self.engage(&mut draft, found).await?;
        self.bring_back(&mut draft).await?;
        match draft.apply(Event::UnholdIntent).await?.pop() {
            Some(Opened::Unhold(order)) => Ok(order),
            other => Err(words(format!("{other:?} is no undoing of a hold"))),
        }
    }

    /// An on, for one sending.
    pub async fn on(&self) -> Result<OnOrder, String> {
        self.on_in(None).await
    }

    /// An on that is stored with the session of that name, for one sending.
    pub async fn on_in(&self, session: Option<String>) -> Result<OnOrder, String> {
        let mut draft = self.fenced().await?;
        self.bring_back(&mut draft).await?;
        let devices = vec![self.spec.id.clone()];
        let pending: PendingOn =
            match draft.apply(self.within(session.clone(), Event::OnIntent { devices })).await?.pop() {
                Some(Opened::On(pending)) => pending,
                other => return Err(words(format!("{other:?} is no on"))),
            };
        let (stored, look) = (&draft.stored, self.look(Some(Power::Off)));
        let (class, session) = (Some(self.spec.class), session.as_deref());
        gate::on_order(&Forgetful, &self.leadership, stored, &pending, &look, class, session)
            .await
            .map_err(words)
    }

    /// A release whose attempts may take effect for so long, for one attempt: a person vouches that the node is off.
    pub async fn release(&self, life: Duration) -> Result<Releasing, String> {
        let mut draft = self.releasing(life).await?;
        self.bring_back(&mut draft).await?;
        let word = AttestedOff::of(&draft.stored.record, self.leadership.term());
        let ground = ReleaseGround::Attested(word.ok_or_else(|| words("nobody vouches"))?);
        self.attempt(draft, ground).await
    }

    /// The same of a node that is proven off by this device.
    pub async fn proven_release(&self, life: Duration) -> Result<Releasing, String> {
        let mut draft = self.releasing(life).await?;
        let proof = self.proof(&draft.stored.record)?;
        draft.apply(Event::Confirmed(&proof)).await?;
        self.attempt(draft, ReleaseGround::Confirmed(proof)).await
    }

    async fn releasing(&self, life: Duration) -> Result<Draft<'_>, String> {
        let id = ReleaseId::new(RELEASE).map_err(words)?;
        let max_in_flight = Some(life);
        self.fenced_with(vec![PlannedRelease { id, max_in_flight, lingers: None, by_name: false }]).await
    }

    async fn attempt(&self, mut draft: Draft<'_>, ground: ReleaseGround) -> Result<Releasing, String> {
        let id = ReleaseId::new(RELEASE).map_err(words)?;
        match draft
            .apply(Event::ReleaseIntent { release: id, life: None, lingers: None, sets_up: true })
            .await?
            .pop()
        {
            Some(Opened::Release(order)) => Ok(Releasing { order, ground, stored: draft.stored }),
            other => Err(words(format!("{other:?} is no release"))),
        }
    }

    /// The permit for an attempt of it, for which the store is asked now.
    pub async fn release_permit<'a>(&'a self, releasing: &'a Releasing) -> Result<ReleasePermit<'a>, String> {
        let Releasing { ground, stored, .. } = releasing;
        let looks = match ground {
            ReleaseGround::Confirmed(_) => [self.look(Some(Power::Off))],
            ReleaseGround::Attested(_) => [self.look(None)],
        };
        let permit = gate::release_permit(&Forgetful, &self.leadership, &*self.clock, stored, ground, &looks);
        permit.await.map_err(words)
    }

    fn within(&self, session: Option<String>, event: Event<'static>) -> Event<'static> {
        let sessions: BTreeMap<_, _> = session.map(|name| (self.spec.id.clone(), name)).into_iter().collect();
        if sessions.is_empty() {
            return event;
        }
        Event::InSessions { event: Box::new(event), sessions, lives: BTreeMap::new() }
    }

    fn hold_intent(&self, found: &HoldFound) -> Event<'static> {
        Event::HoldIntent { found: BTreeMap::from([(self.spec.id.clone(), found.clone())]) }
    }

    async fn engage(&self, draft: &mut Draft<'_>, found: &HoldFound) -> Result<(), String> {
        let Some(Opened::Hold(order)) = draft.apply(self.hold_intent(found)).await?.pop() else {
            return Err(words("there was no hold"));
        };
        let results = vec![(self.spec.id.clone(), HoldState::default())];
        draft.apply(Event::HoldEnded { results, known: vec![order.effect()] }).await?;
        Ok(())
    }

    async fn fenced(&self) -> Result<Draft<'_>, String> {
        self.fenced_with(Vec::new()).await
    }

    async fn fenced_with(&self, releases: Vec<PlannedRelease>) -> Result<Draft<'_>, String> {
        let node = NodeId::new("node").map_err(words)?;
        let record = NodeRecord::new(node);
        let stored = Stored { version: Version(0), revision: Revision(0), record };
        let mut draft = Draft { orders: self, stored };
        let request = FenceRequest {
            id: FenceId::mint(self.clock.wall(), [0; 10]),
            holder: Holder {
                name: "conformance".to_owned(),
                by: "conformance".to_owned(),
                reason: "to show what the driver does".to_owned(),
                then: Then::PowerOn,
                by_person: false,
                asker: None,
            },
            deadline: Duration::from_secs(600),
            min_grade: Grade::Claimed,
            topology: Topology::new(vec![Level { devices: vec![self.spec.clone()] }])
                .map_err(|faults| words(format!("{faults:?}")))?,
            releases,
            key: None,
            set_aside: None,
        };
        draft.apply(Event::Fence(Box::new(request))).await?;
        Ok(draft)
    }

    /// The judge's proof of a machine that ran, took our off, and reads Off from then on. Its times are made up.
    fn proof(&self, record: &NodeRecord) -> Result<ConfirmedOff, String> {
        let judge = Judge::new(record, self.leadership.term(), &Rules::default(), false);
        let mut judge = judge.ok_or_else(|| words("there is nothing to prove"))?;
        let (device, ledger) = (&self.spec.id, &record.ledger);
        let mut now = self.clock.boot();
        let epoch = self.reading(Power::On, now).epoch;
        judge.identified(device, IdentityMatch::Match, epoch, now);
        judge.held(device, &[]);
        judge.reading(device, &self.reading(Power::On, now), ledger);
        judge.off_taken(device, now, now, epoch, false);
        for _ in 0..READINGS {
            now = now + self.spec.dwell;
            judge.reading(device, &self.reading(Power::Off, now), ledger);
            if let Verdict::Confirmed(proof) = judge.verdict(ledger, now, self.clock.wall()) {
                return Ok(proof);
            }
        }
        Err(words("the judge does not confirm it"))
    }

    /// A look at the device just now, which answered this power; `None`: it did not answer.
    fn look(&self, power: Option<Power>) -> Look {
        let now = self.clock.boot();
        let reading = power.map(|power| self.reading(power, now));
        Look { device: self.spec.id.clone(), asked_at: now, reading }
    }

    fn reading(&self, power: Power, at: BootTime) -> Reading {
        let epoch = self.spec.has_epochs.then_some(Epoch::FIRST);
        Reading { power, asked_at: at, answered_at: at, epoch, said: String::new(), lowered_by: None }
    }

    /// A person vouches. Where there is nothing to release, the one hold drops by itself.
    async fn bring_back(&self, draft: &mut Draft<'_>) -> Result<(), String> {
        let person = Person { name: "conformance".to_owned(), reason: "a test".to_owned() };
        draft.apply(Event::Attest { person, looks: &[self.look(None)] }).await?;
        Ok(())
    }
}

/// What one attempt of a release is sent with.
#[derive(Debug)]
pub struct Releasing {
    /// The order.
    pub order: ReleaseOrder,
    ground: ReleaseGround,
    stored: Stored,
}

struct Draft<'a> {
    orders: &'a Orders,
    stored: Stored,
}

impl Draft<'_> {
    async fn apply(&mut self, event: Event<'_>) -> Result<Vec<Opened>, String> {
        let leadership = &self.orders.leadership;
        let (record, version) = (&self.stored.record, self.stored.version);
        let at = self.orders.clock.wall();
        let step = machine::step(record, version, event, leadership.term(), at).map_err(words)?;
        let saved = step::save(&Forgetful, leadership, &step).await.map_err(words)?;
        let (stored, opened) = step.open(saved).into_parts();
        self.stored = stored;
        Ok(opened)
    }
}

/// An election with one candidate.
#[derive(Debug)]
struct Alone;

#[async_trait]
impl Election for Alone {
    async fn campaign(&self) -> Result<Won, ElectionError> {
        Ok(Won { term: Term(1), incarnation: incarnation(), lease: Lease::endless() })
    }

    async fn resign(&self) -> Result<(), ElectionError> {
        Ok(())
    }
}

fn incarnation() -> Incarnation {
    Incarnation::mint(WallTime::default(), [0; 10])
}

/// A store that takes everything and keeps nothing.
#[derive(Debug)]
struct Forgetful;

#[async_trait]
impl Store for Forgetful {
    fn incarnation(&self) -> Incarnation {
        incarnation()
    }

    async fn take_term(&self) -> Result<Term, StoreError> {
        Ok(Term(1))
    }

    async fn load_all(&self) -> Result<Vec<Stored>, StoreError> {
        Ok(Vec::new())
    }

    async fn load(&self, _: &NodeId) -> Result<Option<Stored>, StoreError> {
        Ok(None)
    }

    async fn write(&self, _: Guard, write: Write) -> Result<Written, StoreError> {
        let version = write.expected.next();
        Ok(Written { version, revision: Revision(version.0) })
    }

    async fn check(&self, _: Guard, _: &NodeId, _: Version) -> Result<(), StoreError> {
        Ok(())
    }

    async fn key(&self, _: &NodeId, _: &str) -> Result<Option<KeyEntry>, StoreError> {
        Ok(None)
    }

    async fn fence(&self, _: FenceId) -> Result<Option<Fence>, StoreError> {
        Ok(None)
    }

    async fn fences(&self, _: FenceQuery) -> Result<Vec<Fence>, StoreError> {
        Ok(Vec::new())
    }

    async fn revision(&self) -> Result<Revision, StoreError> {
        Ok(Revision(0))
    }

    async fn changed_since(&self, _: Revision) -> Result<Vec<(Revision, NodeId)>, StoreError> {
        Ok(Vec::new())
    }

    async fn note(&self, _: &str) -> Result<Option<Note>, StoreError> {
        Ok(None)
    }

    async fn notes(&self, _: &str) -> Result<Vec<(String, Note)>, StoreError> {
        Ok(Vec::new())
    }

    async fn put_note(
        &self,
        _: Guard,
        _: &str,
        expected: Version,
        _: Option<String>,
    ) -> Result<Version, StoreError> {
        Ok(expected.next())
    }

    async fn forget(&self, _: Guard, _: WallTime) -> Result<usize, StoreError> {
        Ok(0)
    }
}
