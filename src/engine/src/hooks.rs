//! Named points at which a test may stop or kill the gateway, and a gate by which a simulation stops all of it.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use async_trait::async_trait;
use picket_driver::Witness;

/// Called at named points: `saving <event>` and `saved <event>` around each write, `sending <verb>` and `sent <verb>`
/// around each command to a device or a releaser, `permitted <verb>` where the permit was asked for the last time and nothing
/// but the sending is left. The shipped daemon passes [`NoHooks`].
#[async_trait]
pub trait Hooks: Send + Sync + std::fmt::Debug {
    /// The point `point` was reached.
    async fn reached(&self, point: &str);

    /// The same within a driver, where nobody may wait: an off or an on is permitted, and its next packet is sent at once.
    fn permitted(&self, _point: &str) {}

    /// The gate of everything that the engine runs as a task of its own; `None`: it is never stopped.
    fn gate(&self) -> Option<Arc<dyn Gate>> {
        None
    }
}

/// Tells hooks of one call's permits.
#[derive(Debug)]
pub(crate) struct Permits {
    pub(crate) hooks: Arc<dyn Hooks>,
    pub(crate) point: &'static str,
}

impl Witness for Permits {
    fn permitted(&self) {
        self.hooks.permitted(self.point);
    }
}

/// Stops a process that is simulated, as SIGSTOP stops a real one: while it is shut nothing behind it is polled, whatever it
/// waits for, and time goes on.
pub trait Gate: Send + Sync + std::fmt::Debug {
    /// Ready while it is open. Else whoever asks is woken once it opens.
    fn poll_open(&self, context: &mut Context<'_>) -> Poll<()>;
}

/// Runs `work` behind a gate.
// No async function: that would have room for `work` as its argument, and again for where it is polled.
pub fn gated<F: Future>(gate: Option<Arc<dyn Gate>>, work: F) -> impl Future<Output = F::Output> {
    let mut work = Box::pin(work);
    poll_fn(move |context| {
        if let Some(gate) = &gate {
            ready!(gate.poll_open(context));
        }
        work.as_mut().poll(context)
    })
}

/// Does nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHooks;

#[async_trait]
impl Hooks for NoHooks {
    async fn reached(&self, _point: &str) {}
}
