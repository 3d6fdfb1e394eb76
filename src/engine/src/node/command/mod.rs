//! What callers ask of a node, and the answers. The same in every phase; the rules say what is possible.

mod admit;
mod drill;
mod parent;
mod plan;
mod receipts;
mod retry;
mod wish;

use std::sync::Arc;

use picket_core::event::{BoundKey, Event};
use picket_core::ids::{EffectId, Generation, ReceiptId, ReleaseId, Term};
use picket_core::outcome::Reason;
use picket_core::record::NodeRecord;
use picket_core::store::{KeyEntry, StoreError, Stored};
use picket_core::target::Target;
use picket_core::time::WallTime;
use picket_liveness::Look;
use tokio::sync::oneshot;

use super::asked::{Asked, InWords};
use super::{Failure, Fatal, NodeTask, quarantine};
use crate::bound_keys::bound_to;
use crate::error::{EngineError, Stale, TakenKey, another_machine};
use crate::parents::{ParentAnswer, ParentAsk};
use crate::plan::Plan;
use crate::receipts::{ReceiptCall, Receipted, Verified};
use crate::request::{Acting, Admission, Ask, FenceCall, Taken};
use parent::expect_no_child;
pub(crate) use wish::Wish;

/// Where an answer goes. A caller who left does not stop anything.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, EngineError>>;

pub(crate) enum Command {
    /// A fence of the machine that the node had when the request came.
    Fence(Box<FenceCall>, Target, Reply<Admission>),
    Unfence {
        holder: String,
        ask: Ask,
        reply: Reply<Taken>,
    },
    Retry(Ask, Reply<Taken>),
    Abandon(ReleaseId, Ask, Reply<Taken>),
    StandDown(Ask, Reply<Taken>),
    /// What a fence would do, and whether the node recovered. Stores and sends nothing that changes anything.
    Plan(Box<FenceCall>, Option<Look>, Reply<Plan>),
    /// What a drill would do.
    PlanDrill(Box<FenceCall>, Reply<Plan>),
    /// What else a person wants.
    Wish(Wish, Ask, Reply<Taken>),
    /// A fence on purpose, of a node of which nothing is wrong.
    Drill(Box<FenceCall>, Target, Reply<Admission>),
    Receipt(ReceiptCall, Reply<Receipted>),
    ReturnReceipt {
        id: ReceiptId,
        by: String,
        reply: Reply<()>,
    },
    VerifyReceipt {
        id: ReceiptId,
        fresh: bool,
        reply: Reply<Verified>,
    },
    /// One of its children asks, under that leadership.
    Parent(ParentAsk, Term, Reply<ParentAnswer>),
    /// Ask all devices now. A fence ends it unanswered.
    Check(Reply<NodeRecord>),
    /// What these effects had set up is gone for good: a task of the node's own says so.
    Withdrawn(Vec<EffectId>),
    /// Whom the far side of a release has for the node, or why it does not hear yet that the node is being fenced: a task of the node's own says so.
    Announced(Generation, ReleaseId, Result<Option<String>, String>),
    /// Another machine has the node's name at the far side of a release: a task of the node's own says so.
    Replaced(Generation, ReleaseId, String),
    /// What its last fence left stands for longer than it should, or does not any more: a task of the node's own says so.
    NotBack(ReleaseId, bool),
    /// Any other one, with the roles in which it is asked.
    As(Arc<Acting>, Box<Command>),
    /// Make room for a task with another plan, or other rules, once the node is at rest. Answered with the record at once:
    /// if that is at rest the task ends before anything else is done. Unanswered: it cannot be told now.
    StepAside {
        plan_goes: bool,
        reply: oneshot::Sender<NodeRecord>,
    },
}

impl Command {
    /// Answers that the store is away: nothing was changed.
    pub(super) fn turn_away(self, record: &NodeRecord, why: &str) {
        self.refuse(record, &EngineError::Store(StoreError::Unavailable(why.to_owned())));
    }

