//! The queue's runner: lets requests go in the order of their arrival, and ends those that waited for too
//! long.
//!
//! It is one task of a leadership and waits for no node: the node's own task decides about what the runner
//! lets go.
//!
//! # Invariants
//!
//! - A limit that bars an earlier request does not bar a later one that it does not concern. A newcomer
//!   does not pass a waiting request that could go. Shown by
//!   `the_queue_is_bounded_and_a_newcomer_does_not_pass_who_waits`,
//!   `whoever_waits_for_a_paused_node_keeps_nobody_else_waiting`.
//! - A stored request outlives its caller and a restart, with what is left of its time. Shown by
//!   `a_request_goes_on_waiting_without_its_caller_and_after_a_death_with_what_is_left`.
//! - No caller fills the queue (S14). Shown by `no_caller_fills_the_queue`,
//!   `no_process_fills_the_queue_by_many_addresses`.

mod left;
mod members;
mod over;
mod room;
mod withdraw;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use picket_audit::{GATEWAY, Told};
use picket_core::budget::{Bar, LimitKind, Ticket};
use picket_core::election::Leadership;
use picket_core::ids::{NodeId, Version};
use picket_core::record::Phase;
use picket_core::store::StoreError;
use picket_core::time::BootTime;
use serde_json::json;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use left::{Ghost, Left};

use super::Engine;
use crate::error::EngineError;
use crate::office::queue::{Asked, Enter, Entry, PREFIX, Stored, WaitState, Waits, Withdraw};
use crate::request::{Admission, FenceCall, LetIn};

/// A limit of which nobody knows when it is free is looked at so often, besides at each change.
const LOOK: Duration = Duration::from_secs(5);

/// What was decided and stays is not decided again before this.
const PAUSE: Duration = Duration::from_millis(250);

type Decided = (Ticket, Result<Admission, EngineError>);

/// The runner of one leadership.
struct Runner<'e> {
    engine: &'e Engine,
    leadership: &'e Leadership,
    entries: BTreeMap<Ticket, Entry>,
    going: FuturesUnordered<BoxFuture<'static, Decided>>,
    /// Which members of the store do not answer is being asked, and when that was asked last.
    counting: FuturesUnordered<BoxFuture<'static, BTreeSet<String>>>,
    counted: BootTime,
    /// Notes of requests that wait no more, and could not be taken out of the store yet.
    left: Vec<Left>,
    /// Holders who withdraw what they have waiting, until it has ended.
    withdrawing: Vec<Withdraw>,
    next: Ticket,
}

fn name(ticket: Ticket) -> String {
    format!("{PREFIX}{ticket:020}")
}

/// The requests that another process, or leadership, left waiting, as they go on with what is left of their time.
#[derive(Debug)]
pub(super) struct Waiting {
    entries: BTreeMap<Ticket, Entry>,
    left: Vec<Left>,
    next: Ticket,
}

/// Reads what waits, before anybody is let in.
pub(super) async fn read(engine: &Engine) -> Result<Waiting, StoreError> {
    let parts = &engine.shared.parts;
    let mut waiting = Waiting { entries: BTreeMap::new(), left: Vec::new(), next: 1 };
    for (ticket, stored) in stored(engine).await? {
        waiting.next = waiting.next.max(ticket + 1);
        let until = parts.clock.boot() + stored.left(&engine.shared.office);
        let entry = stored.entry(until, restarted());
        if engine.slot(&entry.node).is_err() {
            tracing::error!(node = %entry.node, "a request waits for a node that is not in the settings: it ends");
            waiting.left.push(Left::new(ticket, &entry.node, &entry.call));
            continue;
        }
        tracing::info!(node = %entry.node, ticket, "a request goes on waiting");
        engine.shared.office.waits(ticket, &entry);
        waiting.entries.insert(ticket, entry);
    }
    Ok(waiting)
}

/// Shows what waits, where another gateway lets it go.
pub(super) async fn see(engine: &Engine) -> Result<(), StoreError> {
    let now = engine.shared.parts.clock.boot();
    let entries = stored(engine).await?.into_iter().map(|(ticket, stored)| {
        let until = now + stored.left(&engine.shared.office);
        (ticket, stored.entry(until, elsewhere()))
    });
    engine.shared.office.see_queue(entries.collect());
    Ok(())
}

async fn stored(engine: &Engine) -> Result<Vec<(Ticket, Stored)>, StoreError> {
    let notes = engine.shared.parts.store.notes(PREFIX).await?;
    let read = notes.into_iter().map(|(name, note)| {
        let number = name.strip_prefix(PREFIX).and_then(|number| number.parse::<Ticket>().ok());
        let stored = serde_json::from_str::<Stored>(&note.text);
        let (Some(ticket), Ok(stored)) = (number, stored) else {
            return Err(StoreError::Damaged(format!("the request that waits as {name:?} cannot be read")));
        };
        Ok((ticket, stored))
    });
    read.collect()
}

