//! Reading power, off and on.

use std::time::Duration;

use parking_lot::Mutex;
use picket_cloud::{Bound, EPOCH};
use picket_core::order::{OffOrder, OnOrder};
use picket_core::power::{Power, Reading};
use picket_core::time::BootTime;
use picket_driver::{Accepted, Call, DriverError, Effect, ErrorKind};
use tokio::time::Instant;

use crate::cloud::{Command, CommandAnswer, Failure};
use crate::command_history::{CommandHistory, OperationEnd};
use crate::driver::{GcpDriver, InstanceFindings};
use crate::instance::{Instance, PowerStatus};
use crate::operation::Operation;
use crate::requests::{RequestId, RequestIdParts};

/// Between two looks at what is under way.
const LOOK: Duration = Duration::from_secs(1);
/// A look that was asked for within this serves a stop.
const JUST_NOW: Duration = Duration::from_secs(3);
/// For so long a stop looks before it is sent, where there is none.
const SHORT: Duration = Duration::from_secs(3);
/// By how much what Google stamps may be off.
const STAMPS: Duration = Duration::from_secs(2);
/// So often another request is made of an order whose own was answered with one of old.
const ANEW: u32 = 8;

impl GcpDriver {
    pub(crate) async fn reading(&self, call: &Call) -> Result<Reading, DriverError> {
        let seen = self.look(call).await?;
        let mut answered_at = seen.answered_at;
        let (power, said) = match &seen.found {
            Ok(instance) => {
                self.is_called_so(instance)?;
                self.judged(instance, &mut answered_at, call).await?
            }
            // Not found is a word of its own, and none of power.
            Err(why) => match self.gone(why, call).await {
                gone if gone.kind == ErrorKind::IdentityMismatch => return Err(gone),
                gone => (Power::Unknown, gone.detail),
            },
        };
        if power != Power::Off {
            self.history(&self.stops).not_off(seen.asked_at);
        }
        Ok(Reading {
            power,
            asked_at: seen.asked_at,
            answered_at,
            epoch: Some(EPOCH),
            said,
            lowered_by: None,
        })
    }

    /// What the instance says, with what is under way at it, and once more what it says where it could be off.
    async fn judged(
        &self,
        instance: &Instance,
        answered_at: &mut BootTime,
        call: &Call,
    ) -> Result<(Power, String), DriverError> {
        let (said, words) = (instance.said(), instance.words());
        if said == PowerStatus::On && self.history(&self.stops).under_way().is_none() {
            let ended = self.ended(&self.stops, "stop");
            return Ok((Power::On, format!("{words}{ended}")));
        }
        let mut under_way = self.cloud.unfinished(&self.settings.zone, &self.settings.id, call).await?;
        under_way.retain(|operation| operation.may_be_of(&self.settings.id, Some(&instance.name)));
        self.follow(&self.stops, &under_way, said == PowerStatus::Terminated, call).await;
        if said != PowerStatus::On {
            self.follow(&self.starts, &under_way, true, call).await;
        }
        // Of one that is stopped only a start matters. Of any other, whatever keeps it from being stopped.
        let tells = |operation: &&Operation| operation.may_start() || said != PowerStatus::Terminated;
        let under_way = under_way.iter().find(tells).map(Operation::words);
        let stop = self.ended(&self.stops, "stop");
        let start = if said == PowerStatus::On { String::new() } else { self.ended(&self.starts, "start") };
        let words = match under_way {
            Some(under_way) => format!("{words}; under way: {under_way}{stop}{start}"),
            None if said != PowerStatus::Terminated => format!("{words}{stop}{start}"),
            None => return self.terminated(&words, &format!("{stop}{start}"), answered_at, call).await,
        };
        Ok((if said == PowerStatus::On { Power::On } else { Power::Unknown }, words))
    }

