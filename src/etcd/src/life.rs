//! The store's own values: its format, its life, and whether it may be used at all.

use picket_core::ids::{Incarnation, Term};
use picket_core::store::StoreError;
use picket_etcd_api::wire::response_op::Response;
use picket_etcd_api::{Compare, KeyValue, RequestOp, TxnRequest, TxnResponse};
use picket_store::format::{self, FORMAT};

use crate::connection::Fault;
use crate::keys::{Keys, end_of};

const FORMAT_KEY: &str = "format";
const INCARNATION: &str = "incarnation";
const TERM: &str = "term";

/// What is known of the store as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    pub(crate) incarnation: Incarnation,
    /// As it is stored: what every write compares.
    pub(crate) raw: Vec<u8>,
    /// The highest term ever won.
    pub(crate) term: Term,
    /// When it was won; what the next one who wins compares.
    pub(crate) term_revision: i64,
}

/// The bytes of a term, as they are stored.
pub(crate) fn term_bytes(term: Term) -> Result<Vec<u8>, StoreError> {
    format::encode_meta(TERM, &term)
}

/// The term that is stored.
pub(crate) fn term_of(bytes: &[u8]) -> Result<Term, StoreError> {
    format::decode_meta(TERM, bytes)
}

/// The life that is stored.
pub(crate) fn incarnation_of(bytes: &[u8]) -> Result<Incarnation, StoreError> {
    format::decode_meta(INCARNATION, bytes)
}

/// Reads the store's own values; where there are none and `fresh` says so, makes it a store that begins that life.
pub(crate) fn look(keys: &Keys, fresh: Option<Incarnation>) -> Result<TxnRequest, StoreError> {
    let own = [keys.format(), keys.incarnation(), keys.term(), keys.marked(), keys.filling()];
    let reads: Vec<RequestOp> = own.into_iter().map(RequestOp::get).collect();
    let Some(fresh) = fresh else { return Ok(TxnRequest::default().and_then(reads)) };
    // Only where nothing at all stands under the prefix: what lost its own values is damaged, and not new.
    let nothing = Compare::version(keys.all(), 0).up_to(end_of(&keys.all()));
    let make = [
        RequestOp::put(keys.format(), format::encode_meta(FORMAT_KEY, &FORMAT)?),
        RequestOp::put(keys.incarnation(), format::encode_meta(INCARNATION, &fresh)?),
        RequestOp::put(keys.term(), term_bytes(Term(0))?),
    ];
    Ok(TxnRequest::default().when([nothing]).and_then(make).or_else(reads))
}

/// What [`look`] found; `None`: it has just been made, or there is none.
pub(crate) fn found(keys: &Keys, answer: &TxnResponse) -> Result<Option<Life>, StoreError> {
    let mut read = gets(answer);
    let mut next = || read.next().unwrap_or_default();
    let (format, incarnation, term, marked, filling) = (next(), next(), next(), next(), next());
    let (Some(format), Some(incarnation), Some(term)) = (&format, &incarnation, &term) else {
        let nothing = [&format, &incarnation, &term].iter().all(|value| value.is_none());
        return if nothing && filling.is_none() && marked.is_none() {
            Ok(None)
        } else {
            Err(refusal(keys, filling.is_some(), marked.as_ref()).unwrap_or_else(|| {
                StoreError::Damaged(format!(
                    "under {} in etcd one of format, incarnation and term is missing",
                    keys.prefix()
                ))
            }))
        };
    };
    if let Some(refusal) = refusal(keys, filling.is_some(), marked.as_ref()) {
        return Err(refusal);
    }
    let found = format::decode_format(&format.value)?;
    if found > FORMAT {
        return Err(StoreError::Damaged(format!(
            "the store under {} in etcd has format {found}, and this version reads formats up to {FORMAT}: run the version \
             that wrote it",
            keys.prefix()
        )));
    }
    Ok(Some(Life {
        incarnation: incarnation_of(&incarnation.value)?,
        raw: incarnation.value.clone(),
        term: term_of(&term.value)?,
        term_revision: term.mod_revision,
    }))
}

/// Why a store that is there may not be used.
pub(crate) fn refusal(keys: &Keys, filling: bool, marked: Option<&KeyValue>) -> Option<StoreError> {
    let prefix = keys.prefix();
    if let Some(marked) = marked {
        let to = String::from_utf8_lossy(&marked.value).into_owned();
        return Some(StoreError::Moved(format!(
            "the store under {prefix} in etcd was moved to {to}, and is not used any more: two stores that both believe they \
             know the fleet would each let go what the other keeps off. Use the new one; or, if that was never used, take \
             the mark away: picketd unseal"
        )));
    }
    filling.then(|| {
        StoreError::Damaged(format!(
            "the store under {prefix} in etcd is being filled by a restore, or one did not end: restore it again into an \
             empty prefix"
        ))
    })
}

/// What the gets of a transaction found, in their order; of each the first entry.
pub(crate) fn gets(answer: &TxnResponse) -> impl Iterator<Item = Option<KeyValue>> + use<'_> {
    answer.responses.iter().filter_map(|response| {
        let Response::ResponseRange(get) = response.response.as_ref()?;
        Some(get.kvs.first().cloned())
    })
}

/// The revision at which a transaction was answered.
pub(crate) fn revision_of(answer: &TxnResponse) -> Result<i64, Fault> {
    let header = answer.header.as_ref().map(|header| header.revision);
    header.ok_or_else(|| Fault::Unknown("etcd answered without a header".to_owned()))
}
