//! One server as a device.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use picket_cloud::{CALL, EPOCH, Pending, Unclear};
use picket_core::device::{Identity, MaxInFlight};
use picket_core::order::{HoldOrder, OffOrder, OnOrder, UnholdOrder};
use picket_core::parent::Placement;
use picket_core::power::{Power, Reading};
use picket_driver::{
    Accepted, Call, DriverError, HoldFound, HoldReport, Identified, PowerDriver, Shared, Traits, Volumes,
};
use tokio::time::Instant;

use crate::actions::OwnStops;
use crate::cloud::{AcceptedCommands, Cloud, USUAL_LIFE};
use crate::copies::Evacuated;
use crate::detaches::Detaches;
use crate::hold::{self, SERVICE, UP};
use crate::remarks::Remarks;
use crate::settings::Settings;

/// So many calls go side by side to one Nova, unless the settings say otherwise. It has no limits of its own, and no requests for several
/// servers: more than it can answer would make every answer late, and be asked again.
const AT_ONCE: usize = 16;
/// Between two looks whether what was begun has ended.
const LOOK: Duration = Duration::from_millis(500);
/// The same, where the cloud did not say.
const LONGER: Duration = Duration::from_secs(2);

/// A server of Nova.
pub(crate) struct OpenstackDriver {
    pub(crate) settings: Settings,
    pub(crate) cloud: Arc<Cloud>,
    traits: Traits,
    /// Which stops are this generation's.
    pub(crate) ours: Mutex<OwnStops>,
    /// Our starts, until their hosts are known to have made an end of them.
    pub(crate) starts: AcceptedCommands,
    pub(crate) evacuated: Mutex<Evacuated>,
    services: Mutex<Services>,
    pub(crate) detaches: Detaches,
    pub(crate) unclear: Unclear,
    pub(crate) remarks: Remarks,
}

impl std::fmt::Debug for OpenstackDriver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenstackDriver").field("endpoint", &self.traits.endpoint).finish_non_exhaustive()
    }
}

impl OpenstackDriver {
    pub(crate) fn new(settings: Settings, cloud: Arc<Cloud>) -> Self {
        let traits = picket_cloud::traits(format!("openstack {}", settings.server), USUAL_LIFE);
        Self {
            settings,
            cloud,
            traits,
            ours: Mutex::default(),
            starts: AcceptedCommands::default(),
            evacuated: Mutex::default(),
            services: Mutex::default(),
            detaches: Detaches::default(),
            unclear: Unclear::default(),
            remarks: Remarks::default(),
        }
    }
}

impl OpenstackDriver {
    pub(crate) fn services(&self) -> MutexGuard<'_, Services> {
        self.services.lock()
    }
}

/// Compute services of dead hosts.
#[derive(Debug, Default)]
pub(crate) struct Services {
    /// It was not up, and not forced down, before the hold: by its id.
    pub(crate) found: Option<String>,
    /// The host that was up before the hold, and so not forced down.
    pub(crate) up: Option<String>,
    /// This process forced it down.
    pub(crate) forced: Option<String>,
}

impl Services {
    /// As it stands in what the hold found.
    pub(crate) fn found_before(&mut self, found: Option<&String>, up: Option<&String>) {
        (self.found, self.up) = (found.cloned(), up.cloned());
    }

    /// Whether it is known that the service of that host was not forced down before the hold.
    pub(crate) fn may_be_forced(&self, service: &str, host: &str) -> bool {
        self.found.as_deref() == Some(service) || self.up.as_deref() == Some(host)
    }
}

impl OpenstackDriver {
    /// Why what was sent may not be over; `None`: it is.
    async fn pending(&self, call: &Call) -> Option<Pending> {
        // Its answer may still be heard.
        if let Some(until) = self.unclear.until(call.now()) {
            let left = until.since(call.now());
            let why = format!(
                "a command was not answered: Nova may take it for {left:?} more, while its token lives"
            );
            return Some(Pending::under_way(why, LOOK));
        }
        // That it is not there says nothing, unless its host ended it; another one may have our start then.
        match self.server_unless_ended(&call.until(Instant::now() + CALL)).await {
            Ok(Some(server)) if server.is_busy() => {
                let why = format!("something is under way at the server: {}", server.words());
                return Some(Pending::under_way(why, LOOK));
            }
            Ok(_) => {}
            Err(error) => return Some(Pending::untold(error, LONGER)),
        }
        match self.start_under_way(&call.until(Instant::now() + CALL)).await {
            Ok(start) => start.map(|start| {
                let why = "is not known to have ended: its host may do it when it is back";
                Pending::under_way(format!("our start {start} {why}"), LOOK)
            }),
            Err(error) => Some(Pending::untold(error, LONGER)),
        }
    }
}

