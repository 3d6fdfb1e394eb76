//! The driver: the trait's calls, one after another on the line to the service.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use picket_core::device::{DeviceClass, Grade, Identity, MaxInFlight};
use picket_core::order::{HoldOrder, OffOrder, OnOrder, UnholdOrder};
use picket_core::power::Reading;
use picket_driver::{
    Accepted, Call, DriverError, Effect, ErrorKind, HoldFound, HoldReport, PowerDriver, SettingFault, Shared,
    Traits,
};
use rustls::pki_types::ServerName;
use serde_json::Value;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::{sleep_until, timeout_at};
use tokio_rustls::TlsConnector;

use crate::line::{Line, end_of};
use crate::pool::Pool;
use crate::service::Service;
use crate::settings::{Believed, Settings};
use crate::{closing, hold, power, trust};

/// How long one call may take unless the settings say otherwise.
const CALL: Duration = Duration::from_secs(5);
/// How many systems of one service are asked side by side: a chassis' manager is no fast machine.
const AT_ONCE: usize = 4;
/// A system without an id, at the end of its endpoint; no id has a space in it.
const ITS_ONLY: &str = " its only system";
/// After so long without a question connection and session are given back: services have few of either.
const IDLE: Duration = Duration::from_secs(60);

/// One system of one service.
#[derive(Debug)]
pub struct RedfishDriver {
    traits: Traits,
    idle: Duration,
    line: Mutex<Line>,
}

impl RedfishDriver {
    /// A driver that has sent nothing yet.
    ///
    /// # Errors
    /// The system has no CAs, and the settings name none; or a host name that no certificate can name.
    pub fn new(settings: Settings, pool: &Pool) -> Result<Self, Vec<SettingFault>> {
        let tls = trust::config(&settings.believed).map_err(|why| vec![SettingFault::new("ca_file", why)])?;
        let name = ServerName::try_from(settings.host.clone())
            .map_err(|_| vec![SettingFault::new("host", "is no name that a certificate could name")])?;
        let bound = settings.bound();
        let traits = Traits {
            class: DeviceClass::Host,
            // Whoever is on the way may have said it.
            grade: if settings.believed == Believed::Anyone { Grade::Claimed } else { Grade::Observed },
            has_epochs: settings.last_reset_time,
            // An on may leave when its session is nearly over, where its process stood still after the permit, and renews that.
            max_in_flight: MaxInFlight { off: bound, on: bound.map(|life| life * 2) },
            call: CALL,
            endpoint: match &settings.system {
                Some(system) => format!("redfish {} {system}", settings.authority()),
                None => format!("redfish {}{ITS_ONLY}", settings.authority()),
            },
        };
        let idle = IDLE.min(settings.session_timeout - settings.session_timeout / 20);
        let line = Line::new(Arc::new(settings), TlsConnector::from(Arc::new(tls)), name, pool.clone());
        Ok(Self { traits, idle, line: Mutex::new(line) })
    }

    /// The line, when the calls before are done.
    async fn line(&self, call: &Call) -> Result<Turn<'_>, DriverError> {
        let turn = timeout_at(end_of(call), self.line.lock()).await.map_err(|_| {
            let detail = format!("{}: an earlier call did not end in time", self.traits.endpoint);
            DriverError::new(ErrorKind::TimedOut, Effect::DidNotHappen, detail)
        })?;
        Ok(Turn(turn))
    }
}

/// One call's time on the line.
struct Turn<'a>(MutexGuard<'a, Line>);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.settle();
    }
}

#[async_trait]
impl PowerDriver for RedfishDriver {
    fn traits(&self) -> &Traits {
        &self.traits
    }

    fn shortest_idle(&self) -> Option<Duration> {
        Some(self.idle)
    }

    fn shares(&self) -> Option<Shared> {
        // Where it is the only system nobody else's is there.
        let place = self.traits.endpoint.strip_prefix("redfish ")?.split_once(' ')?.0;
        let several = !self.traits.endpoint.ends_with(ITS_ONLY);
        several.then(|| Shared { name: place.to_owned(), at_once: AT_ONCE })
    }

    fn alone_at(&self) -> Option<&str> {
        self.traits.endpoint.strip_suffix(ITS_ONLY)
    }

    fn is_cold(&self) -> bool {
        // A handshake, and mostly a login after it. Whoever has the line has begun.
        self.line.try_lock().is_ok_and(|line| line.connection.is_none())
    }

    async fn read_power(&self, call: &Call) -> Result<Reading, DriverError> {
        power::read(&mut self.line(call).await?.0, call).await
    }

    async fn power_off(&self, _order: &OffOrder, call: &Call) -> Result<Accepted, DriverError> {
        power::off(&mut self.line(call).await?.0, call).await
    }

    async fn power_on(&self, _order: OnOrder, call: &Call) -> Result<Accepted, DriverError> {
        power::on(&mut self.line(call).await?.0, call).await
    }

    async fn identify(&self, call: &Call) -> Result<Identity, DriverError> {
        let mut turn = self.line(call).await?;
        // Everything anew: what is sent later goes to the system that says so now.
        let (_, system) = Service::discover(&mut turn.0, call).await?;
        if turn.0.settings.last_reset_time {
            turn.0.look_at_life(call).await?;
        }
        let text = |key: &str| {
            system.get(key).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
        };
        let uuid = text("UUID").and_then(Identity::usable_uuid);
        turn.0.uuid.clone_from(&uuid);
        Ok(Identity { uuid, serial: text("SerialNumber").map(str::to_owned) })
    }

    async fn inspect_hold(&self, call: &Call) -> Result<HoldFound, DriverError> {
        hold::inspect(&mut self.line(call).await?.0, call).await
    }

    fn engaged(&self, now: &HoldFound) -> Vec<String> {
        hold::engaged(now)
    }

    async fn engage_hold(&self, order: &HoldOrder, call: &Call) -> Result<HoldReport, DriverError> {
        hold::engage(&mut self.line(call).await?.0, order.found(), call).await
    }

    async fn disengage_hold(&self, order: &UnholdOrder, call: &Call) -> Result<HoldReport, DriverError> {
        hold::disengage(&mut self.line(call).await?.0, order.found(), call).await
    }

    async fn quiesce(&self, call: &Call) -> Result<(), DriverError> {
        loop {
            // The wait is without the line: a reading may open a session of its own meanwhile.
            let over_at = match closing::close_all(&mut self.line(call).await?.0, call).await? {
                None => return Ok(()),
                Some(over_at) => over_at,
            };
            if over_at >= end_of(call) {
                let detail = format!(
                    "{}: a session that carried commands did not answer its deletion and may be open until its idle \
                     limit has passed",
                    self.traits.endpoint
                );
                return Err(DriverError::new(ErrorKind::TimedOut, Effect::Unknown, detail));
            }
            sleep_until(over_at).await;
        }
    }
}
