//! All that the store keeps, at one revision; and a store that a backup fills (S21).
//!
//! # Invariants
//!
//! - A store that is being filled has the key `filling` and no life of its own: nobody uses it, also where
//!   the filling never ends. Shown by `what_is_half_filled_is_nobodys`.
//! - The life of a filled store, its term and the end of `filling` are one transaction, the last.

use picket_core::ids::NodeId;
use picket_core::store::{BoundEntry, Content, StoreError, Stored};
use picket_etcd_api::{Compare, RequestOp, TxnRequest};
use picket_store::format::{self, FORMAT};

use super::Snapshot;
use super::stored;
use crate::connection::Fault;
use crate::election::LeaderValue;
use crate::keys::{end_of, fence_id_of, name_in, node_and_key};
use crate::life::{self, Life};
use crate::page;
use crate::shared::Shared;

/// How many keys are put by one transaction: fewer than etcd takes, its compare included.
const TOGETHER: usize = 100;
/// And how many bytes: etcd takes 1.5 MiB in a request.
const BYTES: usize = 768 << 10;

pub(super) async fn dump(shared: &Shared) -> Result<Content, StoreError> {
    let life = shared.look().await?;
    Ok(read(shared, life).await?.content)
}

/// All that the store keeps at one revision, and what must be so still when the store is left.
pub(super) async fn read(shared: &Shared, life: Life) -> Result<Snapshot, StoreError> {
    let keys = &shared.keys;
    let read = page::all(&shared.connection, keys.all()).await.map_err(Fault::of_a_read)?;
    let damaged = |what: &str| StoreError::Damaged(format!("{what} in etcd has a name that cannot be read"));
    let content = Content {
        incarnation: life.incarnation,
        term: life.term,
        records: Vec::new(),
        fences: Vec::new(),
        keys: Vec::new(),
        notes: Vec::new(),
    };
    let mut seen = Snapshot { content, raw_life: life.raw, term_revision: life.term_revision, leader: None };
    let content = &mut seen.content;
    let (nodes, fences, bound, notes) = (keys.nodes(), keys.fences(), keys.all_keys(), keys.notes());
    for entry in &read.entries {
        let key = entry.key.as_slice();
        if key == keys.incarnation() && life::incarnation_of(&entry.value)? != life.incarnation {
            return Err(StoreError::Unavailable(
                "the store was restored meanwhile: take it again".to_owned(),
            ));
        } else if key == keys.term() {
            content.term = life::term_of(&entry.value)?;
            seen.term_revision = entry.mod_revision;
        } else if key == keys.leader() {
            seen.leader = Some(LeaderValue::read(&entry.value).gateway);
        } else if key.starts_with(&nodes) {
            let name = name_in(&nodes, key).ok_or_else(|| damaged("a record"))?;
            content.records.push(stored(name, entry)?);
        } else if key.starts_with(&fences) {
            let id = fence_id_of(key).ok_or_else(|| damaged("a fence"))?;
            content.fences.push(format::decode_fence(id, &entry.value)?);
        } else if key.starts_with(&bound) {
            let named =
                node_and_key(&bound, key).and_then(|(node, key)| Some((NodeId::new(node).ok()?, key)));
            let (node, key) = named.ok_or_else(|| damaged("an idempotency key"))?;
            let entry = format::decode_key(key, &entry.value)?;
            content.keys.push(BoundEntry { node, key: key.to_owned(), entry });
        } else if key.starts_with(&notes) {
            let name = name_in(&notes, key).ok_or_else(|| damaged("a note"))?;
            content.notes.push((name.to_owned(), format::decode_note(name, &entry.value)?));
        }
    }
    Ok(seen)
}

pub(super) async fn fill(shared: &Shared, content: &Content) -> Result<(), StoreError> {
    let keys = &shared.keys;
    let token: [u8; 16] = shared.random();
    let nothing = Compare::version(keys.all(), 0).up_to(end_of(&keys.all()));
    let begin =
        TxnRequest::default().when([nothing]).and_then([RequestOp::put(keys.filling(), token.to_vec())]);
    if !commit(shared, begin).await? {
        return Err(StoreError::Unavailable(format!(
            "under {0} in etcd something stands already, and a backup is restored into an empty prefix only: name another \
             prefix, or, if what stands there is surely of no use any more: etcdctl del --prefix {0}",
            keys.prefix()
        )));
    }
    let ours = || Compare::value(keys.filling(), token);
    let mut entries = entries(shared, content)?.into_iter().peekable();
    while entries.peek().is_some() {
        let (mut ops, mut bytes) = (Vec::new(), 0);
        while let Some((key, value)) = entries.next_if(|(key, value)| {
            ops.is_empty() || ops.len() < TOGETHER && bytes + key.len() + value.len() <= BYTES
        }) {
            bytes += key.len() + value.len();
            ops.push(RequestOp::put(key, value));
        }
        expect_ours(shared, commit(shared, TxnRequest::default().when([ours()]).and_then(ops)).await?)?;
    }
    let end = [
        RequestOp::put(keys.format(), format::encode_meta("format", &FORMAT)?),
        RequestOp::put(keys.incarnation(), format::encode_meta("incarnation", &content.incarnation)?),
        RequestOp::put(keys.term(), life::term_bytes(content.term)?),
        RequestOp::delete(keys.filling()),
    ];
    expect_ours(shared, commit(shared, TxnRequest::default().when([ours()]).and_then(end)).await?)
}

fn expect_ours(shared: &Shared, done: bool) -> Result<(), StoreError> {
    if done {
        return Ok(());
    }
    let prefix = shared.keys.prefix();
    Err(StoreError::Unavailable(format!(
        "somebody else fills, or emptied, {prefix} in etcd: nothing more was written"
    )))
}

async fn commit(shared: &Shared, txn: TxnRequest) -> Result<bool, StoreError> {
    let answer = shared.connection.commit(txn).await.map_err(Fault::of_a_write)?;
    Ok(answer.succeeded)
}

/// A key and what stands there.
type Pair = (Vec<u8>, Vec<u8>);

/// Every key with its bytes. Records in the order of their last changes, so that their revisions have it too.
fn entries(shared: &Shared, content: &Content) -> Result<Vec<Pair>, StoreError> {
    let keys = &shared.keys;
    let mut records: Vec<&Stored> = content.records.iter().collect();
    records.sort_by_key(|stored| stored.revision);
    let mut all = Vec::new();
    for stored in records {
        all.push((keys.node(&stored.record.node), format::encode_record(stored)?));
    }
    for fence in &content.fences {
        all.push((keys.fence(fence.id), format::encode_fence(fence)?));
        all.push((keys.fence_of_node(&fence.node, fence.id), Vec::new()));
    }
    for bound in &content.keys {
        all.push((keys.key(&bound.node, &bound.key), format::encode_key(&bound.key, &bound.entry)?));
    }
    for (name, note) in &content.notes {
        all.push((keys.note(name), format::encode_note(name, note)?));
    }
    Ok(all)
}
