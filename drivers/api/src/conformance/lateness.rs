//! How late a call came back, but for the time in which the machine stood still.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant as Real};

use tokio::time::Instant;

const TICK: Duration = Duration::from_millis(10);

/// Waits for the work. With what it ended, and how long after `deadline`.
///
/// A thread of its own measures for how long the machine ran nothing: it is held up as everything is, and not by a driver that
/// blocks the thread of the work.
pub(super) async fn waited<T>(deadline: Instant, work: impl Future<Output = T>) -> (T, Duration) {
    let (working, done) = channel::<()>();
    let due = Real::now() + deadline.saturating_duration_since(Instant::now());
    let watch = std::thread::spawn(move || {
        let mut held_up = Duration::ZERO;
        loop {
            let tick = Real::now();
            match done.recv_timeout(TICK) {
                Err(RecvTimeoutError::Timeout) if Real::now() > due => {
                    held_up += tick.elapsed().saturating_sub(TICK);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return held_up,
            }
        }
    });
    let ended = work.await;
    let late = Instant::now().saturating_duration_since(deadline);
    drop(working);
    (ended, late.saturating_sub(watch.join().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_driver_that_blocks_its_thread_is_late() {
        let deadline = Instant::now() + Duration::from_millis(10);
        // In short steps: a machine that stands still takes one of them away, and not all.
        let blocks = async { (0..50).for_each(|_| std::thread::sleep(TICK)) };
        let ((), late) = waited(deadline, blocks).await;
        assert!(late > TICK * 20, "{late:?}");
        let ((), late) = waited(Instant::now() + Duration::from_secs(60), async {}).await;
        assert_eq!(late, Duration::ZERO);
    }
}
