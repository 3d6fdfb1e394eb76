//! What callers ask of one node, in their order.
//!
//! A channel keeps room for 32 messages from its first one on, for each of ten thousand nodes that nobody asks anything: it
//! carries boxes, not the requests themselves.

use std::fmt;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, mpsc};

use super::Command;

/// Where requests are put.
#[derive(Clone, Debug)]
pub(crate) struct Mailbox {
    callers: mpsc::Sender<Box<Command>>,
    first: Arc<First>,
}

/// What the engine itself asks: callers, however many wait, do not keep it waiting.
#[derive(Default)]
struct First {
    waiting: Mutex<Vec<Command>>,
    told: Notify,
}

impl fmt::Debug for First {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("First").finish_non_exhaustive()
    }
}

impl First {
    fn waiting(&self) -> MutexGuard<'_, Vec<Command>> {
        self.waiting.lock()
    }

    async fn next(&self) -> Command {
        loop {
            if let Some(command) = self.waiting().pop() {
                return command;
            }
            self.told.notified().await;
        }
    }
}

/// Where the node's task takes them from.
#[derive(Debug)]
pub(crate) struct Inbox {
    callers: Option<mpsc::Receiver<Box<Command>>>,
    first: Arc<First>,
    /// What tasks of its own tell it; none of a node at rest.
    own: Option<(Own, mpsc::UnboundedReceiver<Box<Command>>)>,
}

/// Where tasks of the node's own task tell it what they came to.
#[derive(Clone, Debug)]
pub(crate) struct Own(mpsc::UnboundedSender<Box<Command>>);

impl Own {
    /// Who is not there any more needs no word.
    pub(crate) fn send(&self, command: Command) {
        let _ = self.0.send(Box::new(command));
    }
}

/// The two ends; so many requests may wait.
pub(crate) fn mailbox(room: usize) -> (Mailbox, Inbox) {
    let (sender, receiver) = mpsc::channel(room);
    let first = Arc::<First>::default();
    (Mailbox { callers: sender, first: first.clone() }, Inbox { callers: Some(receiver), first, own: None })
}

impl Mailbox {
    /// Waits for room. `Err`: nobody will ever take it.
    pub(crate) async fn send(&self, command: Command) -> Result<(), ()> {
        self.callers.send(Box::new(command)).await.map_err(drop)
    }

    /// The engine asks, and not a caller: it is taken before all of these.
    pub(crate) fn send_first(&self, command: Command) {
        self.first.waiting().push(command);
        self.first.told.notify_one();
    }
}

impl Inbox {
    /// None at all, where the node's task has taken it.
    pub(crate) fn taken() -> Self {
        Self { callers: None, first: Arc::default(), own: None }
    }

    /// What such tasks told is nothing to another leadership.
    pub(crate) fn forget_own(&mut self) {
        self.own = None;
    }

    /// For a task of the node's own.
    pub(crate) fn own(&mut self) -> Own {
        let (own, _) = self.own.get_or_insert_with(|| {
            let (sender, receiver) = mpsc::unbounded_channel();
            (Own(sender), receiver)
        });
        own.clone()
    }

    /// The next request; `None`: there will never be one. What was not waited for to the end loses nothing.
    pub(crate) async fn recv(&mut self) -> Option<Command> {
        let (callers, first) = (self.callers.as_mut()?, &self.first);
        let own = async {
            match &mut self.own {
                Some((_, own)) => own.recv().await,
                None => None,
            }
        };
        let next = tokio::select! {
            biased;
            first = first.next() => return Some(first),
            Some(told) = own => Some(told),
            asked = callers.recv() => asked,
        };
        next.map(|command| *command)
    }

    /// Lets go of all that waits: who asked is told that nobody answers.
    pub(crate) fn clear(&mut self) {
        self.first.waiting().clear();
        while self.callers.as_mut().is_some_and(|inbox| inbox.try_recv().is_ok()) {}
    }
}
