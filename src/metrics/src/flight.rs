//! An answer that many ask for, and that costs something.
//!
//! # Invariants
//!
//! - One answer is made at a time, and none is begun sooner than `each` after the one before. Whoever asks
//!   without end costs no more than that. Shown by
//!   `none_is_begun_sooner_than_it_may_be_also_where_whoever_asked_is_gone`.
//! - An answer was begun after its question.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// So many questions wait, beside those that are taken up already; further ones wait to be put.
const WAITING: usize = 64;

/// Where it is asked for. Cheap to clone.
#[derive(Debug)]
pub(crate) struct Asking<T>(mpsc::Sender<oneshot::Sender<T>>);

/// Where the questions come in.
#[derive(Debug)]
pub(crate) struct Asked<T>(mpsc::Receiver<oneshot::Sender<T>>);

impl<T> Clone for Asking<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

pub(crate) fn pair<T>() -> (Asking<T>, Asked<T>) {
    let (asking, asked) = mpsc::channel(WAITING);
    (Asking(asking), Asked(asked))
}

impl<T> Asking<T> {
    /// The next answer that is begun; `None`: nobody makes one any more.
    pub(crate) async fn next(&self) -> Option<T> {
        let (to, answer) = oneshot::channel();
        self.0.send(to).await.ok()?;
        answer.await.ok()
    }
}

impl<T: Clone> Asked<T> {
    /// Makes answers until nobody can ask any more.
    pub(crate) async fn serve<F: Future<Output = T>>(mut self, each: Duration, make: impl Fn() -> F) {
        while let Some(first) = self.0.recv().await {
            let mut waiting = vec![first];
            while let Ok(further) = self.0.try_recv() {
                waiting.push(further);
            }
            let begun = Instant::now();
            let answer = make().await;
            for one in waiting {
                // Who asked may be gone.
                let _gone = one.send(answer.clone());
            }
            tokio::time::sleep_until(begun + each).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    const EACH: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn none_is_begun_sooner_than_it_may_be_also_where_whoever_asked_is_gone() {
        let (asking, asked) = pair();
        let (begun, from) = (Arc::new(AtomicU32::new(0)), Instant::now());
        let counted = begun.clone();
        let serving = tokio::spawn(asked.serve(EACH, move || {
            let number = counted.fetch_add(1, Ordering::Relaxed) + 1;
            std::future::ready(number)
        }));
        assert_eq!((asking.next().await, from.elapsed()), (Some(1), Duration::ZERO), "the first at once");
        for _ in 0..1_000 {
            let asks = asking.clone();
            tokio::spawn(async move { asks.next().await }).abort();
        }
        let of_one_second: Vec<_> = (0..3)
            .map(|_| {
                tokio::spawn({
                    let asks = asking.clone();
                    async move { asks.next().await }
                })
            })
            .collect();
        for one in of_one_second {
            assert_eq!(one.await.expect("it ends"), Some(2), "they share it");
        }
        assert_eq!((asking.next().await, begun.load(Ordering::Relaxed)), (Some(3), 3));
        assert!(from.elapsed() >= EACH * 2, "{:?}", from.elapsed());
        drop(asking);
        serving.await.expect("it ends with those who ask");
    }
}
