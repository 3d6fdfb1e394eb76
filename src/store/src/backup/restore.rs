//! What a backup's content becomes in the store into which it is restored (S21).

use std::collections::BTreeMap;

use picket_core::ids::{FenceId, Incarnation, Version};
use picket_core::record::Restored;
use picket_core::restore::{self, Restore};
use picket_core::store::{Content, Note, Stored};
use picket_core::time::WallTime;

use super::Backup;

/// Requests that waited are void after a restore: their nodes' generations have moved on.
const QUEUE: &str = "queue/";

/// A restore.
pub struct RestoreOptions<'m> {
    /// When.
    pub at: WallTime,
    /// The new life.
    pub incarnation: Incarnation,
    /// Makes ids of fences that stand for the restore.
    pub mint: &'m mut dyn FnMut() -> FenceId,
}

/// The content of the restored store: a new life, higher numbers, and records of which nothing is proven. What was open
/// when the backup was taken has ended in the history.
pub fn restored_content(backup: Backup, options: RestoreOptions<'_>) -> Content {
    let Backup { header, mut content } = backup;
    let restore = Restore { at: options.at, taken_at: header.taken_at, from: header.incarnation };
    let mut fences: BTreeMap<FenceId, _> =
        content.fences.into_iter().map(|fence| (fence.id, fence)).collect();
    content.records = content
        .records
        .into_iter()
        .map(|stored| {
            let (record, ended) = restore::reborn(stored.record, restore, (options.mint)());
            let new = record.fence.clone();
            fences.extend(ended.into_iter().chain(new).map(|fence| (fence.id, fence)));
            Stored { version: Version(stored.version.0.max(1)), revision: stored.revision, record }
        })
        .collect();
    content.fences = fences.into_values().collect();
    content.notes.retain(|(name, _)| !name.starts_with(QUEUE));
    // For the nodes of which the backup has nothing.
    let mark = Restored {
        at: restore.at,
        taken_at: restore.taken_at,
        from: restore.from,
        phase: "unknown".to_owned(),
        counted: false,
    };
    // One that cannot be read begins anew: what was noted in an earlier life is told as another store's then, and left alone.
    let lives = content.notes.iter().find(|(name, _)| name == restore::LIVES);
    let mut lived: Vec<Incarnation> =
        lives.and_then(|(_, note)| serde_json::from_str(&note.text).ok()).unwrap_or_default();
    lived.push(restore.from);
    content.notes.retain(|(name, _)| name != restore::NOTE && name != restore::LIVES);
    for (name, text) in
        [(restore::LIVES, serde_json::to_string(&lived)), (restore::NOTE, serde_json::to_string(&mark))]
    {
        let text = text.unwrap_or_default();
        content.notes.push((name.to_owned(), Note { version: Version(1), text }));
    }
    content.notes.sort_by(|(one, _), (other, _)| one.cmp(other));
    content.term = restore::raised_term(content.term, restore.at);
    content.incarnation = options.incarnation;
    content
}