    /// Answers that nothing was changed, and why.
    pub(super) fn refuse(self, record: &NodeRecord, why: &EngineError) {
        fn no<T>(reply: Reply<T>, why: &EngineError) {
            let _ = reply.send(Err(why.clone()));
        }
        match self {
            Command::As(_, command) => command.refuse(record, why),
            Command::Fence(_, _, reply) | Command::Drill(_, _, reply) => no(reply, why),
            Command::Unfence { reply, .. }
            | Command::Retry(_, reply)
            | Command::Abandon(_, _, reply)
            | Command::StandDown(_, reply)
            | Command::Wish(_, _, reply) => no(reply, why),
            Command::Plan(_, _, reply) | Command::PlanDrill(_, reply) => no(reply, why),
            Command::Receipt(_, reply) => no(reply, why),
            Command::Parent(_, _, reply) => no(reply, why),
            Command::ReturnReceipt { reply, .. } => no(reply, why),
            Command::VerifyReceipt { reply, .. } => no(reply, why),
            Command::Check(reply) => {
                let _ = reply.send(Ok(record.clone()));
            }
            Command::StepAside { .. }
            | Command::Withdrawn(_)
            | Command::Announced(..)
            | Command::Replaced(..)
            | Command::NotBack(..) => {}
        }
    }

    /// The request itself.
    fn plain(self) -> Self {
        match self {
            Command::As(_, command) => command.plain(),
            command => command,
        }
    }

    /// Whether devices are asked for it while a node is being fenced.
    pub(super) fn asks_devices_in_a_fence(&self) -> bool {
        match self {
            Command::As(_, command) => command.asks_devices_in_a_fence(),
            // An identity is not accepted while a fence goes by it, and nobody is asked for it.
            Command::Wish(Wish::Accept { .. }, ..) => false,
            command => command.asks_devices(),
        }
    }

    /// The same, of a node that waits for something.
    pub(super) fn asks_devices(&self) -> bool {
        match self {
            Command::As(_, command) => command.asks_devices(),
            command => matches!(command, Command::Wish(wish, ..) if wish.asks_devices()),
        }
    }

    /// Whether it looks at devices wherever the node is proven off.
    pub(super) fn looks(&self) -> bool {
        matches!(
            self,
            Command::VerifyReceipt { fresh: true, .. }
                | Command::Parent(ParentAsk::Look { .. } | ParentAsk::Hold { .. }, ..)
        )
    }

    /// Whether it changes nothing that a check, or a look, could be in the way of: all else ends a check.
    pub(super) fn is_check(&self) -> bool {
        match self {
            Command::As(_, command) => command.is_check(),
            Command::Check(_)
            | Command::ReturnReceipt { .. }
            | Command::VerifyReceipt { .. }
            | Command::Announced(..)
            | Command::NotBack(..) => true,
            _ => false,
        }
    }
}

impl NodeTask {
    /// Does what a caller asks, in whatever phase.
    pub(super) async fn command(&mut self, command: Command) -> Result<(), Fatal> {
        let done = self.obey(command).await;
        // What the gateway does by itself after that is nobody's act, and is judged by nobody's role.
        self.acting = None;
        done?;
        // So is what was seen while the store was asked for that.
        Box::pin(self.store_doubt()).await.map(drop)
    }

