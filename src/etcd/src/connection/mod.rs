//! The way to etcd: one member at a time, and the next one where it fails.
//!
//! **Invariants.** A request that may have had an effect is not sent again. No member is asked whose version was not looked
//! at on this connection; while any of them is refused, none is asked. All members are of one cluster.

mod endpoint;
mod fault;
mod login;
mod members;
mod version;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use etcd_client::{Client, Error, KvClient, Txn, TxnResponse};
use futures::future::join_all;
use picket_config::EtcdSettings;
use tokio::time::{Instant, timeout};

use endpoint::{Endpoint, Ready};
pub(crate) use fault::{Fault, judge};
pub use version::Version;

/// What one answer may take: a page of records, of which a large one has some 100 kB.
const LARGEST_ANSWER: usize = 128 << 20;

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
    request: Duration,
}

impl Connection {
    /// Connects to nobody yet.
    pub(crate) fn new(settings: EtcdSettings) -> Self {
        let settings = Arc::new(settings);
        let endpoints =
            settings.endpoints.iter().map(|url| Endpoint::new(url.clone(), settings.clone())).collect();
        Self {
            endpoints,
            present: AtomicUsize::new(0),
            looked: AtomicBool::new(false),
            refused: Mutex::default(),
            cluster: Mutex::default(),
            heard: Mutex::default(),
            request: settings.request,
        }
    }

    /// Asks something that changes nothing; of each member once.
    pub(crate) async fn read<T, F>(&self, ask: impl Fn(Client) -> F + Send + Sync) -> Result<T, Fault>
    where
        T: Send,
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
        T: Send,
        F: Future<Output = Result<T, Error>> + Send,
    {
        self.ask(Repeat::Anything, patience, ask).await
    }

    /// One transaction that may change something.
    pub(crate) async fn commit(&self, txn: Txn) -> Result<TxnResponse, Fault> {
        self.ask(Repeat::OnlyWhatHadNoEffect, self.request, |client| {
            let txn = txn.clone();
            async move { kv(&client).txn(txn).await }
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
        T: Send,
        F: Future<Output = Result<T, Error>> + Send,
    {
        self.look_at_all().await?;
        let mut last = Fault::Elsewhere("no member of etcd is named".to_owned());
        for _ in 0..self.endpoints.len() {
            let at = self.present.load(Ordering::SeqCst) % self.endpoints.len();
            match self.ask_at(at, patience, &ask).await {
                Ok(answer) => return Ok(answer),
                Err(fault) if fault.is_the_members() => {
                    self.leave(at, &fault);
                    let again = repeat == Repeat::Anything || matches!(fault, Fault::Elsewhere(_));
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
        match ask_once(ready.client.clone()).await {
            Err(Fault::Login(_)) if endpoint.has_user() => {
                let left = until.saturating_duration_since(Instant::now());
                match timeout(left, endpoint.log_in_again(&ready)).await {
                    Ok(ready) => ask_once(ready?.client).await.map_err(|fault| endpoint.stranger(fault)),
                    Err(_) => Err(Fault::Elsewhere(silent("to the login"))),
                }
            }
            answer => answer.map_err(|fault| endpoint.stranger(fault)),
        }
    }

    /// A member that may be asked.
    async fn ready(&self, at: usize) -> Result<Ready, Fault> {
        let endpoint = &self.endpoints[at];
        let judged = match endpoint.ready().await {
            Ok(ready) => self.same_cluster(&endpoint.url, ready.cluster).map(|()| ready),
            Err(fault) => Err(fault),
        };
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        match &judged {
            Ok(_) => refused.remove(&at),
            Err(Fault::Refused(why)) => refused.insert(at, why.clone()),
            Err(_) => None,
        };
        judged
    }

    /// Looks at every member that can be reached before the first request, and again while one is refused.
    async fn look_at_all(&self) -> Result<(), Fault> {
        let barred = || self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone();
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
        let mut known = self.cluster.lock().unwrap_or_else(PoisonError::into_inner);
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

/// The client for keys and values, taking large answers.
pub(crate) fn kv(client: &Client) -> KvClient {
    client.kv_client().max_decoding_message_size(LARGEST_ANSWER)
}
