//! One instance as a device.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use parking_lot::Mutex;
use picket_cloud::{CALL, EPOCH, Pending, Unclear};
use picket_core::device::Identity;
use picket_core::order::{HoldOrder, OffOrder, OnOrder, UnholdOrder};
use picket_core::power::{Power, Reading};
use picket_core::time::BootTime;
use picket_driver::{
    Accepted, Call, DriverError, Effect, ErrorKind, HoldFound, HoldReport, Identified, PowerDriver, Traits,
    Volumes,
};
use tokio::time::Instant;

use crate::cloud::{Cloud, Stamps};
use crate::hold;
use crate::instance::{self, Instance};
use crate::remarks::Remarks;
use crate::settings::Settings;

/// An off waits no longer than this for a question before it.
const QUICKLY: Duration = Duration::from_secs(5);
/// Between two looks whether what was begun has ended.
const LOOK: Duration = Duration::from_secs(1);
/// So long after its answer EC2 may show what was before a command.
pub(crate) const SHOWN_LATE: Duration = Duration::from_secs(5);
/// After one that failed.
const LONGER: Duration = Duration::from_secs(3);
/// A command bears the time of an answer that is not older than this.
const FRESH: Duration = Duration::from_secs(20);
/// Of a stop that lasts so long without the instance having fallen another one is sent.
const AGAIN: Duration = Duration::from_secs(30);

/// An instance of EC2.
pub(crate) struct AwsDriver {
    pub(crate) settings: Settings,
    pub(crate) cloud: Arc<Cloud>,
    traits: Traits,
    /// What AWS's clock said in the answers to this device's questions, oldest first.
    heard: Mutex<VecDeque<ServiceTime>>,
    pub(crate) unclear: Unclear,
    pub(crate) remarks: Remarks,
    /// When a command of ours was answered last, and what it makes of the instance.
    pub(crate) told: Mutex<Option<(BootTime, Power)>>,
    /// When its tags were looked at last, for a hold.
    pub(crate) inspected: Mutex<Option<BootTime>>,
    /// When our tag was taken away last.
    pub(crate) untagged: Mutex<Option<BootTime>>,
    /// It was seen terminated: ids are never given away again.
    ended: AtomicBool,
    /// The devices whose volumes were told to be kept at its end.
    pub(crate) kept: Mutex<BTreeSet<String>>,
    /// When EC2 took a detach of ours last, by the volume.
    pub(crate) detached: Mutex<BTreeMap<String, BootTime>>,
    /// Its turn to detach a volume, which AWS's limits bear from then on.
    pub(crate) turn: Mutex<Option<Instant>>,
}

/// AWS's own time, and when it was asked for and told.
#[derive(Clone, Copy, Debug)]
struct ServiceTime {
    date: SystemTime,
    asked_at: BootTime,
    answered_at: BootTime,
}

/// What a look at the instance found.
pub(crate) type InstanceFindings = picket_cloud::Findings<Instance>;

impl std::fmt::Debug for AwsDriver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AwsDriver").field("endpoint", &self.traits.endpoint).finish_non_exhaustive()
    }
}

impl AwsDriver {
    pub(crate) fn new(settings: Settings, cloud: Arc<Cloud>) -> Self {
        let traits = picket_cloud::traits(format!("aws {}", settings.instance), cloud.life);
        Self {
            settings,
            cloud,
            traits,
            heard: Mutex::default(),
            unclear: Unclear::default(),
            remarks: Remarks::default(),
            told: Mutex::default(),
            inspected: Mutex::default(),
            untagged: Mutex::default(),
            ended: AtomicBool::new(false),
            kept: Mutex::default(),
            detached: Mutex::default(),
            turn: Mutex::default(),
        }
    }

    /// The instance, freshly asked for.
    pub(crate) async fn look(&self, call: &Call) -> Result<InstanceFindings, DriverError> {
        let before = call.now();
        let (found, stamps) = self.cloud.instance(&self.settings.instance, call).await;
        // A refusal bears AWS's time as well.
        if let Some(stamps) = stamps {
            self.hear(stamps);
        }
        let (asked_at, answered_at) =
            stamps.map_or((before, call.now()), |stamps| (stamps.asked_at, stamps.answered_at));
        let found = found?;
        if found.as_ref().is_ok_and(|instance| instance.power() == instance::PowerStatus::Terminated) {
            self.ended.store(true, Ordering::SeqCst);
        }
        Ok(InstanceFindings { found, asked_at, answered_at })
    }