    async fn obey(&mut self, command: Command) -> Result<(), Fatal> {
        // What speaks against the proof is stored before anything that goes by it.
        self.store_doubt().await?;
        Box::pin(self.show_if_still_off()).await?;
        let asked = command.asked().map(|asked| (asked, self.stored.clone()));
        self.acting = match &command {
            Command::As(acting, _) => Some(acting.clone()),
            _ => None,
        };
        match command.plain() {
            // Nothing is left of it by now; a request that is dropped says so by its closing.
            Command::As(..) => Ok(()),
            Command::Fence(call, target, reply) => {
                let answer = match self.may_be_fenced(&call, &target) {
                    Ok(()) => self.admit(*call).await,
                    Err(refused) => Ok(Err(refused)),
                };
                self.answer(asked, reply, answer)
            }
            Command::Unfence { holder, ask, reply } => {
                let answer = match self.expect_let_go(&holder) {
                    Ok(()) => self.unfence(holder, ask).await,
                    Err(refused) => Ok(Err(refused)),
                };
                self.answer(asked, reply, answer)
            }
            Command::Retry(ask, reply) => {
                let settings = self.settings_of_now();
                let answer = self.people(ask, |person| settings.before(Event::Retry(person))).await;
                let answer = self.told_by_a_look(answer).await;
                self.answer(asked, reply, answer)
            }
            Command::Abandon(release, ask, reply) => {
                let orphan = self.orphan.is_some();
                let stands = !orphan && !self.stands_of(&release).is_empty();
                let gone = if stands { self.withdraw_now().await } else { Vec::new() };
                let abandon = |person| quarantine::after(gone, Event::Abandon { release, person, orphan });
                let answer = self.people(ask, abandon).await;
                self.answer(asked, reply, answer)
            }
            Command::StandDown(ask, reply) => {
                let answer = match self.expect_no_child_is_kept() {
                    Ok(()) => self.people(ask, Event::StandDown).await,
                    Err(refused) => Ok(Err(refused)),
                };
                self.answer(asked, reply, answer)
            }
            Command::Drill(call, target, reply) => {
                let answer = match self.may_be_fenced(&call, &target) {
                    Ok(()) => self.drill(*call).await,
                    Err(refused) => Ok(Err(refused)),
                };
                self.answer(asked, reply, answer)
            }
            Command::Wish(wish, ask, reply) => {
                let answer = match wish.holder().map_or(Ok(()), expect_no_child) {
                    Ok(()) => self.wish(wish, ask).await,
                    Err(refused) => Ok(Err(refused)),
                };
                self.answer(asked, reply, answer)
            }
            // Whoever hung up left its turn to the next one.
            Command::Plan(_, _, reply) if reply.is_closed() => Ok(()),
            Command::VerifyReceipt { fresh: true, reply, .. } if reply.is_closed() => Ok(()),
            Command::Plan(call, heard, reply) => {
                let answer = self.planned(&call, heard.as_ref()).await;
                deliver(reply, Ok(answer))
            }
            Command::PlanDrill(call, reply) => {
                let answer = self.planned_drill(&call).await;
                deliver(reply, Ok(answer))
            }
            Command::Receipt(call, reply) => {
                let answer = self.issue(call).await;
                self.answer(asked, reply, answer)
            }
            // Whoever asked has gone on without it: what they wanted then, they may not want now.
            Command::Parent(_, _, reply) if reply.is_closed() => Ok(()),
            Command::Parent(ask, term, reply) => {
                let answer = self.as_parent(ask, term).await;
                match asked {
                    Some(_) => self.answer(asked, reply, answer),
                    None => deliver(reply, answer),
                }
            }
            Command::ReturnReceipt { id, by, reply } => {
                let answer = self.hand_back(id, by).await;
                self.answer(asked, reply, answer)
            }
            Command::VerifyReceipt { id, fresh, reply } => {
                let answer = self.verify(id, fresh).await;
                deliver(reply, answer)
            }
            Command::Check(reply) => {
                // Within a fence the devices are read all the time: what is known is fresh.
                let record = self.record().clone();
                self.answer(asked, reply, Ok(Ok(record)))
            }
            Command::Withdrawn(effects) => self.withdrawn(effects).await,
            Command::Announced(of, release, told) => {
                self.note_cordoned(of, release, told);
                Ok(())
            }
            Command::Replaced(of, release, why) => self.note_replaced(of, &release, &why).await,
            Command::NotBack(release, is) => {
                self.note_not_back(release, is);
                Ok(())
            }
            Command::StepAside { plan_goes, reply } => {
                self.aside.ask(plan_goes);
                let _ = reply.send(self.record().clone());
                Ok(())
            }
        }
    }

