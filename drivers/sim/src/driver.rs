//! The driver on the simulated world, within one process.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use picket_core::device::{Grade, MaxInFlight};
use picket_core::ground::ReleasePermit;
use picket_core::order::{HoldOrder, OffOrder, OnOrder, ReleaseOrder, UnholdOrder};
use picket_core::parent::Placement;
use picket_core::power::{Power, Reading};
use picket_driver::{
    Accepted, Call, DriverError, Effect, ErrorKind, HoldFound, HoldReport, Identified, PowerDriver, Refusal,
    Standing, Traits, Volume, VolumeAt, Volumes,
};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::exchange::Wire;
use crate::link::Link;
use crate::machine::RestorePolicy;
use crate::session::Line;
use crate::wire::{HoldSettings, Request, Response, Trouble, Verb};
use crate::world::SharedWorld;

/// How long the end of a session waits for the device's word.
const CLOSE: Duration = Duration::from_secs(1);

/// How the driver behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimOptions {
    /// There and back.
    pub latency: Duration,
    /// How long one call may take.
    pub call: Duration,
    /// Its sessions can be ended by whoever has their names, as Redfish's.
    pub names_sessions: bool,
    /// It knows the volumes of its machine, and refuses a detach that is so old (S8).
    pub volumes: Option<Duration>,
}

impl Default for SimOptions {
    fn default() -> Self {
        Self {
            latency: Duration::from_millis(1),
            call: Duration::from_secs(5),
            names_sessions: false,
            volumes: None,
        }
    }
}

/// One simulated device.
#[derive(Debug)]
pub struct SimDriver {
    traits: Traits,
    names_sessions: bool,
    wire: Wire,
    volumes: Option<Duration>,
    /// Its machine runs on another one.
    is_child: bool,
}

impl SimDriver {
    /// A driver for a device of the world. Its class and whether it has sessions are the device's.
    ///
    /// # Panics
    /// If the world has no such device.
    pub fn new(world: &SharedWorld, device: &str, options: &SimOptions) -> Self {
        let (known, is_child) = {
            let world = world.lock();
            let known = world.device(device).clone();
            let is_child = world.is_child(&known.machine);
            (known, is_child)
        };
        let life = (!known.sessionless).then_some(known.idle + options.latency);
        // It may be sent when its session is nearly over, and renews that; a copy of it may land until the session ends again.
        let on = life.map(|life| life * 2);
        let grade = if is_child { Grade::Hypervisor } else { Grade::Observed };
        let line = Line::default();
        Self {
            is_child,
            volumes: options.volumes,
            names_sessions: options.names_sessions && !known.sessionless,
            traits: Traits {
                class: known.class,
                grade,
                has_epochs: !known.sessionless,
                max_in_flight: MaxInFlight { off: life, on },
                call: options.call,
                endpoint: format!("sim {device}"),
            },
            wire: Wire {
                world: world.clone(),
                device: device.to_owned(),
                sessionless: known.sessionless,
                idle: known.idle,
                latency: options.latency,
                link: None,
                shown: line.shown.clone(),
                line: Mutex::new(line),
            },
        }
    }

    /// The same, with a network between it and the device.
    #[must_use]
    pub fn over(mut self, link: Arc<dyn Link>) -> Self {
        self.wire.link = Some(link);
        self
    }

    async fn command(&self, session: Option<&str>, call: &Call, verb: Verb) -> Result<Accepted, DriverError> {
        let request = Request::Command(verb);
        let exchanged = self.wire.exchange_in(session, call, &request).await?;
        let (asked_at, answered_at, epoch) = (exchanged.asked_at, exchanged.answered_at, exchanged.epoch);
        let already = match exchanged.what {
            Ok(Response::Took { already }) => already,
            Err(Trouble::AlreadySo) => true,
            Err(Trouble::Refused | Trouble::Forbidden) => {
                let error = self.wire.failure(&exchanged.what, &request);
                return Err(error.by_refusal(Refusal { asked_at, answered_at, epoch }));
            }
            other => return Err(self.wire.failure(&other, &request)),
        };
        Ok(Accepted { asked_at, answered_at, epoch, already })
    }

    async fn set_hold(
        &self,
        session: Option<&str>,
        call: &Call,
        settings: HoldSettings,
    ) -> Result<HoldReport, DriverError> {
        let request = Request::SetHold(settings);
        match self.wire.exchange_in(session, call, &request).await?.what {
            Ok(Response::Hold(now)) => Ok(HoldReport { engaged: in_words(now), detail: String::new() }),
            Err(Trouble::Unsupported) => {
                Ok(HoldReport { engaged: Vec::new(), detail: "the device knows no holds".to_owned() })
            }
            other => Err(self.wire.failure(&other, &request)),
        }
    }
}

