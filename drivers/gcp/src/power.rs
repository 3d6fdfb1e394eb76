//! Reading power, off and on.

use std::time::Duration;

use picket_core::order::{OffOrder, OnOrder};
use picket_core::power::{Epoch, EpochOrigin, Power, Reading};
use picket_core::time::BootTime;
use picket_driver::{Accepted, Call, DriverError, Effect, ErrorKind};
use tokio::time::Instant;

use crate::cloud::{Bound, Command, Failure, Told};
use crate::driver::GcpDriver;
use crate::instance::{Instance, Said};
use crate::operation::Operation;
use crate::requests::{Of, RequestId};

/// A cloud has one epoch: the instance's id, which is what every question names.
const EPOCH: Epoch = Epoch { id: 1, origin: EpochOrigin::Fresh };
/// Between two looks at what is under way.
const LOOK: Duration = Duration::from_secs(1);
/// By how much what Google stamps may be off.
const STAMPS: Duration = Duration::from_secs(2);
/// So often another request is made of an order whose own was answered with one of old.
const ANEW: u32 = 8;

/// The stops of ours in this process.
#[derive(Debug, Default)]
pub(crate) struct Ours {
    /// The request that goes next, or went last.
    request: Option<Going>,
    /// The last one that was taken.
    taken: Option<Taken>,
}

/// A stop that was taken.
#[derive(Clone, Debug)]
struct Taken {
    /// The operation that does it.
    operation: String,
    /// It was not among what is under way, once.
    is_missing: bool,
    /// When it was seen to be done, and what is to be said of that.
    ended: Option<(BootTime, String)>,
    /// The instance was asked for after that, and is not off.
    in_vain: bool,
}

#[derive(Clone, Copy, Debug)]
struct Going {
    /// Of which order it is: its generation and its entry in the ledger.
    order: (u64, u64),
    nth: u32,
    /// Another one is not this one sent again.
    is_taken: bool,
    first_at: Option<BootTime>,
    /// A copy of it was sent, and nobody here heard what became of that.
    is_unheard: bool,
}

impl Ours {
    /// The request to send for that order: the same until it was taken.
    fn next(&mut self, order: (u64, u64)) -> Going {
        let nth = match self.request {
            Some(going) if going.order == order && going.is_taken => going.nth + 1,
            Some(going) if going.order == order => return going,
            _ => 0,
        };
        let going = Going { order, nth, is_taken: false, first_at: None, is_unheard: false };
        self.request = Some(going);
        going
    }

    fn sent(&mut self, at: BootTime) -> BootTime {
        self.request.as_mut().map_or(at, |going| *going.first_at.get_or_insert(at))
    }

    /// A copy is about to be sent, whose caller may go away; whether another one before it was not heard of.
    fn sending(&mut self, at: BootTime) -> bool {
        self.sent(at);
        self.request.as_mut().is_some_and(|going| std::mem::replace(&mut going.is_unheard, true))
    }

    /// It was surely refused: what is not heard of is what was before.
    fn refused(&mut self, was_unheard: bool) {
        if let Some(going) = &mut self.request {
            going.is_unheard = was_unheard;
        }
    }

    fn over(&mut self) {
        if let Some(going) = &mut self.request {
            going.is_taken = true;
        }
    }

    /// Whether what the last one is done by has ended, and the instance is not off by that.
    pub(crate) fn was_in_vain(&self) -> bool {
        self.taken.as_ref().is_some_and(|taken| taken.in_vain)
    }

    /// What is known of the end of the last one to whom asks at that time and does not see it off; `None`: it goes on, or there is none.
    fn ended(&mut self, asked_at: BootTime) -> Option<String> {
        let taken = self.taken.as_mut()?;
        let (at, words) = taken.ended.clone()?;
        taken.in_vain |= at < asked_at;
        Some(words)
    }

    /// Which operation is followed.
    fn follows(&self) -> Option<String> {
        self.taken.as_ref().filter(|taken| taken.ended.is_none()).map(|taken| taken.operation.clone())
    }
}

impl GcpDriver {
    pub(crate) async fn reading(&self, call: &Call) -> Result<Reading, DriverError> {
        let seen = self.look(call).await?;
        let (power, said) = match &seen.found {
            Ok(instance) => self.judged(instance, seen.asked_at, call).await?,
            // Not found is a word of its own, and none of power.
            Err(why) => {
                let successor = self.successor(call).await;
                let successor =
                    successor.map(|id| format!("; its name is the instance {id}'s now")).unwrap_or_default();
                (Power::Unknown, format!("{why}{successor}"))
            }
        };
        let (asked_at, answered_at) = (seen.asked_at, seen.answered_at);
        Ok(Reading { power, asked_at, answered_at, epoch: Some(EPOCH), said })
    }