    /// It was `TERMINATED`, and nothing was under way that could start it. Off it is once our own stop has done what it was for, and once
    /// it is `TERMINATED` still: what was begun and done between the two questions is seen by neither.
    async fn terminated(
        &self,
        words: &str,
        ended: &str,
        answered_at: &mut BootTime,
        call: &Call,
    ) -> Result<(Power, String), DriverError> {
        let (under_way, stopped) = {
            let stops = self.history(&self.stops);
            (stops.under_way(), stops.ended())
        };
        if let Some(name) = under_way {
            return Ok((Power::Unknown, format!("{words}; our stop {name} is not known to have ended")));
        }
        if matches!(stopped, Some(OperationEnd::Failed(_))) {
            return Ok((Power::Unknown, format!("{words}{ended}")));
        }
        let again = self.look(call).await?;
        *answered_at = again.answered_at;
        Ok(match again.found {
            Ok(instance) if instance.said() == PowerStatus::Terminated => {
                self.is_called_so(&instance)?;
                (Power::Off, format!("{words}{}", self.ended(&self.starts, "start")))
            }
            Ok(instance) => (Power::Unknown, format!("{words}, and then {}", instance.words())),
            Err(why) => (Power::Unknown, format!("{words}, and then {why}")),
        })
    }

    /// How our own last command ended, where that is known.
    fn ended(&self, which: &Mutex<CommandHistory>, what: &str) -> String {
        match self.history(which).ended() {
            None => String::new(),
            Some(OperationEnd::Done) => format!("; our {what} is done"),
            Some(OperationEnd::Failed(why)) => format!("; our {what} came to nothing: {why}"),
        }
    }

    /// Asks how our own last command goes on, where it has not ended and is not among what is under way: `at_once`, or where it was not
    /// when that was asked before. Mostly it ended between two answers, and the next reading says more.
    pub(crate) async fn follow(
        &self,
        which: &Mutex<CommandHistory>,
        under_way: &[Operation],
        at_once: bool,
        call: &Call,
    ) {
        let Some(name) = self.history(which).under_way() else { return };
        if under_way.iter().any(|operation| operation.name == name) {
            return;
        }
        if !self.history(which).misses() && !at_once {
            return;
        }
        let how = match self.cloud.operation(&self.settings.zone, &name, call).await {
            Ok(Ok(operation)) => OperationEnd::of(&operation),
            // Compute Engine keeps them for days.
            Ok(Err(failure)) if failure.is_not_found() => {
                Some(OperationEnd::Failed(format!("{name} is not known any more")))
            }
            // It is asked for again.
            Ok(Err(_)) | Err(_) => None,
        };
        if let Some(how) = how {
            self.history(which).ends(&name, how, call.now());
        }
    }

    fn request_of(&self, method: &'static str, order: &picket_core::order::Order, nth: u32) -> RequestId {
        let (node, generation, effect) = (order.node(), order.generation(), order.effect());
        let (instance, salt) = (&self.settings.id, self.salt);
        RequestId::new(RequestIdParts { salt, method, node, generation, effect, instance, device: "", nth })
    }

    pub(crate) async fn stop(&self, order: &OffOrder, call: &Call) -> Result<Accepted, DriverError> {
        call.may_send()?;
        let nothing = |error: DriverError| DriverError { effect: self.effect_of(order), ..error };
        self.cloud.ready(call).await.map_err(nothing)?;
        let already = self.may_be_stopped(call).await.map_err(nothing)?;
        for _ in 0..ANEW {
            let (told, was_unheard) = self.tell_to_stop(order, call).await?;
            let age = self.age(&self.stops, &told, call);
            self.history(&self.stops).over();
            // What an earlier copy did, of which nobody heard, is over: whoever started it since is not stopped by that.
            let is_ours = age? && !(was_unheard && told.operation.is_done());
            if let Some(OperationEnd::Failed(why)) = OperationEnd::of(&told.operation).filter(|_| is_ours) {
                let detail = format!("instances.stop: our stop came to nothing: {why}");
                return Err(DriverError::new(ErrorKind::Refused, Effect::Unknown, detail));
            }
            if is_ours {
                self.history(&self.stops).taken(&told.operation, call.now());
                // Whatever was told to start it is of the past.
                self.history(&self.starts).forget();
                let (asked_at, answered_at) = (told.stamps.asked_at, told.stamps.answered_at);
                return Ok(Accepted { asked_at, answered_at, epoch: Some(EPOCH), already });
            }
        }
        let detail =
            "instances.stop: Compute Engine answers with operations that are older than what it was asked";
        Err(DriverError::new(ErrorKind::Protocol, Effect::Unknown, detail))
    }

