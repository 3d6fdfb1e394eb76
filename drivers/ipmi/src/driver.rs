//! The driver: the trait's calls, one after another on the line to the BMC.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use picket_core::device::{DeviceClass, Grade, Identity, MaxInFlight};
use picket_core::order::{HoldOrder, OffOrder, OnOrder, UnholdOrder};
use picket_core::power::Reading;
use picket_driver::{
    Accepted, Call, Context, DriverError, Effect, ErrorKind, HoldFound, HoldReport, Identified, PowerDriver,
    Traits,
};
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::closing;
use crate::command::GetSystemGuid;
use crate::hold;
use crate::inquiry::ask;
use crate::line::Line;
use crate::link::{Counters, Packets};
use crate::live_session::LiveSession;
use crate::power;
use crate::settings::Settings;

/// How long one call may take unless the settings say otherwise.
const CALL: Duration = Duration::from_secs(5);

/// While a session's end is waited out, it is heard so often whether it came: what it may take is three seconds.
const HEARD_EACH: Duration = Duration::from_secs(1);

/// One BMC.
#[derive(Debug)]
pub struct IpmiDriver {
    traits: Traits,
    shortest_idle: Duration,
    idle_limit: Duration,
    line: Mutex<Line>,
    far_side: Arc<parking_lot::Mutex<Option<String>>>,
    counters: Arc<Counters>,
}

impl IpmiDriver {
    /// A driver that has sent nothing yet.
    pub fn new(settings: Settings, context: &Context) -> Self {
        let bound = Some(settings.longest_idle());
        let traits = Traits {
            class: DeviceClass::Host,
            grade: Grade::Observed,
            has_epochs: true,
            // An on may be sent when its session is nearly over, where its process stood still after the permit, and renews that;
            // a copy of it that the network kept may land until the session ends again.
            max_in_flight: MaxInFlight { off: bound, on: bound.map(|idle| idle * 2) },
            call: CALL,
            endpoint: format!("ipmi {}", settings.authority()),
        };
        let (shortest_idle, idle_limit) = (settings.shortest_idle(), settings.idle_limit);
        let counters = Arc::new(Counters::default());
        let line = Line::new(Arc::new(settings), context.random.clone(), counters.clone());
        Self {
            traits,
            shortest_idle,
            idle_limit,
            far_side: line.far_side(),
            line: Mutex::new(line),
            counters,
        }
    }

    /// Datagrams so far.
    pub fn packets(&self) -> Packets {
        self.counters.packets()
    }

    /// The line, when the calls before are done.
    async fn line(&self, call: &Call) -> Result<MutexGuard<'_, Line>, DriverError> {
        timeout_at(call.end(), self.line.lock()).await.map_err(|_| {
            let detail = format!("{}: an earlier call did not end in time", self.traits.endpoint);
            DriverError::new(ErrorKind::TimedOut, Effect::DidNotHappen, detail)
        })
    }
}

