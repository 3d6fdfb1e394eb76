//! One server as a device.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use picket_core::device::{DeviceClass, Grade, Identity, MaxInFlight};
use picket_core::order::{HoldOrder, OffOrder, OnOrder, UnholdOrder};
use picket_core::parent::Placement;
use picket_core::power::{Power, Reading};
use picket_driver::{
    Accepted, Call, DriverError, Effect, ErrorKind, HoldFound, HoldReport, PowerDriver, Traits, Unclear,
    Volumes,
};

use crate::actions::Ours;
use crate::cloud::{Cloud, Found, USUAL_LIFE};
use crate::hold;
use crate::remarks::Remarks;
use crate::settings::Settings;

/// One call, unless the settings say otherwise (safety.md, Defaults: cloud).
const CALL: Duration = Duration::from_secs(15);
/// Between two looks whether what was begun has ended.
const LOOK: Duration = Duration::from_millis(500);

/// A server of Nova.
pub(crate) struct OpenstackDriver {
    pub(crate) settings: Settings,
    pub(crate) cloud: Arc<Cloud>,
    traits: Traits,
    /// Which stops are this generation's.
    pub(crate) ours: Mutex<Ours>,
    /// The compute service that was found up to no order, and not forced down, before the hold.
    service: Mutex<Option<String>>,
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
        let life = Some(USUAL_LIFE);
        let traits = Traits {
            class: DeviceClass::Host,
            grade: Grade::Hypervisor,
            has_epochs: true,
            max_in_flight: MaxInFlight { off: life, on: life },
            call: CALL,
            endpoint: format!("openstack {}", settings.server),
        };
        Self {
            settings,
            cloud,
            traits,
            ours: Mutex::default(),
            service: Mutex::default(),
            unclear: Unclear::default(),
            remarks: Remarks::default(),
        }
    }
}

impl OpenstackDriver {
    pub(crate) fn found_service(&self) -> Option<String> {
        self.service.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn note_service(&self, service: Option<&String>) {
        *self.service.lock().unwrap_or_else(PoisonError::into_inner) = service.cloned();
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

    /// Nova sets the task before it answers: who takes a stop and reads On after that has given it up, and says so of its actions alone.
    fn off_again(&self, power: Power) -> Option<Duration> {
        (power == Power::On).then_some(Duration::ZERO)
    }

    fn remarks(&self) -> Vec<String> {
        self.remarks.told()
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

    async fn identify(&self, call: &Call) -> Result<Identity, DriverError> {
        // Whoever was asked for by its id, and is told to have been ended, was that one.
        let server = self.server_unless_ended(call).await?;
        if let Some(server) = server.filter(|_| call.may_only_read()) {
            self.look_around(&server, call).await;
        }
        Ok(self.names())
    }

    async fn placement(&self, call: &Call) -> Result<Placement, DriverError> {
        self.whereabouts(call).await
    }

    fn tells_placement(&self) -> bool {
        true
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

    async fn engage_hold(&self, order: &HoldOrder, call: &Call) -> Result<HoldReport, DriverError> {
        self.engage(order, call).await
    }

    async fn disengage_hold(&self, order: &UnholdOrder, call: &Call) -> Result<HoldReport, DriverError> {
        self.disengage(order, call).await
    }

    /// There is no session: what was sent is over when it was answered, and when nothing of it is under way at the server.
    async fn quiesce(&self, call: &Call) -> Result<(), DriverError> {
        loop {
            if let Some(until) = self.unclear.until(call.now()) {
                let left = until.since(call.now());
                let detail = format!(
                    "a command was not answered: Nova may take it for {left:?} more, while its token lives"
                );
                return Err(DriverError::new(ErrorKind::TimedOut, Effect::Unknown, detail));
            }
            let busy = match self.server(call).await? {
                Found::It(server) if server.is_busy() => server.words(),
                _ => return Ok(()),
            };
            if tokio::time::Instant::now() + LOOK >= call.deadline() {
                let detail = format!("something is under way at the server: {busy}");
                return Err(DriverError::new(ErrorKind::TimedOut, Effect::Unknown, detail));
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}
