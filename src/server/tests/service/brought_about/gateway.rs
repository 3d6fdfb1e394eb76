//! One gateway after the other over the same store and machines: each takes over what the one before left.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use futures::TryFutureExt;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use picket_audit::Audit;
use picket_core::rules::Rules;
use picket_core::store::Store;
use picket_driver_sim::{Random, SharedWorld, SimClock};
use picket_engine::{Change, ChangeError, Engine, Logins, NodePlan, Parents, Parts, Receipts, Unit};
use picket_receipt::Keys;
use picket_server::{AccessControl, AccessRules, Addresses, Limits, SocketFile, serve_with};
use tempfile::TempDir;
use tokio::net::{TcpSocket, UnixStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tonic::transport::{Endpoint, Uri};

use super::laws::Laws;
use super::stage::{NODES, Settings, plan};
use crate::lab::Client;
use crate::lab::far::{StoreElection, Volumes};

/// What outlives a gateway.
pub struct Ground {
    pub world: SharedWorld,
    pub clock: Arc<SimClock>,
    pub store: Arc<dyn Store>,
    pub volumes: Arc<Volumes>,
    pub laws: Arc<Laws>,
    doors: Arc<Mutex<Doors>>,
}

/// Where the gateway of now is reached.
#[derive(Clone, Debug)]
struct Doors {
    tcp: SocketAddr,
    unix: PathBuf,
}

pub struct Gateway {
    pub engine: Engine,
    access: AccessControl,
    parents: Arc<Parents>,
    stop: CancellationToken,
    running: JoinHandle<()>,
    _dir: TempDir,
}

impl Ground {
    pub fn new(world: SharedWorld, clock: Arc<SimClock>, store: Arc<dyn Store>, laws: Arc<Laws>) -> Self {
        let nowhere = Doors { tcp: SocketAddr::from(([127, 0, 0, 1], 0)), unix: PathBuf::new() };
        Self { world, clock, store, laws, volumes: Arc::default(), doors: Arc::new(Mutex::new(nowhere)) }
    }

    pub fn plans(&self, settings: &Settings, parents: &Arc<Parents>) -> Vec<NodePlan> {
        NODES.iter().map(|node| plan(node, settings, self, parents)).collect()
    }

    /// A connection from the caller's own address, or from its own process, to whichever gateway there is.
    pub fn client(&self, caller: &'static str) -> Client {
        let endpoint = Endpoint::from_static("http://gateway");
        let doors = self.doors.clone();
        let now = move || doors.lock().clone();
        let Some(address) = caller.strip_prefix("tcp:") else {
            let connect =
                tower::service_fn(move |_: Uri| UnixStream::connect(now().unix).map_ok(TokioIo::new));
            return Client::new(endpoint.connect_with_connector_lazy(connect));
        };
        let from = SocketAddr::new(address.parse().expect("an address"), 0);
        let connect = tower::service_fn(move |_: Uri| {
            let to = now().tcp;
            async move {
                let socket = TcpSocket::new_v4()?;
                socket.bind(from)?;
                socket.connect(to).await.map(TokioIo::new)
            }
        });
        Client::new(endpoint.connect_with_connector_lazy(connect))
    }
}

impl Gateway {
    /// One that leads, and whom all callers reach from now on.
    pub async fn begin(ground: &Ground, settings: &Settings, seed: u64) -> Self {
        let parents = Arc::<Parents>::default();
        let bits = Mutex::new(Random::new(seed));
        let engine = Engine::new(Parts {
            clock: ground.clock.clone(),
            random: Arc::new(move |bytes: &mut [u8]| {
                let mut random = bits.lock();
                bytes.iter_mut().for_each(|byte| *byte = random.bits() as u8);
            }),
            store: ground.store.clone(),
            election: Arc::new(StoreElection(ground.store.clone())),
            hooks: ground.laws.clone(),
            audit: Audit::none(),
            receipts: Arc::new(Receipts::new(Keys::ephemeral("gateway", &|bytes| bytes.fill(7)))),
            metrics: Default::default(),
            rules: Rules::default(),
            budget: settings.bounds.budget.clone(),
            roles: settings.rights.roles(),
            nodes: ground.plans(settings, &parents),
            own: Arc::default(),
            twins: Arc::default(),
            parents: parents.clone(),
            simulated: false,
            check_at_start: false,
            logins: Logins::new(512),
            programs: Arc::new(Unit::of_programs(64)),
        });
        let stop = CancellationToken::new();
        let working = (engine.clone(), stop.clone());
        let running = tokio::spawn(async move { working.0.run(working.1).await.expect("a whole store") });
        engine.until_leading().await;

        let dir = tempfile::tempdir().expect("a directory");
        let unix = dir.path().join("picket.sock");
        let socket = SocketFile { path: unix.clone(), mode: SocketFile::MODE };
        let tcp = Some("127.0.0.1:0".parse().expect("an address"));
        let listeners = Addresses { unix: Some(socket), tcp }.bind().await.expect("bound");
        let tcp = listeners.tcp_address().expect("an address");
        let roles = settings.rights.roles();
        let rules = AccessRules { limits: Limits::default(), roles, ..AccessRules::default() };
        let access = AccessControl::new(rules, &engine, &listeners, stop.clone());
        let serving = serve_with(access.clone(), engine.clone(), listeners, stop.clone());
        tokio::spawn(async move { serving.await.expect("served") });
        *ground.doors.lock() = Doors { tcp, unix };
        Self { engine, access, parents, stop, running, _dir: dir }
    }

    /// Other settings, as the daemon takes them.
    pub async fn take(&self, ground: &Ground, settings: &Settings) -> Result<(), ChangeError> {
        let nodes = ground.plans(settings, &self.parents);
        let (roles, budget) = (settings.rights.roles(), settings.bounds.budget.clone());
        let change = Change { nodes, rules: Rules::default(), budget, roles };
        self.engine.change(change).await?;
        self.access.change(Limits::default(), settings.rights.roles());
        Ok(())
    }

    /// It is over: by a signal, or between two instructions.
    pub async fn ends(self, at_once: bool) {
        if at_once {
            self.running.abort();
        }
        self.stop.cancel();
        let ended = self.running.await;
        assert!(at_once || ended.is_ok(), "{ended:?}");
    }
}