const WATCHDOG_HOLDS: &str = "watchdog stopped";

fn in_words(settings: HoldSettings) -> Vec<String> {
    let mut words = Vec::new();
    if settings.restore == RestorePolicy::AlwaysOff {
        words.push("restore policy always-off".to_owned());
    }
    if !settings.watchdog {
        words.push(WATCHDOG_HOLDS.to_owned());
    }
    if settings.button_locked {
        words.push("power button locked".to_owned());
    }
    words
}

fn written(settings: HoldSettings) -> HoldFound {
    HoldFound::from([
        ("restore".to_owned(), settings.restore.label().to_owned()),
        ("watchdog_running".to_owned(), settings.watchdog.to_string()),
        ("button".to_owned(), if settings.button_locked { "locked" } else { "free" }.to_owned()),
    ])
}

fn read_back(found: &HoldFound) -> Result<HoldSettings, DriverError> {
    let get = |key: &str| found.get(key).map(String::as_str);
    let restore = get("restore").and_then(RestorePolicy::from_label).ok_or_else(|| {
        let detail = format!("what the hold found names no restore policy: {found:?}");
        DriverError::new(ErrorKind::Protocol, Effect::DidNotHappen, detail)
    })?;
    Ok(HoldSettings {
        restore,
        watchdog: get("watchdog_running") == Some("true"),
        button_locked: get("button") == Some("locked"),
    })
}

#[async_trait]
impl PowerDriver for SimDriver {
    fn traits(&self) -> &Traits {
        &self.traits
    }

    fn shortest_idle(&self) -> Option<Duration> {
        // Within five percent of what it says, as IPMI 2.0 has it.
        (!self.wire.sessionless).then_some(self.wire.idle - self.wire.idle / 20)
    }

    fn names_sessions(&self) -> bool {
        self.names_sessions
    }

    fn session(&self) -> Option<String> {
        let there = self.wire.shown.get().filter(|_| self.names_sessions);
        there.map(|id| self.wire.name(id))
    }

    fn is_cold(&self) -> bool {
        let line = self.wire.line.try_lock();
        !self.wire.sessionless && line.is_ok_and(|line| line.session.is_none())
    }

    async fn read_power(&self, call: &Call) -> Result<Reading, DriverError> {
        let exchanged = self.wire.exchange(call, &Request::Read).await?;
        match exchanged.what {
            Ok(Response::Power(power)) => Ok(Reading {
                power,
                asked_at: exchanged.asked_at,
                answered_at: exchanged.answered_at,
                epoch: exchanged.epoch,
                said: match power {
                    Power::On => "on".to_owned(),
                    Power::Off => "off".to_owned(),
                    Power::Unknown => "in transition".to_owned(),
                },
                lowered_by: None,
            }),
            other => Err(self.wire.failure(&other, &Request::Read)),
        }
    }

    async fn power_off(&self, order: &OffOrder, call: &Call) -> Result<Accepted, DriverError> {
        self.command(order.session(), call, Verb::Off).await
    }

    async fn power_on(&self, order: OnOrder, call: &Call) -> Result<Accepted, DriverError> {
        self.command(order.session(), call, Verb::On).await
    }

    async fn identify(&self, call: &Call) -> Result<Identified, DriverError> {
        let exchanged = self.wire.exchange(call, &Request::Identify).await?;
        match exchanged.what {
            Ok(Response::Identity(identity)) => Ok(Identified { identity, epoch: exchanged.epoch }),
            other => Err(self.wire.failure(&other, &Request::Identify)),
        }
    }

    async fn placement(&self, call: &Call) -> Result<Placement, DriverError> {
        let exchanged = self.wire.exchange(call, &Request::Place).await?;
        match exchanged.what {
            Ok(Response::Placed { host, moving }) => Ok(Placement {
                host: Some(host),
                moving,
                copies: Vec::new(),
                asked_at: exchanged.asked_at,
                answered_at: exchanged.answered_at,
            }),
            Err(Trouble::Unsupported) => Err(DriverError::unsupported("its machine runs on no other one")),
            other => Err(self.wire.failure(&other, &Request::Place)),
        }
    }

    fn tells_placement(&self) -> bool {
        self.is_child
    }

    fn volumes(&self) -> Option<&dyn Volumes> {
        self.volumes.map(|_| self as &dyn Volumes)
    }

    async fn inspect_hold(&self, call: &Call) -> Result<HoldFound, DriverError> {
        match self.wire.exchange(call, &Request::InspectHold).await?.what {
            Ok(Response::Hold(settings)) => Ok(written(settings)),
            Err(Trouble::Unsupported) => Ok(HoldFound::new()),
            other => Err(self.wire.failure(&other, &Request::InspectHold)),
        }
    }

