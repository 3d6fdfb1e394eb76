//! What is seen of the election and of the nodes' changes, by a watch in the background.
//!
//! # Invariants
//!
//! - What is told was true at its revision. Shown by `only_what_was_written_stands`.
//! - A watch that is lost, compacted or silent begins anew with a reading of everything, so that no change
//!   is missed for ever. Shown by `a_watch_outlives_compaction_and_a_restart_of_etcd`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use picket_core::ids::Revision;
use picket_core::time::WallTime;
use picket_etcd_api::{
    Event, EventType, KeyValue, RangeRequest, SortOrder, SortTarget, WatchCreateRequest, WatchResponse,
};
use tokio::time::{Instant, sleep, sleep_until};

use crate::connection::Fault;
use crate::election::{LeaderValue, MemberValue};
use crate::keys::{end_of, name_in};
use crate::page;
use crate::shared::{LookError, Shared};

/// How long a watch may say nothing before it is asked, and then how long it may take to answer.
const SILENCE: Duration = Duration::from_millis(1_000);
const ANSWER: Duration = Duration::from_millis(1_500);
/// How long is waited before a lost watch begins anew: at first, and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(1_000));

/// The leader's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeaderEntry {
    pub(crate) value: LeaderValue,
    /// When its key came to be.
    pub(crate) revision: i64,
}

/// What was last seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Observation {
    /// Why nothing is heard, if so; and whether that will not change by itself.
    pub(crate) away: Option<Outage>,
    /// Since when it is away, or there is this leader or none.
    pub(crate) since: WallTime,
    pub(crate) leader: Option<LeaderEntry>,
    /// By name.
    pub(crate) members: BTreeMap<String, MemberValue>,
    /// The digest of the settings by which was led last.
    pub(crate) digest: Option<String>,
    /// The least version that may lead.
    pub(crate) least_version: Option<String>,
    /// When a node last changed.
    pub(crate) nodes: Revision,
    /// At which revision all this was so, but for the nodes.
    pub(crate) revision: i64,
}

/// Why nothing is heard of etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outage {
    pub(crate) why: String,
    /// Somebody has to mend it: an old version, a wrong password, a damaged store.
    pub(crate) refused: bool,
}

impl Observation {
    pub(crate) fn not_yet(now: WallTime) -> Self {
        Self {
            away: Some(Outage { why: "etcd was not asked yet".to_owned(), refused: false }),
            since: now,
            leader: None,
            members: BTreeMap::new(),
            digest: None,
            least_version: None,
            nodes: Revision(0),
            revision: 0,
        }
    }

    fn clear(&mut self) {
        *self = Self { nodes: self.nodes, ..Self::not_yet(self.since) };
    }

    /// Takes in one of the election's keys; `None`: it went.
    fn take(&mut self, room: &[u8], key: &[u8], value: Option<&KeyValue>) {
        let Some(name) = name_in(room, key) else { return };
        let text = |entry: &KeyValue| String::from_utf8_lossy(&entry.value).into_owned();
        match name {
            "leader" => {
                self.leader = value.map(|entry| LeaderEntry {
                    value: LeaderValue::read(&entry.value),
                    revision: entry.create_revision,
                });
            }
            "digest" => self.digest = value.map(text),
            "least-version" => self.least_version = value.map(text),
            _ => {
                let Some(gateway) = name.strip_prefix("member/") else { return };
                match value {
                    Some(entry) => self.members.insert(gateway.to_owned(), MemberValue::read(&entry.value)),
                    None => self.members.remove(gateway),
                };
            }
        }
    }
}

/// Looks until the task is ended.
pub(crate) async fn observe(shared: Arc<Shared>) {
    let mut pause = PAUSE.0;
    loop {
        let begun = Instant::now();
        let why = watch(&shared).await.err();
        if begun.elapsed() > PAUSE.1 {
            pause = PAUSE.0;
        }
        if let Some(away) = why {
            report_outage(&shared, away);
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSE.1);
    }
}

fn report_outage(shared: &Shared, away: Outage) {
    let now = shared.clock.wall();
    shared.observation.send_if_modified(|observation| {
        let news = observation.away.as_ref() != Some(&away);
        if observation.away.is_none() {
            observation.since = now;
        }
        if news {
            tracing::warn!(why = away.why, "nothing is heard of etcd");
            observation.away = Some(away);
        }
        news
    });
}

impl From<Fault> for Outage {
    fn from(fault: Fault) -> Self {
        Self { refused: matches!(fault, Fault::Refused(_)), why: fault.to_string() }
    }
}

/// Reads everything, then follows its changes. Ends without an error where only the watch has to begin anew.
async fn watch(shared: &Shared) -> Result<(), Outage> {
    shared.try_look().await.map_err(|failed| match failed {
        LookError::Fault(fault) => fault.into(),
        LookError::Unusable(error) => Outage { why: error.to_string(), refused: true },
    })?;
    let (room, nodes) = (shared.keys.election(), shared.keys.nodes());
    let from = read_all(shared, &room, &nodes).await?.saturating_add(1);
    let all_of = |range: &[u8]| WatchCreateRequest {
        key: range.to_vec(),
        range_end: end_of(range),
        start_revision: from,
    };
    let mut stream = shared
        .connection
        .read(|client| {
            let range = all_of(&room);
            async move { client.watch(range).await }
        })
        .await?;
    let lost = |error: picket_etcd_api::Error| Outage::from(crate::connection::judge(&error));
    stream.add_range(all_of(&nodes)).await.map_err(lost)?;
    let (mut heard, mut asked) = (Instant::now(), false);
    loop {
        let silent_at = heard + if asked { SILENCE + ANSWER } else { SILENCE };
        tokio::select! {
            biased;
            message = stream.message() => {
                let Some(message) = message.map_err(lost)? else { return Ok(()) };
                (heard, asked) = (Instant::now(), false);
                take(shared, &room, &nodes, &message)?;
                if message.canceled {
                    let why = Fault::Elsewhere(format!("the watch was ended: {}", message.cancel_reason));
                    if message.compact_revision == 0 {
                        // A token that is not valid any more is told so as well: the next connection logs in anew.
                        shared.connection.leave_present(&why);
                    }
                    return Ok(());
                }
            }
            () = sleep_until(silent_at) => {
                if asked {
                    let why = Fault::Elsewhere("the watch is silent".to_owned());
                    shared.connection.leave_present(&why);
                    return Ok(());
                }
                asked = true;
                // An error shows in the stream as well.
                let _ = stream.request_progress().await;
            }
        }
    }
}