    async fn judged(
        &self,
        instance: &Instance,
        asked_at: BootTime,
        call: &Call,
    ) -> Result<(Power, String), DriverError> {
        let (said, words) = (instance.said(), instance.words());
        if said == Said::On && self.ours().follows().is_none() {
            let ended = self.ours().ended(asked_at).unwrap_or_default();
            return Ok((Power::On, format!("{words}{ended}")));
        }
        let under_way = self.cloud.unfinished(&self.settings.zone, &self.settings.id, call).await?;
        let starts = under_way.iter().find(|operation| operation.may_start()).map(Operation::words);
        let power = match (said, &starts) {
            (Said::On, _) => Power::On,
            (Said::Terminated, None) => Power::Off,
            _ => Power::Unknown,
        };
        let starts = starts.map(|words| format!("; under way: {words}")).unwrap_or_default();
        let ended =
            if power == Power::Off { String::new() } else { self.follow(&under_way, asked_at, call).await };
        Ok((power, format!("{words}{starts}{ended}")))
    }

    /// How our own stop goes on, where it came to nothing yet.
    async fn follow(&self, under_way: &[Operation], asked_at: BootTime, call: &Call) -> String {
        let Some(name) = self.ours().follows() else {
            return self.ours().ended(asked_at).unwrap_or_default();
        };
        if under_way.iter().any(|operation| operation.name == name) {
            return String::new();
        }
        // Mostly it ended between the two answers, and the next reading says off.
        let was_missing =
            self.ours().taken.as_mut().is_some_and(|taken| std::mem::replace(&mut taken.is_missing, true));
        if !was_missing {
            return String::new();
        }
        let words = match self.cloud.operation(&self.settings.zone, &name, call).await {
            Ok(Ok(operation)) if operation.is_done() => match operation.failed() {
                Some(why) => format!("; our stop came to nothing: {why}"),
                None => "; our stop is done".to_owned(),
            },
            // Compute Engine keeps them for days: it is asked again.
            _ => return String::new(),
        };
        let mut ours = self.ours();
        if let Some(taken) = ours.taken.as_mut().filter(|taken| taken.operation == name) {
            taken.ended = Some((call.now(), words.clone()));
        }
        words
    }

    fn request_of(&self, method: &'static str, order: &picket_core::order::Order, nth: u32) -> RequestId {
        let (node, generation, effect) = (order.node(), order.generation(), order.effect());
        RequestId::new(Of {
            salt: self.salt,
            method,
            node,
            generation,
            effect,
            instance: &self.settings.id,
            device: "",
            nth,
        })
    }

    pub(crate) async fn stop(&self, order: &OffOrder, call: &Call) -> Result<Accepted, DriverError> {
        call.may_send()?;
        let nothing = |error: DriverError| DriverError { effect: self.effect_of(order), ..error };
        let instance = self.instance(call).await.map_err(nothing)?;
        let ssds = instance.local_ssds();
        if !ssds.is_empty() && self.settings.discard_local_ssd.is_none() {
            let detail = format!(
                "it has local SSDs ({}), whose contents a stop may destroy: it is not stopped unless discard_local_ssd is set",
                ssds.join(", ")
            );
            return Err(DriverError::new(ErrorKind::Settings, self.effect_of(order), detail));
        }
        let already = instance.said() == Said::Terminated;
        for _ in 0..ANEW {
            let (told, was_unheard) = self.tell_to_stop(order, call).await?;
            // What an earlier copy did, of which nobody heard, is over: whoever started it since is not stopped by that.
            let is_ours = self.is_ours(&told, call) && !(was_unheard && told.operation.is_done());
            self.ours().over();
            if is_ours {
                self.ours().taken = Some(Taken {
                    operation: told.operation.name,
                    is_missing: false,
                    ended: None,
                    in_vain: false,
                });
                let (asked_at, answered_at) = (told.stamps.asked_at, told.stamps.answered_at);
                return Ok(Accepted { asked_at, answered_at, epoch: Some(EPOCH), already });
            }
        }
        let detail =
            "instances.stop: Compute Engine answers with operations that are older than what it was asked";
        Err(DriverError::new(ErrorKind::Protocol, Effect::Unknown, detail))
    }

    /// What an error before anything was sent means: an earlier copy of the same order may be on its way.
    fn effect_of(&self, order: &OffOrder) -> Effect {
        let key = (order.generation().0, order.effect().0);
        let nth =
            self.ours().request.filter(|going| going.order == key && !going.is_taken).map(|going| going.nth);
        let open =
            nth.is_some_and(|nth| self.open.copies_of(self.request_of("instances.stop", order, nth)) > 0);
        if open { Effect::Unknown } else { Effect::DidNotHappen }
    }