impl IpmiDriver {
    /// Waits until `wake`; true: before that each session that was asked to close has said that it did. The wait is without the line: a reading may
    /// open a session of its own meanwhile.
    async fn hear_until(&self, wake: Instant, call: &Call) -> Result<bool, DriverError> {
        while Instant::now() < wake {
            sleep_until(wake.min(Instant::now() + HEARD_EACH)).await;
            if closing::is_heard(&mut *self.line(call).await?) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[async_trait]
impl PowerDriver for IpmiDriver {
    fn traits(&self) -> &Traits {
        &self.traits
    }

    fn far_side(&self) -> Option<String> {
        self.far_side.lock().clone()
    }

    fn shortest_idle(&self) -> Option<Duration> {
        Some(self.shortest_idle)
    }

    fn life_setting(&self) -> Option<&'static str> {
        Some("idle_limit")
    }

    fn is_cold(&self) -> bool {
        // Whoever has the line has begun.
        self.line.try_lock().is_ok_and(|line| line.session.is_none())
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = self.counters.oddities.remarks();
        if self.counters.button_out_of_reach.load(Ordering::Relaxed) {
            remarks.push(hold::BUTTON_OUT_OF_REACH.to_owned());
        }
        remarks
    }

    async fn read_power(&self, call: &Call) -> Result<Reading, DriverError> {
        power::read(&mut *self.line(call).await?, call).await
    }

    async fn power_off(&self, _order: &OffOrder, call: &Call) -> Result<Accepted, DriverError> {
        power::off(&mut *self.line(call).await?, call).await
    }

    async fn power_on(&self, _order: OnOrder, call: &Call) -> Result<Accepted, DriverError> {
        power::on(&mut *self.line(call).await?, call).await
    }

    async fn identify(&self, call: &Call) -> Result<Identified, DriverError> {
        let mut line = self.line(call).await?;
        let uuid = ask(&mut line, call, GetSystemGuid).await?.and_then(|guid| {
            let digits: String = guid.iter().map(|byte| format!("{byte:02x}")).collect();
            Identity::usable_uuid(&digits)
        });
        // The session that is there is the one that answered.
        let epoch = line.session.as_ref().map(LiveSession::epoch);
        Ok(Identified { identity: Identity { uuid, serial: None }, epoch })
    }

    async fn inspect_hold(&self, call: &Call) -> Result<HoldFound, DriverError> {
        let (found, button) = hold::inspect(&mut *self.line(call).await?, call).await?;
        self.counters.button_out_of_reach.store(button, Ordering::Relaxed);
        Ok(found)
    }

    fn engaged(&self, now: &HoldFound) -> Vec<String> {
        hold::engaged(now)
    }

    fn outlives(&self, engaged: &str) -> bool {
        hold::outlives(engaged)
    }

    async fn engage_hold(&self, order: &HoldOrder, call: &Call) -> Result<HoldReport, DriverError> {
        hold::engage(&mut *self.line(call).await?, order.found(), call).await
    }

    async fn disengage_hold(&self, order: &UnholdOrder, call: &Call) -> Result<HoldReport, DriverError> {
        hold::disengage(&mut *self.line(call).await?, order.found(), call).await
    }

    async fn quiesce(&self, call: &Call) -> Result<(), DriverError> {
        let (since, mut asked, mut pauses) = (Instant::now(), 1, closing::PAUSES.into_iter());
        let mut left = closing::close_all(&mut *self.line(call).await?, call).await;
        while let Some(over_at) = left {
            let wake = pauses.next().map_or(over_at, |pause| over_at.min(Instant::now() + pause));
            if wake >= call.end() {
                let why = closing::open_still(self.idle_limit, asked, since, over_at);
                let detail = format!("{}: {why}", self.traits.endpoint);
                return Err(DriverError::new(ErrorKind::TimedOut, Effect::Unknown, detail));
            }
            let is_heard = self.hear_until(wake, call).await?;
            let mut line = self.line(call).await?;
            if is_heard {
                left = None;
            } else if wake < over_at {
                left = closing::look_again(&mut line, call).await;
                asked += 1;
            }
            if wake == over_at || left.is_none() {
                left = closing::close_all(&mut line, call).await;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use picket_core::time::{BootTime, Clock, WallTime};
    use serde_json::json;

    use super::*;

    #[derive(Debug)]
    struct Still;

    impl Clock for Still {
        fn boot(&self) -> BootTime {
            BootTime::default()
        }

        fn wall(&self) -> WallTime {
            WallTime::default()
        }
    }

    /// A process that stood still after its permit sends an on when the session is nearly over, which renews it (S8).
    #[test]
    fn an_off_is_bounded_by_one_idle_limit_and_an_on_by_two() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), "secret12").expect("it can be written");
        let context = Context { clock: Arc::new(Still), random: Arc::new(|_: &mut [u8]| {}) };
        for (idle_limit, off, on) in [("60s", 63_000, 126_000), ("10s", 10_500, 21_000)] {
            let table = json!({
                "host": "h", "username": "u", "password_file": file.path(), "idle_limit": idle_limit,
            });
            let settings = Settings::check(table.as_object().expect("a table")).expect("they are right");
            let driver = IpmiDriver::new(settings, &context);
            let bound =
                MaxInFlight { off: Some(Duration::from_millis(off)), on: Some(Duration::from_millis(on)) };
            assert_eq!(driver.traits().max_in_flight, bound, "{idle_limit}");
            assert_eq!(driver.longest_life(), bound, "{idle_limit}");
        }
    }
}
