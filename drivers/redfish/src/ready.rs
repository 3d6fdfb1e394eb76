//! What a request needs before it is sent: who we are, whose machine is there, in which life its manager is.

use picket_driver::{Call, DriverError, Effort, ErrorKind};
use tokio::time::Instant;

use crate::line::Line;
use crate::service_request::ServiceRequest;

impl Line {
    /// Makes ready what the request needs.
    pub(crate) async fn prepare(
        &mut self,
        ask: &ServiceRequest,
        call: &Call,
        until: Instant,
        effort: &Effort,
    ) -> Result<(), DriverError> {
        if let Some(lockout) = self.lockout.as_ref().filter(|lockout| Instant::now() < lockout.until) {
            return Err(lockout.error.clone());
        }
        if effort.is_bound() && (!self.sighted || self.is_by_session() && self.session.is_none()) {
            let why = "power was not read in this session: it is read first";
            return Err(self.error(effort, ErrorKind::Unreachable, why));
        }
        self.expect_session(effort)?;
        if !ask.open && self.is_by_session() && self.session.is_none() {
            self.log_in(call, until).await?;
        }
        let wants_sight = effort.wants_sight() && self.tells_its_life();
        let has_looked = wants_sight && self.look_where_it_is_new(call, until, effort).await?;
        // Last: what was asked before may have opened another session.
        if !effort.is_reading() {
            self.expect_ours(call, until).await?;
        }
        self.may_go_now(call, effort)?;
        if effort.is_reading() {
            return self.connect(call, until).await.map(drop);
        }
        // Its own may be a new one.
        let address = self.ours_at.as_ref().and_then(|place| place.address);
        self.connect_to(address.filter(|_| self.session.is_none()), call, until).await?;
        // Its far side may have ended since then the connection on which its life was seen: it did if it restarted.
        if wants_sight && !has_looked && self.look_where_it_is_new(call, until, effort).await? {
            self.may_go_now(call, effort)?;
        }
        self.expect_same_place()
    }

    /// Looks at the manager's life where that was not seen on the connection that stands. True if it did.
    async fn look_where_it_is_new(
        &mut self,
        call: &Call,
        until: Instant,
        effort: &Effort,
    ) -> Result<bool, DriverError> {
        let fresh = self.connect(call, until).await?.id();
        // A connection does not outlive the manager at its other end. Where each is closed after an answer, each off has a look.
        let is_new = self.looked != Some(fresh) || self.epoch.is_none();
        if is_new {
            self.look_at_life(call).await?;
        }
        if self.untold.is_some() {
            let why = "its manager restarted; power is read first";
            return Err(self.error(effort, ErrorKind::Unreachable, why));
        }
        Ok(is_new)
    }

    /// Whether it may go in the life of now (S13).
    fn may_go_now(&self, call: &Call, effort: &Effort) -> Result<(), DriverError> {
        self.epoch.map_or(Ok(()), |epoch| call.may_go_in(epoch).map_err(|error| effort.judge(error)))
    }

    /// What is stored with the name of its session goes in that one or not at all, and an on that is stored with none in none that
    /// has a name: a successor ends no other (S8).
    pub(crate) fn expect_session(&self, effort: &Effort) -> Result<(), DriverError> {
        let there = self.session_name();
        let fits = match effort.session() {
            Some(stored) => there.as_deref() == Some(stored),
            // What may be sent again may be sent before there is a session, which is then opened for it.
            None => there.is_none() || !effort.is_bound(),
        };
        if fits {
            return Ok(());
        }
        let why = "its session is not the one that is stored with it; power is read first";
        Err(self.error(effort, ErrorKind::Unreachable, why))
    }
}
