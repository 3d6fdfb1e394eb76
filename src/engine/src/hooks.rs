//! Named points at which a test may stop or kill the gateway.

use async_trait::async_trait;

/// Called at named points: `saving <event>` and `saved <event>` around each write, `sending <verb>` and `sent <verb>`
/// around each command to a device or a releaser. The shipped daemon passes [`NoHooks`].
#[async_trait]
pub trait Hooks: Send + Sync + std::fmt::Debug {
    /// The point `point` was reached.
    async fn reached(&self, point: &str);
}

/// Does nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHooks;

#[async_trait]
impl Hooks for NoHooks {
    async fn reached(&self, _point: &str) {}
}
