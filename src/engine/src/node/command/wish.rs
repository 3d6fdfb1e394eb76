//! What people ask of a node besides fencing it: holds, their word that it is off, gone, or another machine.

use futures::future::join_all;
use picket_core::device::{Identity, IdentityMatch};
use picket_core::event::{Event, Person};
use picket_core::ground::{LOOK_LIFE, Look};
use picket_core::ids::{DeviceId, NodeId};
use picket_core::machine::Refused;
use picket_core::parent::child_of;
use picket_core::record::{Cause, Phase};
use picket_core::roles::Role;
use picket_core::time::BootTime;

use super::refusal;
use crate::error::EngineError;
use crate::node::hands::Did;
use crate::node::{Fatal, NodeTask};
use crate::request::{Ask, Taken};

/// What a person wants; who, why and with which key stands in the [`Ask`] beside it.
#[derive(Clone, Debug)]
pub(crate) enum Wish {
    /// Another reason to keep it off.
    Hold(String),
    /// An admin drops the hold under which a restore keeps it off.
    DropRestored,
    /// An admin ends the hold of a child, by the name under which it holds this node (S22).
    EndChildsHold(String),
    /// They vouch that it is off (S12).
    Attest,
    /// They looked at the machine after a BMC restarted, saw it off, and want it tried again (S2).
    RetrySeenOff,
    /// The hardware is gone for good.
    Retire,
    /// A board was exchanged: what the device says now is right, if it says what they expect.
    Accept { device: DeviceId, expected: Identity },
}

impl Wish {
    /// A stable word, as the audit has it.
    pub(crate) fn label(&self) -> &'static str {
        match self {
            Wish::Hold(_) => "hold",
            Wish::DropRestored => "drop_restored",
            Wish::EndChildsHold(_) => "end_childs_hold",
            Wish::Attest => "attest",
            Wish::RetrySeenOff => "retry_seen_off",
            Wish::Retire => "retire",
            Wish::Accept { .. } => "accept_identity",
        }
    }

    /// Whose hold is meant, if one is.
    pub(super) fn holder(&self) -> Option<&str> {
        match self {
            Wish::Hold(holder) => Some(holder),
            _ => None,
        }
    }

    /// Whether devices are asked for it.
    pub(crate) fn asks_devices(&self) -> bool {
        matches!(self, Wish::Attest | Wish::RetrySeenOff | Wish::Accept { .. })
    }
}

impl NodeTask {
    /// Does what a person wants, and binds the key, if there is one, in the same write.
    pub(super) async fn wish(&mut self, wish: Wish, ask: Ask) -> Result<Result<Taken, EngineError>, Fatal> {
        if let Some(answer) = self.asked_before(&ask).await? {
            return match wish {
                Wish::RetrySeenOff => self.told_by_a_look(Ok(answer)).await,
                _ => Ok(answer),
            };
        }
        match wish {
            // Held by a call of its own, a fence heeds no recovery any more (K9): that is a person's to decide.
            Wish::Hold(_) if !ask.by_person && self.may_end_recovered() => {
                let refused = Refused::Phase {
                    wanted: "a hold",
                    phase: self.record().phase.label(),
                    hint: "its fence has sent nothing yet, and whoever joins it keeps the node off: ask for a fence, or hold it once it is off; \
                           an operator may hold it now",
                };
                Ok(Err(refused.into()))
            }
            Wish::Hold(holder) => self.grant(ask, |person| Event::Hold { holder, person }).await,
            Wish::DropRestored => self.grant(ask, Event::DropRestored).await,
            Wish::EndChildsHold(holder) => {
                let child = child_of(&holder).and_then(|child| NodeId::new(child).ok());
                let fence = child.and_then(|child| self.office.standing(&child)?.fence);
                self.grant(ask, |person| Event::EndChildsHold { holder, fence, person }).await
            }
            Wish::Attest => self.attest(ask).await,
            Wish::RetrySeenOff => self.retry_seen_off(ask).await,
            Wish::Retire => {
                if let Err(refused) = self.expect_no_child_is_kept() {
                    return Ok(Err(refused));
                }
                // Where it is not possible no device is asked for it.
                let is_possible = !matches!(self.record().phase, Phase::Fencing | Phase::Normal);
                let left = if is_possible { self.left_beside().await } else { Vec::new() };
                let settings = self.settings_in_words();
                self.grant(ask, |person| Event::Retire { person, settings, left }).await
            }
            Wish::Accept { device, expected } => self.accept(ask, device, expected).await,
        }
    }

