//! The way to etcd: one member at a time, and the next one where it fails.
//!
//! # Invariants
//!
//! - A connection sends no request again that may have had an effect: the store does, where it compares a
//!   version. Shown by `only_what_is_known_to_be_without_effect_is_said_to_be`.
//! - No member is asked whose version was not looked at on this connection, which is never made anew unseen
//!   (`once`). While any of them is refused, none is asked. Shown by
//!   `one_old_member_among_others_is_refused`.
//! - All members are of one cluster, by what each answer says. Shown by
//!   `members_of_two_clusters_are_no_cluster`,
//!   `an_address_that_leads_to_another_cluster_is_refused_also_by_who_was_connected`.
//! - No connection is made to a member that has less than was seen of the same life (`seen`). Shown by
//!   `an_etcd_that_was_set_back_is_refused_by_who_saw_more`.

mod endpoint;
mod fault;
mod login;
mod members;
mod single_connect;
mod version;
mod watermark;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::join_all;
use parking_lot::Mutex;
use picket_config::EtcdSettings;
use picket_etcd_api::{
    Client, Error, LeaseGrantResponse, LeaseRevokeResponse, MemberListResponse, PutResponse, RangeResponse,
    ResponseHeader, TxnRequest, TxnResponse, Watch,
};
use tokio::time::{Instant, timeout};

use endpoint::{CheckedMember, Endpoint};
pub(crate) use fault::{Fault, judge};
pub use version::Version;
use watermark::WatermarkCell;

/// Whether a request may be sent a second time when it is not known what became of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repeat {
    Anything,
    OnlyWhatHadNoEffect,
}

/// All members.
#[derive(Debug)]
pub(crate) struct Connection {
    endpoints: Vec<Endpoint>,
    /// Which one is asked.
    present: AtomicUsize,
    /// Whether all that can be reached were looked at once.
    looked: AtomicBool,
    /// Members that may not be asked, and why; while there is one nobody is asked.
    refused: Mutex<BTreeMap<usize, String>>,
    /// The cluster, as the first member that was reached named it.
    cluster: Mutex<Option<(u64, String)>>,
    /// Which member, by its number, answered last at an endpoint.
    heard: Mutex<BTreeMap<usize, u64>>,
    watermark: Arc<WatermarkCell>,
    request: Duration,
}

/// What etcd answers. Its header, where it has one, says of which cluster and revision the answer is.
pub(crate) trait Answer: Send {
    fn header(&self) -> Option<&ResponseHeader>;
}

macro_rules! answers {
    ($($kind:ty),* $(,)?) => { $(
        impl Answer for $kind {
            fn header(&self) -> Option<&ResponseHeader> {
                self.header.as_ref()
            }
        }
    )* };
}

answers!(RangeResponse, PutResponse, TxnResponse, LeaseRevokeResponse, MemberListResponse);

impl Answer for Watch {
    /// Each of its messages has one, which is looked at when it comes.
    fn header(&self) -> Option<&ResponseHeader> {
        None
    }
}

impl Answer for () {
    /// Of an answer that its client judges, and does not show.
    fn header(&self) -> Option<&ResponseHeader> {
        None
    }
}

impl Answer for Option<LeaseGrantResponse> {
    fn header(&self) -> Option<&ResponseHeader> {
        self.as_ref()?.header.as_ref()
    }
}

impl Connection {
    /// Connects to nobody yet.
    pub(crate) fn new(settings: EtcdSettings) -> Self {
        let settings = Arc::new(settings);
        let watermark: Arc<WatermarkCell> = Arc::default();
        let endpoint = |url: &String| Endpoint::new(url.clone(), settings.clone(), watermark.clone());
        let endpoints = settings.endpoints.iter().map(endpoint).collect();
        Self {
            endpoints,
            present: AtomicUsize::new(0),
            looked: AtomicBool::new(false),
            refused: Mutex::default(),
            cluster: Mutex::default(),
            heard: Mutex::default(),
            watermark,
            request: settings.request,
        }
    }

    /// Asks something that changes nothing; of each member once.
    pub(crate) async fn read<T, F>(&self, ask: impl Fn(Client) -> F + Send + Sync) -> Result<T, Fault>
    where
        T: Answer,
        F: Future<Output = Result<T, Error>> + Send,
    {
        self.ask(Repeat::Anything, self.request, ask).await
    }