#[async_trait]
impl PowerDriver for OpenstackDriver {
    fn traits(&self) -> &Traits {
        &self.traits
    }

    fn epoch_is_a_session(&self) -> bool {
        false
    }

    fn names(&self) -> Identity {
        Identity { uuid: Identity::usable_uuid(&self.settings.server), serial: None }
    }

    fn longest_life(&self) -> MaxInFlight {
        let life = Some(self.cloud.longest_life());
        MaxInFlight { off: life, on: life }
    }

    fn guesses_life(&self) -> bool {
        !self.cloud.has_seen_a_token()
    }

    /// Nova sets the task before it answers: who takes a stop and reads On after that has given it up, and says so of its actions alone.
    fn off_again(&self, power: Power) -> Option<Duration> {
        (power == Power::On).then_some(Duration::ZERO)
    }

    fn is_provided_as(&self, provider_id: &str) -> Option<bool> {
        let id = provider_id.rsplit('/').next().unwrap_or_default();
        Some(id.eq_ignore_ascii_case(&self.settings.server))
    }

    fn remarks(&self) -> Vec<String> {
        self.remarks.told()
    }

    fn obstacles(&self) -> Vec<String> {
        self.remarks.obstacles()
    }

    fn cloud(&self) -> Option<String> {
        Some(self.cloud.words())
    }

    fn shares(&self) -> Option<Shared> {
        let name = format!("the Nova of {}", self.cloud.words());
        Some(Shared { name, at_once: AT_ONCE, each_for_itself: true })
    }

    async fn read_power(&self, call: &Call) -> Result<Reading, DriverError> {
        self.reading(call).await
    }

    async fn power_off(&self, order: &OffOrder, call: &Call) -> Result<Accepted, DriverError> {
        self.stop(order, call).await
    }

    async fn power_on(&self, order: OnOrder, call: &Call) -> Result<Accepted, DriverError> {
        self.start(order, call).await
    }

    async fn identify(&self, call: &Call) -> Result<Identified, DriverError> {
        // Whoever was asked for by its id, and is told to have been ended, was that one.
        let server = self.server_unless_ended(call).await?;
        if let Some(server) = server.filter(|_| call.may_only_read()) {
            self.look_around(&server, call).await;
        }
        Ok(Identified { identity: self.names(), epoch: Some(EPOCH) })
    }

    async fn placement(&self, call: &Call) -> Result<Placement, DriverError> {
        self.whereabouts(call).await
    }

    fn tells_placement(&self) -> bool {
        true
    }

    async fn copies(&self, call: &Call) -> Result<Vec<String>, DriverError> {
        self.copies_left(call).await
    }

    async fn inspect_hold(&self, call: &Call) -> Result<HoldFound, DriverError> {
        self.inspect(call).await
    }

    fn holds_late(&self) -> bool {
        self.settings.hold && self.cloud.is_admin() == Some(false)
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

    fn changes_beside(&self, found: &HoldFound) -> bool {
        found.contains_key(SERVICE) || found.contains_key(UP)
    }

    async fn left_beside(&self, found: &HoldFound, call: &Call) -> Result<Option<String>, DriverError> {
        Ok(self.forced_since(found, call).await?.map(|service| {
            let host = found.get(UP).map(|host| format!(" of {host}")).unwrap_or_default();
            format!(
                "the compute service {service}{host} is forced down, and was not before the fence: Nova says DOWN of that host also once it \
                 lives: then `openstack compute service set --up HOST nova-compute`"
            )
        }))
    }

    /// There is no session: what was sent is over when it was answered, when nothing of it is under way at the server, and a start when its host made an
    /// end of it; what was not answered is over when its token is.
    async fn quiesce(&self, call: &Call) -> Result<(), DriverError> {
        while let Some(pending) = self.pending(call).await {
            pending.wait(call).await?;
        }
        Ok(())
    }
}