    /// Whether a recovery may still end the present fence: it is open and was never proven, also where an off of it may have been taken; or nothing
    /// was sent for it, it waits for a person, and is tried again once its node reads On.
    fn may_end_recovered(&self) -> bool {
        let record = self.record();
        let is_unproven =
            record.fence.as_ref().is_some_and(|fence| fence.cause == Cause::Asked && !fence.was_proven);
        let is_open = match record.phase {
            Phase::Fencing => is_unproven || self.is_unsent(),
            Phase::NeedsOperator(_) => self.is_unsent(),
            _ => false,
        };
        is_open && self.fence_is_current()
    }

    /// What the holds of the fence leave changed beside the machine, in words: a retirement undoes none of them.
    async fn left_beside(&self) -> Vec<String> {
        let holds = self.record().fence.iter().flat_map(|fence| &fence.holds);
        let changes = |device: &DeviceId, found| {
            self.plan.drivers.get(device).is_some_and(|driver| driver.changes_beside(found))
        };
        let asked = holds
            .filter(|(device, hold)| changes(device, &hold.found))
            .map(|(device, hold)| self.hands.left_beside(device, &hold.found));
        join_all(asked).await.into_iter().flatten().collect()
    }

    async fn attest(&mut self, ask: Ask) -> Result<Result<Taken, EngineError>, Fatal> {
        let hosts = self.hosts();
        // Where it is not possible no device is asked for it.
        let possible = matches!(self.record().phase, Phase::Fencing | Phase::NeedsOperator(_))
            && !self.record().is_groundless();
        let looks: Vec<Look> = if possible { self.look_at(&hosts).await? } else { Vec::new() };
        let oldest = looks.iter().map(Look::asked).min().unwrap_or(self.now());
        let grant = |person| Event::Attest { person, looks: &looks };
        let taken = self.grant_by_readings(ask, grant, Some(oldest + LOOK_LIFE)).await?;
        let heard = std::mem::take(&mut self.readings.heard);
        if taken.is_ok() && self.record().phase == Phase::Fenced {
            // Their word holds until a host device says On, which one may have done before it was stored (S12).
            self.was_found_on(heard);
        }
        // Whoever vouches is answered by what the host devices say now: a breach ends their word.
        Box::pin(self.show_if_still_off()).await?;
        Ok(taken.map(|taken| match taken {
            Taken::Now(_) => Taken::Now(Box::new(self.record().clone())),
            before @ Taken::Before(_) => before,
        }))
    }

