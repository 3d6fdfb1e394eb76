//! One instance as a device.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use picket_cloud::{CALL, EPOCH, Pending};
use picket_core::device::{Identity, MaxInFlight};
use picket_core::order::{HoldOrder, OffOrder, OnOrder, UnholdOrder};
use picket_core::power::{Power, Reading};
use picket_core::time::BootTime;
use picket_driver::{
    Accepted, Call, DriverError, Effect, ErrorKind, HoldFound, HoldReport, Identified, PowerDriver, Traits,
    Volumes,
};
use tokio::time::Instant;

use crate::cloud::{Cloud, USUAL_LIFE, region_of};
use crate::command_history::{CommandHistory, InstanceHistory};
use crate::instance::Instance;
use crate::remarks::Remarks;
use crate::requests::Open;
use crate::settings::Settings;

/// Between two looks whether what was begun has ended.
const LOOK: Duration = Duration::from_secs(1);
/// The same, where Compute Engine did not say.
const LONGER: Duration = Duration::from_secs(2);

/// An instance of Compute Engine.
pub(crate) struct GcpDriver {
    pub(crate) settings: Settings,
    pub(crate) cloud: Arc<Cloud>,
    traits: Traits,
    /// Our stops.
    pub(crate) stops: Arc<Mutex<CommandHistory>>,
    /// Our starts.
    pub(crate) starts: Arc<Mutex<CommandHistory>>,
    /// The operations of our last detaches, by the disk.
    pub(crate) detaches: Arc<Mutex<BTreeMap<String, String>>>,
    /// Why the instance is not the one that the settings mean, as the last look had it.
    misnamed: Mutex<Option<DriverError>>,
    /// The last look that found it.
    last: Mutex<Last>,
    /// Stops and starts whose end is not known.
    pub(crate) open: Arc<Open>,
    pub(crate) remarks: Remarks,
    /// What is in the names of its requests.
    pub(crate) salt: [u8; 16],
}

/// What was seen last, since something was sent that changes it.
#[derive(Debug, Default)]
struct Last {
    sent_at: BootTime,
    /// And when it was asked for.
    found: Option<(BootTime, Instance)>,
    /// Whether it was ever there, in this zone of this project.
    was_there: bool,
}

/// What a look at the instance found.
pub(crate) type InstanceFindings = picket_cloud::Findings<Instance>;

impl std::fmt::Debug for GcpDriver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GcpDriver").field("endpoint", &self.traits.endpoint).finish_non_exhaustive()
    }
}

impl GcpDriver {
    pub(crate) fn new(settings: Settings, cloud: Arc<Cloud>, kept: InstanceHistory) -> Self {
        let InstanceHistory { stops, starts, detaches, open, salt } = kept;
        // A numeric id is one instance's, in whichever project.
        let traits = picket_cloud::traits(format!("gcp {}", settings.id), USUAL_LIFE);
        Self {
            settings,
            cloud,
            traits,
            stops,
            starts,
            detaches,
            misnamed: Mutex::default(),
            last: Mutex::default(),
            open,
            remarks: Remarks::default(),
            salt,
        }
    }

