//! One cluster's API server: requests that end in time, are sent once, and go to the cluster that the settings mean.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request};
use kube::Client;
use parking_lot::Mutex;
use picket_login::Login;
use picket_reach::LastWord;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::attachments::Nobodys;
use crate::client::{self, Word};
use crate::clock::ServerClock;
use crate::fault::{Fault, Kind};
use crate::identity::Met;
use crate::network_fences::NetworkFence;
use crate::object::{List, Namespace, Node};
use crate::{attachments, network_fences, rights, rivals};

/// How long the API server works on a request at most, whoever waits for it: its own parameter (K6).
pub(crate) const SERVED: Duration = Duration::from_secs(10);
/// How long one is waited for: connecting and the way there and back besides.
pub(crate) const ASKED: Duration = Duration::from_secs(12);

/// What kind of patch.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Patch {
    /// RFC 6902, with tests of what was read.
    Json,
    /// Lists are merged by their keys.
    Strategic,
}

/// The API server of one cluster.
pub(crate) struct Cluster {
    login: Login,
    uid: String,
    client: Mutex<Option<Client>>,
    /// As the heads of its answers tell it.
    pub(crate) clock: Arc<ServerClock>,
    nodes: Kept<Vec<Node>>,
    rivals: Kept<Vec<String>>,
    nobodys: Kept<Vec<Nobodys>>,
    lacking: Kept<Option<String>>,
    drivers: Kept<BTreeSet<String>>,
    network_fences: Kept<Option<Vec<NetworkFence>>>,
    ceph: Kept<Vec<String>>,
}

/// An answer that serves others for a while; whoever asks meanwhile waits for the same.
pub(crate) struct Kept<T>(tokio::sync::Mutex<Option<(Instant, Arc<T>)>>);

impl<T> std::fmt::Debug for Kept<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kept").finish_non_exhaustive()
    }
}

impl<T> Kept<T> {
    pub(crate) fn new() -> Self {
        Self(tokio::sync::Mutex::new(None))
    }

    /// What is not older than that, or what was asked for since this was called: of many that call at once one asks.
    pub(crate) async fn get(
        &self,
        age: Duration,
        until: Instant,
        ask: impl Future<Output = Result<T, Fault>>,
    ) -> Result<Arc<T>, Fault> {
        let now = Instant::now();
        let since = now.checked_sub(age).unwrap_or(now);
        let late = |_| Fault::late("others' question");
        let mut known = tokio::time::timeout_at(until, self.0.lock()).await.map_err(late)?;
        if let Some((at, answer)) = &*known
            && *at >= since
        {
            return Ok(answer.clone());
        }
        let asked_at = Instant::now();
        let answer = Arc::new(ask.await?);
        *known = Some((asked_at, answer.clone()));
        Ok(answer)
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("login", &self.login).field("uid", &self.uid).finish()
    }
}

impl Cluster {
    pub(crate) fn new(login: Login, uid: String) -> Self {
        let (client, nodes) = (Mutex::default(), Kept::new());
        let (rivals, nobodys, lacking, drivers) = (Kept::new(), Kept::new(), Kept::new(), Kept::new());
        let (network_fences, ceph, clock) = (Kept::new(), Kept::new(), Arc::default());
        Self { login, uid, client, clock, nodes, rivals, nobodys, lacking, drivers, network_fences, ceph }
    }

    /// What is wrong with its kubeconfig, as far as the file tells.
    pub(crate) fn remark(&self) -> Option<String> {
        Some(self.login.look().err()?.to_string())
    }

    /// Asks that one.
    #[cfg(test)]
    pub(crate) fn by(&self, client: Client) {
        *self.client.lock() = Some(client);
    }

    /// Whether it is the cluster that the settings mean: a name may lead to another one.
    pub(crate) async fn is_meant(&self, until: Instant) -> Result<(), Fault> {
        self.is_another(until).await?.map_or(Ok(()), |why| Err(Fault::refused(why)))
    }