/// The task ends with the leadership.
pub(super) async fn run(
    engine: Engine,
    leadership: Arc<Leadership>,
    waiting: Waiting,
    over: CancellationToken,
) {
    let mut inbox = engine.shared.office.queue.inbox.lock().await;
    let Waiting { entries, left, next } = waiting;
    let going = FuturesUnordered::new();
    let mut runner = Runner {
        engine: &engine,
        leadership: &leadership,
        entries,
        going,
        counting: FuturesUnordered::new(),
        counted: BootTime::default(),
        left,
        withdrawing: Vec::new(),
        next,
    };
    loop {
        runner.end_what_is_over().await;
        runner.withdraw().await;
        runner.tidy().await;
        runner.count_members();
        let wake = runner.let_go();
        tokio::select! {
            biased;
            () = over.cancelled() => return,
            Some((ticket, decided)) = runner.going.next() => runner.decided(ticket, decided),
            Some(silent) = runner.counting.next() => engine.shared.office.hears_nothing_of(silent),
            Some(asked) = inbox.recv() => match asked {
                Asked::Enter(enter) => runner.enter(*enter).await,
                Asked::Withdraw(asked) => runner.withdrawing.push(asked),
            },
            () = engine.shared.office.changed() => {}
            () = tokio::time::sleep(wake) => {}
        }
    }
}

impl Runner<'_> {
    /// A request comes in: stored before it is answered. One that waits already is the same: by its key, or without one by all that it asks.
    async fn enter(&mut self, enter: Enter) {
        let answer = self.take_in(&enter).await;
        let _ = enter.reply.send(answer);
    }

    async fn take_in(&mut self, enter: &Enter) -> Result<Waits, EngineError> {
        let same = self.entries.iter().find(|(_, entry)| entry.is_asked_by(enter));
        if let Some((ticket, entry)) = same {
            let digest = |call: &FenceCall| call.key.as_ref().map(|key| key.digest.clone());
            return match digest(&entry.call) == digest(&enter.call) {
                true => Ok(entry.waits(*ticket)),
                false => Err(EngineError::Invalid(
                    "a request with this key waits already, and has other parameters".to_owned(),
                )),
            };
        }
        let parts = &self.engine.shared.parts;
        let (expires, most) = self.engine.shared.office.queue_rules();
        self.expect_room(enter, most)?;
        let life = enter.at_most.unwrap_or(expires).min(expires);
        let (since, until) = (parts.clock.wall(), parts.clock.boot() + life);
        let stored = Stored::of(enter, since, since.after(life));
        let text = serde_json::to_string(&stored)
            .map_err(|error| EngineError::Invalid(format!("the request cannot be stored: {error}")))?;
        let ticket = self.next;
        self.next += 1;
        let put = parts.store.put_note(self.leadership.guard(), &name(ticket), Version(0), Some(text)).await;
        if let Err(error) = put {
            // Whether it was written may not be known, and it may be written yet: nobody waits unseen.
            let expired = Stored::of(enter, since, since);
            let expired = serde_json::to_string(&expired).map(|text| Ghost::new(until, text)).ok();
            self.left.push(Left { ghost: expired, ..Left::new(ticket, &enter.node, &enter.call) });
            return Err(error.into());
        }
        let entry = stored.entry(until, enter.bar.clone());
        self.told(&entry, ticket, "waits", &enter.bar.detail());
        let waits = entry.waits(ticket);
        self.engine.shared.office.waits(ticket, &entry);
        self.show(&entry.node);
        self.entries.insert(ticket, entry);
        Ok(waits)
    }

    /// Lets go whose turn has come; says how long nothing can change by time alone.
    fn let_go(&mut self) -> Duration {
        let shared = &self.engine.shared;
        let now = shared.parts.clock.boot();
        // Before anybody is told that this leadership leads no request comes to its node.
        if self.engine.leading().is_err() {
            return PAUSE;
        }
        let mut wake = if self.entries.is_empty() { LOOK * 12 } else { LOOK };
        for (ticket, turn) in shared.office.turns() {
            let Some(entry) = self.entries.get_mut(&ticket).filter(|entry| !entry.goes) else { continue };
            // It is over, and could not be taken out of the store yet.
            if entry.until <= now {
                wake = wake.min(PAUSE);
                continue;
            }
            wake = wake.min(entry.until.since(now));
            if entry.not_before > now {
                wake = wake.min(entry.not_before.since(now));
                continue;
            }
            let Ok(slot) = self.engine.slot(&entry.node) else { continue };
            // The settings changed since it was looked whether it is over.
            let Ok(may) = shared.office.may_still(&entry.call, &slot.plan) else {
                wake = wake.min(PAUSE);
                continue;
            };
            let view = slot.view.borrow();
            let record = &view.stored.record;
            // No limit bars whoever joins.
            let joins = !matches!(record.phase, Phase::Normal | Phase::Unfencing | Phase::PowerOnFailed)
                && entry.tried != Some(record.generation);
            match turn {
                Err(bar) if !joins => {
                    wake = wake.min(bar.retry_after.unwrap_or(wake).max(Duration::from_millis(10)));
                    let same =
                        matches!(&*entry.state.borrow(), WaitState::Barred(old) if old.text == bar.text);
                    if !same {
                        entry.state.send_replace(WaitState::Barred(Box::new(bar)));
                        let _ = shared.shown.send(entry.node.clone());
                    }
                }
                _ => {
                    entry.goes = true;
                    entry.tried = Some(record.generation);
                    let (engine, node, call) =
                        (self.engine.clone(), entry.node.clone(), entry.call(ticket, may));
                    let target = entry.target.clone();
                    let going = async move { (ticket, engine.fence_of(&node, call, target).await) };
                    self.going.push(Box::pin(going));
                }
            }
        }
        wake
    }

    /// Its node's task decided it.
    fn decided(&mut self, ticket: Ticket, decided: Result<Admission, EngineError>) {
        let Some(entry) = self.entries.get_mut(&ticket) else { return };
        let stays = match decided {
            Err(EngineError::Barred(bar)) => {
                entry.state.send_replace(WaitState::Barred(bar));
                true
            }
            // Nothing was written: it is decided again, also where it would join.
            Err(EngineError::Store(StoreError::Unavailable(_))) => {
                entry.tried = None;
                true
            }
            // Whether it was begun is not known, and this leadership ends for it: the next one reads what is so, and goes on
            // with it. Until then it is on its way, and nobody is told that it was withdrawn, or expired.
            Err(EngineError::NoLeader(_) | EngineError::Unanswered | EngineError::Store(_)) => false,
            decided => return self.end(ticket, decided),
        };
        entry.goes = !stays;
        entry.not_before = self.engine.shared.parts.clock.boot() + PAUSE;
    }

    fn end(&mut self, ticket: Ticket, end: Result<Admission, EngineError>) {
        self.engine.shared.office.leaves(ticket);
        if let Some(entry) = self.entries.remove(&ticket) {
            entry.state.send_replace(WaitState::Over(Box::new(end)));
            self.show(&entry.node);
            self.left.push(Left::new(ticket, &entry.node, &entry.call));
        }
    }

    /// What waits for the node is not what it was: whoever watches it looks again.
    fn show(&self, node: &NodeId) {
        let _ = self.engine.shared.shown.send(node.clone());
    }

    /// Takes what waits no more out of the store, and pauses that have ended.
    async fn tidy(&mut self) {
        let shared = &self.engine.shared;
        shared.office.sweep(&*shared.parts.store, self.leadership).await;
        for mut left in std::mem::take(&mut self.left) {
            match left.take_out(self.engine, self.leadership).await {
                Ok(true) => {}
                Ok(false) => self.left.push(left),
                Err(error) => {
                    let ticket = left.ticket;
                    tracing::warn!(ticket, %error, "a request that waits no more was not taken out of the store; again later");
                    self.left.push(left);
                }
            }
        }
    }

    fn told(&self, entry: &Entry, ticket: Ticket, outcome: &str, how: &str) {
        let parts = &self.engine.shared.parts;
        tracing::info!(node = %entry.node, ticket, outcome, how, "a request in the queue");
        let holder = &entry.call.holder;
        let details = json!({
            "call": "fence", "holder": holder.name, "by": holder.by, "reason": holder.reason,
            "ticket": ticket, "outcome": outcome, "how": how,
        });
        parts.audit.tell(Told {
            at: parts.clock.wall().millis(),
            who: GATEWAY.to_owned(),
            what: "queue".to_owned(),
            node: Some(entry.node.to_string()),
            generation: Some(entry.generation.0),
            details,
            ..Told::default()
        });
    }
}

