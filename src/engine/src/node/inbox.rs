//! What callers ask of one node, in their order.
//!
//! A channel keeps room for 32 messages from its first one on, for each of ten thousand nodes that nobody asks anything: it
//! carries boxes, not the requests themselves.

use tokio::sync::mpsc;

use super::Command;

/// Where requests are put.
#[derive(Clone, Debug)]
pub(crate) struct Mailbox(mpsc::Sender<Box<Command>>);

/// Where the node's task takes them from.
#[derive(Debug)]
pub(crate) struct Inbox(Option<mpsc::Receiver<Box<Command>>>);

/// The two ends; so many requests may wait.
pub(crate) fn mailbox(room: usize) -> (Mailbox, Inbox) {
    let (sender, receiver) = mpsc::channel(room);
    (Mailbox(sender), Inbox(Some(receiver)))
}

impl Mailbox {
    /// Waits for room. `Err`: nobody will ever take it.
    pub(crate) async fn send(&self, command: Command) -> Result<(), ()> {
        self.0.send(Box::new(command)).await.map_err(drop)
    }
}

impl Inbox {
    /// None at all, where the node's task has taken it.
    pub(crate) fn taken() -> Self {
        Self(None)
    }

    /// The next request; `None`: there will never be one. What was not waited for to the end loses nothing.
    pub(crate) async fn recv(&mut self) -> Option<Command> {
        Some(*self.0.as_mut()?.recv().await?)
    }

    /// Lets go of all that waits: who asked is told that nobody answers.
    pub(crate) fn clear(&mut self) {
        while self.0.as_mut().is_some_and(|inbox| inbox.try_recv().is_ok()) {}
    }
}