    /// The same, each member having so long to answer.
    pub(crate) async fn read_within<T, F>(
        &self,
        patience: Duration,
        ask: impl Fn(Client) -> F + Send + Sync,
    ) -> Result<T, Fault>
    where
        T: Answer,
        F: Future<Output = Result<T, Error>> + Send,
    {
        self.ask(Repeat::Anything, patience, ask).await
    }

    /// One transaction that may change something.
    pub(crate) async fn commit(&self, txn: TxnRequest) -> Result<TxnResponse, Fault> {
        self.ask(Repeat::OnlyWhatHadNoEffect, self.request, |client| {
            let txn = txn.clone();
            async move { client.txn(txn).await }
        })
        .await
    }

    async fn ask<T, F>(
        &self,
        repeat: Repeat,
        patience: Duration,
        ask: impl Fn(Client) -> F + Send + Sync,
    ) -> Result<T, Fault>
    where
        T: Answer,
        F: Future<Output = Result<T, Error>> + Send,
    {
        // In boxes: the way to a new connection is long, and rare.
        Box::pin(self.look_at_all()).await?;
        let mut last = Fault::Elsewhere("no member of etcd is named".to_owned());
        for _ in 0..self.endpoints.len() {
            let at = self.present.load(Ordering::SeqCst) % self.endpoints.len();
            match Box::pin(self.ask_at(at, patience, &ask)).await {
                Ok(answer) => return Ok(answer),
                Err(fault) if fault.is_the_members() => {
                    self.leave(at, &fault);
                    let again = repeat == Repeat::Anything || fault.may_go_elsewhere();
                    last = fault;
                    if !again {
                        break;
                    }
                }
                Err(fault) => return Err(fault),
            }
        }
        Err(last)
    }

    async fn ask_at<T, F>(
        &self,
        at: usize,
        patience: Duration,
        ask: &(impl Fn(Client) -> F + Send + Sync),
    ) -> Result<T, Fault>
    where
        T: Answer,
        F: Future<Output = Result<T, Error>> + Send,
    {
        let endpoint = &self.endpoints[at];
        let until = Instant::now() + patience;
        let silent = |what: &str| {
            format!("etcd at {}: no answer {what} within {} ms", endpoint.url, patience.as_millis())
        };
        let ready = match timeout(patience, self.ready(at)).await {
            Ok(Ok(ready)) => ready,
            // What was asked of it until here changes nothing: the request itself was not sent.
            Ok(Err(Fault::Unknown(why))) => return Err(Fault::Elsewhere(why)),
            Ok(Err(fault)) => return Err(fault),
            Err(_) => return Err(Fault::Elsewhere(silent("to the connection"))),
        };
        let ask_once = |client: Client| async move {
            let left = until.saturating_duration_since(Instant::now());
            match timeout(left, ask(client)).await {
                Ok(answer) => answer.map_err(|error| judge(&error)),
                Err(_) => {
                    Err(Fault::Unknown(format!("no answer to a request within {} ms", patience.as_millis())))
                }
            }
        };
        let mut answer = ask_once(ready.client.clone()).await;
        let mut ready = ready;
        if ready.is_over() && matches!(answer, Err(Fault::Elsewhere(_))) {
            // It ended before the request: whoever is there now is looked at first.
            let left = until.saturating_duration_since(Instant::now());
            ready = match timeout(left, self.ready(at)).await {
                Ok(Err(Fault::Unknown(why))) => return Err(Fault::Elsewhere(why)),
                Ok(ready) => ready?,
                Err(_) => return Err(Fault::Elsewhere(silent("to the connection"))),
            };
            answer = ask_once(ready.client.clone()).await;
        }
        let answer = match answer {
            Err(Fault::Login(_)) if endpoint.has_user() => {
                let left = until.saturating_duration_since(Instant::now());
                match timeout(left, endpoint.log_in_again(&ready)).await {
                    // The request was refused for its token, and not sent again.
                    Ok(Err(Fault::Unknown(why))) => Err(Fault::Elsewhere(why)),
                    Ok(ready) => {
                        let ready = ready?;
                        // It may be a new connection, to whoever is there now.
                        self.expect_cluster(at, ready.cluster)?;
                        ask_once(ready.client).await.map_err(|fault| endpoint.stranger(fault))
                    }
                    Err(_) => Err(Fault::Elsewhere(silent("to the login"))),
                }
            }
            answer => answer.map_err(|fault| endpoint.stranger(fault)),
        }?;
        self.expect_of_it(at, answer.header())?;
        Ok(answer)
    }

