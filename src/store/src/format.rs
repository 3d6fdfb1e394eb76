//! The stored form: keys of the ordered map, and values as JSON in an envelope that names its version.
//!
//! # Invariants
//!
//! - A later version reads what an earlier one wrote (the goldens in `tests/golden`). Shown by
//!   `every_form_ever_written_is_read`.
//! - What an earlier version must not overlook raises [`FORMAT`], and a store of a newer format is refused
//!   as a whole. Shown by `a_store_of_a_later_version_is_refused`.

use picket_core::ids::{FenceId, NodeId, Revision, Version};
use picket_core::record::{Fence, NodeRecord};
use picket_core::store::{KeyEntry, Note, StoreError, Stored};
use picket_core::time::WallTime;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The format that this version writes, and the newest that it reads.
pub const FORMAT: u64 = 1;

/// What a stored value is, for messages.
#[derive(Clone, Debug)]
pub enum Subject {
    /// The record of a node.
    Record(String),
    /// A fence of the history.
    Fence(String),
    /// An idempotency key of a node.
    Key(String),
    /// A note of the fleet.
    Note(String),
    /// One of the store's own values.
    Meta(&'static str),
}

impl std::fmt::Display for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Subject::Record(node) => write!(f, "the record of {node}"),
            Subject::Fence(id) => write!(f, "fence {id}"),
            Subject::Key(key) => write!(f, "idempotency key {key:?}"),
            Subject::Note(name) => write!(f, "note {name:?}"),
            Subject::Meta(name) => write!(f, "the store's own value {name:?}"),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Envelope<T> {
    v: u64,
    body: T,
}

#[derive(Deserialize)]
struct Head {
    v: u64,
}

/// A record as it lies in the store.
#[derive(Serialize, Deserialize)]
struct RecordBody<R> {
    version: Version,
    revision: Revision,
    record: R,
}

/// A record's numbers, read without the record.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecordNumbers {
    pub(crate) version: Version,
    pub(crate) revision: Revision,
}

/// What forgetting needs to know of a fence.
#[derive(Deserialize)]
pub(crate) struct FenceEnd {
    pub(crate) node: NodeId,
    #[serde(default)]
    pub(crate) ended_at: Option<WallTime>,
}

fn encode<T: Serialize>(subject: &Subject, body: T) -> Result<Vec<u8>, StoreError> {
    serde_json::to_vec(&Envelope { v: FORMAT, body })
        .map_err(|error| StoreError::Unavailable(format!("{subject} cannot be written as JSON: {error}")))
}

fn decode<T: DeserializeOwned>(subject: &Subject, bytes: &[u8]) -> Result<T, StoreError> {
    let damaged = |error| StoreError::Damaged(format!("{subject} cannot be read: {error}"));
    match serde_json::from_slice::<Head>(bytes).map_err(damaged)? {
        Head { v: FORMAT } => serde_json::from_slice(bytes).map(|e: Envelope<T>| e.body).map_err(damaged),
        Head { v } => Err(StoreError::Damaged(format!(
            "{subject} has format {v}, and this version reads formats up to {FORMAT}: run the version that wrote it"
        ))),
    }
}

/// The stored bytes of a record.
pub fn encode_record(stored: &Stored) -> Result<Vec<u8>, StoreError> {
    let body = RecordBody { version: stored.version, revision: stored.revision, record: &stored.record };
    encode(&Subject::Record(stored.record.node.to_string()), body)
}

/// The record in `bytes`, stored under the name `node`.
pub fn decode_record(node: &str, bytes: &[u8]) -> Result<Stored, StoreError> {
    let subject = Subject::Record(node.to_owned());
    let RecordBody { version, revision, record } = decode::<RecordBody<NodeRecord>>(&subject, bytes)?;
    if record.node.as_str() != node {
        return Err(StoreError::Damaged(format!("{subject} says that it is of {}", record.node)));
    }
    Ok(Stored { version, revision, record })
}

pub(crate) fn decode_numbers(node: &str, bytes: &[u8]) -> Result<RecordNumbers, StoreError> {
    let subject = Subject::Record(node.to_owned());
    let body = decode::<RecordBody<serde::de::IgnoredAny>>(&subject, bytes)?;
    Ok(RecordNumbers { version: body.version, revision: body.revision })
}

/// The stored bytes of a fence.
pub fn encode_fence(fence: &Fence) -> Result<Vec<u8>, StoreError> {
    encode(&Subject::Fence(fence.id.to_string()), fence)
}

/// The fence in `bytes`.
pub fn decode_fence(id: FenceId, bytes: &[u8]) -> Result<Fence, StoreError> {
    decode(&Subject::Fence(id.to_string()), bytes)
}

pub(crate) fn decode_fence_end(id: FenceId, bytes: &[u8]) -> Result<FenceEnd, StoreError> {
    decode(&Subject::Fence(id.to_string()), bytes)
}

/// The stored bytes of what an idempotency key is bound to.
pub fn encode_key(key: &str, entry: &KeyEntry) -> Result<Vec<u8>, StoreError> {
    encode(&Subject::Key(key.to_owned()), entry)
}

/// What the idempotency key `key` is bound to.
pub fn decode_key(key: &str, bytes: &[u8]) -> Result<KeyEntry, StoreError> {
    decode(&Subject::Key(key.to_owned()), bytes)
}