    fn engaged(&self, now: &HoldFound) -> Vec<String> {
        read_back(now).map(in_words).unwrap_or_default()
    }

    fn outlives(&self, engaged: &str) -> bool {
        engaged != WATCHDOG_HOLDS
    }

    async fn engage_hold(&self, order: &HoldOrder, call: &Call) -> Result<HoldReport, DriverError> {
        self.set_hold(order.session(), call, HoldSettings::HELD).await
    }

    async fn disengage_hold(&self, order: &UnholdOrder, call: &Call) -> Result<HoldReport, DriverError> {
        if order.found().is_empty() {
            // There was nothing that could be held.
            return Ok(HoldReport::default());
        }
        self.set_hold(order.session(), call, read_back(order.found())?).await
    }

    async fn quiesce(&self, call: &Call) -> Result<(), DriverError> {
        let end = Wire::end(call);
        let still_open = |detail: String| DriverError::new(ErrorKind::TimedOut, Effect::Unknown, detail);
        let device = &self.wire.device;
        let mut line = timeout_at(end, self.wire.line.lock())
            .await
            .map_err(|_| still_open(format!("an earlier call to {device} is still under way")))?;
        if self.wire.sessionless {
            // Nothing ends a late copy of a command here; none is late once its answer has come.
            return match line.unanswered {
                false => Ok(()),
                true => {
                    Err(still_open(format!("{device} has no sessions, and a command to it is not answered")))
                }
            };
        }
        self.wire.let_idle_end(call, &mut line);
        if let Some(session) = &mut line.session {
            // The caller may leave before the answer comes, and the device may have ended it.
            session.closing = true;
            self.wire.shown.set(None);
            let answer = end.min(Instant::now() + CLOSE);
            let asked = self.wire.send(call, answer, &mut line, &Request::Close).await?;
            match asked.what {
                Ok(_) => line.closed(),
                Err(Trouble::NoSession) => line.refused(asked.asked_at),
                Err(_) => line.given_up(self.wire.longest_idle(), asked.asked_at),
            }
        }
        if let Some(until) = line.haunted_until {
            let over = Instant::now() + until.since(call.now());
            sleep_until(over.min(end)).await;
            if over > end {
                return Err(still_open(format!("an old session of {device} may still be open")));
            }
            line.haunted_until = None;
        }
        line.unanswered = false;
        Ok(())
    }

    async fn end_session(&self, name: &str, call: &Call) -> Result<(), DriverError> {
        let unknown = |error: DriverError| DriverError { effect: Effect::Unknown, ..error };
        let Some(id) = self.wire.named(name).filter(|_| self.names_sessions) else {
            let detail = format!("{name:?} is no session of {}", self.wire.device);
            return Err(DriverError::new(ErrorKind::Settings, Effect::Unknown, detail));
        };
        call.may_send().map_err(unknown)?;
        let request = Request::End(id);
        match self.wire.exchange(call, &request).await.map_err(unknown)?.what {
            Ok(Response::Closed) => Ok(()),
            other => Err(unknown(self.wire.failure(&other, &request))),
        }
    }
}

#[async_trait]
impl Volumes for SimDriver {
    fn max_in_flight(&self) -> Option<Duration> {
        self.volumes
    }

    fn forces(&self) -> bool {
        true
    }

    async fn attached(&self, call: &Call) -> Result<Vec<Volume>, DriverError> {
        match self.wire.alone(call, &Request::Volumes).await? {
            Response::Volumes(all) => Ok(all),
            other => Err(self.wire.failure(&Ok(other), &Request::Volumes)),
        }
    }

    async fn detach(
        &self,
        order: &ReleaseOrder,
        _permit: &ReleasePermit<'_>,
        volume: &VolumeAt,
        forced: bool,
        call: &Call,
    ) -> Result<(), DriverError> {
        // Half of its life it may wait for its turn, the other half it may be on its way.
        let life = order.life().into_iter().chain(self.volumes).min().unwrap_or_default();
        let not_after = call.now() + life / 2;
        let request = Request::Detach { at: volume.clone(), forced, not_after };
        match self.wire.alone(call, &request).await? {
            Response::Took { .. } => Ok(()),
            other => Err(self.wire.failure(&Ok(other), &request)),
        }
    }

    async fn standing(&self, volume: &VolumeAt, call: &Call) -> Result<Standing, DriverError> {
        let request = Request::Standing(volume.clone());
        match self.wire.alone(call, &request).await? {
            Response::Standing(standing) => Ok(standing),
            other => Err(self.wire.failure(&Ok(other), &request)),
        }
    }
}

#[cfg(test)]
mod tests;
