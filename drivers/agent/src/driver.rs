//! The driver: one run of the agent for each question and command.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use picket_core::device::MaxInFlight;
use picket_core::order::{HoldOrder, OffOrder, OnOrder, UnholdOrder};
use picket_core::power::Reading;
use picket_core::time::BootTime;
use picket_driver::{
    Accepted, Call, DriverError, Effect, ErrorKind, HoldFound, HoldReport, Identified, PowerDriver, Secret,
    Shared, Traits,
};
use picket_reach::process::{self, OVERTIME, Ran, RunError};
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};
use zeroize::Zeroizing;

use crate::answer;
use crate::current_settings::CurrentSettings;
use crate::settings::Settings;

/// How long one run may take (an off waits until the device says off).
const CALL: Duration = Duration::from_secs(60);
/// An agent is killed so long before its call ends: its end, and the last of what it said, are waited for.
const MARGIN: Duration = Duration::from_millis(700);
/// The same, of a call that is shorter than a few of these.
const SHORTEST: u32 = 4;

/// How often a run that switches is looked at whether its gateway still leads.
const GLANCE: Duration = Duration::from_millis(50);

/// One agent's device.
#[derive(Debug)]
pub struct AgentDriver {
    fitted: Arc<CurrentSettings>,
    traits: Traits,
    /// Held by whoever runs the agent.
    line: Mutex<()>,
    /// When the last run that switches is surely dead whose end was not seen. Not within the line, which a caller who leaves drops.
    open: parking_lot::Mutex<Option<BootTime>>,
}

/// One run, with when it began and ended.
struct Run {
    ran: Ran,
    asked_at: BootTime,
    answered_at: BootTime,
}

impl AgentDriver {
    /// For these settings.
    pub(crate) fn new(fitted: CurrentSettings) -> Self {
        let settings = &fitted.made;
        let traits = Traits {
            class: settings.class,
            grade: settings.grade,
            has_epochs: false,
            max_in_flight: bound(settings.max_life, CALL),
            call: CALL,
            endpoint: settings.endpoint.clone(),
        };
        Self { fitted: Arc::new(fitted), traits, line: Mutex::default(), open: parking_lot::Mutex::default() }
    }

    fn secrets(&self) -> Vec<Secret> {
        self.fitted.settings().secrets.iter().map(|(_, secret)| secret.clone()).collect()
    }

    fn error(&self, error: DriverError) -> DriverError {
        DriverError { detail: format!("{}: {}", self.fitted.made.agent, error.detail), ..error }
    }

    fn failed(&self, kind: ErrorKind, effect: Effect, detail: impl std::fmt::Display) -> DriverError {
        DriverError::new(kind, effect, format!("{}: {detail}", self.fitted.made.agent))
    }

    /// What it is told.
    fn input(settings: &Settings, action: &str) -> Zeroizing<Vec<u8>> {
        let mut input = Zeroizing::new(Vec::with_capacity(1024));
        let own = std::iter::once(("action", action)).chain(settings.repeats.then_some(("retry_on", "0")));
        let seen = settings.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in own.chain(seen) {
            line(&mut input, name, value.as_bytes());
        }
        for (name, secret) in &settings.secrets {
            line(&mut input, name, secret.expose());
        }
        input
    }

    /// When a run of this call is killed at the latest.
    fn end(call: &Call) -> Instant {
        let left = call.deadline().saturating_duration_since(Instant::now());
        call.deadline() - MARGIN.min(left / SHORTEST)
    }