/// What bars a request that was read from the store, until it is decided anew.
fn restarted() -> Bar {
    Bar {
        kind: LimitKind::Queue,
        whose: "the gateway".to_owned(),
        allowed: 0,
        found: 0,
        text: "it is decided anew after a restart".to_owned(),
        names: String::new(),
        retry_after: None,
    }
}

/// What is told of a request whose leader alone knows what bars it.
fn elsewhere() -> Bar {
    Bar {
        whose: "the leader".to_owned(),
        text: "the leader decides when its turn comes".to_owned(),
        ..restarted()
    }
}

impl Engine {
    /// Opens or joins the fence of a node; where a limit bars it, the request waits in the queue, `at_most` as long as the
    /// settings say. A caller who leaves stops neither.
    pub async fn fence_or_wait(
        &self,
        node: &NodeId,
        call: FenceCall,
        at_most: Option<Duration>,
    ) -> Result<LetIn, EngineError> {
        // As it was when the request came: what was barred meant that machine.
        let target = self.target(node);
        let bar = match self.fence_of(node, call.clone(), target.clone()).await {
            Ok(admission) => return Ok(LetIn::In(admission)),
            Err(EngineError::Barred(bar)) => *bar,
            Err(error) => return Err(error),
        };
        let generation = self.node(node)?.stored.record.generation;
        let (reply, answer) = oneshot::channel();
        let enter = Enter { node: node.clone(), generation, target, call, at_most, bar, reply };
        let entrance = &self.shared.office.queue.entrance;
        entrance.send(Asked::Enter(Box::new(enter))).await.map_err(|_| EngineError::Unanswered)?;
        Ok(LetIn::Waits(answer.await.map_err(|_| EngineError::Unanswered)??))
    }
}
