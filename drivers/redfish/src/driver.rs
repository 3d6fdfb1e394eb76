//! The driver: the trait's calls, one after another on the line to the service.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use picket_core::device::{DeviceClass, Grade, MaxInFlight};
use picket_core::order::{HoldOrder, OffOrder, OnOrder, UnholdOrder};
use picket_core::power::Reading;
use picket_core::time::BootTime;
use picket_driver::{
    Accepted, Call, DriverError, Effect, ErrorKind, HoldFound, HoldReport, Identified, PowerDriver,
    SettingFault, Shared, Traits,
};
use picket_trust::Believed;
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_rustls::TlsConnector;

use crate::closing::{self, CloseProgress};
use crate::line::{Line, end_of};
use crate::machine_identity::said_by;
use crate::oddities::Oddities;
use crate::pool::Pool;
use crate::service::{DiscoveredService, NEVER, Service};
use crate::settings::{Authentication, Settings};
use crate::{ending, hold, login, policy, power};

/// How long one call may take unless the settings say otherwise.
const CALL: Duration = Duration::from_secs(5);
/// How many systems of one service are asked side by side: a chassis' manager is no fast machine.
const AT_ONCE: usize = 4;
/// A system without an id, at the end of its endpoint; no id has a space in it.
const ITS_ONLY: &str = " its only system";
/// The longest between two looks whether something is at work still.
const LONGEST_REST: Duration = Duration::from_secs(30);
/// After so long without a question connection and session are given back: services have few of either.
const IDLE: Duration = Duration::from_secs(60);

/// One system of one service.
#[derive(Debug)]
pub struct RedfishDriver {
    traits: Traits,
    idle: Duration,
    /// Whether commands go in sessions.
    by_session: bool,
    line: Mutex<Line>,
    seen: parking_lot::Mutex<SessionReport>,
}

impl RedfishDriver {
    /// A driver that has sent nothing yet.
    ///
    /// # Errors
    /// The system has no CAs, and the settings name none; or a host name that no certificate can name.
    pub fn new(settings: Settings, pool: &Pool) -> Result<Self, Vec<SettingFault>> {
        let mut tls = picket_trust::config(&settings.believed)
            .map_err(|why| vec![SettingFault::new("ca_file", why)])?;
        // Each connection judges the certificate anew: a service that was replaced is not believed for its ticket's sake.
        tls.resumption = Resumption::disabled();
        let name = ServerName::try_from(settings.host.clone())
            .map_err(|_| vec![SettingFault::new("host", "is no name that a certificate could name")])?;
        let bound = settings.bound();
        let traits = Traits {
            class: DeviceClass::Host,
            // Whoever is on the way may have said it.
            grade: if settings.believed == Believed::Anyone { Grade::Claimed } else { Grade::Observed },
            has_epochs: settings.last_reset_time == Some(true),
            // An on may leave when its session is nearly over, where its process stood still after the permit, and renews that.
            max_in_flight: MaxInFlight { off: bound, on: bound.map(|life| life * 2) },
            call: CALL,
            endpoint: match &settings.system {
                Some(system) => format!("redfish {} {system}", settings.authority()),
                None => format!("redfish {}{ITS_ONLY}", settings.authority()),
            },
        };
        let idle = IDLE.min(settings.session_timeout - settings.session_timeout / 20);
        let by_session = settings.authentication != Authentication::Basic;
        let line = Line::new(Arc::new(settings), TlsConnector::from(Arc::new(tls)), name, pool.clone());
        Ok(Self { traits, idle, by_session, line: Mutex::new(line), seen: parking_lot::Mutex::default() })
    }

    /// The line, when the calls before are done.
    async fn line(&self, call: &Call) -> Result<Turn<'_>, DriverError> {
        let turn = timeout_at(end_of(call), self.line.lock()).await.map_err(|_| {
            let detail = format!("{}: an earlier call did not end in time", self.traits.endpoint);
            DriverError::new(ErrorKind::TimedOut, Effect::DidNotHappen, detail)
        })?;
        Ok(Turn { line: turn, seen: &self.seen })
    }
}