    /// What the device says now is stored as what it is expected to say.
    async fn accept(
        &mut self,
        ask: Ask,
        device: DeviceId,
        expected: Identity,
    ) -> Result<Result<Taken, EngineError>, Fatal> {
        let accepted = |identity: Identity| {
            let device = device.clone();
            move |person: Person| Event::Accepted { device, identity, person }
        };
        let topology = self.record().fence.as_ref().map_or(&self.plan.topology, |fence| &fence.topology);
        let Some(spec) = topology.device(&device) else {
            let known = topology.devices().map(|spec| spec.id.to_string()).collect();
            return Ok(Err(Refused::NoSuch { what: "device", name: device.to_string(), known }.into()));
        };
        if !spec.identity.is_empty() {
            let what = format!(
                "the identity of {device} stands in the settings ({}): change `identity` there",
                spec.identity.words()
            );
            return Ok(Err(EngineError::Field { field: "device", what }));
        }
        if !matches!(self.record().phase, Phase::Normal | Phase::NeedsOperator(_)) {
            // Refused by its phase, and no device is asked for it.
            return self.grant(ask, accepted(Identity::default())).await;
        }
        self.lingering.clear();
        let (_, did) = self.hands.identify(&device).await;
        self.show(&device, &did);
        let said = match did {
            Did::Identified { result: Ok(said), .. } => said.identity,
            Did::Identified { result: Err(error), .. } => {
                return Ok(Err(EngineError::Device { device, kind: error.kind, detail: error.to_string() }));
            }
            _ => Identity::default(),
        };
        if let Some(error) = self.not_acceptable(&device, &said, &expected) {
            return Ok(Err(error));
        }
        let taken = self.grant(ask, accepted(said.clone())).await?;
        if taken.is_ok() {
            // A drill under way saw another board fall.
            self.drilled = None;
            self.said_first.remove(&device);
            self.expects(&device);
            self.device_live(&device).identity_match = Some(self.expected_identity(&device).compare(&said));
            self.publish();
        }
        Ok(taken)
    }

    fn not_acceptable(&self, device: &DeviceId, said: &Identity, expected: &Identity) -> Option<EngineError> {
        let wrong = |field, what: String| Some(EngineError::Field { field, what });
        let words = said.words();
        if said.is_empty() {
            return wrong(
                "device",
                format!("{device} does not say what it controls: give its identity in the settings"),
            );
        }
        // Which node is in the log: whoever asks may not be one who may look at it.
        if let Some((node, other)) = self.parts.twins.twin_of(&self.plan.id, device, said) {
            tracing::warn!(%device, words, twin = %format_args!("{other} of {node}"), "another node's device says the same");
            let what = format!(
                "{device} says {words}, and a device of another node claims the same: if the board came from there, check that node \
                 first, or change its settings"
            );
            return wrong("device", what);
        }
        let only = |uuid: bool| match uuid {
            true => Identity { uuid: expected.uuid.clone(), serial: None },
            false => Identity { uuid: None, serial: expected.serial.clone() },
        };
        for (field, wanted) in [("uuid", only(true)), ("serial", only(false))] {
            if !wanted.is_empty() && wanted.compare(said) != IdentityMatch::Match {
                let wanted = wanted.words();
                return wrong(field, format!("{device} says {words}, not {wanted}: nothing was accepted"));
            }
        }
        None
    }

    /// Who repeats a retry is told FENCED by a look, like who repeats a fence (S20); of all else that is asked again the present state says it.
    pub(super) async fn told_by_a_look(
        &mut self,
        answer: Result<Result<Taken, EngineError>, Fatal>,
    ) -> Result<Result<Taken, EngineError>, Fatal> {
        if let Ok(Ok(Taken::Before(Some(fence)))) = &answer
            && let Err(error) = self.look_again(*fence).await?
        {
            return Ok(Err(error));
        }
        answer
    }

    /// The answer to a request that came before, or comes too late; `None`: it is to be done.
    async fn asked_before(&mut self, ask: &Ask) -> Result<Option<Result<Taken, EngineError>>, Fatal> {
        match self.bound(ask.key.as_ref()).await {
            Ok(Ok(Some(entry))) => return Ok(Some(Ok(Taken::Before(entry.fence)))),
            Ok(Ok(None)) => {}
            Ok(Err(error)) => return Ok(Some(Err(error))),
            Err(failure) => return Ok(Some(refusal(failure)?)),
        }
        Ok(self.in_time(ask.not_after, ask.expected_generation).err().map(|stale| Err(stale.into())))
    }

