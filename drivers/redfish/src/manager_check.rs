//! Looking whether the manager is in the same life, and in which epoch we are by that.

use picket_core::power::{Epoch, Loss};
use picket_driver::{Call, DriverError, Effort, ErrorKind};
use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::connection::Connection;
use crate::line::Line;
use crate::manager_life::ManagerLife;
use crate::service::Later;
use crate::service_request::ServiceRequest;

/// What a setting that wants it says where it cannot be had.
const ADVICE: &str = "with last_reset_time = false Off must hold for the long window instead";

impl Line {
    /// Whether a reading without the manager's life is none.
    pub(crate) fn tells_its_life(&self) -> bool {
        self.settings.last_reset_time.unwrap_or_else(|| self.agreement.is_on())
    }

    /// Whether the manager's restarts show, by the settings or as checks found.
    pub(crate) fn shows_restarts(&self) -> bool {
        self.settings.last_reset_time.unwrap_or_else(|| self.agreement.stands())
    }

    /// Why they do not, where people ought to know.
    pub(crate) fn life_remark(&self) -> Option<String> {
        self.agreement.wrong.clone().filter(|_| self.settings.last_reset_time.is_none())
    }

    /// In which epoch we are; `None`: the manager does not say its life, and need not.
    ///
    /// # Errors
    /// It does not say it now, and the settings want it, or it said it before.
    pub(crate) async fn epoch_now(&mut self, call: &Call) -> Result<Option<Epoch>, DriverError> {
        let is_automatic = self.settings.last_reset_time.is_none();
        if self.settings.last_reset_time == Some(false) || is_automatic && self.agreement.is_off() {
            return Ok(None);
        }
        if self.tells_its_life() {
            return self.look_at_life(call).await.map(Some);
        }
        // What need not be said keeps the power from nobody.
        let left = call.deadline().saturating_duration_since(Instant::now());
        match self.look_at_life(&call.until(Instant::now() + left / 2)).await {
            Ok(epoch) => {
                self.agreement.said = true;
                Ok(Some(epoch))
            }
            Err(error) => {
                self.agreement.is_unsaid();
                tracing::debug!(endpoint = %self.settings.authority(), %error, "its manager's life is not known");
                Ok(None)
            }
        }
    }

    /// The same where it is asked whose machine it is: what the settings leave open is found out by looks at checks.
    ///
    /// # Errors
    /// As before.
    pub(crate) async fn check_life(&mut self, call: &Call) -> Result<Option<Epoch>, DriverError> {
        self.agreement.ask_anew();
        let is_weighed = self.settings.last_reset_time.is_none() && call.may_only_read();
        let found = self.epoch_now(call).await;
        match (found, &self.life) {
            (Ok(Some(_)), Some((life, at))) if is_weighed => {
                self.agreement.take(life, *at);
                self.epoch = self.epoch.filter(|_| self.agreement.is_on());
                Ok(self.epoch)
            }
            // It said it before, and offers it no more.
            (Err(error), _) if is_weighed && error.kind == ErrorKind::Settings => {
                self.agreement.is_withdrawn();
                self.epoch = None;
                Ok(None)
            }
            (found, _) => found,
        }
    }

    /// Asks the manager whether it is in the same life, and knows by that in which epoch we are.
    ///
    /// # Errors
    /// It does not answer, or does not say.
    pub fn look_at_life<'a>(&'a mut self, call: &'a Call) -> Later<'a, Epoch> {
        // Boxed: looking is itself a request, of the kind that needs no look.
        Box::pin(self.see_life(call))
    }

    /// That no restart would show. `is_absent`: nothing says so, and nothing is wrong.
    fn unshown(&mut self, why: String, is_absent: bool) -> DriverError {
        self.agreement.is_wrong(if is_absent { None } else { Some(&why) });
        self.error(&Effort::reading(), ErrorKind::Settings, format_args!("{why}; {ADVICE}"))
    }

    async fn see_life(&mut self, call: &Call) -> Result<Epoch, DriverError> {
        let managers = self.service.as_ref().map(|service| service.managers.clone()).unwrap_or_default();
        let [manager] = &managers[..] else {
            let why = format!(
                "the system names {} managers (Links.ManagedBy), and the restarts of one would have to be seen",
                managers.len()
            );
            return Err(self.unshown(why, managers.is_empty()));
        };
        // Who may not see the manager is let in all the same: where it need not be said, that speaks of nobody's password.
        let ask = ServiceRequest { may_hide: !self.tells_its_life(), ..ServiceRequest::get(manager) };
        let answer = self.ask(&ask, call, &mut Effort::reading()).await?;
        let Some(object) = answer.fresh() else {
            let kept = if answer.stored { ", which a cache had kept (Age)" } else { "" };
            let why = format!("its manager: {}{kept}", answer.words());
            return Err(self.error(&Effort::reading(), ErrorKind::Protocol, why));
        };
        if let Some(why) = manages_others(&object) {
            return Err(self.unshown(why, false));
        }
        let found = match ManagerLife::read(&object) {
            Ok(Some(found)) => found,
            Ok(None) => {
                return Err(self.unshown("the manager does not say its LastResetTime".to_owned(), true));
            }
            Err(why) => return Err(self.unshown(why, false)),
        };
        self.agreement.is_right();
        let goes_on =
            self.life.as_ref().map(|(life, at)| life.goes_on_in(&found, answer.asked_at.since(*at)));
        let since = self.unanswered_since.take().unwrap_or(answer.asked_at);
        self.looked = self.connection.as_ref().map(Connection::id);
        self.life = Some((found, answer.answered_at));
        if let (Some(true), Some(epoch)) = (goes_on, self.epoch) {
            return Ok(epoch);
        }
        // A loss that no reading told yet is told by the next one, also where everything was closed in between.
        let lost = if goes_on == Some(false) { Some(since) } else { self.untold };
        self.epochs += 1;
        let id = self.epochs;
        self.loss = lost.map(|since| Loss { epoch: id, since }).or(self.loss);
        let epoch = Epoch { id, loss: self.loss };
        if epoch.begins_after_loss() {
            tracing::warn!(endpoint = %self.settings.authority(), epoch = epoch.id, "the manager restarted");
        }
        self.untold = lost;
        self.epoch = Some(epoch);
        Ok(epoch)
    }
}

/// Why that manager's restarts are not those of what tells the system's power: it is an enclosure's or a rack's, or stands for several systems
/// (DSP2046: `ManagerType`, `Links.ManagerForServers`).
fn manages_others(manager: &Map<String, Value>) -> Option<String> {
    let kind = manager.get("ManagerType").and_then(Value::as_str);
    if let Some(kind) = kind.filter(|kind| matches!(*kind, "EnclosureManager" | "RackManager" | "Service")) {
        return Some(format!(
            "the system's manager is of the type {kind}: its restarts are not those of what tells the power"
        ));
    }
    let servers =
        manager.get("Links").and_then(|links| links.get("ManagerForServers")).and_then(Value::as_array);
    let many = servers.map_or(0, Vec::len);
    (many > 1).then(|| {
        format!("the system's manager stands for {many} systems: its restarts are not those of what tells the power of one")
    })
}
