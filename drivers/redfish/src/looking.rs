//! Looking whether the manager is in the same life, and in which epoch we are by that.

use picket_core::power::{Epoch, Loss};
use picket_driver::{Call, DriverError, Effort, ErrorKind};

use crate::ask::Ask;
use crate::connection::Connection;
use crate::life::Life;
use crate::line::Line;
use crate::service::Later;

impl Line {
    /// Asks the manager whether it is in the same life, and knows by that in which epoch we are.
    ///
    /// # Errors
    /// It does not answer, or does not say.
    pub fn look_at_life<'a>(&'a mut self, call: &'a Call) -> Later<'a, Epoch> {
        // Boxed: looking is itself a request, of the kind that needs no look.
        Box::pin(self.see_life(call))
    }

    async fn see_life(&mut self, call: &Call) -> Result<Epoch, DriverError> {
        let effort = &mut Effort::reading();
        let managers = self.service.as_ref().map(|service| service.managers.clone()).unwrap_or_default();
        let [manager] = &managers[..] else {
            let why = format!(
                "the system names {} managers (Links.ManagedBy), and the restarts of one would have to be seen: \
                 set last_reset_time = false",
                managers.len()
            );
            return Err(self.error(effort, ErrorKind::Settings, why));
        };
        let answer = self.ask(&Ask::get(manager), call, effort).await?;
        let found = match answer.fresh() {
            Some(object) => {
                Life::read(&object).map_err(|why| self.error(effort, ErrorKind::Settings, why))?
            }
            None => {
                let kept = if answer.stored { ", which a cache had kept (Age)" } else { "" };
                let why = format!("its manager: {}{kept}", answer.words());
                return Err(self.error(effort, ErrorKind::Protocol, why));
            }
        };
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