    pub(crate) fn history<'a>(&self, which: &'a Mutex<CommandHistory>) -> MutexGuard<'a, CommandHistory> {
        which.lock()
    }

    /// Whose limits count.
    pub(crate) fn region(&self) -> &str {
        region_of(&self.settings.zone)
    }

    /// What belongs to the instance, by its numeric id.
    pub(crate) fn path(&self, rest: &str) -> String {
        self.cloud.zonal(&self.settings.zone, &format!("instances/{}{rest}", self.settings.id))
    }

    /// The instance, freshly asked for.
    pub(crate) async fn look(&self, call: &Call) -> Result<InstanceFindings, DriverError> {
        let before = call.now();
        let Settings { zone, id, .. } = &self.settings;
        match self.cloud.instance(zone, id, call).await? {
            Ok((instance, stamps)) => {
                let misnamed = self.is_called_so(&instance).err();
                *self.misnamed.lock() = misnamed;
                let mut last = self.last.lock();
                last.was_there = true;
                if stamps.asked_at >= last.sent_at {
                    last.found = Some((stamps.asked_at, instance.clone()));
                }
                drop(last);
                Ok(InstanceFindings {
                    found: Ok(instance),
                    asked_at: stamps.asked_at,
                    answered_at: stamps.answered_at,
                })
            }
            Err(failure) if failure.is_not_found() => {
                self.changes(call.now());
                Ok(InstanceFindings { found: Err(failure.words), asked_at: before, answered_at: call.now() })
            }
            Err(failure) => Err(failure.of_question()),
        }
    }

    /// The instance as it was found, where that was asked for since then.
    pub(crate) fn looked_at_since(&self, since: BootTime) -> Option<Instance> {
        let last = self.last.lock();
        last.found.as_ref().filter(|(asked_at, _)| *asked_at >= since).map(|(_, instance)| instance.clone())
    }

    /// Something is sent that changes it: what was seen is of the past.
    pub(crate) fn changes(&self, now: BootTime) {
        let mut last = self.last.lock();
        (last.sent_at, last.found) = (now, None);
    }

    /// Whether this process has seen it there.
    pub(crate) fn was_there(&self) -> bool {
        self.last.lock().was_there
    }

    /// S13: the name in the settings is the only word on whose the number is that does not come from the number. An instance that is
    /// called otherwise is not the node's: a number that was copied from another line stops that one's machine.
    pub(crate) fn is_called_so(&self, instance: &Instance) -> Result<(), DriverError> {
        let Settings { id, name, .. } = &self.settings;
        let Some(name) = name.as_deref().filter(|name| *name != instance.name) else { return Ok(()) };
        let detail = format!(
            "the instance {id} is called {:?}, and its settings say that it is {name:?}: one of the two is another machine's",
            instance.name
        );
        Err(DriverError::new(ErrorKind::IdentityMismatch, Effect::DidNotHappen, detail))
    }

    /// What the last look said of that.
    pub(crate) fn was_called_so(&self) -> Result<(), DriverError> {
        self.misnamed.lock().clone().map_or(Ok(()), Err)
    }

    /// That the instance is not there; S13: where its name is another's by now, that says so, and nothing more is asked or told.
    pub(crate) async fn gone(&self, why: &str, call: &Call) -> DriverError {
        match self.successor(call).await {
            None => DriverError::new(ErrorKind::Refused, Effect::DidNotHappen, why),
            Some(id) => DriverError::new(
                ErrorKind::IdentityMismatch,
                Effect::DidNotHappen,
                format!("{why}; its name is the instance {id}'s now, which is another machine and is let be"),
            ),
        }
    }

    /// Whose the name is now, where the settings have one: the instance that it was is not there any more.
    pub(crate) async fn successor(&self, call: &Call) -> Option<String> {
        let name = self.settings.name.as_deref()?;
        let told = self.cloud.named(&self.settings.zone, name, call).await.ok()?.ok()?;
        (told.id != self.settings.id).then_some(told.id)
    }

    /// Whether what is open was taken and has ended, as the operations with its names show.
    async fn settle(&self, call: &Call) -> Result<(), DriverError> {
        let Some((requests, _)) = self.open.waiting(call.now()) else { return Ok(()) };
        for request in requests {
            let found = self.cloud.of_request(&self.settings.zone, request, call).await?;
            if found.is_some_and(|operation| operation.is_done()) {
                self.open.found(request);
            }
        }
        Ok(())
    }

    /// Why what was sent is not known to be over, and of which kind that is; `None`: it is over.
    async fn unsettled(&self, call: &Call) -> Result<Option<String>, DriverError> {
        self.settle(call).await?;
        if let Some((_, until)) = self.open.waiting(call.now()) {
            let left = until.since(call.now());
            return Ok(Some(format!(
                "a command was not answered: Compute Engine may take it for {left:?} more, while its token lives"
            )));
        }
        let under_way = self.cloud.unfinished(&self.settings.zone, &self.settings.id, call).await?;
        if let Some(operation) = under_way.first() {
            return Ok(Some(format!("something is under way at the instance: {}", operation.words())));
        }
        // Of what was taken the name is known: it is asked for, as a list may be late.
        for history in [&*self.stops, &*self.starts] {
            self.follow(history, &under_way, true, call).await;
            if let Some(name) = self.history(history).under_way() {
                return Ok(Some(format!("our {name} is not known to have ended")));
            }
        }
        Ok(None)
    }

    /// The same in the time of one call, and when it is asked again.
    async fn pending(&self, call: &Call) -> Option<Pending> {
        match self.unsettled(&call.until(Instant::now() + CALL)).await {
            Ok(why) => why.map(|why| Pending::under_way(why, LOOK)),
            // Without a word on it, only time ends it.
            Err(error) if self.open.waiting(call.now()).is_none() => Some(Pending::untold(error, LONGER)),
            Err(error) => {
                let why = "a command was not answered, and it is not told what became of it";
                let detail = format!("{why}: {}", error.detail);
                Some(Pending::untold(DriverError { detail, ..error }, LONGER))
            }
        }
    }
}

