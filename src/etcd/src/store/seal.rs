//! A store that is left for another one (S21): the mark, which bars every election and every write.
//!
//! # Invariants
//!
//! - The mark is set in one transaction. It compares that nobody leads and that the term is the one that
//!   the backup saw, when nobody led either. Only a leader writes, so nothing changed in between. Shown by
//!   `a_store_is_left_only_as_the_backup_saw_it_and_nobody_leads_over_it_then`.
//! - Taking leadership and every guarded write compare that there is no mark, so that a gateway that stood
//!   by meanwhile is refused as well. Shown by
//!   `a_store_is_left_only_as_the_backup_saw_it_and_nobody_leads_over_it_then`.

use picket_core::store::{Content, StoreError};
use picket_etcd_api::{Compare, RequestOp, TxnRequest};

use crate::connection::Fault;
use crate::life::gets;
use crate::page;
use crate::shared::Shared;

/// All that the store kept at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// What it kept.
    pub content: Content,
    /// Who led at that moment, by name; `None`: nobody did.
    pub leader: Option<String>,
    pub(super) raw_life: Vec<u8>,
    pub(super) term_revision: i64,
}

pub(super) async fn seal(shared: &Shared, to: &str, of: &Snapshot) -> Result<(), StoreError> {
    let keys = &shared.keys;
    if let Some(leader) = &of.leader {
        return Err(StoreError::Unavailable(format!(
            "{leader} led when the backup was taken, and what it wrote since is not in it: stop every picketd of the fleet, \
             and take it again"
        )));
    }
    let same = [
        Compare::version(keys.leader(), 0),
        Compare::mod_revision(keys.term(), of.term_revision),
        Compare::value(keys.incarnation(), of.raw_life.clone()),
        Compare::version(keys.marked(), 0),
        Compare::version(keys.filling(), 0),
    ];
    let put = RequestOp::put(keys.marked(), to);
    let txn = TxnRequest::default().when(same).and_then([put]).or_else([RequestOp::get(keys.marked())]);
    let (done, found) = match shared.connection.commit(txn).await {
        Ok(answer) => (answer.succeeded, gets(&answer).next().flatten()),
        Err(Fault::Unknown(why)) => match page::one(&shared.connection, keys.marked()).await {
            Ok(Some(found)) => (false, Some(found)),
            // Absent now, it may still come.
            Ok(None) | Err(_) => return Err(StoreError::Unknown(why)),
        },
        Err(fault) => return Err(fault.of_a_write()),
    };
    match found {
        _ if done => Ok(()),
        Some(marked) if marked.value == to.as_bytes() => Ok(()),
        Some(marked) => Err(StoreError::Unavailable(format!(
            "the store under {} in etcd is marked already, as moved to {}",
            keys.prefix(),
            String::from_utf8_lossy(&marked.value)
        ))),
        None => Err(StoreError::Unavailable(format!(
            "the store under {} in etcd is not marked: a gateway led since the backup was taken, or the store was restored. \
             Stop every picketd of the fleet, and take it again",
            keys.prefix()
        ))),
    }
}

pub(super) async fn moved(shared: &Shared) -> Result<Option<String>, StoreError> {
    let found = page::one(&shared.connection, shared.keys.marked()).await.map_err(Fault::of_a_read)?;
    Ok(found.map(|marked| String::from_utf8_lossy(&marked.value).into_owned()))
}

pub(super) async fn unseal(shared: &Shared) -> Result<Option<String>, StoreError> {
    let marked = || shared.keys.marked();
    let there = Compare::is_there(marked());
    let txn =
        TxnRequest::default().when([there]).and_then([RequestOp::get(marked()), RequestOp::delete(marked())]);
    let answer = shared.connection.commit(txn).await.map_err(Fault::of_a_write)?;
    let found = gets(&answer).next().flatten();
    Ok(found.map(|marked| String::from_utf8_lossy(&marked.value).into_owned()))
}