    /// Whether it was seen terminated. After an hour EC2 does not know it any more.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    /// The same, where it must be there.
    pub(crate) async fn instance(&self, call: &Call) -> Result<Instance, DriverError> {
        self.look(call)
            .await?
            .found
            .map_err(|why| DriverError::new(ErrorKind::Refused, Effect::DidNotHappen, why))
    }

    /// A question of this device was answered.
    pub(crate) fn hear(&self, stamps: Stamps) {
        let Some(date) = stamps.date else { return };
        let mut heard = self.heard.lock();
        heard.retain(|one| stamps.answered_at.since(one.asked_at) <= FRESH);
        let (asked_at, answered_at) = (stamps.asked_at, stamps.answered_at);
        heard.push_back(ServiceTime { date, asked_at, answered_at });
    }

    /// S8: the time for the signature of an on or a detach. It is AWS's own, from an answer that came before the store said its last word:
    /// however long this machine stands still after that, and whatever its clocks say then, AWS takes the command no later than that
    /// time allows.
    pub(crate) fn signed(
        &self,
        life: Option<Duration>,
        checked_at: BootTime,
        call: &Call,
    ) -> Result<SystemTime, DriverError> {
        let heard = self.heard.lock();
        let serves =
            |one: &&ServiceTime| one.answered_at <= checked_at && call.now().since(one.asked_at) <= FRESH;
        self.bounded(heard.iter().rfind(serves), life, call)
    }

    /// The same for what may come late, and costs no data then: an off, a hold. Its time is of the newest answer; where there is none
    /// it is looked first. An off goes also where that is not answered: by AWS's time as it is known here.
    pub(crate) async fn signed_anew(
        &self,
        life: Option<Duration>,
        call: &Call,
    ) -> Result<SystemTime, DriverError> {
        let newest = || {
            let heard = self.heard.lock();
            let serves = |one: &&ServiceTime| call.now().since(one.asked_at) <= FRESH;
            self.bounded(heard.iter().rfind(serves), life, call)
        };
        match newest() {
            Ok(date) => Ok(date),
            Err(_) => {
                let looked = self.look(&call.until(Instant::now() + QUICKLY)).await;
                let none = |error| DriverError { effect: Effect::DidNotHappen, ..error };
                let known = self.cloud.far_now().filter(|_| life.is_none());
                newest().or_else(|error| known.ok_or(looked.err().map_or(error, none)))
            }
        }
    }

    /// Whether it shows the opposite of what a command of ours was answered to do a moment before: EC2 shows late what it took.
    fn is_stale(&self, seen: &InstanceFindings) -> bool {
        let told = *self.told.lock();
        let Some((answered_at, makes)) = told else { return false };
        let opposite = match seen.found.as_ref().map(Instance::power) {
            Ok(instance::PowerStatus::On) => makes == Power::Off,
            Ok(instance::PowerStatus::Off) => makes == Power::On,
            _ => false,
        };
        opposite && seen.asked_at.since(answered_at) <= SHOWN_LATE
    }

    fn bounded(
        &self,
        heard: Option<&ServiceTime>,
        life: Option<Duration>,
        call: &Call,
    ) -> Result<SystemTime, DriverError> {
        let refused =
            |detail: String| Err(DriverError::new(ErrorKind::Refused, Effect::DidNotHappen, detail));
        let Some(heard) = heard else {
            return refused(format!(
                "no answer of the last {FRESH:?} bears AWS's time (Date), by which it would be bounded: power is read first; an endpoint \
                 that tells no time serves neither an on nor a detach"
            ));
        };
        let left = self.cloud.life.saturating_sub(call.now().since(heard.asked_at));
        match life.filter(|life| left > *life) {
            Some(life) => {
                refused(format!("AWS would take it for {left:?} more, and {life:?} stand in the ledger"))
            }
            None => Ok(heard.date),
        }
    }

