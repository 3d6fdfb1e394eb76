//! Requests that go alone: a start, a detach, what few ask.
//!
//! # Invariants
//!
//! - A command is sent once, and heard to its end also where its caller goes away. Shown by
//!   `a_start_is_heard_also_where_its_caller_has_left`.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use aws_sdk_ec2::{Client, config};
use picket_cloud::Unclear;
use picket_core::time::WallTime;
use picket_driver::{Call, DriverError, Effect, ErrorKind};
use tokio::time::{Instant, timeout_at};

use super::batch::AbandonGuard;
use super::wire::{SendOutcome, Stamps, Ticket};
use super::words::{self, Failure};
use super::{AuthenticatedClient, Cloud, SdkResult, unheard, wrong};

/// How a request that goes alone comes by its token.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BucketAccess {
    /// It is wanted now: it does not wait for others' tokens, and is asked for again.
    Now,
    /// It is a check's, of an action that nothing but checks asks for: it waits.
    Patient,
    /// It was promised its turn, which has come.
    Promised,
}

impl Cloud {
    /// When AWS's limits bear one more of that action, for whoever asks: in the order of asking.
    pub(crate) fn promised(&self, action: &'static str) -> Instant {
        self.bucket(action).reserve()
    }

    /// How long AWS is sent nothing of it, having refused because of its limits.
    pub(crate) fn pause(&self, action: &'static str) -> Option<Duration> {
        self.bucket(action).pause()
    }

    /// One request that goes alone: a command with its signature's time, and until when it may go; a question with none. It is heard
    /// to its end also where its caller goes away; what was not sent by then is not sent.
    pub(crate) async fn alone<T, Sent>(
        self: &Arc<Self>,
        action: &'static str,
        turn: BucketAccess,
        order: Option<(SystemTime, Option<WallTime>, &Unclear)>,
        call: &Call,
        send: impl FnOnce(Client, config::Builder) -> Sent + Send + 'static,
    ) -> Result<Result<(T, Stamps), Failure>, DriverError>
    where
        T: Send + 'static,
        Sent: Future<Output = SdkResult<T>> + Send + 'static,
    {
        let bucket = self.bucket(action);
        let limited = match turn {
            BucketAccess::Now => {
                (!bucket.take_now()).then_some("AWS takes no more of it just now, by its limits")
            }
            BucketAccess::Patient => {
                let has_turn = bucket.take_until(1, call.deadline()).await;
                (!has_turn).then_some("too many of it wait for AWS's limits")
            }
            BucketAccess::Promised => None,
        };
        if let Some(why) = limited {
            return Err(wrong(ErrorKind::Throttled, format!("{action}: {why}")));
        }
        let signed = order.map(|(signed, ..)| signed);
        let ticket = order.map(|(_, not_after, unclear)| Ticket::new(call, self.life, not_after, unclear));
        let mut leaving = AbandonGuard::of(ticket.clone());
        let (cloud, until) = (self.clone(), call.deadline());
        let told = tokio::spawn(async move { cloud.one(action, ticket, signed, until, send).await });
        told.await.unwrap_or_else(|_| {
            let effect = if leaving.leave() { Effect::Unknown } else { Effect::DidNotHappen };
            Err(DriverError::new(ErrorKind::Protocol, effect, format!("{action}: it was given up")))
        })
    }

    async fn one<T, Sent>(
        &self,
        action: &'static str,
        ticket: Option<Arc<Ticket>>,
        signed: Option<SystemTime>,
        until: Instant,
        send: impl FnOnce(Client, config::Builder) -> Sent,
    ) -> Result<Result<(T, Stamps), Failure>, DriverError>
    where
        Sent: Future<Output = SdkResult<T>>,
    {
        let AuthenticatedClient { number, client } = self.client(until).await?;
        let sending = self.sending(until, ticket.iter().cloned().collect());
        let config = sending.config(signed.or_else(|| self.far_now()));
        let ended = || ticket.iter().for_each(|ticket| ticket.ended());
        let sent = timeout_at(until, unheard(send(client, config))).await;
        match (sent, sending.fate()) {
            (Ok(Ok(said)), SendOutcome::Answered(stamps)) => {
                self.hear(stamps);
                self.bucket(action).accepted();
                ended();
                Ok(Ok((said, stamps)))
            }
            (_, SendOutcome::Barred(barred)) => {
                let barred = barred.into_iter().next().map(|(_, error)| error);
                Err(barred.unwrap_or_else(|| wrong(ErrorKind::NotLeader, "it may not be sent")))
            }
            (sent, fate) => {
                let asked = self.asked();
                let failure = words::failure(action, &asked, fate, sent.ok().and_then(Result::err));
                self.note(&failure, number);
                if !failure.unclear {
                    ended();
                }
                if failure.kind == ErrorKind::Throttled {
                    self.bucket(action).refused();
                }
                Ok(Err(failure))
            }
        }
    }
}
