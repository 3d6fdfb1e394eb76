//! Telling Nova to stop or start the server, and what it answers to that.

use std::time::Duration;

use picket_cloud::{Bound, EPOCH};
use picket_core::order::{OffOrder, OnOrder};
use picket_core::power::Power;
use picket_core::time::BootTime;
use picket_driver::{Accepted, Call, DriverError, Effort, ErrorKind, HoldFound};
use reqwest::Method;
use serde_json::{Value, json};

use crate::cloud::{Command, CommandAnswer, QueryResult, Service};
use crate::driver::OpenstackDriver;
use crate::hold::{STOPS, UP};
use crate::refusals::{is_for_its_lock, way_out};
use crate::server::{PowerStatus, Server};

/// Between two looks at what is under way.
const LOOK: Duration = Duration::from_millis(500);

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
    fn is_done(self, said: PowerStatus) -> bool {
        match self {
            Verb::Stop => matches!(said, PowerStatus::Off | PowerStatus::OffUnlessHostIsDown),
            Verb::Start => said == PowerStatus::On,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Verb::Stop => "os-stop",
            Verb::Start => "os-start",
        }
    }
}
impl OpenstackDriver {
    pub(crate) async fn stop(&self, order: &OffOrder, call: &Call) -> Result<Accepted, DriverError> {
        let before =
            order.found().get(STOPS).map(|list| list.split_whitespace().map(str::to_owned).collect());
        self.ours().begin(order.generation(), before);
        let mut effort = Effort::repeatable();
        // A stop that comes late costs a machine that runs again, and no data: it is not held to what stands in the ledger.
        self.switch(Verb::Stop, order.found(), None, &mut effort, &mut None, call).await
    }

    pub(crate) async fn start(&self, order: OnOrder, call: &Call) -> Result<Accepted, DriverError> {
        self.ours().last = None;
        let mut effort = Effort::once();
        let bound = Bound::of(&order, Some(order.checked_at()));
        let mut was_locked = None;
        let started = self
            .switch(Verb::Start, &HoldFound::new(), Some(bound), &mut effort, &mut was_locked, call)
            .await;
        // Whatever became of the start: it was somebody else's before it.
        if let Some(server) = was_locked {
            self.lock_again(&server, call).await;
        }
        started
    }

    /// Tells Nova until it takes it, once for each time that it refuses. `found`: before the hold; `was_locked`: the server as it was before
    /// its lock was undone for this.
    async fn switch(
        &self,
        verb: Verb,
        found: &HoldFound,
        bound: Option<Bound>,
        effort: &mut Effort,
        was_locked: &mut Option<Server>,
        call: &Call,
    ) -> Result<Accepted, DriverError> {
        let (mut unlocked_ours, mut was_busy, mut was_idle, mut has_spoken) = (false, false, false, false);
        loop {
            // Before each copy: the host may go down, and somebody may lock it.
            call.may_send()?;
            let asked_at = call.now();
            let server = match self.server(call).await.map_err(|error| effort.judge(error))? {
                QueryResult::It(server) => server,
                QueryResult::NotThere(why) => {
                    return self.already_gone(verb, asked_at, &why, effort, call).await;
                }
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
            self.has_host(&server, effort)?;
            if self.unlock_for(&server, effort, call).await? {
                was_locked.get_or_insert(server);
            }
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
                    if verb == Verb::Stop {
                        self.ours().took(told.request.as_deref());
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
                    // Whom Nova takes for no administrator, whatever the role is called. Of any other cause the hold stays (S11).
                    let for_its_lock = is_for_its_lock(&told.words, &server.id);
                    if for_its_lock
                        && server.is_locked_by_us()
                        && !std::mem::replace(&mut unlocked_ours, true)
                    {
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
                    let help = way_out(&server).map(|help| format!("; {help}")).unwrap_or_default();
                    let words = format!("{}: {}; it is {}{help}", verb.words(), told.words, server.words());
                    return Err(effort.error(kind, words).for_good(is_final));
                }
                _ => return Err(refused(verb.words(), &told, effort)),
            }
        }
    }

    /// Whether there is a host that would do it now.
    fn has_host(&self, server: &Server, effort: &Effort) -> Result<(), DriverError> {
        let Err(why) = server.host_takes_orders() else { return Ok(()) };
        // A host that is down is mended by whoever mends hosts; one that is not there comes by the server's own state.
        let help = way_out(server).filter(|_| server.is_without_host());
        let is_final = help.is_some() && !server.is_busy();
        let words = [Some(why), help].into_iter().flatten().collect::<Vec<_>>().join("; ");
        Err(effort.error(ErrorKind::Refused, words).for_good(is_final))
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
    ) -> Result<CommandAnswer, DriverError> {
        let path = format!("/servers/{}/action", self.settings.server);
        let taken = (body == Verb::Start.body()).then(|| self.starts.clone());
        let (service, method) = (Service::Compute, Method::POST);
        let command = Command { service, method, path: &path, body: Some(body), bound, taken };
        self.cloud.tell(command, &self.unclear, effort, call).await
    }
}

/// A command that was refused, or may have been done.
pub(crate) fn refused(what: &str, told: &CommandAnswer, effort: &mut Effort) -> DriverError {
    if !told.is_unclear() {
        effort.refused();
    }
    let kind = told.kind();
    effort.error(kind, format!("{what}: {}", told.words)).for_good(kind == ErrorKind::Forbidden)
}
