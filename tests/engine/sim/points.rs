//! The named points of the engine, at which a test may kill it or stop it for a while.

use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use picket_engine::Hooks;

/// Something that happens, once.
pub struct Happens(pub Box<dyn FnOnce() + Send>);

impl std::fmt::Debug for Happens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Happens")
    }
}

/// Counts the points that are reached, and stops for ever, or for a while, at one of them.
#[derive(Debug, Default)]
pub struct Points {
    pub seen: Mutex<Vec<String>>,
    /// Dies at the point of that number, from 1.
    pub die_at: Mutex<Option<usize>>,
    /// Stops there for so long, and with it the whole process, while time goes on.
    pub stop_at: Mutex<Option<(usize, Duration)>>,
    /// What happens when a point of that name is reached for the first time.
    pub happens_at: Mutex<Option<(&'static str, Happens)>>,
    /// Whoever reaches a point of that name next waits there so long, alone.
    pub waits_at: Mutex<Option<(&'static str, Duration)>>,
    dead: tokio::sync::Notify,
}

impl Points {
    /// The number of the point that was reached last.
    pub fn count(&self) -> usize {
        self.seen.lock().len()
    }

    pub async fn death(&self) {
        self.dead.notified().await;
    }
}

#[async_trait]
impl Hooks for Points {
    async fn reached(&self, point: &str) {
        let (dies, stops) = {
            let mut seen = self.seen.lock();
            seen.push(point.to_owned());
            let stop_at = *self.stop_at.lock();
            (
                *self.die_at.lock() == Some(seen.len()),
                stop_at.filter(|(at, _)| *at == seen.len()).map(|(_, time)| time),
            )
        };
        let happens = self.happens_at.lock().take_if(|(at, _)| *at == point);
        if let Some((_, Happens(happens))) = happens {
            happens();
        }
        let waits = self.waits_at.lock().take_if(|(at, _)| *at == point);
        if let Some((_, time)) = waits {
            tokio::time::sleep(time).await;
        }
        if let Some(time) = stops {
            tokio::time::advance(time).await;
        }
        if dies {
            self.dead.notify_one();
            std::future::pending::<()>().await;
        }
    }
}
