//! The turns of calls: each waits for them before its time runs.

use std::sync::Arc;
use std::time::Duration;

use picket_core::ids::DeviceId;
use picket_driver::{Call, DriverError, Effect, ErrorKind, PowerDriver};

use super::Hands;
use crate::logins::{self, LoginTurn};
use crate::units::{self, Rank, Turn};

/// What a call holds while it is under way: its turn at what several devices share, its turn to log in, and that of a program.
pub(in crate::node) struct Turns<P> {
    pub(super) _shared: P,
    pub(super) login: Option<LoginTurn>,
    pub(super) _program: Option<Turn>,
}

impl<P> Turns<P> {
    /// The call, in these turns, with a net under it.
    pub(super) async fn bounded<T>(
        self,
        time: Duration,
        call: impl Future<Output = Result<T, DriverError>>,
    ) -> Result<T, DriverError> {
        let login = self.login;
        let call = async {
            match login {
                Some(turn) => turn.within(call).await,
                None => call.await,
            }
        };
        bounded(time, call).await
    }
}

/// A driver, a call that begins now, and the turns in which it goes.
pub(super) type Ready<P> = (Arc<dyn PowerDriver>, Call, Turns<P>);

impl Hands {
    /// The device's turn at what it shares, where it shares anything, and that of its program; and the same hands, whose calls to it
    /// need none.
    pub(in crate::node) async fn in_turn(
        &self,
        device: &DeviceId,
    ) -> Result<([Option<Turn>; 2], Self), DriverError> {
        // A reading, the store's word, and an on.
        let life = self.time(device) * 3;
        let turns = [self.turn(device, life).await?, self.program(device, life).await?];
        Ok((turns, Self { in_turn: true, ..self.clone() }))
    }

    async fn turn(&self, device: &DeviceId, life: Duration) -> Result<Option<Turn>, DriverError> {
        let Some(unit) = self.plan.units.get(device).filter(|_| !self.in_turn) else { return Ok(None) };
        unit.turn(self.rank(device), life + self.waits(device)).await.map(Some)
    }

    /// How long a device's turn at what it shares may be held by who waits for that of its program.
    pub(super) fn waits(&self, device: &DeviceId) -> Duration {
        if self.plan.runs_programs(device) { units::PATIENCE } else { Duration::ZERO }
    }

    /// The turn of a program, of a device that is one. It is waited for before the time of the call runs, and after that at what the
    /// device shares: whoever has one works.
    pub(super) async fn program(
        &self,
        device: &DeviceId,
        life: Duration,
    ) -> Result<Option<Turn>, DriverError> {
        match !self.in_turn && self.plan.runs_programs(device) {
            // The devices behind programs have nothing to do with each other.
            true => self.parts.programs.turn(self.rank(device).min(Rank::Check), life).await.map(Some),
            false => Ok(None),
        }
    }

    /// A turn to log in, where that is what the device is asked first. It is waited for before the time of the call runs.
    pub(super) async fn login(&self, device: &DeviceId) -> Option<LoginTurn> {
        let is_cold = self.plan.drivers.get(device).is_some_and(|driver| driver.is_cold());
        let rank = match (self.unheard, self.asked_for) {
            (false, _) => logins::Rank::Fence,
            (true, false) => logins::Rank::Check,
            (true, true) => logins::Rank::Status,
        };
        if is_cold { Some(self.parts.logins.take(rank).await) } else { None }
    }

    /// The driver, a call of so long, which begins now, and the turns in which it goes.
    pub(super) async fn ready(
        &self,
        device: &DeviceId,
        time: Duration,
    ) -> Result<Ready<Option<Turn>>, DriverError> {
        let driver = self.driver(device)?;
        let shared = self.turn(device, time).await?;
        let login = self.login(device).await;
        Ok((driver, self.call(time), Turns { _shared: shared, login, _program: None }))
    }

    /// The same, of a reading or an off.
    pub(super) async fn ready_to_run(
        &self,
        device: &DeviceId,
        time: Duration,
    ) -> Result<Ready<Option<Turn>>, DriverError> {
        let (driver, _, turns) = self.ready(device, time).await?;
        let program = self.program(device, time).await?;
        Ok((driver, self.call(time), Turns { _program: program, ..turns }))
    }

    /// The same, of what is said in a session that is open, or not at all.
    pub(super) async fn ready_in_session(
        &self,
        device: &DeviceId,
        time: Duration,
    ) -> Result<Ready<Option<Turn>>, DriverError> {
        let driver = self.driver(device)?;
        let shared = self.turn(device, time).await?;
        Ok((driver, self.call(time), Turns { _shared: shared, login: None, _program: None }))
    }
}

/// Runs a call with a net under it: a driver that overruns its deadline does not hold the node's task. The last part of
/// the net begins when the rest is over: after a stop of the process a call ends by itself first, with what it heard.
pub(super) async fn bounded<T>(
    time: Duration,
    call: impl Future<Output = Result<T, DriverError>>,
) -> Result<T, DriverError> {
    let half = Duration::from_millis(500);
    tokio::pin!(call);
    if let Ok(ended) = tokio::time::timeout(time + half, &mut call).await {
        return ended;
    }
    tokio::time::timeout(half, call).await.unwrap_or_else(|_| {
        let net = time + half * 2;
        Err(DriverError::new(ErrorKind::TimedOut, Effect::Unknown, format!("no end after {net:?}")))
    })
}
