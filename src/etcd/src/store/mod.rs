//! The store: what [`picket_core::store::Store`] says, as transactions of etcd's.
//!
//! # Invariants
//!
//! - A record's version is how often etcd wrote its key, and its revision is when etcd last did: both are
//!   etcd's, whatever stands in the stored form.
//! - A reading is linearizable, and of one moment.

mod backup;
mod forget;
mod history;
mod notes;
mod seal;
mod write;

use std::collections::BTreeSet;

use async_trait::async_trait;
use picket_core::ids::{FenceId, Incarnation, NodeId, Revision, Term, Version};
use picket_core::record::Fence;
use picket_core::store::{
    Content, FenceQuery, Guard, KeyEntry, Note, Store, StoreError, Stored, Write, Written,
};
use picket_core::time::WallTime;
use picket_etcd_api::KeyValue;
use picket_store::format;

use crate::changes;
use crate::connection::Fault;
use crate::keys::name_in;
use crate::page;
use crate::shared::Etcd;
pub use seal::Snapshot;

/// The most operations that etcd takes in one transaction (`--max-txn-ops`, 128 unless it was raised).
pub(crate) const MOST_OPERATIONS: usize = 128;

/// A store in etcd. Writes want the leadership that [`EtcdElection`](crate::EtcdElection) of the same [`Etcd`] won.
#[derive(Clone, Debug)]
pub struct EtcdStore {
    etcd: Etcd,
}

/// etcd's count of a key's writes since it came to be.
fn version_of(entry: &KeyValue) -> Version {
    Version(u64::try_from(entry.version).unwrap_or(0))
}

fn revision_of(entry: &KeyValue) -> Revision {
    Revision(u64::try_from(entry.mod_revision).unwrap_or(0))
}

fn stored(node: &str, entry: &KeyValue) -> Result<Stored, StoreError> {
    let read = format::decode_record(node, &entry.value)?;
    Ok(Stored { version: version_of(entry), revision: revision_of(entry), ..read })
}

impl EtcdStore {
    pub(crate) fn new(etcd: Etcd) -> Self {
        Self { etcd }
    }

    /// Fills an empty prefix with all of this: it is a store once it is there wholly. Where that did not end, nobody uses what
    /// is there, and it says so.
    pub async fn fill(&self, content: &Content) -> Result<(), StoreError> {
        backup::fill(&self.etcd.shared, content).await
    }

    /// All that the store keeps at one moment, for a backup that is taken while no gateway is asked. No store is made.
    pub async fn snapshot(&self) -> Result<Snapshot, StoreError> {
        let life = self.etcd.shared.look_only().await?;
        backup::read(&self.etcd.shared, life).await
    }

    /// Marks the store as moved to `to`, in words, if nothing changed since `of` was taken: from then on nobody leads over
    /// it and nothing is written. An error [`StoreError::Unknown`] says that it may be marked: asked again, it is found out.
    pub async fn seal(&self, to: &str, of: &Snapshot) -> Result<(), StoreError> {
        seal::seal(&self.etcd.shared, to, of).await
    }

    /// Where everything was moved to; `None`: it is here.
    pub async fn moved(&self) -> Result<Option<String>, StoreError> {
        seal::moved(&self.etcd.shared).await
    }

    /// Takes the mark away, and says where everything had been moved to; `None`: there was none.
    pub async fn unseal(&self) -> Result<Option<String>, StoreError> {
        seal::unseal(&self.etcd.shared).await
    }
}

#[async_trait]
impl Store for EtcdStore {
    fn incarnation(&self) -> Incarnation {
        self.etcd.shared.incarnation()
    }

    /// A term of this store is won together with leadership, by its election alone.
    async fn take_term(&self) -> Result<Term, StoreError> {
        Err(StoreError::Unavailable("a term of a store in etcd is won by its election".to_owned()))
    }

    async fn load_all(&self) -> Result<Vec<Stored>, StoreError> {
        let shared = &self.etcd.shared;
        shared.life().await?;
        let nodes = shared.keys.nodes();
        let read = page::all(&shared.connection, nodes.clone()).await.map_err(Fault::of_a_read)?;
        let records = read.entries.iter().map(|entry| {
            let name = name_in(&nodes, &entry.key);
            let damaged = || StoreError::Damaged("a record in etcd has a name that is no text".to_owned());
            stored(name.ok_or_else(damaged)?, entry)
        });
        records.collect()
    }

    async fn load(&self, node: &NodeId) -> Result<Option<Stored>, StoreError> {
        let shared = &self.etcd.shared;
        shared.life().await?;
        let found = page::one(&shared.connection, shared.keys.node(node)).await.map_err(Fault::of_a_read)?;
        found.map(|entry| stored(node.as_str(), &entry)).transpose()
    }

    async fn write(&self, guard: Guard, write: Write) -> Result<Written, StoreError> {
        write::write(&self.etcd.shared, guard, &write).await
    }

    async fn check(&self, guard: Guard, node: &NodeId, version: Version) -> Result<(), StoreError> {
        write::check(&self.etcd.shared, guard, node, version).await
    }

    async fn silent_members(&self) -> BTreeSet<String> {
        self.etcd.shared.connection.silent_members().await
    }

    async fn key(&self, node: &NodeId, key: &str) -> Result<Option<KeyEntry>, StoreError> {
        let shared = &self.etcd.shared;
        shared.life().await?;
        let found =
            page::one(&shared.connection, shared.keys.key(node, key)).await.map_err(Fault::of_a_read)?;
        found.map(|entry| format::decode_key(key, &entry.value)).transpose()
    }

    async fn fence(&self, id: FenceId) -> Result<Option<Fence>, StoreError> {
        let shared = &self.etcd.shared;
        shared.life().await?;
        let found = page::one(&shared.connection, shared.keys.fence(id)).await.map_err(Fault::of_a_read)?;
        found.map(|entry| format::decode_fence(id, &entry.value)).transpose()
    }

    async fn fences(&self, query: FenceQuery) -> Result<Vec<Fence>, StoreError> {
        self.etcd.shared.life().await?;
        history::fences(&self.etcd.shared, &query).await
    }

    /// The revision of the whole of etcd: other changes count as well. The store's life is looked at with it.
    async fn revision(&self) -> Result<Revision, StoreError> {
        let shared = &self.etcd.shared;
        shared.life().await?;
        shared.newest().await
    }

    async fn changed_since(&self, since: Revision) -> Result<Vec<(Revision, NodeId)>, StoreError> {
        changes::since(&self.etcd.shared, since).await
    }

    async fn changed(&self, since: Revision) -> Result<(), StoreError> {
        changes::wait(&self.etcd, since).await
    }

    async fn note(&self, name: &str) -> Result<Option<Note>, StoreError> {
        let shared = &self.etcd.shared;
        shared.life().await?;
        notes::note(shared, name).await
    }

    async fn notes(&self, prefix: &str) -> Result<Vec<(String, Note)>, StoreError> {
        let shared = &self.etcd.shared;
        shared.life().await?;
        notes::notes(shared, prefix).await
    }

    async fn put_note(
        &self,
        guard: Guard,
        name: &str,
        expected: Version,
        text: Option<String>,
    ) -> Result<Version, StoreError> {
        notes::put(&self.etcd.shared, guard, name, expected, text).await
    }

    async fn dump(&self) -> Result<Content, StoreError> {
        backup::dump(&self.etcd.shared).await
    }

    async fn forget(&self, guard: Guard, before: WallTime) -> Result<usize, StoreError> {
        forget::forget(&self.etcd.shared, guard, before).await
    }
}
