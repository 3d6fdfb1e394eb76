//! The stream of a request that waits in the queue: what it waits for, then its fence, or why it never
//! began.
//!
//! # Invariants
//!
//! - The stream is only a look: a caller who leaves it stops nothing, and the request keeps its place.
//!   Shown by `a_request_goes_on_waiting_without_its_caller_and_after_a_death_with_what_is_left`.

use std::time::Duration;

use futures::{StreamExt, stream};
use picket_core::budget::Bar;
use picket_core::ids::{NodeId, Term};
use picket_engine::{WaitState, Waits};
use picket_proto::v1;
use tonic::Status;

use super::fence::FenceStreamOptions;
use super::{FencingHandlers, Updates};
use crate::admission::Slot;
use crate::convert::queue;
use crate::errors;
use crate::follow;

/// A sign of life comes at least so often, so that a caller who left is noticed, and its slot is free again.
const SIGN: Duration = Duration::from_secs(60);

struct Waiting {
    handlers: FencingHandlers,
    slot: Option<Slot>,
    node: NodeId,
    waits: Waits,
    options: FenceStreamOptions,
    term: Term,
    told: Option<String>,
    /// The stream of its fence, once its turn came.
    rest: Option<Updates>,
    over: bool,
}

/// The messages of a request that waits.
pub(crate) fn stream(
    handlers: &FencingHandlers,
    slot: Slot,
    node: NodeId,
    waits: Waits,
    options: FenceStreamOptions,
) -> Result<Updates, Status> {
    let term = handlers.engine.leading().map_err(|why| errors::ended(&why))?;
    let handlers = handlers.clone();
    let waiting = Waiting {
        handlers,
        slot: Some(slot),
        node,
        waits,
        options,
        term,
        told: None,
        rest: None,
        over: false,
    };
    Ok(stream::unfold(waiting, |mut waiting| async move { waiting.next().await.map(|next| (next, waiting)) })
        .boxed())
}

impl Waiting {
    async fn next(&mut self) -> Option<Result<v1::FenceUpdate, Status>> {
        loop {
            if let Some(rest) = &mut self.rest {
                return rest.next().await;
            }
            if self.over {
                return None;
            }
            let state = self.waits.state.borrow_and_update().clone();
            match state {
                WaitState::Barred(bar) if self.told.as_ref() != Some(&bar.text) => {
                    self.told = Some(bar.text.clone());
                    return Some(self.tell(&bar));
                }
                WaitState::Barred(_) => {}
                WaitState::Over(decided) => {
                    let slot = self.slot.take()?;
                    let (node, options) = (self.node.clone(), &self.options);
                    let rest = match *decided {
                        Ok(admission) => self.handlers.admitted(slot, node, admission, options),
                        Err(error) => self.handlers.not_admitted(&node, error),
                    };
                    match rest {
                        Ok(rest) => self.rest = Some(rest),
                        Err(status) => return Some(Err(self.broken(status))),
                    }
                    continue;
                }
            }
            if let Err(status) = self.wait().await {
                return Some(Err(self.broken(status)));
            }
        }
    }

    fn broken(&mut self, status: Status) -> Status {
        self.over = true;
        status
    }

    async fn wait(&mut self) -> Result<(), Status> {
        let engine = &self.handlers.engine;
        let gone = || {
            let why = engine.leading().err();
            Status::from(errors::ended(why.as_deref().unwrap_or("another leadership has begun")))
        };
        tokio::select! {
            biased;
            changed = self.waits.state.changed() => changed.map_err(|_| gone()),
            () = self.handlers.stop.cancelled() => Err(errors::shutting_down().into()),
            () = engine.until_over(self.term) => Err(gone()),
            () = tokio::time::sleep(SIGN) => {
                self.told = None;
                Ok(())
            }
        }
    }

    fn tell(&self, bar: &Bar) -> Result<v1::FenceUpdate, Status> {
        self.handlers.may(&self.node)?;
        let view = self.handlers.view(&self.node)?;
        let wait = queue::wait(bar, self.waits.expires_at);
        let base = follow::at_once(&view, self.handlers.now().wall, None, v1::Outcome::default());
        let why = if self.handlers.knows_all() { bar.named() } else { bar.detail() };
        let text = format!("waits in the queue as number {}: {why}", self.waits.ticket);
        Ok(v1::FenceUpdate { text, wait: Some(wait), outcome: None, ..base })
    }
}
