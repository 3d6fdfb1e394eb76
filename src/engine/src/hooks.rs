//! Named points at which a test may stop or kill the gateway.

use std::sync::Arc;

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

/// Does nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHooks;

#[async_trait]
impl Hooks for NoHooks {
    async fn reached(&self, _point: &str) {}
}