    pub(super) async fn grant<'a>(
        &mut self,
        ask: Ask,
        event: impl FnOnce(Person) -> Event<'a>,
    ) -> Result<Result<Taken, EngineError>, Fatal> {
        self.grant_by_readings(ask, event, None).await
    }

    /// The same of what is decided by readings that are fresh until then.
    async fn grant_by_readings<'a>(
        &mut self,
        ask: Ask,
        event: impl FnOnce(Person) -> Event<'a>,
        fresh_until: Option<BootTime>,
    ) -> Result<Result<Taken, EngineError>, Fatal> {
        let by = ask.person.name.clone();
        let event = event(ask.person);
        // What devices and the store took their time for goes by the roles of now (S14).
        let holder = match &event {
            Event::Hold { holder, .. } | Event::Unfence { holder, .. } => Some(holder.as_str()),
            _ => None,
        };
        let besides = match &event {
            Event::DropRestored(_) | Event::EndChildsHold { .. } => Some(Role::Admin),
            _ => ask.by_person.then_some(Role::Operator),
        };
        if let Err(lost) = self.may_still_act(besides, holder) {
            return Ok(Err(EngineError::RoleLost(lost)));
        }
        let event = match ask.key {
            Some(key) => Event::Keyed { event: Box::new(event), key, by },
            None => event,
        };
        let before = self.place();
        let applied = match fresh_until {
            Some(fresh_until) => self.apply_by_readings(event, fresh_until).await,
            None => self.apply(event).await,
        };
        match applied {
            Ok(_) => {
                // The word that was given now, or that stands from before a release was given up (S12).
                if self.place() != before {
                    self.recover();
                }
                Ok(Ok(Taken::Now(Box::new(self.record().clone()))))
            }
            Err(failure) => refusal(failure),
        }
    }

    /// Drops a hold. A request that finds nothing to do binds its key, too: a copy of it that comes later undoes nothing that
    /// was asked for after it (S20).
    pub(super) async fn unfence(
        &mut self,
        holder: String,
        ask: Ask,
    ) -> Result<Result<Taken, EngineError>, Fatal> {
        let (key, by) = (ask.key.clone(), ask.person.name.clone());
        let fails = self.record().phase == Phase::PowerOnFailed;
        let taken = match self.asked_before(&ask).await? {
            Some(answer) => Ok(answer),
            // Whoever unfenced it has dropped the last hold before. Another on is a retry, and somebody may have the chassis open.
            None if fails && !ask.by_person => Ok(Err(Refused::Phase {
                wanted: "unfencing",
                phase: self.record().phase.label(),
                hint: "it was switched on and not seen on: an operator looks at the machine, and retries",
            }
            .into())),
            None => match self.gone_for_good().filter(|_| self.is_to_bring_back()) {
                Some(why) => Ok(Err(EngineError::NotAllowed(format!(
                    "{} does not come back ({why}): retire it; with another machine in its settings it is a node again",
                    self.plan.id
                )))),
                None => self.grant(ask, |person| Event::Unfence { holder, person }).await,
            },
        }?;
        let is_so = match &taken {
            Err(EngineError::Refused(Refused::Phase { phase, wanted, .. })) => match *phase {
                "normal" | "unfencing" => true,
                "power_on_failed" => *wanted == "unfencing",
                _ => false,
            },
            _ => false,
        };
        let Some(key) = key.filter(|_| is_so) else { return Ok(taken) };
        match self.apply(Event::Keyed { event: Box::new(Event::SoAlready), key, by }).await {
            Ok(_) => Ok(taken),
            Err(failure) => refusal(failure),
        }
    }

    /// Whether somebody keeps it off, and it would be switched on once nobody does.
    fn is_to_bring_back(&self) -> bool {
        self.record().fence.is_some() && !matches!(self.record().phase, Phase::Normal | Phase::Unfencing)
    }

    /// Asks of people that need no device.
    pub(super) async fn people<'a>(
        &mut self,
        ask: Ask,
        event: impl FnOnce(Person) -> Event<'a>,
    ) -> Result<Result<Taken, EngineError>, Fatal> {
        match self.asked_before(&ask).await? {
            Some(answer) => Ok(answer),
            None => self.grant(ask, event).await,
        }
    }
}
