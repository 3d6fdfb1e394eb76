//! Calls, one by one.

use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::AsciiMetadataValue;
use tonic::transport::Channel;
use tonic::{Request, Status, Streaming};

use crate::wire::auth_client::AuthClient;
use crate::wire::cluster_client::ClusterClient;
use crate::wire::kv_client::KvClient;
use crate::wire::lease_client::LeaseClient;
use crate::wire::maintenance_client::MaintenanceClient;
use crate::wire::watch_client::WatchClient;
use crate::wire::watch_request::RequestUnion;
use crate::wire::{
    AuthenticateRequest, LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveRequest, LeaseRevokeRequest,
    LeaseRevokeResponse, MemberListRequest, MemberListResponse, PutRequest, PutResponse, RangeRequest,
    RangeResponse, StatusRequest, StatusResponse, TxnRequest, TxnResponse, WatchCreateRequest,
    WatchProgressRequest, WatchRequest, WatchResponse,
};

/// What one answer of keys and values may take: a page of records, of which a large one has some 100 kB. Other
/// answers have tonic's own bound, 4 MiB.
const LARGEST_ANSWER: usize = 128 << 20;
/// How many requests of a watch may wait to be sent.
const PENDING_REQUESTS: usize = 100;
/// A member that was cut off from the quorum says so at once to whoever says this, instead of waiting for it (etcd's
/// `api/v3rpc/rpctypes/metadatafields.go`, as the next one).
const REQUIRE_LEADER: (&str, &str) = ("hasleader", "true");
/// The user's token.
const TOKEN: &str = "token";

/// Why a call has no good answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What etcd said, or the transport. Whether the request had an effect stands in its words.
    #[error(transparent)]
    Status(#[from] Status),
    /// There is no such lease, and nothing was renewed.
    #[error("the lease in etcd is over")]
    NoLease,
    /// A stream ended before it had an answer: whether the request had an effect is not known.
    #[error("etcd ended the stream without an answer")]
    Ended,
    /// The token that etcd gave is no text that metadata could carry. Nothing can be asked with it.
    #[error("the token that etcd gave cannot be sent: it is not of visible ASCII")]
    Token,
}

/// One member, over one channel. Clones share the channel and the token.
#[derive(Clone, Debug)]
pub struct Client {
    channel: Channel,
    token: Arc<RwLock<Option<AsciiMetadataValue>>>,
}

impl Client {
    /// Asks nobody yet, and has no token.
    pub fn new(channel: Channel) -> Self {
        Self { channel, token: Arc::default() }
    }

    /// A request to a member that has a leader.
    fn without_token<T>(message: T) -> Request<T> {
        let mut request = Request::new(message);
        let (name, value) = REQUIRE_LEADER;
        request.metadata_mut().insert(name, AsciiMetadataValue::from_static(value));
        request
    }

    /// The same, with the token, once there is one.
    fn authenticated<T>(&self, message: T) -> Request<T> {
        let mut request = Self::without_token(message);
        if let Some(token) = &*self.token.read() {
            request.metadata_mut().insert(TOKEN, token.clone());
        }
        request
    }

    fn kv(&self) -> KvClient<Channel> {
        KvClient::new(self.channel.clone()).max_decoding_message_size(LARGEST_ANSWER)
    }

    fn lease(&self) -> LeaseClient<Channel> {
        LeaseClient::new(self.channel.clone())
    }

    /// Gets a token, which every later call of this client and its clones says. The password is not kept.
    ///
    /// # Errors
    /// The token that was there before stays.
    pub async fn log_in(&self, name: &str, password: &str) -> Result<(), Error> {
        let who = AuthenticateRequest { name: name.to_owned(), password: password.to_owned() };
        // Without the token: an old one would be refused, and with it the way to a new one.
        let answer = AuthClient::new(self.channel.clone()).authenticate(Self::without_token(who)).await?;
        let mut token: AsciiMetadataValue = answer.into_inner().token.parse().map_err(|_| Error::Token)?;
        // Debug output hides it, and HPACK never puts it into its table: it goes whole with each request, some hundred bytes for a JWT.
        token.set_sensitive(true);
        *self.token.write() = Some(token);
        Ok(())
    }

