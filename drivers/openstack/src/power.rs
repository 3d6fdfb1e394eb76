//! Reading power.

use parking_lot::MutexGuard;
use picket_cloud::EPOCH;
use picket_core::power::{Power, Reading};
use picket_driver::{Call, DriverError, Effect, ErrorKind};
use serde::Deserialize;

use crate::actions;
use crate::cloud::{QueryResult, Service};
use crate::deleted::ENDS;
use crate::driver::OpenstackDriver;
use crate::server::{PowerStatus, Server};

/// Nova takes no stop of a server that it has as stopped, and asks its hypervisor at that interval (`nova/compute/manager.py`, `_sync_power_states`).
const OLD: &str = "its host did no stop of ours, and Nova's word may be as old as its sync_power_state_interval (600 s by default)";

/// The newest move whose steps say that it ended well, and the hypervisor on which Nova showed the server last.
type MoveAndHost = (Option<String>, Option<String>);

#[derive(Deserialize)]
struct ServerAnswer {
    server: Server,
}

/// A server that is not there, and of which nobody says that its host ended it.
fn not_told(why: &str) -> String {
    format!("{}; that its host ended it is not told", gone(why))
}

impl OpenstackDriver {
    /// The server as Nova shows it, freshly; `None`: there is none of that id, in Nova's words.
    pub(crate) async fn server(&self, call: &Call) -> Result<QueryResult<Server>, DriverError> {
        let path = format!("/servers/{}", self.settings.server);
        match self.cloud.get::<ServerAnswer>(Service::Compute, &path, call).await? {
            QueryResult::It(ServerAnswer { server })
                if server.id.eq_ignore_ascii_case(&self.settings.server) =>
            {
                let server = self.with_host(server, call).await?;
                self.evacuated().shown(&server);
                Ok(QueryResult::It(server))
            }
            QueryResult::It(ServerAnswer { server }) => {
                let detail = format!("asked for {}, Nova shows {:?}", self.settings.server, server.id);
                Err(DriverError::new(ErrorKind::IdentityMismatch, Effect::DidNotHappen, detail))
            }
            QueryResult::NotThere(why) => Ok(QueryResult::NotThere(why)),
        }
    }

    /// The same; `None`: its host ended it, and it is gone for good. What else is not there is an error.
    pub(crate) async fn server_unless_ended(&self, call: &Call) -> Result<Option<Server>, DriverError> {
        match self.server(call).await? {
            QueryResult::It(server) => Ok(Some(server)),
            QueryResult::NotThere(why) => {
                let newest = self.newest_actions(call).await?;
                if self.was_ended(&newest, call).await? {
                    return Ok(None);
                }
                Err(DriverError::new(ErrorKind::Refused, Effect::DidNotHappen, not_told(&why)))
            }
        }
    }

    /// The same, where it must be there.
    pub(crate) async fn server_there(&self, call: &Call) -> Result<Server, DriverError> {
        match self.server(call).await? {
            QueryResult::It(server) => Ok(server),
            QueryResult::NotThere(why) => {
                Err(DriverError::new(ErrorKind::Refused, Effect::DidNotHappen, gone(&why)))
            }
        }
    }

    /// An Off is as old as its oldest answer: where a move ended between the first of them and the last, it is asked for once more.
    pub(crate) async fn reading(&self, call: &Call) -> Result<Reading, DriverError> {
        let before = self.place();
        let reading = self.read_once(call).await?;
        let is_settled = |before: &MoveAndHost, now: &MoveAndHost| {
            before.0 == now.0 && (before.1.is_none() || before.1 == now.1)
        };
        let now = self.place();
        if reading.power != Power::Off || is_settled(&before, &now) {
            return Ok(reading);
        }
        let again = self.read_once(call).await?;
        if again.power != Power::Off || is_settled(&now, &self.place()) {
            return Ok(again);
        }
        let said = format!("{}; it moved while that was asked", again.said);
        Ok(Reading { power: Power::Unknown, said, ..again })
    }

    fn place(&self) -> MoveAndHost {
        (self.ours().moves.landed.clone(), self.evacuated().at().cloned())
    }

    pub(crate) async fn newest_actions(&self, call: &Call) -> Result<actions::Page, DriverError> {
        let landed = self.ours().moves.landed.clone();
        Ok(actions::Page { landed, ..actions::newest(&self.cloud, &self.settings.server, call).await? })
    }

