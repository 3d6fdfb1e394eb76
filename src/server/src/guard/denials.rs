//! Every denial is told to the audit; equal ones are gathered, so that nobody fills it.
//!
//! # Invariants
//!
//! - The first of its kind is told at once. Further equal ones are counted, and the count is told each
//!   minute and at the end. Shown by `the_first_is_told_at_once_and_the_rest_are_counted`,
//!   `counts_are_told_each_minute`, `what_was_counted_is_told_at_an_orderly_stop`.
//! - Each caller has [`KINDS`]: what goes beyond counts as one that still names the caller. Shown by
//!   `who_has_more_kinds_than_can_be_kept_is_still_named_and_takes_nobody_elses`.
//! - Callers who are not known take no room of those who are. Shown by
//!   `there_are_no_more_callers_than_can_be_kept_and_strangers_take_no_room_of_others`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use picket_proto::v1::ErrorReason;

use super::origin::Origin;

/// How often counts are told.
const EVERY: Duration = Duration::from_secs(60);
/// So many callers are told apart who are known, and as many who are not.
const CALLERS: usize = 1_024;
/// So many kinds of each are told apart.
const KINDS: usize = 32;
/// Stands for the calls of what is not told apart.
const SEVERAL: &str = "several";
/// Stands for the callers who are not told apart.
const MANY: &str = "many";

/// Something that was refused to somebody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// Who asked; an address where it is not known who that is.
    pub caller: String,
    /// Who that is, for people: `alice as root`. `None`: `caller` says all that is known.
    pub shown: Option<Arc<str>>,
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
pub trait DenialSink: std::fmt::Debug + Send + Sync {
    /// Something was refused.
    fn denied(&self, denial: &Denial);
}

/// Nobody is told.
#[derive(Debug)]
pub struct DiscardDenials;

impl DenialSink for DiscardDenials {
    fn denied(&self, _: &Denial) {}
}