/// The whole of the election, and when a node last changed. The revision from which on changes are not known.
async fn read_all(shared: &Shared, room: &[u8], nodes: &[u8]) -> Result<i64, Fault> {
    let read = page::all(&shared.connection, room.to_vec()).await?;
    let last = RangeRequest {
        key: nodes.to_vec(),
        range_end: end_of(nodes),
        keys_only: true,
        limit: 1,
        sort_order: SortOrder::Descend.into(),
        sort_target: SortTarget::Mod.into(),
        ..RangeRequest::default()
    };
    let newest = page::range_of(&shared.connection, last).await?;
    let newest = newest.kvs.first().map_or(0, |entry| entry.mod_revision);
    let now = shared.clock.wall();
    shared.observation.send_if_modified(|observation| {
        let before = observation.clone();
        observation.clear();
        observation.away = None;
        read.entries.iter().for_each(|entry| observation.take(room, &entry.key, Some(entry)));
        observation.nodes = observation.nodes.max(revision(newest));
        observation.revision = read.revision;
        since(observation, &before, now);
        *observation != before
    });
    Ok(read.revision)
}

/// Takes in what changed, of the cluster that is known.
fn take(shared: &Shared, room: &[u8], nodes: &[u8], message: &WatchResponse) -> Result<(), Fault> {
    shared.connection.expect_of_present(message.header.as_ref())?;
    let now = shared.clock.wall();
    shared.observation.send_if_modified(|observation| {
        let before = observation.clone();
        for event in &message.events {
            let Some(entry) = &event.kv else { continue };
            let value = left(event);
            if entry.key.starts_with(nodes) {
                observation.nodes = observation.nodes.max(revision(entry.mod_revision));
            } else {
                // Not of the nodes' changes: the two watches do not wait for each other.
                observation.revision = observation.revision.max(entry.mod_revision);
                observation.take(room, &entry.key, value);
            }
        }
        since(observation, &before, now);
        *observation != before
    });
    Ok(())
}

/// What stands there since; `None`: it went. What is neither a writing nor a removal is nothing that a leadership could stand on.
fn left(event: &Event) -> Option<&KeyValue> {
    event.kv.as_ref().filter(|_| event.r#type == i32::from(EventType::Put))
}

/// A new moment begins where somebody else leads, or nobody, or etcd is heard again.
fn since(observation: &mut Observation, before: &Observation, now: WallTime) {
    let same = observation.away.is_none() == before.away.is_none() && observation.leader == before.leader;
    observation.since = if same { before.since } else { now };
}

fn revision(number: i64) -> Revision {
    Revision(u64::try_from(number).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use picket_core::time::{BootTime, Clock};
    use picket_etcd_api::ResponseHeader;

    use super::*;
    use crate::shared::Etcd;

    #[derive(Debug)]
    struct Still;

    impl Clock for Still {
        fn boot(&self) -> BootTime {
            BootTime::from_boot(Duration::ZERO)
        }

        fn wall(&self) -> WallTime {
            WallTime::from_millis(1)
        }
    }

    #[tokio::test]
    async fn what_a_watch_tells_of_another_cluster_is_not_taken() {
        let settings = picket_config::EtcdSettings {
            endpoints: vec!["http://127.0.0.1:1".to_owned()],
            tls: picket_config::EtcdTls::default(),
            user: None,
            prefix: "/picket/".to_owned(),
            request: Duration::from_secs(2),
            dial: Duration::from_secs(1),
            members: BTreeMap::new(),
            allow_lease_bug: false,
        };
        let etcd = Etcd::new(settings, Arc::new(Still), Arc::new(|bytes: &mut [u8]| bytes.fill(1)));
        let shared = &etcd.shared;
        let (room, nodes) = (shared.keys.election(), shared.keys.nodes());
        let message = |cluster_id, mod_revision| {
            let kv = KeyValue { key: shared.keys.leader(), mod_revision, ..KeyValue::default() };
            WatchResponse {
                header: Some(ResponseHeader { cluster_id, ..ResponseHeader::default() }),
                events: vec![Event { r#type: EventType::Put.into(), kv: Some(kv) }],
                ..WatchResponse::default()
            }
        };
        take(shared, &room, &nodes, &message(1, 7)).expect("it is the first cluster");
        let refused = take(shared, &room, &nodes, &message(2, 8));
        assert!(
            matches!(&refused, Err(Fault::Refused(why)) if why.contains("another cluster")),
            "{refused:?}"
        );
        assert_eq!(shared.observation.borrow().revision, 7);
    }

    #[test]
    fn only_what_was_written_stands() {
        // PUT is 0 and DELETE 1; the third is of an etcd to come.
        for (kind, stands) in [(0, true), (1, false), (2, false)] {
            let event = Event { r#type: kind, kv: Some(KeyValue::default()) };
            assert_eq!(left(&event).is_some(), stands, "{kind}");
        }
    }
}
