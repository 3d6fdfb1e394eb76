//! The client against a server that stands in for etcd: what it sends beside its messages, and what it makes of answers.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt};
use parking_lot::Mutex;
use picket_etcd_api::wire::auth_server::{Auth, AuthServer};
use picket_etcd_api::wire::cluster_server::{Cluster, ClusterServer};
use picket_etcd_api::wire::kv_server::{Kv, KvServer};
use picket_etcd_api::wire::lease_server::{Lease, LeaseServer};
use picket_etcd_api::wire::maintenance_server::{Maintenance, MaintenanceServer};
use picket_etcd_api::wire::watch_request::RequestUnion;
use picket_etcd_api::wire::watch_server::{Watch, WatchServer};
use picket_etcd_api::wire::{
    AuthenticateRequest, AuthenticateResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse,
    LeaseRevokeRequest, MemberListRequest, StatusRequest, WatchRequest,
};
use picket_etcd_api::{
    Client, Error, KeyValue, LeaseGrantRequest, LeaseGrantResponse, LeaseRevokeResponse, MemberListResponse,
    PutRequest, PutResponse, RangeRequest, RangeResponse, StatusResponse, TxnRequest, TxnResponse,
    WatchCreateRequest, WatchResponse,
};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::metadata::MetadataMap;
use tonic::transport::{Channel, Server};
use tonic::{Code, Request, Response, Status, Streaming};

/// A call, whether it wants a leader, and whose it is.
type Heard = (&'static str, bool, Option<String>);
type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Notes what it hears.
#[derive(Clone, Default)]
struct Fake {
    heard: Arc<Mutex<Vec<Heard>>>,
    /// A copy for each stream that is open.
    open: Arc<()>,
}

impl Fake {
    fn note(&self, call: &'static str, metadata: &MetadataMap) {
        let text = |name| metadata.get(name).map(|value| value.to_str().expect("text").to_owned());
        let leader = text("hasleader").as_deref() == Some("true");
        self.heard.lock().push((call, leader, text("token")));
    }

    fn heard(&self) -> Vec<Heard> {
        std::mem::take(&mut self.heard.lock())
    }

    /// Waits until no more streams are open than `before`.
    async fn is_left(&self, before: usize) {
        let left = async {
            while Arc::strong_count(&self.open) > before {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), left).await.expect("a stream stays open");
    }

    /// Served until the test ends.
    async fn served() -> (Self, Client) {
        let (fake, place) = (Self::default(), TcpListener::bind("127.0.0.1:0").await.expect("a port"));
        let url = format!("http://{}", place.local_addr().expect("an address"));
        let server = Server::builder()
            .add_service(KvServer::new(fake.clone()))
            .add_service(LeaseServer::new(fake.clone()))
            .add_service(WatchServer::new(fake.clone()))
            .add_service(ClusterServer::new(fake.clone()))
            .add_service(MaintenanceServer::new(fake.clone()))
            .add_service(AuthServer::new(fake.clone()));
        tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(place)));
        let channel = Channel::from_shared(url).expect("an address").connect_lazy();
        (fake, Client::new(channel))
    }
}

#[tonic::async_trait]
impl Kv for Fake {
    /// As many bytes as its limit says.
    async fn range(&self, request: Request<RangeRequest>) -> Result<Response<RangeResponse>, Status> {
        self.note("range", request.metadata());
        let size = usize::try_from(request.into_inner().limit).expect("a size");
        let value = vec![b'x'; size];
        Ok(Response::new(RangeResponse {
            kvs: vec![KeyValue { value, ..Default::default() }],
            ..Default::default()
        }))
    }

    async fn put(&self, request: Request<PutRequest>) -> Result<Response<PutResponse>, Status> {
        self.note("put", request.metadata());
        Err(Status::resource_exhausted("etcdserver: mvcc: database space exceeded"))
    }

    async fn txn(&self, request: Request<TxnRequest>) -> Result<Response<TxnResponse>, Status> {
        self.note("txn", request.metadata());
        Ok(Response::new(TxnResponse::default()))
    }
}

#[tonic::async_trait]
impl Lease for Fake {
    async fn lease_grant(
        &self,
        request: Request<LeaseGrantRequest>,
    ) -> Result<Response<LeaseGrantResponse>, Status> {
        self.note("grant", request.metadata());
        let ttl = request.into_inner().ttl;
        Ok(Response::new(LeaseGrantResponse { header: None, ttl }))
    }