#[async_trait]
impl PowerDriver for GcpDriver {
    fn traits(&self) -> &Traits {
        &self.traits
    }

    fn epoch_is_a_session(&self) -> bool {
        false
    }

    fn names(&self) -> Identity {
        Identity { uuid: None, serial: Some(self.settings.id.clone()) }
    }

    fn is_provided_as(&self, provider_id: &str) -> Option<bool> {
        self.settings.is_provided_as(provider_id)
    }

    fn longest_life(&self) -> MaxInFlight {
        let life = Some(self.cloud.longest_life());
        MaxInFlight { off: life, on: life }
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
        self.stop(order, call).await
    }

    /// What Compute Engine took it does, unless its operation ends and the instance still runs.
    fn off_again(&self, power: Power) -> Option<Duration> {
        (power != Power::Off && self.history(&self.stops).was_in_vain()).then_some(LONGER)
    }

    async fn power_on(&self, order: OnOrder, call: &Call) -> Result<Accepted, DriverError> {
        self.start(order, call).await
    }

    /// Where the instance is gone and its name another's, that other one: it is not the node's. Nor is one that is called otherwise, which
    /// is told by more than its number.
    async fn identify(&self, call: &Call) -> Result<Identified, DriverError> {
        let serial = match self.look(call).await?.found {
            Ok(instance) => {
                if call.may_only_read() {
                    self.remarks.look_around(&instance, &self.settings, self.cloud.endpoint());
                }
                match (self.is_called_so(&instance), &self.settings.name) {
                    (Err(_), Some(name)) => {
                        let theirs = self.successor(call).await;
                        let theirs = theirs.map(|id| format!(", whose number is {id}")).unwrap_or_default();
                        format!("{} called {:?}, and not {name:?}{theirs}", instance.id, instance.name)
                    }
                    _ => instance.id,
                }
            }
            Err(why) => {
                let successor = self.successor(call).await;
                successor.ok_or_else(|| DriverError::new(ErrorKind::Refused, Effect::DidNotHappen, why))?
            }
        };
        let identity = Identity { uuid: None, serial: Some(serial) };
        Ok(Identified { identity, epoch: Some(EPOCH) })
    }

    /// Compute Engine has nothing that keeps a stopped instance from being started.
    async fn inspect_hold(&self, _call: &Call) -> Result<HoldFound, DriverError> {
        Ok(HoldFound::new())
    }

    fn engaged(&self, _now: &HoldFound) -> Vec<String> {
        Vec::new()
    }

    async fn engage_hold(&self, _order: &HoldOrder, _call: &Call) -> Result<HoldReport, DriverError> {
        let detail = "Compute Engine has nothing that keeps a stopped instance off".to_owned();
        Ok(HoldReport { engaged: Vec::new(), detail })
    }

    async fn disengage_hold(&self, _order: &UnholdOrder, _call: &Call) -> Result<HoldReport, DriverError> {
        Ok(HoldReport::default())
    }

    fn volumes(&self) -> Option<&dyn Volumes> {
        Some(self)
    }

    /// There is no session: what was sent is over when its operation is, and when nothing is under way at the instance; what was not
    /// answered is looked up by its name, else over when its token is.
    async fn quiesce(&self, call: &Call) -> Result<(), DriverError> {
        while let Some(pending) = self.pending(call).await {
            pending.wait(call).await?;
        }
        Ok(())
    }
}