    /// Tells it until it is taken: what is under way at the instance is waited for, and what its limits refuse is sent again.
    async fn tell_to_stop(&self, order: &OffOrder, call: &Call) -> Result<(Told, bool), DriverError> {
        let key = (order.generation().0, order.effect().0);
        loop {
            let going = self.ours().next(key);
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
            let was_unheard = self.ours().sending(call.now());
            let told = self.cloud.tell(command, self.region(), &self.open, call).await;
            let judge = |error: DriverError| {
                if error.effect == Effect::DidNotHappen {
                    DriverError { effect: self.effect_of(order), ..error }
                } else {
                    error
                }
            };
            if !matches!(&told, Ok(Ok(_))) && !matches!(&told, Ok(Err(failure)) if failure.unclear) {
                self.ours().refused(was_unheard);
            }
            let failure = match told.map_err(judge)? {
                Ok(told) => return Ok((told, was_unheard)),
                Err(failure) => failure,
            };
            let waits = Instant::now() + LOOK < call.deadline();
            let error = match failure {
                failure if failure.is_busy() => {
                    let under_way = self.busy(call).await;
                    if waits {
                        tokio::time::sleep(LOOK).await;
                        continue;
                    }
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
    fn is_ours(&self, told: &Told, call: &Call) -> bool {
        let first_at = self.ours().request.and_then(|going| going.first_at).unwrap_or(told.stamps.asked_at);
        let age = told.date.and_then(|date| told.operation.age(date));
        age.is_some_and(|age| age <= call.now().since(first_at) + STAMPS)
    }

    pub(crate) async fn start(&self, order: OnOrder, call: &Call) -> Result<Accepted, DriverError> {
        let going = self.ours().next((order.generation().0, order.effect().0));
        let request = self.request_of("instances.start", &order, going.nth);
        let bound = Some(Bound::of(&order, order.checked_at()));
        let path = self.path("/start");
        let command = Command { method: "instances.start", path: &path, query: Vec::new(), request, bound };
        self.ours().sent(call.now());
        let told = self.cloud.tell(command, self.region(), &self.open, call).await?;
        let told = told.map_err(|failure| match failure.is_busy() {
            true => DriverError { kind: ErrorKind::Throttled, ..failure.into_error() },
            false => failure.into_error(),
        })?;
        let is_ours = self.is_ours(&told, call);
        self.ours().over();
        if !is_ours {
            let detail = "instances.start: Compute Engine answers with an operation that is older than what it was asked, and does nothing";
            return Err(DriverError::new(ErrorKind::Throttled, Effect::DidNotHappen, detail));
        }
        // What was told to stop it is of the past.
        self.ours().taken = None;
        let (asked_at, answered_at) = (told.stamps.asked_at, told.stamps.answered_at);
        // Told again what runs already, it does nothing; which of the two it was the next reading shows.
        Ok(Accepted { asked_at, answered_at, epoch: Some(EPOCH), already: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_was_in_vain_once_it_is_done_and_whoever_asks_after_that_does_not_see_it_off() {
        let at = |seconds| BootTime::from_boot(Duration::from_secs(seconds));
        let taken = Taken { operation: "o".to_owned(), is_missing: false, ended: None, in_vain: false };
        let mut ours = Ours { request: None, taken: Some(taken) };
        assert_eq!((ours.ended(at(5)), ours.follows().as_deref()), (None, Some("o")));
        ours.taken.as_mut().expect("there").ended = Some((at(10), "done".to_owned()));
        // Who asked before that saw it on its way.
        assert_eq!((ours.ended(at(9)).as_deref(), ours.was_in_vain()), (Some("done"), false));
        assert_eq!((ours.ended(at(11)).as_deref(), ours.was_in_vain()), (Some("done"), true));
    }

    #[test]
    fn an_order_is_the_same_request_until_it_was_taken() {
        let mut ours = Ours::default();
        let at = |seconds| BootTime::from_boot(Duration::from_secs(seconds));
        assert_eq!(ours.next((1, 1)).nth, 0);
        assert_eq!((ours.sent(at(5)), ours.sent(at(9))), (at(5), at(5)), "as old as its first copy");
        assert_eq!(ours.next((1, 1)).nth, 0, "it was not answered");
        ours.over();
        assert_eq!(ours.next((1, 1)).nth, 1, "sent anew on purpose");
        assert_eq!(ours.sent(at(20)), at(20));
        assert_eq!(ours.next((1, 2)).nth, 0, "another order");
        assert!(!ours.was_in_vain());
    }
}