    /// Whether it is stopped already, as a short look says. Where nothing is seen it is told all the same, and may have been so already:
    /// a stop waits for no question's turn, and local SSDs Compute Engine keeps by itself where it is not said what becomes of them.
    async fn may_be_stopped(&self, call: &Call) -> Result<bool, DriverError> {
        // Whoever sends an off looked just before: that is not asked for again.
        let since = BootTime::from_boot(call.now().since_boot().saturating_sub(JUST_NOW));
        let looked = match self.looked_at_since(since) {
            Some(found) => return self.may_be_stopped_as(&found),
            None => self.look(&call.until(Instant::now() + SHORT)).await,
        };
        let instance = match looked {
            Ok(InstanceFindings { found: Ok(instance), .. }) => instance,
            Ok(InstanceFindings { found: Err(why), .. }) => return Err(self.gone(&why, call).await),
            Err(error) if error.kind == ErrorKind::IdentityMismatch => return Err(error),
            Err(_) => return self.was_called_so().map(|()| true),
        };
        self.may_be_stopped_as(&instance)
    }

    /// The same of one that was found so.
    fn may_be_stopped_as(&self, instance: &Instance) -> Result<bool, DriverError> {
        self.is_called_so(instance)?;
        let ssds = instance.local_ssds();
        if !ssds.is_empty() && self.settings.discard_local_ssd.is_none() {
            let detail = format!(
                "it has local SSDs ({}), whose contents a stop may destroy: it is not stopped unless discard_local_ssd is set",
                ssds.join(", ")
            );
            let error = DriverError::new(ErrorKind::Settings, Effect::DidNotHappen, detail);
            return Err(error.for_good(true));
        }
        Ok(instance.said() == PowerStatus::Terminated)
    }

    /// What an error before anything was sent means: an earlier copy of the same order may be on its way.
    fn effect_of(&self, order: &OffOrder) -> Effect {
        let nth = self.history(&self.stops).unanswered((order.generation().0, order.effect().0));
        let open =
            nth.is_some_and(|nth| self.open.copies_of(self.request_of("instances.stop", order, nth)) > 0);
        if open { Effect::Unknown } else { Effect::DidNotHappen }
    }

    /// Tells it until it is taken: what is under way at the instance is waited for, and what its limits refuse is sent again.
    async fn tell_to_stop(
        &self,
        order: &OffOrder,
        call: &Call,
    ) -> Result<(CommandAnswer, bool), DriverError> {
        let key = (order.generation().0, order.effect().0);
        loop {
            let going = self.history(&self.stops).next(key);
            let request = self.request_of("instances.stop", order, going.nth);
            let path = self.path("/stop");
            let mut query = vec![("noGracefulShutdown", "true")];
            query.extend(
                self.settings
                    .discard_local_ssd
                    .map(|discard| ("discardLocalSsd", if discard { "true" } else { "false" })),
            );
            // A stop that comes late costs a machine that runs again, and no data: it is not held to what stands in the ledger.
            let command = Command { method: "instances.stop", path: &path, query, request, bound: None };
            self.changes(call.now());
            let was_unheard = self.history(&self.stops).sending(call.now());
            let told = self.cloud.tell(command, self.region(), &self.open, call).await;
            let judge = |error: DriverError| {
                if error.effect == Effect::DidNotHappen {
                    DriverError { effect: self.effect_of(order), ..error }
                } else {
                    error
                }
            };
            if !matches!(&told, Ok(Ok(_))) && !matches!(&told, Ok(Err(failure)) if failure.unclear) {
                self.history(&self.stops).refused(was_unheard);
            }
            let failure = match told.map_err(judge)? {
                Ok(told) => return Ok((told, was_unheard)),
                Err(failure) => failure,
            };
            let waits = Instant::now() + LOOK < call.deadline();
            let error = match failure {
                failure if failure.is_busy() => {
                    if waits {
                        tokio::time::sleep(LOOK).await;
                        continue;
                    }
                    let under_way = self.busy(call).await;
                    let words = format!("{}; it is waited for: {under_way}", failure.words);
                    DriverError { kind: ErrorKind::Throttled, ..Failure { words, ..failure }.into_error() }
                }
                // The bucket waits.
                failure if failure.kind == ErrorKind::Throttled && waits => continue,
                failure => failure.into_error(),
            };
            return Err(judge(error));
        }
    }

