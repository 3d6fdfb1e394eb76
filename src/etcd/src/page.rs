//! Reading a range of any length, as it stood at one moment.

use picket_etcd_api::{KeyValue, RangeRequest, RangeResponse, SortOrder, SortTarget};

use crate::connection::{Connection, Fault};
use crate::keys::end_of;

/// How many entries are asked for at once. A record takes about 4 kB, and rarely 100.
const PAGE: i64 = 250;
/// How often a range is read anew because its moment was compacted away meanwhile.
const ATTEMPTS: usize = 5;

/// A range, and when.
#[derive(Debug)]
pub(crate) struct Range {
    pub(crate) entries: Vec<KeyValue>,
    /// The revision of the whole of etcd at which it was read.
    pub(crate) revision: i64,
}

/// Everything whose key begins with `prefix`, by key.
pub(crate) async fn all(connection: &Connection, prefix: Vec<u8>) -> Result<Range, Fault> {
    for _ in 0..ATTEMPTS {
        match once(connection, &prefix).await {
            Err(Fault::Compacted) => {}
            answer => return answer,
        }
    }
    Err(Fault::Elsewhere("etcd is compacted faster than it can be read".to_owned()))
}

async fn once(connection: &Connection, prefix: &[u8]) -> Result<Range, Fault> {
    let mut read = Range { entries: Vec::new(), revision: 0 };
    let mut from = prefix.to_vec();
    loop {
        let (entries, more, revision) = page(connection, &from, prefix, read.revision, PAGE).await?;
        read.revision = revision;
        let last = entries.last().map(|entry| [&entry.key[..], &[0]].concat());
        read.entries.extend(entries);
        match last {
            Some(next) if more => from = next,
            _ => return Ok(read),
        }
    }
}

/// Up to `limit` entries from `from` on, as they stood at `revision`; 0: now. Whether there are more, and the revision.
pub(crate) async fn page(
    connection: &Connection,
    from: &[u8],
    prefix: &[u8],
    revision: i64,
    limit: i64,
) -> Result<(Vec<KeyValue>, bool, i64), Fault> {
    let range = RangeRequest {
        key: from.to_vec(),
        range_end: end_of(prefix),
        limit,
        revision,
        ..RangeRequest::default()
    };
    let answer = range_of(connection, range).await?;
    let seen = if revision > 0 { revision } else { header(&answer)? };
    Ok((answer.kvs, answer.more, seen))
}

/// The last `limit` entries of a range, last first, and the revision.
pub(crate) async fn last(
    connection: &Connection,
    from: &[u8],
    to: &[u8],
    limit: usize,
) -> Result<(Vec<KeyValue>, i64), Fault> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let range = RangeRequest {
        key: from.to_vec(),
        range_end: to.to_vec(),
        limit,
        sort_order: SortOrder::Descend.into(),
        sort_target: SortTarget::Key.into(),
        ..RangeRequest::default()
    };
    let answer = range_of(connection, range).await?;
    let revision = header(&answer)?;
    Ok((answer.kvs, revision))
}

/// One entry; `None`: there is none.
pub(crate) async fn one(connection: &Connection, key: Vec<u8>) -> Result<Option<KeyValue>, Fault> {
    let answer = range_of(connection, RangeRequest::one(key)).await?;
    Ok(answer.kvs.into_iter().next())
}

/// Asks for a range, of each member once.
pub(crate) async fn range_of(connection: &Connection, range: RangeRequest) -> Result<RangeResponse, Fault> {
    connection
        .read(|client| {
            let range = range.clone();
            async move { client.range(range).await }
        })
        .await
}

/// The revision at which a range was read.
pub(crate) fn header(answer: &RangeResponse) -> Result<i64, Fault> {
    let header = answer.header.as_ref().map(|header| header.revision);
    header.ok_or_else(|| Fault::Unknown("etcd answered without a header".to_owned()))
}
