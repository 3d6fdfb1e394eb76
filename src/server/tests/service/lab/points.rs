//! The named points of the engine, at one of which a test may let something happen while the node's task stands still.

use std::pin::Pin;

use async_trait::async_trait;
use parking_lot::Mutex;
use picket_engine::Hooks;

/// What happens at a point.
type Happens = Pin<Box<dyn Future<Output = ()> + Send>>;

/// At most one point, and what happens when the engine reaches it for the first time.
#[derive(Default)]
pub struct Points {
    at: Mutex<Option<(&'static str, Happens)>>,
}

impl std::fmt::Debug for Points {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Points")
    }
}

impl Points {
    /// The node's task waits at `point` until `happens` has ended.
    pub fn at(&self, point: &'static str, happens: impl Future<Output = ()> + Send + 'static) {
        *self.at.lock() = Some((point, Box::pin(happens)));
    }
}

#[async_trait]
impl Hooks for Points {
    async fn reached(&self, point: &str) {
        let happens = self.at.lock().take_if(|(at, _)| *at == point);
        if let Some((_, happens)) = happens {
            happens.await;
        }
    }
}