    async fn busy(&self, call: &Call) -> String {
        let under_way =
            self.cloud.unfinished(&self.settings.zone, &self.settings.id, call).await.unwrap_or_default();
        under_way.first().map_or_else(|| "it is not told what is under way".to_owned(), Operation::words)
    }

    /// Whether what was answered was made for what this process sent: an operation of old does nothing now.
    fn age(
        &self,
        which: &Mutex<CommandHistory>,
        told: &CommandAnswer,
        call: &Call,
    ) -> Result<bool, DriverError> {
        let first_at = self.history(which).first_at().unwrap_or(told.stamps.asked_at);
        let age = told.date.and_then(|date| told.operation.age(date)).ok_or_else(|| {
            let missing = if told.date.is_none() { "a Date" } else { "an insertTime" };
            let detail =
                format!("the answer comes without {missing}: whether its operation is of now is not known");
            DriverError::new(ErrorKind::Protocol, Effect::Unknown, detail)
        })?;
        Ok(age <= call.now().since(first_at) + STAMPS)
    }

    /// Sent again after it was taken it is another request: Compute Engine would do nothing for the old one, and what that came to its
    /// operation says.
    pub(crate) async fn start(&self, order: OnOrder, call: &Call) -> Result<Accepted, DriverError> {
        self.was_called_so()?;
        let going = self.history(&self.starts).next((order.generation().0, order.effect().0));
        let request = self.request_of("instances.start", &order, going.nth);
        let bound = Some(Bound::of(&order, Some(order.checked_at())));
        let path = self.path("/start");
        let command = Command { method: "instances.start", path: &path, query: Vec::new(), request, bound };
        self.changes(call.now());
        self.history(&self.starts).sent(call.now());
        let told = self.cloud.tell(command, self.region(), &self.open, call).await?;
        let told = told.map_err(|failure| match failure.is_busy() {
            true => DriverError { kind: ErrorKind::Throttled, ..failure.into_error() },
            false => failure.into_error(),
        })?;
        let age = self.age(&self.starts, &told, call);
        self.history(&self.starts).over();
        if !age? {
            let detail = "instances.start: Compute Engine answers with an operation that is older than what it was asked: it is sent anew";
            return Err(DriverError::new(ErrorKind::Throttled, Effect::DidNotHappen, detail));
        }
        // What was told to stop it is of the past.
        self.history(&self.stops).forget();
        self.history(&self.starts).taken(&told.operation, call.now());
        if let Some(OperationEnd::Failed(why)) = OperationEnd::of(&told.operation) {
            let detail = format!("instances.start: our start came to nothing: {why}");
            return Err(DriverError::new(ErrorKind::Refused, Effect::Unknown, detail));
        }
        let (asked_at, answered_at) = (told.stamps.asked_at, told.stamps.answered_at);
        // Told again what runs already, it does nothing; which of the two it was the next reading shows.
        Ok(Accepted { asked_at, answered_at, epoch: Some(EPOCH), already: false })
    }
}
