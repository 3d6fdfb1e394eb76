//! Logins: how many devices are logged in to side by side, by one gateway.
//!
//! A login is the most expensive request that a device gets, on both sides. Thousands at once would wait
//! for one another so long that each is asked again, and none gets through. Fences come first, then checks,
//! then callers who merely want to know.
//!
//! **Non-goals.** No limit for what is asked in an open session. No error: every waiting login gets a turn.
//!
//! # Invariants
//!
//! - A turn is given back after [`PATIENCE`], also where the device has not answered: dead devices do not
//!   keep living ones waiting. Shown by `the_dead_do_not_keep_the_living_waiting`,
//!   `dead_bmcs_do_not_keep_the_turns_in_which_the_others_are_logged_in_to`.
//! - Fences come first, and the others are not starved: of eight turns one is theirs as long as fences
//!   wait. Other logins have half of the turns at most. Shown by
//!   `a_fence_passes_all_others_and_they_are_not_starved`,
//!   `a_fence_finds_half_of_the_turns_free_whatever_is_checked`.
//! - An on takes no turn: nothing may come between the store's answer and the on.
//! - The time of a call does not run while its login waits.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// How long a turn lasts at most. A device that has not answered by then is said everything again, and that rarely.
pub const PATIENCE: Duration = Duration::from_millis(250);
/// So many fences in a row pass the others.
const IN_A_ROW: u32 = 7;

/// For what a device is logged in to, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// A fence, or what follows from one.
    Fence,
    /// A check that nobody asked for.
    Check,
    /// Somebody wants to know.
    Status,
}

const RANKS: usize = 3;

/// The turns of a gateway. Cheap to clone; all clones are the same turns.
#[derive(Clone, Debug)]
pub struct Logins(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    most: usize,
    /// Logins that are out, and those of them that are no fence's.
    out: usize,
    out_besides: usize,
    /// Fences that passed somebody since one of the others had a turn.
    passed: u32,
    /// By rank.
    waiting: [VecDeque<oneshot::Sender<LoginTurn>>; RANKS],
}

/// One turn, until it is dropped.
#[derive(Debug)]
pub struct LoginTurn {
    /// Where it goes back to; `None`: nobody took it.
    logins: Option<Logins>,
    rank: Rank,
}

impl LoginTurn {
    /// Does something in this turn, and goes on without it where that takes longer than a turn lasts.
    pub async fn within<T>(self, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        if let Ok(done) = tokio::time::timeout(PATIENCE, &mut work).await {
            return done;
        }
        drop(self);
        work.await
    }
}

impl Drop for LoginTurn {
    fn drop(&mut self) {
        if let Some(logins) = self.logins.take() {
            logins.0.lock().came_back(self.rank);
            logins.hand_out();
        }
    }
}

impl State {
    fn went_out(&mut self, rank: Rank) {
        self.out += 1;
        self.out_besides += usize::from(rank != Rank::Fence);
    }

    fn came_back(&mut self, rank: Rank) {
        self.out -= 1;
        self.out_besides -= usize::from(rank != Rank::Fence);
    }

    /// Whether there is a turn for one more of that rank.
    fn has_room(&self, rank: Rank) -> bool {
        self.out < self.most && (rank == Rank::Fence || self.out_besides < self.most.div_ceil(2))
    }

    /// Who is next. Takes those out who do not wait any more.
    fn next(&mut self) -> Option<(Rank, oneshot::Sender<LoginTurn>)> {
        for queue in &mut self.waiting {
            while queue.front().is_some_and(oneshot::Sender::is_closed) {
                queue.pop_front();
            }
        }
        let waits = |rank: Rank| !self.waiting[rank as usize].is_empty() && self.has_room(rank);
        let besides = [Rank::Check, Rank::Status].into_iter().find(|rank| waits(*rank));
        let rank = match (waits(Rank::Fence), besides) {
            (true, Some(_)) if self.passed < IN_A_ROW => {
                self.passed += 1;
                Rank::Fence
            }
            (true, None) => Rank::Fence,
            (_, Some(rank)) => {
                self.passed = 0;
                rank
            }
            (false, None) => return None,
        };
        let waiter = self.waiting[rank as usize].pop_front()?;
        self.went_out(rank);
        Some((rank, waiter))
    }
}

impl Logins {
    /// So many at once; one at least.
    pub fn new(most: usize) -> Self {
        let waiting = Default::default();
        Self(Arc::new(Mutex::new(State { most: most.max(1), out: 0, out_besides: 0, passed: 0, waiting })))
    }

    /// From now on so many. Logins that are out stay so.
    pub fn change(&self, most: usize) {
        self.0.lock().most = most.max(1);
        self.hand_out();
    }

    /// Waits for a turn. Whoever leaves meanwhile leaves nothing behind.
    pub async fn take(&self, rank: Rank) -> LoginTurn {
        let given = {
            let mut state = self.0.lock();
            if state.waiting.iter().all(VecDeque::is_empty) && state.has_room(rank) {
                state.went_out(rank);
                None
            } else {
                let (give, given) = oneshot::channel();
                state.waiting[rank as usize].push_back(give);
                Some(given)
            }
        };
        match given {
            None => LoginTurn { logins: Some(self.clone()), rank },
            Some(given) => {
                self.hand_out();
                match given.await {
                    Ok(turn) => turn,
                    // Nobody but these turns themselves has the other end: it is not dropped before it was used.
                    Err(_) => std::future::pending().await,
                }
            }
        }
    }

    /// Gives free turns to those who wait.
    fn hand_out(&self) {
        loop {
            let Some((rank, waiter)) = self.0.lock().next() else { return };
            if let Err(mut turn) = waiter.send(LoginTurn { logins: Some(self.clone()), rank }) {
                // Its drop would come back here: thousands who left would be as many calls deep.
                turn.logins = None;
                self.0.lock().came_back(rank);
            }
        }
    }
}

#[cfg(test)]
mod tests;