    async fn read_once(&self, call: &Call) -> Result<Reading, DriverError> {
        let asked_at = call.now();
        // An Off needs the actions, too: whichever of the two is answered later shows what came between. Where no stop of ours was taken
        // the server is on as a rule, and they would tell nothing.
        let decides = self.ours().last.is_some();
        let (server, actions) = match decides {
            true => {
                let newest = self.newest_actions(call);
                // What the server says of On counts also where Nova tells no actions.
                let (server, newest) = tokio::join!(self.server(call), newest);
                (server?, Some(newest))
            }
            false => (self.server(call).await?, None),
        };
        let mut lowered_by = None;
        let (power, said) = match server {
            QueryResult::It(server) => self.judged(&server, actions, &mut lowered_by, call).await?,
            QueryResult::NotThere(why) => self.of_the_gone(&why, call).await?,
        };
        Ok(Reading { power, asked_at, answered_at: call.now(), epoch: Some(EPOCH), said, lowered_by })
    }

    async fn judged(
        &self,
        server: &Server,
        actions: Option<Result<actions::Page, DriverError>>,
        lowered_by: &mut Option<String>,
        call: &Call,
    ) -> Result<(Power, String), DriverError> {
        let words = server.words();
        let said = server.power();
        match said {
            PowerStatus::On => return Ok((Power::On, self.with_failure(words, call).await)),
            PowerStatus::Unknown => return Ok((Power::Unknown, words)),
            PowerStatus::Deleted => return self.of_the_gone(&words, call).await,
            PowerStatus::Off | PowerStatus::OffUnlessHostIsDown => {}
        }
        let id = &self.settings.server;
        let actions = match actions {
            Some(actions) => actions?,
            None => self.newest_actions(call).await?,
        };
        if actions.are_hidden {
            return Ok((Power::Unknown, format!("{words}; Nova has no actions of it")));
        }
        if let Some(why) = self.may_run_elsewhere(&actions, false, call).await? {
            return Ok((Power::Unknown, format!("{words}; {why}")));
        }
        let ours = self.ours().clone();
        match actions::our_stop_ended(&self.cloud, id, &actions.actions, &ours, call).await? {
            Ok(ended) => {
                self.ours().ended = Some(ended);
                let words = format!("{words}; its host ended our stop with Success");
                Ok((Power::Off, self.remarks.with_left(words)))
            }
            Err(why) if said == PowerStatus::Off => {
                let why = format!("{OLD}: {why}");
                let words = format!("{words}; {why}");
                *lowered_by = Some(why);
                Ok((Power::Off, self.remarks.with_left(words)))
            }
            Err(why) => Ok((Power::Unknown, format!("{words}; whether its host is up is hidden, and {why}"))),
        }
    }

    /// On although Nova took a stop of ours: what it says became of that. It is told to people, and decides nothing.
    async fn with_failure(&self, words: String, call: &Call) -> String {
        let Some(last) = self.ours().last.clone() else { return words };
        let known = self.ours().failed.clone().filter(|(failed, _)| *failed == last);
        let why = match known {
            Some((_, why)) => why,
            None => {
                let action = actions::one(&self.cloud, &self.settings.server, &last, call).await;
                let Some(why) = action.ok().flatten().and_then(|action| action.failure()) else {
                    return words;
                };
                tracing::warn!(server = self.settings.server, stop = last, why, "a stop of ours failed");
                self.ours().failed = Some((last.clone(), why.clone()));
                why
            }
        };
        format!("{words}; our stop {last} failed: {why}")
    }

    pub(crate) fn ours(&self) -> MutexGuard<'_, actions::OwnStops> {
        self.ours.lock()
    }

    /// Whether its host ended a server that is not there. Nova calls one deleted also where its host was down and did nothing of it: only what
    /// its host did counts.
    async fn was_ended(&self, newest: &actions::Page, call: &Call) -> Result<bool, DriverError> {
        let Some(delete) = newest.actions.first().filter(|action| action.deletes()) else { return Ok(false) };
        let delete = actions::one(&self.cloud, &self.settings.server, &delete.request_id, call).await?;
        Ok(delete.is_some_and(|delete| delete.succeeded() && delete.did(ENDS)))
    }

    /// A server that is not there.
    pub(crate) async fn of_the_gone(&self, why: &str, call: &Call) -> Result<(Power, String), DriverError> {
        let newest = self.newest_actions(call).await?;
        if !self.was_ended(&newest, call).await? {
            return Ok((Power::Unknown, not_told(why)));
        }
        self.evacuated().gone();
        Ok(match self.may_run_elsewhere(&newest, true, call).await? {
            Some(why) => (Power::Unknown, format!("deleted: its host ended it with Success; {why}")),
            None => (Power::Off, "deleted: its host ended it with Success".to_owned()),
        })
    }
}

/// Not found is a word of its own, and none of power.
fn gone(why: &str) -> String {
    format!("there is no such server, or it is another project's: {why}")
}

#[cfg(test)]
mod tests;
