//! One member of etcd's: connected when it is first needed, looked at, and logged in to.

use std::sync::Arc;
use std::time::Duration;

use picket_config::EtcdSettings;
use picket_etcd_api::{Client, RangeRequest};
use tokio::sync::Mutex;
use tonic::transport::Endpoint as Address;

use super::fault::{Fault, judge, judge_status};
use super::single_connect::{self, SingleConnect};
use super::watermark::WatermarkCell;
use super::{Version, login};
use crate::keys::Keys;

/// How often a connection is asked for a sign of life. etcd closes those that ask more often than every 5 s.
const PING: Duration = Duration::from_secs(6);
/// How long it may take to give one.
const PONG: Duration = Duration::from_secs(3);

/// One member, by its client's URL.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) url: String,
    settings: Arc<EtcdSettings>,
    ready: Mutex<Option<CheckedMember>>,
    watermark: Arc<WatermarkCell>,
}

/// A member that was looked at.
#[derive(Clone)]
pub(super) struct CheckedMember {
    pub(super) client: Client,
    /// The cluster that it says it is of.
    pub(super) cluster: u64,
    /// How often was logged in on this connection.
    logins: u64,
    single_connect: SingleConnect,
}

impl CheckedMember {
    /// Whether its connection has ended: nothing more goes in it, and what was to go was not sent.
    pub(super) fn is_over(&self) -> bool {
        self.single_connect.is_over()
    }
}

impl std::fmt::Debug for CheckedMember {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ready").field("cluster", &self.cluster).finish_non_exhaustive()
    }
}

impl Endpoint {
    pub(super) fn new(url: String, settings: Arc<EtcdSettings>, watermark: Arc<WatermarkCell>) -> Self {
        Self { url, settings, ready: Mutex::new(None), watermark }
    }

    /// A connection whose member may be trusted. Whoever stops waiting has asked for nothing.
    pub(super) async fn ready(&self) -> Result<CheckedMember, Fault> {
        let mut ready = self.ready.lock().await;
        if let Some(ready) = ready.as_ref().filter(|ready| !ready.is_over()) {
            return Ok(ready.clone());
        }
        let made = self.make().await.map_err(|fault| self.stranger(fault))?;
        *ready = Some(made.clone());
        Ok(made)
    }

    /// Without a user there is nothing to log in with; with one, who was just let in may be so elsewhere.
    pub(super) fn stranger(&self, fault: Fault) -> Fault {
        match fault {
            Fault::Login(why) if self.settings.user.is_none() => {
                Fault::Refused(format!("it wants to know who asks: set user in [store] ({why})"))
                    .at(&self.url)
            }
            Fault::Login(why) => Fault::Stranger(why).at(&self.url),
            other => other.at(&self.url),
        }
    }

    /// The next request makes a new connection: files are read again, and the version is looked at again.
    pub(super) fn forget(&self) {
        // Held: somebody makes one anew at this moment.
        if let Ok(mut ready) = self.ready.try_lock() {
            *ready = None;
        }
    }

    async fn make(&self) -> Result<CheckedMember, Fault> {
        let refused = |what: &dyn std::fmt::Display| Fault::Refused(what.to_string());
        let mut address = Address::from_shared(self.url.clone())
            .map_err(|error| refused(&error))?
            .connect_timeout(self.settings.dial)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(PING)
            .keep_alive_timeout(PONG)
            .keep_alive_while_idle(true);
        if self.url.starts_with("https://") {
            address = login::with_tls(address, &self.settings).map_err(|why| refused(&why))?;
        }
        let single_connect = SingleConnect::default();
        let client = Client::new(single_connect::channel(&address, &single_connect, self.settings.dial));
        self.log_in(&client).await?;
        let status = client.status().await.map_err(|error| judge_status(&error))?;
        self.check_version(&status.version)?;
        let cluster = status.header.map_or(0, |header| header.cluster_id);
        self.goes_on(&client).await?;
        tracing::debug!(etcd = %self.url, version = status.version, "connected");
        Ok(CheckedMember { client, cluster, logins: 1, single_connect })
    }

    /// A snapshot that is restored with the same names and token has the same cluster id: its revision tells it.
    async fn goes_on(&self, client: &Client) -> Result<(), Fault> {
        let before = self.watermark.newest();
        if before.life.is_none() {
            return Ok(());
        }
        let life = Keys::new(&self.settings.prefix).incarnation();
        let answer = client.range(RangeRequest::one(life)).await.map_err(|error| judge(&error))?;
        let revision = answer.header.map_or(0, |header| header.revision);
        let life = answer.kvs.first().map(|entry| entry.value.as_slice());
        self.watermark.goes_on(&before, revision, life).map_err(Fault::Refused)
    }

    fn check_version(&self, said: &str) -> Result<(), Fault> {
        if self.settings.allow_lease_bug || Version::parse(said).is_some_and(Version::keeps_leases_right) {
            return Ok(());
        }
        Err(Fault::Refused(format!(
            "it is version {said}, and before 3.4.31 and 3.5.13 a leader of etcd's that was deposed goes on renewing leases, \
             so that two gateways may take themselves for the leader. Upgrade it, or set allow_etcd_with_lease_bug = true in \
             [store]"
        )))
    }

    async fn log_in(&self, client: &Client) -> Result<(), Fault> {
        let Some(user) = &self.settings.user else { return Ok(()) };
        let password = login::password(&user.password).map_err(Fault::Refused)?;
        client.log_in(&user.name, &password).await.map_err(|error| judge(&error))
    }

    /// Logs in anew, unless somebody else did since `stale` was handed out.
    pub(super) async fn log_in_again(&self, stale: &CheckedMember) -> Result<CheckedMember, Fault> {
        let mut ready = self.ready.lock().await;
        match &mut *ready {
            Some(ready) if ready.logins > stale.logins && !ready.is_over() => Ok(ready.clone()),
            Some(ready) if !ready.is_over() => {
                self.log_in(&ready.client).await.map_err(|fault| fault.at(&self.url))?;
                ready.logins += 1;
                Ok(ready.clone())
            }
            _ => {
                let made = self.make().await.map_err(|fault| self.stranger(fault))?;
                *ready = Some(made.clone());
                Ok(made)
            }
        }
    }

    /// Whether there is anything to log in with.
    pub(super) fn has_user(&self) -> bool {
        self.settings.user.is_some()
    }
}
