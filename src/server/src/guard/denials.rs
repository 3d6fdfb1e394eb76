//! Every denial is told to whoever keeps the audit; equal ones are gathered, so that nobody fills it.
//!
//! **Invariants.** The first of its kind is told at once. Further equal ones are counted, and the count is told each
//! minute. No more kinds are kept than [`KINDS`]: beyond that they count as one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use picket_proto::v1::ErrorReason;
use tokio_util::sync::CancellationToken;

/// How often counts are told.
const EVERY: Duration = Duration::from_secs(60);
/// So many kinds are told apart.
const KINDS: usize = 1_024;

/// Something that was refused to somebody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// Who asked; an address where it is not known who that is.
    pub caller: String,
    /// What was asked: a call's name, or `connect`.
    pub call: String,
    /// Why, in the words of `picket.v1.ErrorReason`: `UNAUTHENTICATED`, `ROLE_MISSING`, `HOLDER_NOT_ALLOWED`, `LIMIT`.
    pub reason: &'static str,
    /// The same for people. Of several limits the last.
    pub detail: String,
    /// How many equal ones this stands for, not those that were told before. Limits are equal whatever they say.
    pub count: u64,
}

/// Who is told of denials. Must not wait.
pub trait Denials: std::fmt::Debug + Send + Sync {
    /// Something was refused.
    fn denied(&self, denial: &Denial);
}

/// Nobody is told.
#[derive(Debug)]
pub struct Untold;

impl Denials for Untold {
    fn denied(&self, _: &Denial) {}
}

/// Caller, call, reason, and what is said of it.
type Kind = (String, String, &'static str, String);

/// Gathers equal ones.
#[derive(Debug)]
pub(crate) struct Gathered {
    told: Arc<dyn Denials>,
    open: Mutex<BTreeMap<Kind, Option<Denial>>>,
}

impl Gathered {
    pub(crate) fn new(told: Arc<dyn Denials>) -> Self {
        Self { told, open: Mutex::default() }
    }

    /// Tells it now if it is the first of its kind, else counts it.
    pub(crate) fn tell(&self, caller: &str, call: &str, reason: ErrorReason, detail: &str) {
        let denial = |caller: &str, call: &str| Denial {
            caller: caller.to_owned(),
            call: call.to_owned(),
            reason: reason.word(),
            detail: detail.to_owned(),
            count: 1,
        };
        let mut denial = denial(caller, call);
        let first = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            // A limit says when to come back, which differs from time to time.
            let said = if reason == ErrorReason::Limit { "" } else { detail };
            let mut kind: Kind = (denial.caller.clone(), denial.call.clone(), denial.reason, said.to_owned());
            if open.len() >= KINDS && !open.contains_key(&kind) {
                kind = ("many".to_owned(), "several".to_owned(), denial.reason, String::new());
                (denial.caller, denial.call) = (kind.0.clone(), kind.1.clone());
            }
            match open.get_mut(&kind) {
                None => {
                    open.insert(kind, None);
                    true
                }
                Some(gathered) => {
                    denial.count += gathered.as_ref().map_or(0, |before| before.count);
                    *gathered = Some(denial.clone());
                    false
                }
            }
        };
        if first {
            self.told.denied(&denial);
        }
    }

    /// Tells the counts; kinds of which there were no more are forgotten, so that the next one is told at once again.
    fn settle(&self) {
        let counted: Vec<Denial> = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.retain(|_, gathered| gathered.is_some());
            open.values_mut().filter_map(Option::take).collect()
        };
        counted.iter().for_each(|denial| self.told.denied(denial));
    }

    /// Tells the counts each minute, and what is left at the end.
    pub(crate) async fn keep_telling(&self, stop: CancellationToken) {
        while stop.run_until_cancelled(tokio::time::sleep(EVERY)).await.is_some() {
            self.settle();
        }
        self.settle();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default)]
    struct Kept(Mutex<Vec<Denial>>);

    impl Denials for Kept {
        fn denied(&self, denial: &Denial) {
            self.0.lock().expect("whole").push(denial.clone());
        }
    }

    impl Kept {
        fn take(&self) -> Vec<(String, u64)> {
            let kept = std::mem::take(&mut *self.0.lock().expect("whole"));
            kept.into_iter().map(|denial| (denial.caller, denial.count)).collect()
        }
    }

    #[test]
    fn the_first_is_told_at_once_and_the_rest_are_counted() {
        let kept = Arc::new(Kept::default());
        let gathered = Gathered::new(kept.clone());
        let tell = |caller: &str| gathered.tell(caller, "Fence", ErrorReason::RoleMissing, "no");
        let told = |caller: &str, count| (caller.to_owned(), count);
        for _ in 0..10_000 {
            tell("a");
        }
        tell("b");
        assert_eq!(kept.take(), [told("a", 1), told("b", 1)]);
        gathered.settle();
        assert_eq!(kept.take(), [told("a", 9_999)]);
        tell("b");
        gathered.settle();
        gathered.settle();
        tell("a");
        assert_eq!(
            kept.take(),
            [told("b", 1), told("a", 1)],
            "forgotten in a minute without any, then told anew"
        );
    }

    #[test]
    fn there_are_no_more_kinds_than_can_be_kept() {
        let kept = Arc::new(Kept::default());
        let gathered = Gathered::new(kept.clone());
        for number in 0..3 * KINDS {
            gathered.tell(&format!("c{number}"), "Fence", ErrorReason::RoleMissing, "no");
        }
        assert_eq!(kept.take().len(), KINDS + 1);
        gathered.settle();
        assert_eq!(kept.take(), [("many".to_owned(), (2 * KINDS - 1) as u64)]);
    }

    #[tokio::test(start_paused = true)]
    async fn counts_are_told_each_minute_and_at_the_end() {
        let kept = Arc::new(Kept::default());
        let gathered = Arc::new(Gathered::new(kept.clone()));
        let stop = CancellationToken::new();
        let telling = (gathered.clone(), stop.clone());
        let telling = tokio::spawn(async move { telling.0.keep_telling(telling.1).await });
        let twice = || (0..2).for_each(|_| gathered.tell("a", "Fence", ErrorReason::Limit, "no"));
        twice();
        tokio::time::sleep(EVERY + Duration::from_secs(1)).await;
        assert_eq!(kept.take().len(), 2);
        twice();
        stop.cancel();
        telling.await.expect("ended");
        assert_eq!(kept.take(), [("a".to_owned(), 2)]);
    }
}
