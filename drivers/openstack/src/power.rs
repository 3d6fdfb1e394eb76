//! Reading power, off and on.

use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use picket_core::order::{OffOrder, OnOrder};
use picket_core::power::{Epoch, Power, Reading};
use picket_core::time::BootTime;
use picket_driver::{Accepted, Call, DriverError, Effect, Effort, ErrorKind, HoldFound};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::actions;
use crate::cloud::{Bound, Command, Found, Service, Told};
use crate::deleted::ENDS;
use crate::driver::OpenstackDriver;
use crate::hold::{STOPS, UP};
use crate::server::{Said, Server};

/// A cloud has one epoch: the server's id, which is what every question names.
pub(crate) const EPOCH: Epoch = Epoch::FIRST;
/// Between two looks at what is under way.
const LOOK: Duration = Duration::from_millis(500);

/// The newest move whose steps say that it ended well, and the hypervisor on which Nova showed the server last.
type Place = (Option<String>, Option<String>);

#[derive(Deserialize)]
struct Shown {
    server: Server,
}

/// What a command is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Stop,
    Start,
}

impl Verb {
    fn body(self) -> Value {
        match self {
            Verb::Stop => json!({ "os-stop": null }),
            Verb::Start => json!({ "os-start": null }),
        }
    }

    /// What a server says that is so already.
    fn is_done(self, said: Said) -> bool {
        match self {
            Verb::Stop => matches!(said, Said::Off | Said::OffUnlessHostIsDown),
            Verb::Start => said == Said::On,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Verb::Stop => "os-stop",
            Verb::Start => "os-start",
        }
    }
}

/// A server that is not there, and of which nobody says that its host ended it.
fn not_told(why: &str) -> String {
    format!("{}; that its host ended it is not told", gone(why))
}

impl OpenstackDriver {
    /// The server as Nova shows it, freshly; `None`: there is none of that id, in Nova's words.
    pub(crate) async fn server(&self, call: &Call) -> Result<Found<Server>, DriverError> {
        let path = format!("/servers/{}", self.settings.server);
        match self.cloud.get::<Shown>(Service::Compute, &path, call).await? {
            Found::It(Shown { server }) if server.id.eq_ignore_ascii_case(&self.settings.server) => {
                let server = self.with_host(server, call).await?;
                self.evacuated().shown(&server);
                Ok(Found::It(server))
            }
            Found::It(Shown { server }) => {
                let detail = format!("asked for {}, Nova shows {:?}", self.settings.server, server.id);
                Err(DriverError::new(ErrorKind::IdentityMismatch, Effect::DidNotHappen, detail))
            }
            Found::NotThere(why) => Ok(Found::NotThere(why)),
        }
    }

