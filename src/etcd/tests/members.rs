//! Which members of etcd are silent, and what a member's refusal is taken for. Servers stand in for members, of any version.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use picket_config::{EtcdSettings, EtcdTls, EtcdUser, SecretSource};
use picket_core::store::{Store, StoreError};
use picket_core::time::{BootTime, Clock, WallTime};
use picket_etcd::{Etcd, EtcdStore};
use picket_etcd_api::wire::auth_server::{Auth, AuthServer};
use picket_etcd_api::wire::cluster_server::{Cluster, ClusterServer};
use picket_etcd_api::wire::kv_server::{Kv, KvServer};
use picket_etcd_api::wire::maintenance_server::{Maintenance, MaintenanceServer};
use picket_etcd_api::wire::{AuthenticateRequest, AuthenticateResponse, MemberListRequest, StatusRequest};
use picket_etcd_api::{
    Member, MemberListResponse, PutRequest, PutResponse, RangeRequest, RangeResponse, ResponseHeader,
    StatusResponse, TxnRequest, TxnResponse,
};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::metadata::MetadataMap;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

/// What a member makes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// Serves who has the last token that it gave.
    Serves,
    /// Gives tokens, and takes none of them.
    TakesNoToken,
    /// Says that it has no leader, to everything.
    HasNoLeader,
    /// Gives tokens, and then says that it has no leader.
    LosesItsLeader,
    /// Does not come to an end with a login.
    LogsNobodyIn,
    /// Tells its status to root alone.
    DeniesStatus,
}

#[derive(Debug)]
struct State {
    manner: Manner,
    /// The last token that it gave; `None`: it is no longer valid.
    token: Option<u64>,
    logins: u64,
}

/// One member, which knows a cluster of three.
#[derive(Clone, Debug)]
struct Fake {
    id: u64,
    state: Arc<Mutex<State>>,
}

impl Fake {
    /// Served until the test ends, and where.
    async fn served(id: u64, manner: Manner) -> (Self, String) {
        let fake = Self { id, state: Arc::new(Mutex::new(State { manner, token: None, logins: 0 })) };
        let (place, url) = place().await;
        let server = Server::builder()
            .add_service(KvServer::new(fake.clone()))
            .add_service(ClusterServer::new(fake.clone()))
            .add_service(MaintenanceServer::new(fake.clone()))
            .add_service(AuthServer::new(fake.clone()));
        tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(place)));
        (fake, url)
    }

    fn turns(&self, manner: Manner) {
        self.state.lock().manner = manner;
    }

    fn void_its_token(&self) {
        self.state.lock().token = None;
    }

    fn logins(&self) -> u64 {
        self.state.lock().logins
    }

    fn header(&self) -> Option<ResponseHeader> {
        Some(ResponseHeader { cluster_id: 7, member_id: self.id, revision: 5 })
    }

    /// In etcd's order: whether it has a leader, then who asks.
    fn lets_in(&self, metadata: &MetadataMap) -> Result<(), Status> {
        let state = self.state.lock();
        let token = metadata.get("token").map(|token| token.to_str().expect("text").to_owned());
        let is_known = state.token.is_some_and(|known| token == Some(format!("t{known}")));
        match state.manner {
            Manner::HasNoLeader => Err(Status::unavailable("etcdserver: no leader")),
            Manner::LosesItsLeader if is_known => Err(Status::unavailable("etcdserver: no leader")),
            Manner::Serves | Manner::DeniesStatus if is_known => Ok(()),
            _ => Err(Status::unauthenticated("etcdserver: invalid auth token")),
        }
    }
}

/// A port that is ours, and its URL.
async fn place() -> (TcpListener, String) {
    let place = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", place.local_addr().expect("an address"));
    (place, url)
}

#[tonic::async_trait]
impl Auth for Fake {
    async fn authenticate(
        &self,
        _: Request<AuthenticateRequest>,
    ) -> Result<Response<AuthenticateResponse>, Status> {
        let mut state = self.state.lock();
        if state.manner == Manner::HasNoLeader {
            return Err(Status::unavailable("etcdserver: no leader"));
        }
        if state.manner == Manner::LogsNobodyIn {
            return Err(Status::unavailable("etcdserver: request timed out"));
        }
        state.logins += 1;
        state.token = Some(state.logins);
        Ok(Response::new(AuthenticateResponse { token: format!("t{}", state.logins) }))
    }
}

#[tonic::async_trait]
impl Maintenance for Fake {
    async fn status(&self, request: Request<StatusRequest>) -> Result<Response<StatusResponse>, Status> {
        self.lets_in(request.metadata())?;
        if self.state.lock().manner == Manner::DeniesStatus {
            return Err(Status::permission_denied("etcdserver: permission denied"));
        }
        Ok(Response::new(StatusResponse { header: self.header(), version: "3.6.16".to_owned() }))
    }
}

#[tonic::async_trait]
impl Cluster for Fake {
    async fn member_list(
        &self,
        request: Request<MemberListRequest>,
    ) -> Result<Response<MemberListResponse>, Status> {
        self.lets_in(request.metadata())?;
        let member = |id| Member { id, name: format!("e{id}"), is_learner: false };
        Ok(Response::new(MemberListResponse {
            header: self.header(),
            members: (1..=3).map(member).collect(),
        }))
    }
}

#[tonic::async_trait]
impl Kv for Fake {
    /// It has nothing.
    async fn range(&self, request: Request<RangeRequest>) -> Result<Response<RangeResponse>, Status> {
        self.lets_in(request.metadata())?;
        Ok(Response::new(RangeResponse { header: self.header(), ..RangeResponse::default() }))
    }

    async fn put(&self, _: Request<PutRequest>) -> Result<Response<PutResponse>, Status> {
        Err(Status::unimplemented("nothing is put by itself"))
    }