impl RedfishDriver {
    /// After the end of a session: what came in it, and was begun, has so long to end or to become a task, and no task may be
    /// running after that.
    async fn nothing_is_at_work(&self, rest: Duration, call: &Call) -> Result<(), DriverError> {
        let rested = Instant::now() + rest;
        if rested >= end_of(call) {
            let detail = format!("{}: no time is left to see what came in the session", self.traits.endpoint);
            return Err(DriverError::new(ErrorKind::TimedOut, Effect::Unknown, detail));
        }
        // Without the line: power may be read meanwhile.
        sleep_until(rested).await;
        let mut turn = self.line(call).await.map_err(ending::unknown)?;
        ending::nothing_runs(&mut turn.line, call).await
    }

    /// Looks until nothing of the unclear command that was sent last is at work, for as long as the call and its life last.
    async fn see_it_end(
        &self,
        sent: Instant,
        over: Instant,
        until: Instant,
        call: &Call,
    ) -> Result<(), DriverError> {
        let (mut rest, mut next) = (ending::AT_WORK.saturating_sub(over.elapsed()), ending::AT_WORK);
        while let Err(error) = self.nothing_is_at_work(rest, call).await {
            (rest, next) = (next, (next * 2).min(LONGEST_REST));
            if Instant::now() >= until {
                break;
            }
            // Who may not look for now does not try a password again and again.
            if error.kind == ErrorKind::Authentication || Instant::now() + rest >= end_of(call) {
                return Err(error);
            }
        }
        // Unless another was sent meanwhile.
        let mut turn = self.line(call).await?;
        turn.line.unclear.in_session = turn.line.unclear.in_session.filter(|last| *last != sent);
        Ok(())
    }
}

/// One call's time on the line.
struct Turn<'a> {
    line: MutexGuard<'a, Line>,
    seen: &'a parking_lot::Mutex<SessionReport>,
}

/// What was so when the last call ended.
#[derive(Clone, Debug, Default)]
struct SessionReport {
    /// The name of the line's session.
    session: Option<String>,
    /// The longest that the service keeps an idle one, where it says more than the settings.
    longest_idle: Option<Duration>,
    /// The certificate on the newest connection.
    certificate: Option<String>,
    /// When the service refused a session last whose life was not over.
    refused_at: Option<BootTime>,
    /// The manager's restarts show.
    has_epochs: bool,
    /// Why they do not, where people ought to know.
    life_remark: Option<String>,
    /// The last login named no place at which its session can be ended.
    placeless: bool,
    /// Its reset offers no on.
    offers_no_on: bool,
    /// What of it is borne.
    oddities: Oddities,
    /// The account may only read.
    only_reads: bool,
    /// What its BIOS does when power comes back, where people ought to know.
    bios_remark: Option<String>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.line.settle();
        *self.seen.lock() = SessionReport {
            session: self.line.session_name(),
            longest_idle: self.line.said_timeout.map(|_| self.line.longest_idle()),
            certificate: self.line.certificate.clone(),
            refused_at: self.line.refused_at,
            has_epochs: self.line.shows_restarts(),
            life_remark: self.line.life_remark(),
            placeless: self.line.placeless,
            offers_no_on: self.line.service.as_ref().is_some_and(|service| service.on.is_none()),
            oddities: self.line.oddities,
            only_reads: self.line.only_reads,
            bios_remark: self.line.bios_remark.clone(),
        };
    }
}

#[async_trait]
impl PowerDriver for RedfishDriver {
    fn traits(&self) -> &Traits {
        &self.traits
    }

    fn has_epochs(&self) -> bool {
        self.traits.has_epochs || self.seen.lock().has_epochs
    }