    /// The right to run it, until `end`.
    async fn alone(&self, end: Instant, effect: Effect) -> Result<MutexGuard<'_, ()>, DriverError> {
        let waited = timeout_at(end, self.line.lock()).await;
        waited.map_err(|_| self.failed(ErrorKind::TimedOut, effect, "an earlier run is still under way"))
    }

    /// Where the agent's program was replaced: asks the new one whether what it is told still fits it.
    async fn fit(&self, end: Instant) -> Result<(), DriverError> {
        if !self.fitted.replaced() {
            return Ok(());
        }
        let why = match timeout_at(end, self.fitted.clone().fit()).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(why)) => why,
            Err(_) => "was replaced, and does not say in time what it takes".to_owned(),
        };
        Err(self.failed(ErrorKind::Settings, Effect::DidNotHappen, why))
    }

    /// One run by whoever has the line. `may_begin` is asked as the last thing before it.
    async fn run(
        &self,
        action: &str,
        call: &Call,
        end: Instant,
        may_begin: impl FnOnce() -> Result<(), String>,
    ) -> Result<Run, RunError> {
        let asked_at = call.now();
        let settings = self.fitted.settings();
        let program = settings.program.command();
        let ran = process::run(program, &Self::input(&settings, action), end, may_begin).await?;
        Ok(Run { ran, asked_at, answered_at: call.now() })
    }

    async fn command(&self, action: &str, call: &Call) -> Result<Accepted, DriverError> {
        let end = Self::end(call);
        let _line = self.alone(end, Effect::DidNotHappen).await?;
        let before = *self.open.lock();
        let mut refused = None;
        let may_begin = || {
            call.may_send().map_err(|error| refused.insert(error).to_string())?;
            // Not later than this it is dead, also where its caller leaves.
            let dead = call.now() + call.deadline().saturating_duration_since(Instant::now()) + OVERTIME;
            *self.open.lock() = before.max(Some(dead));
            Ok(())
        };
        // Begun at once, or not at all: what is dropped here ran, and dies.
        let ended = tokio::select! {
            biased;
            ended = self.run(action, call, end, may_begin) => ended,
            () = deposed(call) => {
                let why = "leadership ended while it ran: it was killed";
                return Err(self.failed(ErrorKind::NotLeader, Effect::Unknown, why));
            }
        };
        let Run { ran, asked_at, answered_at } = match ended {
            Ok(run) => run,
            Err(RunError::NotStarted(why)) => {
                *self.open.lock() = before;
                let settings = || self.failed(ErrorKind::Settings, Effect::DidNotHappen, why);
                return Err(refused.unwrap_or_else(settings));
            }
            Err(late @ RunError::TooLate) => {
                *self.open.lock() = before;
                return Err(self.failed(ErrorKind::TimedOut, Effect::DidNotHappen, late));
            }
            Err(lives @ RunError::Lives) => {
                return Err(self.failed(ErrorKind::TimedOut, Effect::Unknown, lives));
            }
            Err(RunError::Lost(why)) => return Err(self.failed(ErrorKind::Protocol, Effect::Unknown, why)),
        };
        let already = answer::done(&ran, &self.secrets()).map_err(|error| self.error(error))?;
        // Its own end was seen; that of one before it was not by that.
        *self.open.lock() = before;
        Ok(Accepted { asked_at, answered_at, epoch: None, already })
    }
}

/// Until the permit of this call has ended. An agent sends what it sends without asking us: it must not go on (S6).
async fn deposed(call: &Call) {
    while !call.is_deposed() {
        sleep(GLANCE).await;
    }
}

/// How long a command may still take effect after its intent was stored: a run goes on until its call ends where its gateway
/// stands still, and cannot see that it is deposed; and then comes what its operator vouches for.
fn bound(max_life: Option<Duration>, call: Duration) -> MaxInFlight {
    let life = max_life.map(|life| call + OVERTIME + life);
    MaxInFlight { off: life, on: life }
}

/// `name=value`. Agents strip blanks, and one pair of quotes: what begins or ends with either is put in quotes.
fn line(input: &mut Vec<u8>, name: &str, value: &[u8]) {
    let odd = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_whitespace() || *byte == b'"');
    let quoted = odd(value.first()) || odd(value.last());
    input.extend_from_slice(name.as_bytes());
    input.push(b'=');
    input.extend(quoted.then_some(b'"'));
    input.extend_from_slice(value);
    input.extend(quoted.then_some(b'"'));
    input.push(b'\n');
}

