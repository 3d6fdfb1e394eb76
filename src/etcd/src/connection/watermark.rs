//! What was seen of etcd. A store that was set back under a process that knows it is another one, and has a
//! ledger of its own (S6).
//!
//! # Invariants
//!
//! - What a linearizable answer says of the revision never goes back in one cluster and one life of the
//!   store. Shown by `what_is_set_back_in_one_life_is_refused_for_good_and_another_life_begins_anew`.

use parking_lot::Mutex;

/// The newest that was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Watermark {
    /// The highest revision.
    pub(super) revision: i64,
    /// The store's life, as it is stored; `None`: it was not read yet.
    pub(super) life: Option<Vec<u8>>,
    /// It was found set back: why nobody is asked any more.
    back: Option<String>,
}

/// Shared by all members' connections.
#[derive(Debug, Default)]
pub(super) struct WatermarkCell(Mutex<Watermark>);

impl WatermarkCell {
    pub(super) fn newest(&self) -> Watermark {
        self.0.lock().clone()
    }

    pub(super) fn answered_at(&self, revision: i64) {
        let mut newest = self.0.lock();
        newest.revision = newest.revision.max(revision);
    }

    /// The store's life was read at that revision. Another one than before begins anew: a restore made it.
    pub(super) fn lives(&self, life: &[u8], revision: i64) {
        let mut newest = self.0.lock();
        if newest.life.as_deref() != Some(life) {
            *newest = Watermark { revision, life: Some(life.to_vec()), back: None };
        }
        newest.revision = newest.revision.max(revision);
    }

    /// Whether who is connected anew goes on from `before`, which was seen before it was asked.
    ///
    /// # Errors
    /// In words: it has the same life, and less than was seen of it.
    pub(super) fn goes_on(
        &self,
        before: &Watermark,
        revision: i64,
        life: Option<&[u8]>,
    ) -> Result<(), String> {
        if before.life.is_none() || before.life.as_deref() != life {
            return Ok(());
        }
        let mut newest = self.0.lock();
        if revision < before.revision {
            let why = format!(
                "etcd was set back: its revision is {revision}, and it was {} in the same life of the store. What was written in between is \
                 lost, and this gateway knows it still: see docs/backup.md, then restart the gateway",
                before.revision
            );
            newest.back = Some(why);
        }
        match &newest.back {
            Some(why) => Err(why.clone()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_back_in_one_life_is_refused_for_good_and_another_life_begins_anew() {
        let watermark = WatermarkCell::default();
        watermark.answered_at(90);
        assert_eq!(
            watermark.goes_on(&watermark.newest(), 5, Some(b"a")),
            Ok(()),
            "which life that was is not known"
        );
        watermark.lives(b"a", 95);
        watermark.answered_at(100);
        watermark.answered_at(99);
        for (revision, life, good) in [
            (100, Some(&b"a"[..]), true),
            (101, Some(b"a"), true),
            (5, Some(b"b"), true),
            (5, None, true),
            (99, Some(b"a"), false),
            // It has caught up since, and what was lost is lost.
            (200, Some(b"a"), false),
        ] {
            assert_eq!(
                watermark.goes_on(&watermark.newest(), revision, life).is_ok(),
                good,
                "{revision}, {life:?}"
            );
        }
        watermark.lives(b"b", 3);
        assert_eq!(watermark.newest().revision, 3);
        assert_eq!(watermark.goes_on(&watermark.newest(), 3, Some(b"b")), Ok(()));
    }
}