    fn refused_session_at(&self) -> Option<BootTime> {
        self.seen.lock().refused_at
    }

    fn far_side(&self) -> Option<String> {
        Some(format!("certificate {}", self.seen.lock().certificate.as_ref()?))
    }

    fn shortest_idle(&self) -> Option<Duration> {
        Some(self.idle)
    }

    fn remarks(&self) -> Vec<String> {
        // The one device that has this grade by its settings.
        let anyone = "accept_any_certificate = true: whoever answers in its place is believed, and its Off is claimed, not \
                      observed; certificate_sha256 or ca_file says whom to believe";
        let anyone = (self.traits.grade == Grade::Claimed).then(|| anyone.to_owned());
        let seen = self.seen.lock().clone();
        let placeless = "its login names no place at which a session can be ended: each stays until its idle limit, and \
                         what it carried is waited out; a shorter SessionTimeout at the service shortens that";
        let placeless = seen.placeless.then(|| placeless.to_owned());
        let no_on = seen.offers_no_on.then(|| power::NO_ON.to_owned());
        let known =
            anyone.into_iter().chain(seen.life_remark).chain(placeless).chain(no_on).chain(seen.bios_remark);
        known.chain(seen.oddities.remarks()).collect()
    }

    fn obstacles(&self) -> Vec<String> {
        let only_reads = self.seen.lock().only_reads.then(|| login::ONLY_READS.to_owned());
        only_reads.into_iter().collect()
    }

    fn shares(&self) -> Option<Shared> {
        // Where it is the only system nobody else's is there.
        let place = self.traits.endpoint.strip_prefix("redfish ")?.split_once(' ')?.0;
        let several = !self.traits.endpoint.ends_with(ITS_ONLY);
        several.then(|| Shared { name: place.to_owned(), at_once: AT_ONCE, each_for_itself: false })
    }

    fn names_sessions(&self) -> bool {
        self.by_session
    }

    fn session(&self) -> Option<String> {
        self.seen.lock().session.clone()
    }

    fn longest_life(&self) -> MaxInFlight {
        let said = self.seen.lock().longest_idle;
        let MaxInFlight { off, on } = self.traits.max_in_flight;
        // With basic authentication the operator's word bounds a command, and no session.
        let Some(said) = said.filter(|_| self.by_session) else { return MaxInFlight { off, on } };
        if said >= NEVER {
            return MaxInFlight { off: None, on: None };
        }
        MaxInFlight { off: off.map(|life| life.max(said)), on: on.map(|life| life.max(said * 2)) }
    }

