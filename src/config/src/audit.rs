//! `[audit]`: where what was asked, decided and done is kept, and for how long.

use std::path::PathBuf;
use std::time::Duration;

use picket_core::time::written;

use crate::sections::{StoreSettings, absolute};
use crate::table::Table;

/// `[audit]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditSettings {
    /// `path`: a directory, absolute. Default: beside the store, with its name and `.audit`; with a store in memory none,
    /// and nothing is audited.
    pub path: Option<PathBuf>,
    /// `rotate`: a file of so many bytes is followed by the next; 64 KiB to 4 GiB. Default: 64 MiB.
    pub rotate: u64,
    /// `keep`: a file goes once all of it is older; 1 d to 36500 d. Default: 90 d.
    pub keep: Duration,
    /// `most`: the oldest files go, whatever their age, while all of them together are larger, so that no caller fills the
    /// disk on which the store is; four times `rotate` at least. Default: 4 GiB, or four times `rotate`.
    pub most: u64,
    /// `fsync`: whether an entry is forced to the disk before it counts as written. Default: true.
    pub fsync: bool,
}

const DAY: Duration = Duration::from_secs(86_400);

pub(crate) fn read(mut table: Table<'_>, store: &StoreSettings) -> AuditSettings {
    let path = absolute(&mut table, "path");
    let rotate = table.size("rotate").filter(|bytes| {
        let fits = (64 << 10..=4 << 30).contains(bytes);
        if !fits {
            table.fault("rotate", "expected 64KiB to 4GiB");
        }
        fits
    });
    let keep = table.duration("keep").filter(|keep| {
        let most = DAY * 36_500;
        let fits = (DAY..=most).contains(keep);
        if !fits {
            table.fault("keep", format!("expected {} to {}", written(DAY), written(most)));
        }
        fits
    });
    let rotate = rotate.unwrap_or(64 << 20);
    let least = rotate.saturating_mul(4);
    let most = table.size("most").filter(|bytes| {
        if *bytes < least {
            table.fault(
                "most",
                "expected four times `rotate` at least: whole files go, and one is written on",
            );
        }
        *bytes >= least
    });
    let fsync = table.flag("fsync").unwrap_or(true);
    table.done();
    AuditSettings {
        path: path.or(store.beside("audit")),
        rotate,
        keep: keep.unwrap_or(DAY * 90),
        most: most.unwrap_or(least.max(4 << 30)),
        fsync,
    }
}