/// Caller, who that is for people, call, reason, and what is said of it.
type Kind = (String, Option<Arc<str>>, String, &'static str, String);
/// The kinds of one caller, each with those that were counted since it was told.
type Kinds = BTreeMap<Kind, Option<Denial>>;

/// Gathers equal ones.
#[derive(Debug)]
pub(crate) struct DenialAggregator {
    told: Arc<dyn DenialSink>,
    open: Mutex<Open>,
}

/// By caller.
#[derive(Debug, Default)]
struct Open {
    known: BTreeMap<String, Kinds>,
    strangers: BTreeMap<String, Kinds>,
}

impl DenialAggregator {
    pub(crate) fn new(told: Arc<dyn DenialSink>) -> Self {
        Self { told, open: Mutex::default() }
    }

    /// Tells it now if it is the first of its kind, else counts it.
    pub(crate) fn tell(&self, by: &Origin, call: &str, reason: ErrorReason, detail: &str) {
        let mut denial = Denial {
            caller: by.name.clone(),
            shown: by.shown.clone(),
            call: call.to_owned(),
            reason: reason.word(),
            detail: detail.to_owned(),
            count: 1,
        };
        let first = {
            let mut open = self.open.lock();
            let all = if by.is_known { &mut open.known } else { &mut open.strangers };
            let is_full = all.len() >= CALLERS && !all.contains_key(&by.as_one);
            let caller = if is_full { MANY } else { by.as_one.as_str() };
            let kinds = all.entry(caller.to_owned()).or_default();
            // A limit says when to come back, and what there is no call of is whatever somebody thought of.
            let varies = matches!(reason, ErrorReason::Limit | ErrorReason::NotOffered);
            let said = if varies { "" } else { detail };
            let mut kind: Kind =
                (by.name.clone(), by.shown.clone(), call.to_owned(), denial.reason, said.to_owned());
            if is_full || (kinds.len() >= KINDS && !kinds.contains_key(&kind)) {
                kind = (caller.to_owned(), None, SEVERAL.to_owned(), denial.reason, String::new());
                (denial.caller, denial.shown, denial.call) = (kind.0.clone(), None, kind.2.clone());
            }
            match kinds.get_mut(&kind) {
                None => {
                    kinds.insert(kind, None);
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
    pub(crate) fn settle(&self) {
        let counted: Vec<Denial> = {
            let mut open = self.open.lock();
            let Open { known, strangers } = &mut *open;
            let mut counted = Vec::new();
            for all in [known, strangers] {
                all.retain(|_, kinds| {
                    kinds.retain(|_, gathered| gathered.is_some());
                    counted.extend(kinds.values_mut().filter_map(Option::take));
                    !kinds.is_empty()
                });
            }
            counted
        };
        counted.iter().for_each(|denial| self.told.denied(denial));
    }

    /// Tells the counts each minute, for as long as it is polled. Whoever stops polling settles what is left.
    pub(crate) async fn keep_telling(&self) {
        loop {
            tokio::time::sleep(EVERY).await;
            self.settle();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default)]
    struct DenialLog(Mutex<Vec<Denial>>);

    impl DenialSink for DenialLog {
        fn denied(&self, denial: &Denial) {
            self.0.lock().push(denial.clone());
        }
    }

    impl DenialLog {
        fn take(&self) -> Vec<(String, u64)> {
            let kept = std::mem::take(&mut *self.0.lock());
            kept.into_iter().map(|denial| (denial.caller, denial.count)).collect()
        }
    }

    fn gathered() -> (Arc<DenialLog>, DenialAggregator) {
        let kept = Arc::new(DenialLog::default());
        (kept.clone(), DenialAggregator::new(kept))
    }

    fn told(caller: &str, count: usize) -> (String, u64) {
        (caller.to_owned(), count as u64)
    }

    #[test]
    fn the_first_is_told_at_once_and_the_rest_are_counted() {
        let (kept, gathered) = gathered();
        let tell =
            |caller: &str| gathered.tell(&Origin::known(caller), "Fence", ErrorReason::RoleMissing, "no");
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
    fn who_has_more_kinds_than_can_be_kept_is_still_named_and_takes_nobody_elses() {
        let (kept, gathered) = gathered();
        let tell = |caller: &str, detail: &str| {
            gathered.tell(&Origin::known(caller), "Fence", ErrorReason::RoleMissing, detail);
        };
        for number in 0..3 * KINDS {
            tell("inventor", &format!("no {number}"));
        }
        assert_eq!(kept.take(), vec![told("inventor", 1); KINDS + 1]);
        tell("other", "no");
        assert_eq!(kept.take(), [told("other", 1)]);
        gathered.settle();
        assert_eq!(kept.take(), [told("inventor", 2 * KINDS - 1)]);
    }

    #[test]
    fn there_are_no_more_callers_than_can_be_kept_and_strangers_take_no_room_of_others() {
        let (kept, gathered) = gathered();
        let tell = |by: Origin| gathered.tell(&by, "connect", ErrorReason::Unauthenticated, "no");
        for number in 0..3 * CALLERS {
            let name = format!("tls:{number}");
            tell(Origin::stranger(&name, &name));
        }
        assert_eq!(kept.take().len(), CALLERS + 1);
        tell(Origin::known("a"));
        assert_eq!(kept.take(), [told("a", 1)]);
        gathered.settle();
        assert_eq!(kept.take(), [told(MANY, 2 * CALLERS - 1)]);
    }

    #[test]
    fn names_that_one_has_for_nothing_have_the_kinds_of_one() {
        let (kept, gathered) = gathered();
        for number in 0..3 * KINDS {
            let by = Origin::stranger(&format!("tcp:127.0.0.{number}"), "tcp:loopback");
            gathered.tell(&by, "Fence", ErrorReason::RoleMissing, "no");
        }
        let first = kept.take();
        assert_eq!(first.len(), KINDS + 1);
        assert_eq!(first.last(), Some(&told("tcp:loopback", 1)));
    }

    #[test]
    fn what_there_is_no_call_of_is_one_kind() {
        let (kept, gathered) = gathered();
        for number in 0..100 {
            let what = format!("there is no call {number}");
            gathered.tell(&Origin::known("a"), "unknown", ErrorReason::NotOffered, &what);
        }
        assert_eq!(kept.take(), [told("a", 1)]);
    }

    #[tokio::test(start_paused = true)]
    async fn counts_are_told_each_minute() {
        let (kept, gathered) = gathered();
        let gathered = Arc::new(gathered);
        let telling = gathered.clone();
        let telling = tokio::spawn(async move { telling.keep_telling().await });
        (0..2).for_each(|_| gathered.tell(&Origin::known("a"), "Fence", ErrorReason::Limit, "no"));
        tokio::time::sleep(EVERY + Duration::from_secs(1)).await;
        assert_eq!(kept.take().len(), 2);
        telling.abort();
    }
}