    fn life_setting(&self) -> Option<&'static str> {
        Some(if self.by_session { "session_timeout" } else { "max_life" })
    }

    fn alone_at(&self) -> Option<&str> {
        self.traits.endpoint.strip_suffix(ITS_ONLY)
    }

    fn is_cold(&self) -> bool {
        // A handshake, and mostly a login after it. Whoever has the line has begun.
        self.line.try_lock().is_ok_and(|line| line.connection.is_none())
    }

    async fn read_power(&self, call: &Call) -> Result<Reading, DriverError> {
        power::read(&mut self.line(call).await?.line, call).await
    }

    async fn power_off(&self, order: &OffOrder, call: &Call) -> Result<Accepted, DriverError> {
        power::off(&mut self.line(call).await?.line, order.session(), call).await
    }

    async fn power_on(&self, order: OnOrder, call: &Call) -> Result<Accepted, DriverError> {
        power::on(&mut self.line(call).await?.line, order.session(), call).await
    }

    async fn identify(&self, call: &Call) -> Result<Identified, DriverError> {
        let mut turn = self.line(call).await?;
        // Everything anew: what is sent later goes to the system that says so now.
        let DiscoveredService { system, certificate, .. } = Service::discover(&mut turn.line, call).await?;
        let epoch = turn.line.check_life(call).await?;
        let identity = said_by(&system);
        // One that says nothing now, and said before whose it is, stays that one's until a check finds another.
        if !identity.is_empty() || call.may_only_read() {
            turn.line.known_as.identity.clone_from(&identity);
        }
        turn.line.known_as.certificate.clone_from(&certificate);
        Ok(Identified { identity, epoch })
    }

    async fn inspect_hold(&self, call: &Call) -> Result<HoldFound, DriverError> {
        hold::inspect(&mut self.line(call).await?.line, call).await
    }

    fn engaged(&self, now: &HoldFound) -> Vec<String> {
        hold::engaged(now)
    }

    fn outlives(&self, engaged: &str) -> bool {
        policy::outlives(engaged)
    }

    async fn engage_hold(&self, order: &HoldOrder, call: &Call) -> Result<HoldReport, DriverError> {
        hold::engage(&mut self.line(call).await?.line, order.found(), order.session(), call).await
    }

    async fn disengage_hold(&self, order: &UnholdOrder, call: &Call) -> Result<HoldReport, DriverError> {
        hold::disengage(&mut self.line(call).await?.line, order.found(), order.session(), call).await
    }

    async fn quiesce(&self, call: &Call) -> Result<(), DriverError> {
        let (since, mut pause, mut asked) = (Instant::now(), closing::FIRST_PAUSE, 0);
        let asked_until = since + closing::ASKING;
        loop {
            asked += 1;
            // The wait is without the line: a reading may open a session of its own meanwhile.
            let closed = closing::close_all(&mut self.line(call).await?.line, call).await?;
            let (over_at, bound) = match closed {
                CloseProgress::Yes => return Ok(()),
                CloseProgress::At(over_at, bound) => (over_at, bound),
                CloseProgress::AtWork { sent, over, until } => {
                    self.see_it_end(sent, over, until, call).await?;
                    continue;
                }
            };
            let again = Instant::now() + pause;
            if again < asked_until.min(over_at).min(end_of(call)) {
                sleep_until(again).await;
                pause *= 2;
                continue;
            }
            if over_at >= end_of(call) {
                let left = over_at.saturating_duration_since(Instant::now());
                let detail = format!("{}: {}", self.traits.endpoint, bound.words(asked, since, left));
                return Err(DriverError::new(ErrorKind::TimedOut, Effect::Unknown, detail));
            }
            sleep_until(over_at).await;
        }
    }

    async fn end_session(&self, name: &str, call: &Call) -> Result<(), DriverError> {
        ending::end(&mut self.line(call).await?.line, name, call).await?;
        self.nothing_is_at_work(ending::AT_WORK, call).await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A process that stood still after its permit sends an on when the session is nearly over, which renews it (S8).
    #[test]
    fn an_off_is_bounded_by_one_life_of_its_session_and_an_on_by_two() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), "secret12").expect("it can be written");
        let seconds =
            |off, on| MaxInFlight { off: Some(Duration::from_secs(off)), on: Some(Duration::from_secs(on)) };
        for (more, bound) in [
            (json!({}), seconds(1_890, 3_780)),
            (json!({ "session_timeout": "10m" }), seconds(630, 1_260)),
            (json!({ "authentication": "session_or_basic", "max_life": "2h" }), seconds(7_200, 14_400)),
            (json!({ "authentication": "session_or_basic" }), MaxInFlight { off: None, on: None }),
        ] {
            let mut table = json!({
                "host": "h", "username": "u", "password_file": file.path(), "accept_any_certificate": true,
            });
            let table = table.as_object_mut().expect("a table");
            table.extend(more.as_object().expect("a table").clone());
            let settings = Settings::check(table).expect("they are right");
            let driver = RedfishDriver::new(settings, &Pool::default()).expect("no file is needed");
            assert_eq!(driver.traits().max_in_flight, bound, "{more}");
            // Nothing was said of sessions yet.
            assert_eq!(driver.longest_life(), bound, "{more}");
        }
    }
}