    /// Tells the audit what became of a request, and the caller. `asked`: it, and the record when it came.
    fn answer<T: InWords>(
        &self,
        asked: Option<(Asked, Arc<Stored>)>,
        reply: Reply<T>,
        answer: Result<Result<T, EngineError>, Fatal>,
    ) -> Result<(), Fatal> {
        if let Some((asked, before)) = asked {
            // What is so already, and is asked for again, only repeats: it would push all else out of the audit.
            let changed = !self.record().is_but_for_idle_keys(&before.record);
            let became = match &answer {
                Ok(Ok(taken)) => Ok(taken.in_words()),
                Ok(Err(error)) => Err(error.to_string()),
                Err(Fatal(error)) => Err(format!("whether it was stored is not known: {error}")),
            };
            let repeats = matches!(&answer, Ok(Ok(taken)) if taken.repeats() || !changed);
            self.teller.request(asked, self.record(), became, repeats);
        }
        deliver(reply, answer)
    }

    /// How a key is bound already. Bound to other parameters it is an error.
    async fn bound(
        &mut self,
        key: Option<&BoundKey>,
    ) -> Result<Result<Option<KeyEntry>, EngineError>, Failure> {
        let Some(bound) = key else { return Ok(Ok(None)) };
        let (store, node, idle) =
            (self.parts.store.clone(), self.record().node.clone(), self.record().idle_keys.clone());
        let entry = self.of_store(bound_to(&*store, &node, bound, &idle)).await.map_err(store_failure)?;
        Ok(match entry {
            Some(entry) if entry.digest != bound.digest => {
                Err(EngineError::KeyTaken(TakenKey { key: bound.written().to_owned(), fence: entry.fence }))
            }
            entry => Ok(entry),
        })
    }

    fn may_be_fenced(&self, call: &FenceCall, target: &Target) -> Result<(), EngineError> {
        expect_no_child(&call.holder.name)?;
        // A reload may have given the node another machine while the request waited for this task.
        match target.is_another(self.record(), &self.plan.topology) {
            Some(how) => Err(EngineError::Blocked { reason: Reason::Expired, detail: another_machine(&how) }),
            None => Ok(()),
        }
    }

    fn in_time(&self, not_after: Option<WallTime>, expected: Option<Generation>) -> Result<(), Stale> {
        let found = self.record().generation;
        match expected {
            _ if not_after.is_some_and(|limit| self.wall() > limit) => Err(Stale::NotAfter),
            Some(expected) if expected != found => Err(Stale::Generation { expected, found }),
            _ => Ok(()),
        }
    }
}

/// What callers are told who would be told of a proof.
const DOUBTED: &str = "the node was not proven off any more, which is not stored yet";

pub(super) fn store_failure(error: StoreError) -> Failure {
    match error {
        StoreError::Unavailable(why) => Failure::Unavailable(why),
        error => Failure::Fatal(error),
    }
}

/// What a caller is told of a failure; the fatal ones go on to the engine too.
fn refusal<T>(failure: Failure) -> Result<Result<T, EngineError>, Fatal> {
    match failure {
        Failure::Refused(refused) => Ok(Err(refused.into())),
        Failure::Unavailable(why) => Ok(Err(EngineError::Store(StoreError::Unavailable(why)))),
        Failure::Fatal(error) => Err(Fatal(error)),
    }
}

fn deliver<T>(reply: Reply<T>, answer: Result<Result<T, EngineError>, Fatal>) -> Result<(), Fatal> {
    match answer {
        Ok(answer) => {
            let _ = reply.send(answer);
            Ok(())
        }
        Err(fatal) => {
            let _ = reply.send(Err(EngineError::Store(fatal.0.clone())));
            Err(fatal)
        }
    }
}
