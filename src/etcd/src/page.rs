//! Reading a range of any length, as it stood at one moment.

use etcd_client::{GetOptions, KeyValue, SortOrder, SortTarget};

use crate::connection::{Connection, Fault, kv};
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
        let last = entries.last().map(|entry| [entry.key(), &[0]].concat());
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
    let end = end_of(prefix);
    let mut answer = connection
        .read(|client| {
            let options = GetOptions::new().with_range(end.clone()).with_limit(limit).with_revision(revision);
            let from = from.to_vec();
            async move { kv(&client).get(from, Some(options)).await }
        })
        .await?;
    let seen = if revision > 0 { revision } else { header(&answer)? };
    let more = answer.more();
    Ok((answer.take_kvs(), more, seen))
}

/// The last `limit` entries of a range, last first, and the revision.
pub(crate) async fn last(
    connection: &Connection,
    from: &[u8],
    to: &[u8],
    limit: usize,
) -> Result<(Vec<KeyValue>, i64), Fault> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut answer = connection
        .read(|client| {
            let options = GetOptions::new()
                .with_range(to.to_vec())
                .with_limit(limit)
                .with_sort(SortTarget::Key, SortOrder::Descend);
            let from = from.to_vec();
            async move { kv(&client).get(from, Some(options)).await }
        })
        .await?;
    let revision = header(&answer)?;
    Ok((answer.take_kvs(), revision))
}

/// One entry; `None`: there is none.
pub(crate) async fn one(connection: &Connection, key: Vec<u8>) -> Result<Option<KeyValue>, Fault> {
    let mut answer = connection
        .read(|client| {
            let key = key.clone();
            async move { kv(&client).get(key, None).await }
        })
        .await?;
    Ok(answer.take_kvs().into_iter().next())
}

/// The revision at which a range was read.
pub(crate) fn header(answer: &etcd_client::GetResponse) -> Result<i64, Fault> {
    let header = answer.header().map(etcd_client::ResponseHeader::revision);
    header.ok_or_else(|| Fault::Unknown("etcd answered without a header".to_owned()))
}