#[async_trait]
impl PowerDriver for AgentDriver {
    fn traits(&self) -> &Traits {
        &self.traits
    }

    fn max_in_flight(&self, call: Duration) -> MaxInFlight {
        bound(self.fitted.made.max_life, call)
    }

    fn life_setting(&self) -> Option<&'static str> {
        Some("max_life")
    }

    fn remarks(&self) -> Vec<String> {
        self.fitted.settings().remarks.clone()
    }

    fn shares(&self) -> Option<Shared> {
        // Most such units let in one at a time.
        self.fitted.made.place.clone().map(|name| Shared { name, at_once: 1, each_for_itself: false })
    }

    fn runs_programs(&self) -> bool {
        true
    }

    fn never_alone(&self) -> Option<&str> {
        self.fitted.made.never_alone.as_deref()
    }

    async fn read_power(&self, call: &Call) -> Result<Reading, DriverError> {
        let end = Self::end(call);
        let _line = self.alone(end, Effect::DidNotHappen).await?;
        self.fit(end).await?;
        let Run { ran, asked_at, answered_at } =
            self.run("status", call, end, || Ok(())).await.map_err(|error| {
                let kind = match error {
                    RunError::NotStarted(_) => ErrorKind::Settings,
                    RunError::TooLate | RunError::Lives => ErrorKind::TimedOut,
                    RunError::Lost(_) => ErrorKind::Protocol,
                };
                self.failed(kind, Effect::DidNotHappen, error)
            })?;
        let (power, said) = answer::power(&ran, &self.secrets()).map_err(|error| self.error(error))?;
        Ok(Reading { power, asked_at, answered_at, epoch: None, said, lowered_by: None })
    }

    async fn power_off(&self, _order: &OffOrder, call: &Call) -> Result<Accepted, DriverError> {
        self.command("off", call).await
    }

    async fn power_on(&self, _order: OnOrder, call: &Call) -> Result<Accepted, DriverError> {
        // It may repeat an on by itself unless it is told in its own words not to. An off is never held up by this.
        let end = Self::end(call);
        let line = self.alone(end, Effect::DidNotHappen).await?;
        self.fit(end).await?;
        drop(line);
        self.command("on", call).await
    }

    async fn identify(&self, _call: &Call) -> Result<Identified, DriverError> {
        // Agents have no word for it; a wrong plug is found by a drill, or by the node's other devices.
        Ok(Identified::default())
    }

    async fn inspect_hold(&self, _call: &Call) -> Result<HoldFound, DriverError> {
        Ok(HoldFound::new())
    }

    fn engaged(&self, _now: &HoldFound) -> Vec<String> {
        Vec::new()
    }

    async fn engage_hold(&self, _order: &HoldOrder, _call: &Call) -> Result<HoldReport, DriverError> {
        Ok(HoldReport { engaged: Vec::new(), detail: "fence agents know no holds".to_owned() })
    }

    async fn disengage_hold(&self, _order: &UnholdOrder, _call: &Call) -> Result<HoldReport, DriverError> {
        Ok(HoldReport::default())
    }

    async fn quiesce(&self, call: &Call) -> Result<(), DriverError> {
        let still = |detail: &str| self.failed(ErrorKind::TimedOut, Effect::Unknown, detail);
        let end = call.deadline();
        let _line = self.alone(end, Effect::Unknown).await?;
        let Some(dead) = *self.open.lock() else { return Ok(()) };
        let Some(life) = self.fitted.made.max_life else {
            return Err(still(
                "a run that switches was not seen to end well, and no max_life says how long that may take effect",
            ));
        };
        let over = Instant::now() + (dead + life).since(call.now());
        sleep_until(over.min(end)).await;
        if over > end {
            return Err(still("a run that switches was not seen to end well, and its max_life is not over"));
        }
        *self.open.lock() = None;
        Ok(())
    }
}