    /// Why what was sent may not be over; `None`: it is.
    async fn pending(&self, call: &Call) -> Option<Pending> {
        // Its answer may still be heard.
        if let Some(until) = self.unclear.until(call.now()) {
            let left = until.since(call.now());
            let why = format!("a command was not answered: AWS may take it for {left:?} more");
            return Some(Pending::under_way(why, LOOK));
        }
        match self.look(&call.until(Instant::now() + CALL)).await {
            Ok(seen) if self.is_stale(&seen) => {
                Some(Pending::under_way("EC2 does not show yet what it was told just now", LOOK))
            }
            Ok(InstanceFindings { found: Ok(instance), .. }) if instance.is_busy() => {
                let why = format!("something is under way at the instance: {}", instance.words());
                Some(Pending::under_way(why, LOOK))
            }
            Ok(_) => None,
            Err(error) => Some(Pending::untold(error, LONGER)),
        }
    }
}

#[async_trait]
impl PowerDriver for AwsDriver {
    fn traits(&self) -> &Traits {
        &self.traits
    }

    fn epoch_is_a_session(&self) -> bool {
        false
    }

    fn names(&self) -> Identity {
        Identity { uuid: None, serial: Some(self.settings.instance.clone()) }
    }

    fn is_provided_as(&self, provider_id: &str) -> Option<bool> {
        let id = provider_id.rsplit('/').next().unwrap_or_default();
        Some(id.eq_ignore_ascii_case(&self.settings.instance))
    }

    fn remarks(&self) -> Vec<String> {
        self.remarks.told()
    }

    fn obstacles(&self) -> Vec<String> {
        self.remarks.obstacles()
    }

    async fn read_power(&self, call: &Call) -> Result<Reading, DriverError> {
        self.reading(call).await
    }

    async fn power_off(&self, order: &OffOrder, call: &Call) -> Result<Accepted, DriverError> {
        self.off(order, call).await
    }

    /// An instance may stay `stopping` for minutes, or for ever; or a stop was taken and came to nothing, or something started it since.
    fn off_again(&self, power: Power) -> Option<Duration> {
        (power != Power::Off).then_some(AGAIN)
    }

    fn off_is_final(&self) -> Option<&str> {
        self.settings.terminate.as_ref().map(|_| "terminate = true: its off terminates the instance")
    }

    fn gone_for_good(&self) -> Option<String> {
        self.has_ended().then(|| format!("EC2 said that {} is terminated", self.settings.instance))
    }

    async fn power_on(&self, order: OnOrder, call: &Call) -> Result<Accepted, DriverError> {
        self.start(order, call).await
    }

    async fn identify(&self, call: &Call) -> Result<Identified, DriverError> {
        let instance = self.instance(call).await?;
        if call.may_only_read() {
            self.look_around(&instance, call).await;
        }
        let identity = Identity { uuid: None, serial: Some(instance.id) };
        Ok(Identified { identity, epoch: Some(EPOCH) })
    }

    async fn inspect_hold(&self, call: &Call) -> Result<HoldFound, DriverError> {
        self.inspect(call).await
    }

    fn volumes(&self) -> Option<&dyn Volumes> {
        Some(self)
    }

    fn engaged(&self, now: &HoldFound) -> Vec<String> {
        hold::engaged(now)
    }

    fn outlives(&self, _engaged: &str) -> bool {
        true
    }

    async fn engage_hold(&self, order: &HoldOrder, call: &Call) -> Result<HoldReport, DriverError> {
        self.engage(order, call).await
    }

    async fn disengage_hold(&self, order: &UnholdOrder, call: &Call) -> Result<HoldReport, DriverError> {
        self.disengage(order, call).await
    }

    /// There is no session: what was sent is over when it was answered, and when the instance is on its way nowhere; what was not
    /// answered is over when its signature is.
    async fn quiesce(&self, call: &Call) -> Result<(), DriverError> {
        while let Some(pending) = self.pending(call).await {
            pending.wait(call).await?;
        }
        Ok(())
    }
}
