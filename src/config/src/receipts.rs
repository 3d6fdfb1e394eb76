//! `[receipts]`: the key with which receipts are signed.

use std::path::PathBuf;

use crate::sections::{StoreSettings, absolute};
use crate::table::Table;

/// `[receipts]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiptSettings {
    /// `key_file`: an absolute path; made at the first start, readable by the gateway's user alone. Default: beside the
    /// store, with its name and `.receipt.pem`; with a store in memory none, and each process has a key of its own.
    pub key_file: Option<PathBuf>,
}

pub(crate) fn read(mut table: Table<'_>, store: &StoreSettings) -> ReceiptSettings {
    let given = absolute(&mut table, "key_file");
    table.done();
    ReceiptSettings { key_file: given.or(store.beside("receipt.pem")) }
}