    /// The same; `None`: its host ended it, and it is gone for good. What else is not there is an error.
    pub(crate) async fn server_unless_ended(&self, call: &Call) -> Result<Option<Server>, DriverError> {
        match self.server(call).await? {
            Found::It(server) => Ok(Some(server)),
            Found::NotThere(why) => {
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
            Found::It(server) => Ok(server),
            Found::NotThere(why) => {
                Err(DriverError::new(ErrorKind::Refused, Effect::DidNotHappen, gone(&why)))
            }
        }
    }

    /// An Off is as old as its oldest answer: where a move ended between the first of them and the last, it is asked for once more.
    pub(crate) async fn reading(&self, call: &Call) -> Result<Reading, DriverError> {
        let before = self.place();
        let reading = self.read_once(call).await?;
        let is_settled =
            |before: &Place, now: &Place| before.0 == now.0 && (before.1.is_none() || before.1 == now.1);
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

    fn place(&self) -> Place {
        (self.ours().moves.landed.clone(), self.evacuated().at().cloned())
    }

    async fn newest_actions(&self, call: &Call) -> Result<actions::Page, DriverError> {
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
        let (power, said) = match server {
            Found::It(server) => self.judged(&server, actions, call).await?,
            Found::NotThere(why) => self.of_the_gone(&why, call).await?,
        };
        Ok(Reading { power, asked_at, answered_at: call.now(), epoch: Some(EPOCH), said })
    }

    async fn judged(
        &self,
        server: &Server,
        actions: Option<Result<actions::Page, DriverError>>,
        call: &Call,
    ) -> Result<(Power, String), DriverError> {
        let words = server.words();
        let said = server.power();
        match said {
            Said::On => return Ok((Power::On, self.with_failure(words, call).await)),
            Said::Unknown => return Ok((Power::Unknown, words)),
            Said::Deleted => return self.of_the_gone(&words, call).await,
            Said::Off | Said::OffUnlessHostIsDown => {}
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
        if said == Said::Off {
            return Ok((Power::Off, self.remarks.with_left(words)));
        }
        let ours = self.ours().clone();
        match actions::our_stop_ended(&self.cloud, id, &actions.actions, &ours, call).await? {
            Ok(ended) => {
                self.ours().ended = Some(ended);
                let words = format!("{words}; its host ended our stop with Success");
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

    pub(crate) fn ours(&self) -> MutexGuard<'_, actions::Ours> {
        self.ours.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether its host ended a server that is not there. Nova calls one deleted also where its host was down and did nothing of it: only what
    /// its host did counts.
    async fn was_ended(&self, newest: &actions::Page, call: &Call) -> Result<bool, DriverError> {
        let Some(delete) = newest.actions.first().filter(|action| action.deletes()) else { return Ok(false) };
        let delete = actions::one(&self.cloud, &self.settings.server, &delete.request_id, call).await?;
        Ok(delete.is_some_and(|delete| delete.succeeded() && delete.did(ENDS)))
    }

    /// A server that is not there.
    async fn of_the_gone(&self, why: &str, call: &Call) -> Result<(Power, String), DriverError> {
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

    pub(crate) async fn stop(&self, order: &OffOrder, call: &Call) -> Result<Accepted, DriverError> {
        let before =
            order.found().get(STOPS).map(|list| list.split_whitespace().map(str::to_owned).collect());
        self.ours().begin(order.generation(), before);
        let mut effort = Effort::repeatable();
        // A stop that comes late costs a machine that runs again, and no data: it is not held to what stands in the ledger.
        self.switch(Verb::Stop, order.found(), None, &mut effort, call).await
    }

    pub(crate) async fn start(&self, order: OnOrder, call: &Call) -> Result<Accepted, DriverError> {
        self.ours().last = None;
        let mut effort = Effort::once();
        let bound = Bound { life: order.life(), checked_at: Some(order.checked_at()), not_after: None };
        self.switch(Verb::Start, &HoldFound::new(), Some(bound), &mut effort, call).await
    }

    /// Tells Nova until it takes it, once for each time that it refuses. `found`: before the hold.
    async fn switch(
        &self,
        verb: Verb,
        found: &HoldFound,
        bound: Option<Bound>,
        effort: &mut Effort,
        call: &Call,
    ) -> Result<Accepted, DriverError> {
        let (mut unlocked_ours, mut was_busy, mut was_idle, mut has_spoken) = (false, false, false, false);
        loop {
            // Before each copy: the host may go down, and somebody may lock it.
            call.may_send()?;
            let asked_at = call.now();
            let server = match self.server(call).await.map_err(|error| effort.judge(error))? {
                Found::It(server) => server,
                Found::NotThere(why) => return self.already_gone(verb, asked_at, &why, effort, call).await,
            };
            // Nova said so itself: until that is over it would say it again.
            if was_busy && server.is_busy() {
                if self.rests(call).await {
                    continue;
                }
                return Err(
                    effort.error(ErrorKind::Throttled, format!("{}: it is {}", verb.words(), server.words()))
                );
            }
            // Once a call: the release of another server of that host may force its service down again each time.
            if verb == Verb::Stop
                && server.host_takes_orders().is_err()
                && !std::mem::replace(&mut has_spoken, true)
                // Evacuated since, it is another host, and whoever forced the first one down wants it so.
                && found.get(UP).is_none_or(|up| server.host.as_ref() == Some(up))
                && self.let_host_speak(found, call).await
            {
                continue;
            }
            server.host_takes_orders().map_err(|why| effort.error(ErrorKind::Refused, why))?;
            let unlocked = self.unlock_for(&server, effort, call).await?;
            let told = self.act(verb.body(), bound, effort, call).await?;
            let accepted = |already| {
                Ok(Accepted {
                    asked_at: told.asked_at,
                    answered_at: told.answered_at,
                    epoch: Some(EPOCH),
                    already,
                })
            };
            match told.code.as_u16() {
                202 => {
                    if verb == Verb::Start {
                        self.ours().start.clone_from(&told.request);
                    }
                    match verb {
                        Verb::Stop => self.ours().took(told.request.as_deref()),
                        Verb::Start if unlocked => self.lock_again(&server, call).await,
                        Verb::Start => {}
                    }
                    return accepted(false);
                }
                // Look, then decide.
                409 => {
                    effort.refused();
                    let server = self.server_there(call).await.map_err(|error| effort.judge(error))?;
                    if verb.is_done(server.power()) {
                        return accepted(true);
                    }
                    if server.is_locked_by_us() && !std::mem::replace(&mut unlocked_ours, true) {
                        // Whom Nova takes for no administrator, whatever the role is called.
                        self.unlock(None, call).await.map_err(|error| effort.judge(error))?;
                        continue;
                    }
                    was_busy = server.is_busy();
                    // What was under way may have ended between that answer and this look: only the second one of a server that does nothing
                    // is final.
                    let is_final = !was_busy && was_idle;
                    was_idle = !was_busy;
                    if !is_final && self.rests(call).await {
                        continue;
                    }
                    let kind = if was_busy { ErrorKind::Throttled } else { ErrorKind::Refused };
                    let words = format!("{}: {}; it is {}", verb.words(), told.words, server.words());
                    return Err(effort.error(kind, words).for_good(is_final));
                }
                _ => return Err(refused(verb.words(), &told, effort)),
            }
        }
    }

    /// Waits a moment for what is under way; not, where the call ends before that.
    async fn rests(&self, call: &Call) -> bool {
        let is_time = tokio::time::Instant::now() + LOOK < call.deadline();
        if is_time {
            tokio::time::sleep(LOOK).await;
        }
        is_time
    }

    /// A server that its host ended is off already.
    async fn already_gone(
        &self,
        verb: Verb,
        asked_at: BootTime,
        why: &str,
        effort: &Effort,
        call: &Call,
    ) -> Result<Accepted, DriverError> {
        let (power, said) = self.of_the_gone(why, call).await.map_err(|error| effort.judge(error))?;
        if verb == Verb::Stop && power == Power::Off {
            return Ok(Accepted { asked_at, answered_at: call.now(), epoch: Some(EPOCH), already: true });
        }
        Err(effort.error(ErrorKind::Refused, said))
    }

    /// One command to the server.
    pub(crate) async fn act(
        &self,
        body: Value,
        bound: Option<Bound>,
        effort: &mut Effort,
        call: &Call,
    ) -> Result<Told, DriverError> {
        let path = format!("/servers/{}/action", self.settings.server);
        let command =
            Command { service: Service::Compute, method: Method::POST, path: &path, body: Some(body), bound };
        self.cloud.tell(command, &self.unclear, effort, call).await
    }
}

/// A command that was refused, or may have been done.
pub(crate) fn refused(what: &str, told: &Told, effort: &mut Effort) -> DriverError {
    if !told.is_unclear() {
        effort.refused();
    }
    let kind = told.kind();
    effort.error(kind, format!("{what}: {}", told.words)).for_good(kind == ErrorKind::Forbidden)
}

/// Not found is a word of its own, and none of power.
fn gone(why: &str) -> String {
    format!("there is no such server, or it is another project's: {why}")
}
