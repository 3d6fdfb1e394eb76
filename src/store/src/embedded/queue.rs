//! Writes that wait for the disk. Those that arrive while a commit is under way share the next one.

use std::sync::Arc;

use parking_lot::Mutex;
use picket_core::store::StoreError;
use tokio::sync::oneshot;

use super::db_file::DbFile;
use crate::map::OrderedWrite;

/// The most writes that share a commit, so that the first of them does not wait for long.
const TOGETHER: usize = 128;

/// One write that waits.
pub(super) trait Job: Send {
    /// Does it, or refuses; keeps its answer.
    fn apply(&mut self, map: &mut dyn OrderedWrite);
    /// Gives its answer, or the error of the commit. One that was not applied answers that it was not begun.
    fn answer(self: Box<Self>, committed: Result<(), StoreError>);
}

struct Pending<T, F> {
    work: Option<F>,
    said: Option<Result<T, StoreError>>,
    answer: oneshot::Sender<Result<T, StoreError>>,
}

impl<T: Send, F: FnOnce(&mut dyn OrderedWrite) -> Result<T, StoreError> + Send> Job for Pending<T, F> {
    fn apply(&mut self, map: &mut dyn OrderedWrite) {
        self.said = self.work.take().map(|work| work(map));
    }

    fn answer(self: Box<Self>, committed: Result<(), StoreError>) {
        let not_done = || Err(StoreError::Unavailable("the write was not begun".to_owned()));
        let Self { said, answer, .. } = *self;
        // Where nobody waits any more the write stands all the same, and whoever reads next will see it.
        let _ = answer.send(committed.and_then(|()| said.unwrap_or_else(not_done)));
    }
}

#[derive(Default)]
struct Waiting {
    jobs: Vec<Box<dyn Job>>,
    /// Somebody takes them off.
    served: bool,
}

/// The writes that wait.
#[derive(Default)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
}

impl Queue {
    /// Puts a write into the queue. Answers where its answer will be, and whether the caller must see to it
    /// that a [`QueueWorker`] runs, since none does.
    pub(super) fn enter<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut dyn OrderedWrite) -> Result<T, StoreError> + Send + 'static,
    ) -> (oneshot::Receiver<Result<T, StoreError>>, bool) {
        let (answer, answered) = oneshot::channel();
        let mut waiting = self.waiting.lock();
        waiting.jobs.push(Box::new(Pending { work: Some(work), said: None, answer }));
        (answered, !std::mem::replace(&mut waiting.served, true))
    }

    fn take(&self) -> Option<Vec<Box<dyn Job>>> {
        let mut waiting = self.waiting.lock();
        if waiting.jobs.is_empty() {
            waiting.served = false;
            return None;
        }
        let together = waiting.jobs.len().min(TOGETHER);
        Some(waiting.jobs.drain(..together).collect())
    }
}

/// Serves the queue until it is empty.
pub(super) struct QueueWorker {
    queue: Arc<Queue>,
    db_file: Arc<DbFile>,
    over: bool,
}

impl QueueWorker {
    pub(super) fn new(queue: Arc<Queue>, db_file: Arc<DbFile>) -> Self {
        Self { queue, db_file, over: false }
    }

    pub(super) fn run(mut self) {
        while let Some(mut jobs) = self.queue.take() {
            let committed = self.db_file.commit(&mut jobs);
            for job in jobs {
                job.answer(committed.clone());
            }
        }
        self.over = true;
    }
}

impl Drop for QueueWorker {
    /// The runtime ended before the turn came: nobody serves the queue. Whoever waits in it hears that surely nothing was
    /// done, also a caller of another runtime, and may ask again: the next one sees to a turn of its own.
    fn drop(&mut self) {
        if self.over {
            return;
        }
        let waits = {
            let mut waiting = self.queue.waiting.lock();
            waiting.served = false;
            std::mem::take(&mut waiting.jobs)
        };
        for job in waits {
            job.answer(Ok(()));
        }
    }
}