    async fn lease_revoke(
        &self,
        request: Request<LeaseRevokeRequest>,
    ) -> Result<Response<LeaseRevokeResponse>, Status> {
        self.note("revoke", request.metadata());
        Ok(Response::new(LeaseRevokeResponse::default()))
    }

    type LeaseKeepAliveStream = Answers<LeaseKeepAliveResponse>;

    /// A lease is renewed for as many seconds as its number is; 98 has no answer, and 99 ends the stream.
    async fn lease_keep_alive(
        &self,
        request: Request<Streaming<LeaseKeepAliveRequest>>,
    ) -> Result<Response<Self::LeaseKeepAliveStream>, Status> {
        self.note("keep_alive", request.metadata());
        let answers = request
            .into_inner()
            .take_while(|asked| std::future::ready(!matches!(asked, Ok(asked) if asked.id == 99)));
        let answers =
            answers.filter(|asked| std::future::ready(!matches!(asked, Ok(asked) if asked.id == 98)));
        let open = self.open.clone();
        let answers = answers.map(move |asked| {
            let _while_it_lasts = &open;
            Ok(LeaseKeepAliveResponse { ttl: asked?.id })
        });
        Ok(Response::new(answers.boxed()))
    }
}

#[tonic::async_trait]
impl Watch for Fake {
    type WatchStream = Answers<WatchResponse>;

    /// Tells what it was asked, and ends after three answers.
    async fn watch(
        &self,
        request: Request<Streaming<WatchRequest>>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        self.note("watch", request.metadata());
        let open = self.open.clone();
        let responses = request.into_inner().map(move |asked| {
            let _while_it_lasts = &open;
            let said = match asked?.request_union {
                Some(RequestUnion::CreateRequest(range)) => String::from_utf8_lossy(&range.key).into_owned(),
                Some(RequestUnion::ProgressRequest(_)) => "progress".to_owned(),
                None => return Err(Status::invalid_argument("nothing")),
            };
            Ok(WatchResponse { cancel_reason: said, ..Default::default() })
        });
        Ok(Response::new(responses.take(3).boxed()))
    }
}

#[tonic::async_trait]
impl Cluster for Fake {
    async fn member_list(
        &self,
        request: Request<MemberListRequest>,
    ) -> Result<Response<MemberListResponse>, Status> {
        self.note("members", request.metadata());
        assert!(request.get_ref().linearizable, "one member's own list may lag");
        Ok(Response::new(MemberListResponse::default()))
    }
}

#[tonic::async_trait]
impl Maintenance for Fake {
    async fn status(&self, request: Request<StatusRequest>) -> Result<Response<StatusResponse>, Status> {
        self.note("status", request.metadata());
        Ok(Response::new(StatusResponse::default()))
    }
}

#[tonic::async_trait]
impl Auth for Fake {
    async fn authenticate(
        &self,
        request: Request<AuthenticateRequest>,
    ) -> Result<Response<AuthenticateResponse>, Status> {
        self.note("authenticate", request.metadata());
        let who = request.into_inner();
        match who.password.as_str() {
            "wrong" => Err(Status::invalid_argument(
                "etcdserver: authentication failed, invalid user ID or password",
            )),
            "odd" => Ok(Response::new(AuthenticateResponse { token: "a\nb".to_owned() })),
            right => Ok(Response::new(AuthenticateResponse { token: format!("{}.{right}", who.name) })),
        }
    }
}