    /// Why it is another cluster, where it says so.
    pub(crate) async fn is_another(&self, until: Instant) -> Result<Option<String>, Fault> {
        let system: Namespace = self.get("/api/v1/namespaces/kube-system", until).await?;
        let uid = &system.metadata.uid;
        Ok((*uid != self.uid).then(|| {
            format!(
                "this is another cluster: its namespace kube-system has the UID {uid}, and the settings say {}",
                self.uid
            )
        }))
    }

    /// The one that the settings mean.
    pub(crate) fn uid(&self) -> &str {
        &self.uid
    }

    /// Whether it is the cluster in which that one was met.
    pub(crate) fn is_where(&self, met: Option<&str>) -> Result<(), Fault> {
        let elsewhere = met.and_then(Met::read).and_then(|met| met.is_elsewhere(&self.uid));
        elsewhere.map_or(Ok(()), |why| Err(Fault::refused(why)))
    }

    /// Reads from a quorum.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str, until: Instant) -> Result<T, Fault> {
        self.ask(Method::GET, path, None, None, until).await
    }

    /// All Nodes, as a quorum had them so long ago at most.
    pub(crate) async fn nodes(&self, age: Duration, until: Instant) -> Result<Arc<Vec<Node>>, Fault> {
        let all = async { Ok(self.get::<List<Node>>("/api/v1/nodes", until).await?.items) };
        self.nodes.get(age, until, all).await
    }

    /// Who else lets go there, as it was so long ago at most.
    pub(crate) async fn rivals(&self, age: Duration, until: Instant) -> Result<Arc<Vec<String>>, Fault> {
        self.rivals.get(age, until, rivals::of_cluster(self, until)).await
    }

    /// The attachments there that nobody will ever take away, as they were so long ago at most.
    pub(crate) async fn nobodys(&self, age: Duration, until: Instant) -> Result<Arc<Vec<Nobodys>>, Fault> {
        self.nobodys.get(age, until, attachments::of_nobody(self, until)).await
    }

    /// What its login may not do and needs, as it was so long ago at most.
    pub(crate) async fn lacking(&self, age: Duration, until: Instant) -> Result<Arc<Option<String>>, Fault> {
        self.lacking.get(age, until, rights::lacking(self, &rights::RELEASE, until)).await
    }

    /// The names of the CSI drivers of which anything is left there, as it was so long ago at most.
    pub(crate) async fn drivers(
        &self,
        age: Duration,
        until: Instant,
    ) -> Result<Arc<BTreeSet<String>>, Fault> {
        self.drivers.get(age, until, attachments::drivers(self, until)).await
    }

    /// The NetworkFences of csi-addons, as they were so long ago at most; `None`: there is no such API.
    pub(crate) async fn network_fences(
        &self,
        age: Duration,
        until: Instant,
    ) -> Result<Arc<Option<Vec<NetworkFence>>>, Fault> {
        self.network_fences.get(age, until, network_fences::all(self, until)).await
    }

    /// What is to be said of ceph-csi there, as it was so long ago at most.
    pub(crate) async fn ceph(
        &self,
        undoes: bool,
        age: Duration,
        until: Instant,
    ) -> Result<Arc<Vec<String>>, Fault> {
        self.ceph.get(age, until, network_fences::told(self, undoes, until)).await
    }

    /// Asks what changes nothing.
    pub(crate) async fn question<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &Value,
        until: Instant,
    ) -> Result<T, Fault> {
        self.ask(Method::POST, path, Some(("application/json", body)), None, until).await
    }

    /// Makes what lets nothing go.
    pub(crate) async fn create<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &Value,
        until: Instant,
    ) -> Result<T, Fault> {
        self.ask(Method::POST, path, Some(("application/json", body)), None, until).await
    }

    pub(crate) async fn patch<T: DeserializeOwned>(
        &self,
        path: &str,
        patch: Patch,
        body: &Value,
        until: Instant,
    ) -> Result<T, Fault> {
        self.patch_at(None, path, patch, body, until).await
    }

    /// The same at that word, if there is one.
    pub(crate) async fn patch_at<T: DeserializeOwned>(
        &self,
        word: Option<&LastWord>,
        path: &str,
        patch: Patch,
        body: &Value,
        until: Instant,
    ) -> Result<T, Fault> {
        let kind = match patch {
            Patch::Json => "application/json-patch+json",
            Patch::Strategic => "application/strategic-merge-patch+json",
        };
        self.ask(Method::PATCH, path, Some((kind, body)), word, until).await
    }

    /// Deletes at that word, and at once, what has that UID, as it was read, and nothing else.
    pub(crate) async fn delete(
        &self,
        word: &LastWord,
        path: &str,
        (uid, version): (&str, &str),
        until: Instant,
    ) -> Result<(), Fault> {
        let body = json!({
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "gracePeriodSeconds": 0,
            "preconditions": { "uid": uid, "resourceVersion": version },
        });
        let body = Some(("application/json", &body));
        let _: Value = self.ask(Method::DELETE, path, body, Some(word), until).await?;
        Ok(())
    }

    /// Deletes what has that UID, and lets nothing go by that.
    pub(crate) async fn take_away(&self, path: &str, uid: &str, until: Instant) -> Result<(), Fault> {
        let body = json!({ "kind": "DeleteOptions", "apiVersion": "v1", "preconditions": { "uid": uid } });
        let body = Some(("application/json", &body));
        let _: Value = self.ask(Method::DELETE, path, body, None, until).await?;
        Ok(())
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<(&str, &Value)>,
        word: Option<&LastWord>,
        until: Instant,
    ) -> Result<T, Fault> {
        let word = word.cloned().map(Word::new);
        let what =
            format!("{} {}", method.as_str().to_ascii_lowercase(), path.split('?').next().unwrap_or(path));
        let end = until.min(Instant::now() + ASKED);
        let asking = async {
            let client = self.client()?;
            let joined = if path.contains('?') { '&' } else { '?' };
            let uri = format!("{path}{joined}timeout={}s", SERVED.as_secs());
            let mut request = Request::builder().method(method).uri(uri);
            let mut sent = Vec::new();
            if let Some((kind, body)) = body {
                request = request.header(http::header::CONTENT_TYPE, kind);
                sent = body.to_string().into_bytes();
            }
            let request = request.body(sent).map_err(|error| Fault::refused(format!("{what}: {error}")));
            let mut request = request?;
            if let Some(word) = &word {
                request.extensions_mut().insert(word.clone());
            }
            client.request::<T>(request).await.map_err(|error| Fault::of(&what, error))
        };
        let answer = tokio::time::timeout_at(end, asking).await.unwrap_or_else(|_| Err(Fault::late(&what)));
        if let Some(why) = word.as_ref().and_then(Word::refused) {
            return Err(Fault::unpermitted(&format!("{what}: {why}")));
        }
        if answer.as_ref().is_err_and(|fault| fault.is(Kind::Away) || fault.is_of_login()) {
            // The files may have been replaced, or the server may have moved: they are read anew.
            *self.client.lock() = None;
        }
        answer
    }

    fn client(&self) -> Result<Client, Fault> {
        let made = self.client.lock().clone();
        if let Some(client) = made {
            return Ok(client);
        }
        let made = self.login.known().and_then(|known| client::client(&known, &self.clock));
        let client = made.map_err(|wrong| Fault::refused(wrong.to_string()))?;
        *self.client.lock() = Some(client.clone());
        Ok(client)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn of_many_that_ask_at_once_one_asks_and_nobody_hears_what_is_older_than_its_question() {
        let (kept, asked) = (Kept::new(), AtomicU32::new(0));
        let ask = async |age: u64| {
            let question = async {
                let number = asked.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok(number)
            };
            let until = Instant::now() + Duration::from_secs(60);
            *kept.get(Duration::from_secs(age), until, question).await.expect("an answer")
        };
        let (first, second, third) = tokio::join!(ask(0), ask(0), ask(0));
        assert_eq!((first, second, third), (0, 0, 0), "they called at one moment");
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!((ask(10).await, ask(0).await, ask(0).await), (0, 1, 2));
        let late = kept.get(Duration::ZERO, Instant::now(), async { Err(Fault::late("it")) });
        assert!(late.await.is_err());
        assert_eq!(ask(10).await, 2, "a fault is not kept");
    }
}