    /// Reads a key or a range.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn range(&self, what: RangeRequest) -> Result<RangeResponse, Error> {
        Ok(self.kv().range(self.authenticated(what)).await?.into_inner())
    }

    /// Writes a key.
    ///
    /// # Errors
    /// Whether it was written stands in the status alone.
    pub async fn put(&self, what: PutRequest) -> Result<PutResponse, Error> {
        Ok(self.kv().put(self.authenticated(what)).await?.into_inner())
    }

    /// Compares, and does one of two things.
    ///
    /// # Errors
    /// Whether it was done stands in the status alone.
    pub async fn txn(&self, what: TxnRequest) -> Result<TxnResponse, Error> {
        Ok(self.kv().txn(self.authenticated(what)).await?.into_inner())
    }

    /// Makes a lease.
    ///
    /// # Errors
    /// Whether it was made stands in the status alone; it can be ended by the number that was chosen.
    pub async fn grant(&self, what: LeaseGrantRequest) -> Result<LeaseGrantResponse, Error> {
        Ok(self.lease().lease_grant(self.authenticated(what)).await?.into_inner())
    }

    /// Ends a lease, and with it all that stands under it.
    ///
    /// # Errors
    /// Whether it was ended stands in the status alone.
    pub async fn revoke(&self, lease: i64) -> Result<LeaseRevokeResponse, Error> {
        Ok(self
            .lease()
            .lease_revoke(self.authenticated(LeaseRevokeRequest { id: lease }))
            .await?
            .into_inner())
    }

    /// Renews a lease once, over a stream of its own, so that its answer is the answer to it.
    ///
    /// # Errors
    /// [`Error::NoLease`]: it is over. Others: whether it was renewed is not known.
    pub async fn keep_alive(&self, lease: i64) -> Result<(), Error> {
        // What is sent ends with `open`. Not before the answer: nothing says that etcd answers a stream whose end it saw. And not later:
        // a stream that has no end stays open, and a connection has so many.
        let (open, sent) = mpsc::channel(1);
        open.send(LeaseKeepAliveRequest { id: lease }).await.map_err(|_| Error::Ended)?;
        let mut answers =
            self.lease().lease_keep_alive(self.authenticated(ReceiverStream::new(sent))).await?.into_inner();
        let answer = answers.message().await;
        drop(open);
        match answer? {
            Some(answer) if answer.ttl > 0 => Ok(()),
            Some(_) => Err(Error::NoLease),
            None => Err(Error::Ended),
        }
    }

    /// Watches a range.
    ///
    /// # Errors
    /// Nothing is watched.
    pub async fn watch(&self, range: WatchCreateRequest) -> Result<Watch, Error> {
        let (requests, sent) = mpsc::channel(PENDING_REQUESTS);
        let first = WatchRequest { request_union: Some(RequestUnion::CreateRequest(range)) };
        requests.send(first).await.map_err(|_| Error::Ended)?;
        let mut watch = WatchClient::new(self.channel.clone());
        let responses = watch.watch(self.authenticated(ReceiverStream::new(sent))).await?.into_inner();
        Ok(Watch { requests, responses })
    }

    /// All of etcd's members, as its quorum knows them; of etcd 3.4 as this member does.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn members(&self) -> Result<MemberListResponse, Error> {
        let mut cluster = ClusterClient::new(self.channel.clone());
        let all = MemberListRequest { linearizable: true };
        Ok(cluster.member_list(self.authenticated(all)).await?.into_inner())
    }

    /// Who this member is.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn status(&self) -> Result<StatusResponse, Error> {
        let mut maintenance = MaintenanceClient::new(self.channel.clone());
        Ok(maintenance.status(self.authenticated(StatusRequest {})).await?.into_inner())
    }
}

/// A stream of watches.
#[derive(Debug)]
pub struct Watch {
    requests: mpsc::Sender<WatchRequest>,
    responses: Streaming<WatchResponse>,
}

impl Watch {
    async fn send(&self, what: RequestUnion) -> Result<(), Error> {
        let request = WatchRequest { request_union: Some(what) };
        self.requests.send(request).await.map_err(|_| Error::Ended)
    }

    /// Watches one range more.
    ///
    /// # Errors
    /// [`Error::Ended`]: the stream is over.
    pub async fn add_range(&self, range: WatchCreateRequest) -> Result<(), Error> {
        self.send(RequestUnion::CreateRequest(range)).await
    }

    /// Requests a message, also where nothing changed.
    ///
    /// # Errors
    /// [`Error::Ended`]: the stream is over.
    pub async fn request_progress(&self) -> Result<(), Error> {
        self.send(RequestUnion::ProgressRequest(WatchProgressRequest {})).await
    }

    /// The next message; `None`: etcd ended the stream. It may be dropped while it waits, and no message is lost.
    ///
    /// # Errors
    /// The stream is over, and changes from now on are not reported.
    pub async fn message(&mut self) -> Result<Option<WatchResponse>, Error> {
        Ok(self.responses.message().await?)
    }
}
