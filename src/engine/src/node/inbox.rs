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
pub(crate) struct Inbox {
    callers: Option<mpsc::Receiver<Box<Command>>>,
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
    (Mailbox(sender), Inbox { callers: Some(receiver), own: None })
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
        Self { callers: None, own: None }
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
        let callers = self.callers.as_mut()?;
        let next = match &mut self.own {
            None => callers.recv().await,
            Some((_, own)) => tokio::select! {
                biased;
                Some(told) = own.recv() => Some(told),
                asked = callers.recv() => asked,
            },
        };
        next.map(|command| *command)
    }

    /// Lets go of all that waits: who asked is told that nobody answers.
    pub(crate) fn clear(&mut self) {
        while self.callers.as_mut().is_some_and(|inbox| inbox.try_recv().is_ok()) {}
    }
}