/// The stored bytes of a note.
pub fn encode_note(name: &str, note: &Note) -> Result<Vec<u8>, StoreError> {
    encode(&Subject::Note(name.to_owned()), note)
}

/// The note in `bytes`, stored under the name `name`.
pub fn decode_note(name: &str, bytes: &[u8]) -> Result<Note, StoreError> {
    decode(&Subject::Note(name.to_owned()), bytes)
}

/// The stored bytes of one of the store's own values.
pub fn encode_meta<T: Serialize>(name: &'static str, value: &T) -> Result<Vec<u8>, StoreError> {
    encode(&Subject::Meta(name), value)
}

/// One of the store's own values.
pub fn decode_meta<T: DeserializeOwned>(name: &'static str, bytes: &[u8]) -> Result<T, StoreError> {
    decode(&Subject::Meta(name), bytes)
}

/// The format that the stored value `format` names. It is read without the envelope's check, which would refuse a newer
/// one in words that help less.
pub fn decode_format(bytes: &[u8]) -> Result<u64, StoreError> {
    let value: serde_json::Value = serde_json::from_slice(bytes)
        .map_err(|error| StoreError::Damaged(format!("the store's format cannot be read: {error}")))?;
    let format = value.get("body").and_then(serde_json::Value::as_u64);
    format.ok_or_else(|| StoreError::Damaged("the store's format is no number".to_owned()))
}

/// Whether a note may be called so: 1 to 512 bytes without a zero byte.
pub fn check_note_name(name: &str) -> Result<(), StoreError> {
    if (1..=512).contains(&name.len()) && !name.contains('\0') {
        return Ok(());
    }
    let what = format!("a note's name has 1 to 512 bytes and no zero byte, found {name:?}");
    Err(StoreError::Unavailable(what))
}

/// When a fence was opened, by its id. Ids grow with that time.
pub fn opened_at(id: FenceId) -> Option<WallTime> {
    let (seconds, nanos) = Uuid::from(id).get_timestamp()?.to_unix();
    Some(WallTime::from_millis(seconds * 1_000 + u64::from(nanos) / 1_000_000))
}

/// Keys of the ordered map: a letter for the kind, then what sorts within it. Names hold no zero byte.
pub(crate) mod keys {
    use super::{FenceId, NodeId, Revision, Uuid};

    pub(crate) const META: u8 = b'm';
    pub(crate) const RECORD: u8 = b'n';
    pub(crate) const CHANGE: u8 = b'c';
    pub(crate) const FENCE: u8 = b'f';
    pub(crate) const FENCE_OF_NODE: u8 = b'i';
    pub(crate) const KEY: u8 = b'k';
    pub(crate) const NOTE: u8 = b'o';

    fn join(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
        let mut key = vec![kind];
        parts.iter().for_each(|part| key.extend_from_slice(part));
        key
    }

    fn id_bytes(id: FenceId) -> [u8; 16] {
        *Uuid::from(id).as_bytes()
    }

    /// The first key of the kind after `kind`.
    pub(crate) fn after(kind: u8) -> Vec<u8> {
        vec![kind + 1]
    }

    pub(crate) fn meta(name: &str) -> Vec<u8> {
        join(META, &[name.as_bytes()])
    }

    pub(crate) fn record(node: &NodeId) -> Vec<u8> {
        join(RECORD, &[node.as_str().as_bytes()])
    }

    pub(crate) fn change(revision: Revision) -> Vec<u8> {
        join(CHANGE, &[&revision.0.to_be_bytes()])
    }

    pub(crate) fn fence(id: FenceId) -> Vec<u8> {
        join(FENCE, &[&id_bytes(id)])
    }

    pub(crate) fn fence_of_node(node: &NodeId, id: FenceId) -> Vec<u8> {
        join(FENCE_OF_NODE, &[node.as_str().as_bytes(), &[0], &id_bytes(id)])
    }

    /// Before the first, and after the last, of a node's fences.
    pub(crate) fn fences_of_node(node: &NodeId) -> (Vec<u8>, Vec<u8>) {
        let name = node.as_str().as_bytes();
        (join(FENCE_OF_NODE, &[name, &[0]]), join(FENCE_OF_NODE, &[name, &[1]]))
    }

    pub(crate) fn key(node: &NodeId, key: &str) -> Vec<u8> {
        join(KEY, &[node.as_str().as_bytes(), &[0], key.as_bytes()])
    }

    pub(crate) fn note(name: &str) -> Vec<u8> {
        join(NOTE, &[name.as_bytes()])
    }

    /// The revision that a change's key names.
    pub(crate) fn revision_of(key: &[u8]) -> Option<Revision> {
        Some(Revision(u64::from_be_bytes(key.get(1..)?.try_into().ok()?)))
    }

    /// The id at the end of a fence's key.
    pub(crate) fn fence_id_of(key: &[u8]) -> Option<FenceId> {
        let bytes = key.get(key.len().checked_sub(16)?..)?;
        Some(FenceId::from(Uuid::from_bytes(bytes.try_into().ok()?)))
    }

    /// The text after the kind, or after `node` and a zero in an idempotency key.
    pub(crate) fn text_of(key: &[u8]) -> String {
        let text = key.get(1..).unwrap_or_default();
        let start = text.iter().position(|&byte| byte == 0).map_or(0, |zero| zero + 1);
        String::from_utf8_lossy(&text[start..]).into_owned()
    }
}