fn said(error: &Error) -> (Code, &str) {
    match error {
        Error::Status(status) => (status.code(), status.message()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn every_call_wants_a_leader_and_has_the_token_once_there_is_one() {
    let (fake, client) = Fake::served().await;
    let calls = async |client: &Client| {
        client.range(RangeRequest::one("k")).await.expect("an answer");
        client.put(PutRequest::default()).await.expect_err("it is full");
        client.txn(TxnRequest::default()).await.expect("an answer");
        client.grant(LeaseGrantRequest { id: 1, ttl: 5 }).await.expect("an answer");
        client.revoke(1).await.expect("an answer");
        client.keep_alive(5).await.expect("it is renewed");
        client.watch(WatchCreateRequest::default()).await.expect("a watch");
        client.members().await.expect("an answer");
        client.status().await.expect("an answer");
    };
    let all = ["range", "put", "txn", "grant", "revoke", "keep_alive", "watch", "members", "status"];
    let by = |token: Option<&str>| all.map(|call| (call, true, token.map(str::to_owned))).to_vec();
    calls(&client).await;
    assert_eq!(fake.heard(), by(None));

    let clone = client.clone();
    client.log_in("g1", "first").await.expect("a token");
    calls(&clone).await;
    let bare = || vec![("authenticate", true, None)];
    assert_eq!(fake.heard(), [bare(), by(Some("g1.first"))].concat());

    // What cannot log in anew keeps what it has, and an old token is never the way to a new one.
    let wrong = client.log_in("g1", "wrong").await.expect_err("it is refused");
    assert_eq!(said(&wrong).0, Code::InvalidArgument);
    let odd = client.log_in("g1", "odd").await.expect_err("it cannot be sent");
    assert!(matches!(odd, Error::Token), "{odd:?}");
    calls(&client).await;
    assert_eq!(fake.heard(), [bare(), bare(), by(Some("g1.first"))].concat());
    client.log_in("g1", "second").await.expect("a token");
    calls(&clone).await;
    assert_eq!(fake.heard(), [bare(), by(Some("g1.second"))].concat());
    assert!(!format!("{client:?}").contains("second"), "a token is not printed");
}

#[tokio::test]
async fn only_a_lease_that_lasts_on_was_renewed() {
    let (_fake, client) = Fake::served().await;
    client.keep_alive(1).await.expect("a second more");
    for over in [0, -1] {
        let renewed = client.keep_alive(over).await;
        assert!(matches!(renewed, Err(Error::NoLease)), "{renewed:?}");
    }
    let silent = client.keep_alive(99).await;
    assert!(matches!(silent, Err(Error::Ended)), "{silent:?}");
}

/// A connection has so many streams at once: one that stayed open with each keep-alive would end them after some minutes.
#[tokio::test]
async fn no_stream_stays_open_behind_its_answer() {
    let (fake, client) = Fake::served().await;
    let before = Arc::strong_count(&fake.open);
    for lease in [5, 0, 5] {
        let _ = client.keep_alive(lease).await;
    }
    fake.is_left(before).await;
    let mut watch = client.watch(WatchCreateRequest::default()).await.expect("a watch");
    watch.message().await.expect("it lasts").expect("a message");
    assert!(Arc::strong_count(&fake.open) > before);
    drop(watch);
    fake.is_left(before).await;
    // Nobody waits for this one any more.
    let given_up = tokio::time::timeout(Duration::from_millis(100), client.keep_alive(98)).await;
    assert!(given_up.is_err());
    fake.is_left(before).await;
}

#[tokio::test]
async fn what_etcd_says_is_handed_on_by_code_and_word() {
    let (_fake, client) = Fake::served().await;
    let full = client.put(PutRequest::default()).await.expect_err("it is full");
    assert_eq!(said(&full), (Code::ResourceExhausted, "etcdserver: mvcc: database space exceeded"));
    // Whoever prints the error with its sources prints the status once.
    assert!(std::error::Error::source(&full).is_none());
}

#[tokio::test]
async fn a_large_answer_is_taken_and_one_without_end_is_not() {
    let (_fake, client) = Fake::served().await;
    let sized = async |limit| client.range(RangeRequest { limit, ..RangeRequest::one("k") }).await;
    let large = sized(64 << 20).await.expect("an answer");
    assert_eq!(large.kvs[0].value.len(), 64 << 20);
    assert_eq!(said(&sized(129 << 20).await.expect_err("it is too large")).0, Code::OutOfRange);
}

#[tokio::test]
async fn a_stream_of_watches_takes_further_ones_and_ends() {
    let (_fake, client) = Fake::served().await;
    let range = |key: &str| WatchCreateRequest { key: key.into(), ..Default::default() };
    let mut watch = client.watch(range("a")).await.expect("a watch");
    watch.add_range(range("b")).await.expect("another one");
    watch.request_progress().await.expect("it is asked");
    for wanted in ["a", "b", "progress"] {
        let message = watch.message().await.expect("it lasts").expect("a message");
        assert_eq!(message.cancel_reason, wanted);
    }
    assert_eq!(watch.message().await.expect("it ended well"), None);
}