    /// What is compared is not so.
    async fn txn(&self, request: Request<TxnRequest>) -> Result<Response<TxnResponse>, Status> {
        self.lets_in(request.metadata())?;
        Ok(Response::new(TxnResponse { header: self.header(), ..TxnResponse::default() }))
    }
}

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

/// A gateway's end of them, which knows a user.
struct End {
    store: EtcdStore,
    _password: tempfile::NamedTempFile,
}

impl End {
    fn of(endpoints: Vec<String>) -> Self {
        let password = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(password.path(), "secret12").expect("it is ours");
        let user =
            EtcdUser { name: "picket".to_owned(), password: SecretSource::File(password.path().to_owned()) };
        let settings = EtcdSettings {
            endpoints,
            tls: EtcdTls::default(),
            user: Some(user),
            prefix: "/picket/".to_owned(),
            request: Duration::from_secs(30),
            dial: Duration::from_secs(30),
            members: BTreeMap::new(),
            allow_lease_bug: false,
        };
        let random = Arc::new(|bytes: &mut [u8]| bytes.fill(1));
        Self { store: Etcd::new(settings, Arc::new(Still), random).store(), _password: password }
    }

    /// Reads something; before the first reading each member is connected.
    async fn reads(&self) -> Result<(), StoreError> {
        self.store.moved().await.map(drop)
    }

    async fn silent(&self) -> Vec<String> {
        let silent: BTreeSet<String> = self.store.silent_members().await;
        silent.into_iter().collect()
    }
}

async fn three(manner: Manner) -> ([Fake; 3], End) {
    let (one, at_one) = Fake::served(1, Manner::Serves).await;
    let (two, at_two) = Fake::served(2, manner).await;
    let (three, at_three) = Fake::served(3, Manner::Serves).await;
    ([one, two, three], End::of(vec![at_one, at_two, at_three]))
}

/// A simple token lives 300 s, and is renewed at the member alone at which it is used: of the others it is over.
#[tokio::test]
async fn a_member_at_which_a_token_is_over_is_logged_in_to_again_and_is_not_silent() {
    let (members, end) = three(Manner::Serves).await;
    end.reads().await.expect("it is connected");
    for round in 2..=3 {
        members.iter().for_each(Fake::void_its_token);
        assert_eq!(end.silent().await, Vec::<String>::new());
        for member in &members {
            assert_eq!(member.logins(), round, "{member:?}");
        }
    }
}

#[tokio::test]
async fn beside_it_a_member_that_is_gone_is_silent() {
    let ((one, at_one), (two, at_two)) =
        (Fake::served(1, Manner::Serves).await, Fake::served(2, Manner::Serves).await);
    let (gone, at_three) = place().await;
    drop(gone);
    let end = End::of(vec![at_one, at_two, at_three]);
    end.reads().await.expect("it is connected");
    one.void_its_token();
    two.void_its_token();
    assert_eq!(end.silent().await, ["e3"]);
}

#[tokio::test]
async fn a_member_that_refuses_twice_has_answered() {
    let (members, end) = three(Manner::Serves).await;
    end.reads().await.expect("it is connected");
    members[1].turns(Manner::TakesNoToken);
    assert_eq!(end.silent().await, Vec::<String>::new());
    // The connection was forgotten, and the new one is refused as well.
    assert_eq!(end.silent().await, Vec::<String>::new());
    let (members, end) = three(Manner::TakesNoToken).await;
    end.reads().await.expect("another one serves");
    assert_eq!(end.silent().await, Vec::<String>::new());
    assert!(members[1].logins() > 0);
}

#[tokio::test]
async fn a_member_whose_user_may_not_ask_any_more_has_answered() {
    let (members, end) = three(Manner::Serves).await;
    end.reads().await.expect("it is connected");
    members[1].turns(Manner::DeniesStatus);
    assert_eq!(end.silent().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_member_without_a_leader_is_silent_also_behind_a_login() {
    let (members, end) = three(Manner::Serves).await;
    end.reads().await.expect("it is connected");
    members[1].turns(Manner::HasNoLeader);
    assert_eq!(end.silent().await, ["e2"]);
    let (members, end) = three(Manner::Serves).await;
    end.reads().await.expect("it is connected");
    members[1].turns(Manner::LosesItsLeader);
    members[1].void_its_token();
    assert_eq!(end.silent().await, ["e2"]);
}

/// etcd 3.6.0 to 3.6.11 do so: the user has what the documentation gives it, and it would be no use to grant it again.
#[tokio::test]
async fn a_version_that_tells_its_status_to_root_alone_is_named_with_the_one_that_does_not() {
    let (one, at_one) = Fake::served(1, Manner::DeniesStatus).await;
    let end = End::of(vec![at_one.clone()]);
    match end.reads().await {
        Err(StoreError::Unavailable(why)) => {
            for part in [&at_one, "3.5.28 to 3.5.31", "3.6.0 to 3.6.11", "upgrade", "3.5.32", "3.6.12"] {
                assert!(why.contains(part), "{part}: {why}");
            }
            assert!(!why.contains("grant"), "{why}");
        }
        other => panic!("{other:?}"),
    }
    // It was upgraded.
    one.turns(Manner::Serves);
    end.reads().await.expect("it is looked at again");
}

/// A refusal of the token says that nothing was written, whatever becomes of the login after it.
#[tokio::test]
async fn a_write_whose_token_was_refused_goes_to_another_member_where_the_login_comes_to_no_end() {
    let (members, end) = three(Manner::Serves).await;
    end.reads().await.expect("it is connected");
    members[0].turns(Manner::LogsNobodyIn);
    members[0].void_its_token();
    assert_eq!(end.store.unseal().await.expect("another one does it"), None);
}
