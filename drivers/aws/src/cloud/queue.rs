//! Who waits for one action, and who goes with whom.
//!
//! # Invariants
//!
//! - What was refused for its own sake lately goes alone, so that it costs nobody else a request. It takes
//!   turns with the others. Shown by `what_was_refused_goes_alone_and_in_turn_with_the_others`.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use picket_driver::DriverError;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::batch::Outcome;
use super::wire::Ticket;

/// So many who ask of the same at once are few.
const FEW: usize = 16;
/// So long is it known of one that it was refused.
const KNOWN: Duration = Duration::from_secs(600);

/// What one caller wants.
pub(super) struct Item<S> {
    pub(super) id: String,
    pub(super) until: Instant,
    /// A check's, which may only read.
    pub(super) may_wait: bool,
    /// Of a command: as of when it is signed, and what lets it go.
    pub(super) order: Option<(SystemTime, Arc<Ticket>)>,
    pub(super) tell: oneshot::Sender<Result<Outcome<S>, DriverError>>,
}

impl<S> Item<S> {
    pub(super) fn is_wanted(&self) -> bool {
        !self.tell.is_closed()
    }

    pub(super) fn tell(self, outcome: Outcome<S>) {
        let _ = self.tell.send(Ok(outcome));
    }
}

/// Who waits.
pub(super) struct Queue<S> {
    items: VecDeque<Item<S>>,
    /// Somebody takes them.
    is_served: bool,
    /// What was refused for its own sake, and when.
    refused: HashMap<String, Instant>,
    /// Those who go alone are next.
    alone_next: bool,
    /// When those went together last who were more than a few.
    many_at: Option<Instant>,
}

impl<S> Queue<S> {
    pub(super) fn new() -> Self {
        let (items, refused) = (VecDeque::new(), HashMap::new());
        Self { items, is_served: false, refused, alone_next: false, many_at: None }
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// One more waits. True: nobody takes them yet.
    pub(super) fn push(&mut self, item: Item<S>) -> bool {
        self.items.push_back(item);
        !std::mem::replace(&mut self.is_served, true)
    }

    /// Until when those who wait are held together, where many go: else each poll of a large fleet would come apart into ever more requests.
    pub(super) fn held_until(&self, grid: Duration) -> Option<Instant> {
        self.many_at.map(|at| at + grid)
    }

    /// Whether anybody is left; if not, whoever takes them goes away.
    pub(super) fn has_any(&mut self) -> bool {
        self.items.retain(Item::is_wanted);
        self.is_served = !self.items.is_empty();
        self.is_served
    }

    /// Whether somebody waits who is no check.
    pub(super) fn is_hurried(&self) -> bool {
        self.items.iter().any(|item| !item.may_wait)
    }

    /// What was refused for its own sake, or was not.
    pub(super) fn note(&mut self, id: &str, is_refused: bool, now: Instant) {
        if !is_refused {
            self.refused.remove(id);
            return;
        }
        self.refused.retain(|_, at| now.saturating_duration_since(*at) < KNOWN);
        self.refused.insert(id.to_owned(), now);
    }

    /// Those who go together now: so many at most.
    pub(super) fn take(&mut self, most: usize, now: Instant) -> Vec<Item<S>> {
        self.items.retain(Item::is_wanted);
        let refused = &self.refused;
        let is_alone = |item: &Item<S>| {
            refused.get(&item.id).is_some_and(|at| now.saturating_duration_since(*at) < KNOWN)
        };
        let first = self.items.iter().find(|item| is_alone(item)).map(|item| item.id.clone());
        let has_others = self.items.iter().any(|item| !is_alone(item));
        let alone = first.filter(|_| self.alone_next || !has_others);
        self.alone_next = alone.is_none();
        let goes = |item: &Item<S>| match &alone {
            Some(id) => item.id == *id,
            None => !is_alone(item),
        };
        let (mut taken, mut left) = (Vec::new(), VecDeque::new());
        for item in self.items.drain(..) {
            if taken.len() < most && goes(&item) {
                taken.push(item);
            } else {
                left.push_back(item);
            }
        }
        self.items = left;
        if alone.is_none() {
            self.many_at = (taken.len() > FEW).then_some(now);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type OutcomeReceiver = oneshot::Receiver<Result<Outcome<()>, DriverError>>;

    fn item(id: &str, now: Instant) -> (Item<()>, OutcomeReceiver) {
        let (tell, told) = oneshot::channel();
        let until = now + Duration::from_secs(15);
        (Item { id: id.to_owned(), until, may_wait: false, order: None, tell }, told)
    }

    fn taken(queue: &mut Queue<()>, most: usize, now: Instant) -> Vec<String> {
        queue.take(most, now).into_iter().map(|item| item.id).collect()
    }

    #[test]
    fn what_was_refused_goes_alone_and_in_turn_with_the_others() {
        let (mut queue, now) = (Queue::new(), Instant::now());
        queue.note("bad", true, now);
        let mut told = Vec::new();
        for id in ["bad", "a", "b", "c", "bad"] {
            let (item, answer) = item(id, now);
            told.push(answer);
            queue.push(item);
        }
        assert_eq!(taken(&mut queue, 2, now), ["a", "b"]);
        assert_eq!(taken(&mut queue, 2, now), ["bad", "bad"], "in turn");
        assert_eq!(taken(&mut queue, 2, now), ["c"]);
        assert!(!queue.has_any());
        for (later, is_alone) in [(KNOWN - Duration::from_secs(1), true), (KNOWN, false)] {
            let answers: Vec<_> = ["bad", "a"]
                .map(|id| {
                    let (item, answer) = item(id, now);
                    queue.push(item);
                    answer
                })
                .into();
            let together = taken(&mut queue, 9, now + later).len() == 2;
            assert_eq!(together, !is_alone, "after {later:?}");
            drop(answers);
            assert!(!queue.has_any());
        }
    }

    #[test]
    fn many_are_held_together_and_few_are_not() {
        let (mut queue, now, grid) = (Queue::new(), Instant::now(), Duration::from_millis(500));
        let mut answers = Vec::new();
        for (count, held) in [(FEW, None), (FEW + 1, Some(now + grid)), (1, None)] {
            for number in 0..count {
                let (item, answer) = item(&number.to_string(), now);
                queue.push(item);
                answers.push(answer);
            }
            assert_eq!(queue.take(usize::MAX, now).len(), count);
            assert_eq!(queue.held_until(grid), held);
        }
    }

    #[test]
    fn who_has_left_is_not_taken() {
        let (mut queue, now) = (Queue::new(), Instant::now());
        let ((gone, told), (stays, _answer)) = (item("a", now), item("b", now));
        assert!(queue.push(gone) && !queue.push(stays), "one serves them");
        drop(told);
        assert_eq!(taken(&mut queue, 9, now), ["b"]);
    }
}