    /// One address may lead to several of them, one after the other: the answer counts only where it is of the cluster.
    fn expect_of_it(&self, at: usize, header: Option<&ResponseHeader>) -> Result<(), Fault> {
        let Some(header) = header else { return Ok(()) };
        self.expect_cluster(at, header.cluster_id)?;
        self.watermark.answered_at(header.revision);
        Ok(())
    }

    /// What a watch brings says of which cluster it is, too. The member that is asked now is the one that is watched, but for the moment in
    /// which another one is turned to: one that is barred for another's answer is looked at again, and asked on. Its revision does not count as
    /// seen: it comes beside the answers, and may be of the life before the one that was just read.
    pub(crate) fn expect_of_present(&self, header: Option<&ResponseHeader>) -> Result<(), Fault> {
        let Some(header) = header else { return Ok(()) };
        self.expect_cluster(self.present.load(Ordering::SeqCst) % self.endpoints.len(), header.cluster_id)
    }

    fn expect_cluster(&self, at: usize, cluster: u64) -> Result<(), Fault> {
        let endpoint = &self.endpoints[at];
        let judged = self.same_cluster(&endpoint.url, cluster);
        if let Err(Fault::Refused(why)) = &judged {
            self.refused.lock().insert(at, why.clone());
            endpoint.forget();
        }
        judged
    }

    /// The store's life was read at that revision.
    pub(crate) fn lives(&self, life: &[u8], revision: i64) {
        self.watermark.lives(life, revision);
    }

    /// A member that may be asked.
    async fn ready(&self, at: usize) -> Result<CheckedMember, Fault> {
        let endpoint = &self.endpoints[at];
        let judged = match Box::pin(endpoint.ready()).await {
            Ok(ready) => self.same_cluster(&endpoint.url, ready.cluster).map(|()| ready),
            Err(fault) => Err(fault),
        };
        let mut refused = self.refused.lock();
        match &judged {
            Ok(_) => refused.remove(&at),
            Err(Fault::Refused(why)) => refused.insert(at, why.clone()),
            Err(_) => None,
        };
        judged
    }

    /// Looks at every member that can be reached before the first request, and again while one is refused.
    async fn look_at_all(&self) -> Result<(), Fault> {
        let barred = || self.refused.lock().clone();
        let known = barred();
        if self.looked.load(Ordering::SeqCst) && known.is_empty() {
            return Ok(());
        }
        let all = self.looked.load(Ordering::SeqCst);
        let looking =
            (0..self.endpoints.len()).filter(|at| !all || known.contains_key(at)).map(|at| async move {
                match timeout(self.request, self.ready(at)).await {
                    Ok(Ok(_)) => true,
                    Ok(Err(Fault::Refused(_))) => {
                        self.endpoints[at].forget();
                        false
                    }
                    // Away: it is looked at when it is first asked.
                    Ok(Err(_)) | Err(_) => false,
                }
            });
        let reached = join_all(looking).await.into_iter().any(|reached| reached);
        if let Some(why) = barred().values().next() {
            return Err(Fault::Refused(why.clone()));
        }
        self.looked.fetch_or(reached, Ordering::SeqCst);
        Ok(())
    }

    /// Two clusters are two stores, and each would have a leader.
    fn same_cluster(&self, url: &str, cluster: u64) -> Result<(), Fault> {
        let mut known = self.cluster.lock();
        let (first, named_by) = known.get_or_insert_with(|| (cluster, url.to_owned()));
        if *first == cluster {
            return Ok(());
        }
        Err(Fault::Refused(format!(
            "etcd at {url} is of another cluster ({cluster:x}) than the one at {named_by} ({first:x}): name members of one \
             cluster in endpoints"
        )))
    }

    /// Turns to the next member, unless somebody else has.
    fn leave(&self, at: usize, fault: &Fault) {
        let next = (at + 1) % self.endpoints.len();
        let turned = self.present.compare_exchange(at, next, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        if turned && next != at {
            tracing::warn!(why = %fault, next = %self.endpoints[next].url, "etcd's next member is asked");
        }
        self.endpoints[at].forget();
    }

    /// Leaves the member that is asked now: what it answers cannot be relied on.
    pub(crate) fn leave_present(&self, fault: &Fault) {
        self.leave(self.present.load(Ordering::SeqCst) % self.endpoints.len(), fault);
    }
}
