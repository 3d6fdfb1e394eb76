//! What is under way and must not be cut: commands to devices and releasers, and writes.

use std::sync::Arc;

use tokio::sync::watch;

/// Counts what is under way. Cheap to clone; all clones count the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Work(Arc<watch::Sender<State>>);

#[derive(Clone, Copy, Debug, Default)]
struct State {
    closing: bool,
    under_way: usize,
}

/// Something is under way for as long as this lives.
#[derive(Debug)]
pub(crate) struct Piece(Arc<watch::Sender<State>>);

impl Drop for Piece {
    fn drop(&mut self) {
        self.0.send_modify(|state| state.under_way -= 1);
    }
}

impl Work {
    /// Begins something new. Once the end has begun this waits for ever: whoever waits here is dropped with its task.
    pub(crate) async fn begin(&self) -> Piece {
        let mut began = false;
        self.0.send_if_modified(|state| {
            began = !state.closing;
            state.under_way += usize::from(began);
            began
        });
        if !began {
            std::future::pending::<()>().await;
        }
        Piece(self.0.clone())
    }

    /// Ends something that was begun before, by storing what became of it: that goes on also at the end.
    pub(crate) fn go_on(&self) -> Piece {
        self.0.send_modify(|state| state.under_way += 1);
        Piece(self.0.clone())
    }

    /// From here on nothing new is begun.
    pub(crate) fn close(&self) {
        self.0.send_modify(|state| state.closing = true);
    }

    /// How much is under way.
    pub(crate) fn under_way(&self) -> usize {
        self.0.borrow().under_way
    }

    /// Waits until nothing is under way.
    pub(crate) async fn idle(&self) {
        let _ = self.0.subscribe().wait_for(|state| state.under_way == 0).await;
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn at_the_end_nothing_begins_and_what_began_is_waited_for() {
        let work = Work::default();
        let piece = work.begin().await;
        work.close();
        assert!(work.begin().now_or_never().is_none() && work.idle().now_or_never().is_none());
        let stored = work.go_on();
        drop(piece);
        assert!(work.idle().now_or_never().is_none());
        drop(stored);
        assert!(work.idle().now_or_never().is_some());
        assert_eq!(work.under_way(), 0);
    }
}
