//! The gateway: its answers come from a script, and what it was asked is kept.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use picket_proto::v1::fencing_service_server::{FencingService, FencingServiceServer};
use picket_proto::v1::*;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tokio_stream::{Stream, StreamExt};
use tonic::{Code, Request, Response, Status};
use tonic_types::{ErrorDetails, StatusExt};

/// What one stream does, step by step.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "scripts are short, and read better without boxes")]
pub enum Step {
    /// Says this.
    Say(FenceUpdate),
    /// Is silent for so long.
    Rest(Duration),
    /// Ends like this.
    Fail(Status),
}

/// What one watch does, step by step.
pub type Watched = Result<WatchNodesResponse, Status>;

/// What the gateway says, and what it was asked.
#[derive(Debug, Default)]
pub struct Script {
    /// The nodes that there are.
    pub nodes: Vec<Node>,
    /// For each node the streams of its fences, unfences and so on, in the order in which they are opened.
    pub streams: BTreeMap<String, VecDeque<Vec<Step>>>,
    /// Watches, in the order in which they are opened.
    pub watches: VecDeque<Vec<Watched>>,
    /// History, newest first.
    pub fences: Vec<Fence>,
    /// What every request to abandon a release is answered.
    pub abandon: Option<Status>,
    /// Plans, by their nodes.
    pub plans: Vec<PlanFenceResponse>,
    /// Pauses and their ends that were asked for: scope, reason, seconds.
    pub paused: Vec<(Option<PauseScope>, String, Option<i64>)>,
    /// Fences that were asked for.
    pub fenced: Vec<FenceRequest>,
    /// Unfences that were asked for.
    pub unfenced: Vec<UnfenceRequest>,
    /// Retries that were asked for.
    pub retried: Vec<RetryRequest>,
    /// Stand-downs that were asked for.
    pub stood_down: Vec<StandDownRequest>,
    /// Releases that were given up.
    pub abandoned: Vec<AbandonReleaseRequest>,
    /// Attestations that were asked for.
    pub attested: Vec<AttestRequest>,
    /// Drills that were asked for, and what they found.
    pub drilled: Vec<DrillRequest>,
    /// What every call that is answered with a node is answered instead.
    pub refusal: Option<Status>,
    /// What every list of nodes is answered instead.
    pub unlisted: Option<Status>,
    /// Holds, dropped holds, retirements and accepted identities that were asked for, in words.
    pub called: Vec<String>,
    /// What devices are found to be.
    /// The pieces of a backup.
    pub backup: Vec<BackupResponse>,
    pub checked: Vec<CheckDevicesResponse>,
    /// Watches that were asked for.
    pub watched: Vec<WatchNodesRequest>,
    /// Nodes that were listed.
    pub listed: Vec<ListNodesRequest>,
    /// Who answers lists of nodes.
    pub served: Option<Served>,
    /// What it says of the gateways.
    pub gateways: ListGatewaysResponse,
    /// Streams open now, and the most there were at once.
    pub open: (usize, usize),
}

/// A gateway on a port of the loopback.
#[derive(Debug)]
pub struct Gateway {
    address: SocketAddr,
    script: Arc<Mutex<Script>>,
    task: JoinHandle<()>,
}

impl Gateway {
    /// Starts one.
    pub async fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let script = Arc::new(Mutex::new(script));
        let address = listener.local_addr().expect("it is bound");
        Self { address, task: serve(listener, Arc::clone(&script)), script }
    }

    /// Kills it with all its connections, and starts it again on the same port.
    pub async fn restart(&mut self, pause: Duration) {
        self.kill().await;
        tokio::time::sleep(pause).await;
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket.set_reuseaddr(true).expect("reused");
        socket.bind(self.address).expect("the same port");
        self.task = serve(socket.listen(64).expect("it listens"), Arc::clone(&self.script));
    }

    /// Kills it, and waits until nobody listens any more.
    pub async fn kill(&self) {
        self.task.abort();
        while tokio::net::TcpStream::connect(self.address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    }

    /// Where it listens.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it was asked so far.
    pub fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().expect("no test panicked with it")
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves each connection in a task of the same set, so that all of them die together.
fn serve(listener: TcpListener, script: Arc<Mutex<Script>>) -> JoinHandle<()> {
    // A runtime of its own: dropping it drops the connections too, as the death of a process does.
    tokio::spawn(async move {
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let listener = listener.into_std().expect("a listener");
        let thread = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let listener = TcpListener::from_std(listener).expect("a listener");
                let service = FencingServiceServer::new(Service { script });
                let server = tonic::transport::Server::builder()
                    .add_service(service)
                    .serve_with_incoming(TcpListenerStream::new(listener));
                tokio::select! { _ = server => {}, _ = stopped => {} }
            });
        });
        // Dropped with this task, which stops the thread.
        let _stop = stop;
        std::future::pending::<()>().await;
        drop(thread);
    })
}

struct Service {
    script: Arc<Mutex<Script>>,
}

type Answer<T> = Result<Response<T>, Status>;
type Streaming<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Not found, as a gateway says it.
pub fn unknown_node(name: &str, near: &str) -> Status {
    let text = format!("there is no node {name:?}");
    let mut details = ErrorDetails::new();
    details
        .set_error_info(
            ErrorReason::NodeNotFound.word(),
            picket_proto::DOMAIN,
            [("near".to_owned(), near.to_owned())],
        )
        .set_resource_info("node", name, "", text.clone());
    Status::with_error_details(Code::NotFound, text, details)
}

fn name_of(node: &Option<NodeSelector>) -> String {
    match node.as_ref().and_then(|selector| selector.by.clone()) {
        Some(node_selector::By::Name(name)) => name,
        other => panic!("the command names nodes by their names, not {other:?}"),
    }
}

/// Counts an open stream until it is dropped.
struct Open(Arc<Mutex<Script>>);

impl Open {
    fn new(script: &Arc<Mutex<Script>>) -> Self {
        let mut held = script.lock().expect("a script");
        held.open.0 += 1;
        held.open.1 = held.open.1.max(held.open.0);
        Self(Arc::clone(script))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.lock().expect("a script").open.0 -= 1;
    }
}

impl Service {
    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().expect("a script")
    }

    /// Plays the node's next stream.
    fn play<T: Send + 'static>(
        &self,
        node: &str,
        wrap: impl Fn(FenceUpdate) -> T + Send + 'static,
    ) -> Answer<Streaming<T>> {
        let steps = self.script().streams.get_mut(node).and_then(VecDeque::pop_front);
        let steps = steps.ok_or_else(|| Status::unavailable("nothing is scripted any more"))?;
        // A refusal is no stream that breaks.
        if let Some(Step::Fail(status)) = steps.first() {
            return Err(status.clone());
        }
        let (say, said) = mpsc::channel(1);
        let open = Open::new(&self.script);
        tokio::spawn(async move {
            let _open = open;
            for step in steps {
                let message = match step {
                    Step::Say(update) => Ok(wrap(update)),
                    Step::Fail(status) => Err(status),
                    Step::Rest(span) => {
                        tokio::time::sleep(span).await;
                        continue;
                    }
                };
                if say.send(message).await.is_err() {
                    return;
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(said))))
    }

    /// Notes a call that is answered with its node.
    fn called(&self, node: &Option<NodeSelector>, said: String) -> Result<Node, Status> {
        let name = name_of(node);
        let mut script = self.script();
        script.called.push(format!("{name}: {said}"));
        if let Some(status) = &script.refusal {
            return Err(status.clone());
        }
        script.nodes.iter().find(|node| node.name == name).cloned().ok_or_else(|| unknown_node(&name, ""))
    }

    fn select(&self, set: &Option<NodeSet>) -> Result<Vec<Node>, Status> {
        let nodes = self.script().nodes.clone();
        let Some(node_set::Of::Hosts(hosts)) = set.as_ref().and_then(|set| set.of.clone()) else {
            return Ok(nodes);
        };
        // Enough of a host list for scripts: names and commas.
        hosts
            .split(',')
            .map(|name| {
                nodes
                    .iter()
                    .find(|node| node.name == name)
                    .cloned()
                    .ok_or_else(|| unknown_node(name, "r1n01,r1n10"))
            })
            .collect()
    }
}

macro_rules! not_scripted {
    ($($call:ident: $request:ident -> $answer:ident;)*) => {$(
        // As `async_trait` would write it: it does not see what a macro makes.
        fn $call<'a, 'b>(
            &'a self,
            _: Request<$request>,
        ) -> Pin<Box<dyn Future<Output = Answer<$answer>> + Send + 'b>>
        where
            'a: 'b,
            Self: 'b,
        {
            Box::pin(async { Err(Status::unimplemented(stringify!($call))) })
        }
    )*};
}

#[tonic::async_trait]
impl FencingService for Service {
    type FenceStream = Streaming<FenceResponse>;
    type UnfenceStream = Streaming<UnfenceResponse>;
    type RetryStream = Streaming<RetryResponse>;
    type StandDownStream = Streaming<StandDownResponse>;
    type WatchNodesStream = Streaming<WatchNodesResponse>;
    type DrillStream = Streaming<DrillResponse>;
    type AttestStream = Streaming<AttestResponse>;
    type BackupStream = Streaming<BackupResponse>;
    type CheckDevicesStream = Streaming<CheckDevicesResponse>;

    async fn fence(&self, request: Request<FenceRequest>) -> Answer<Self::FenceStream> {
        let request = request.into_inner();
        let node = name_of(&request.node);
        self.script().fenced.push(request);
        self.play(&node, |update| FenceResponse { update: Some(update) })
    }

    async fn unfence(&self, request: Request<UnfenceRequest>) -> Answer<Self::UnfenceStream> {
        let request = request.into_inner();
        let node = name_of(&request.node);
        self.script().unfenced.push(request);
        self.play(&node, |update| UnfenceResponse { update: Some(update) })
    }

    async fn retry(&self, request: Request<RetryRequest>) -> Answer<Self::RetryStream> {
        let request = request.into_inner();
        let node = name_of(&request.node);
        self.script().retried.push(request);
        self.play(&node, |update| RetryResponse { update: Some(update) })
    }

    async fn stand_down(&self, request: Request<StandDownRequest>) -> Answer<Self::StandDownStream> {
        let request = request.into_inner();
        let node = name_of(&request.node);
        self.script().stood_down.push(request);
        self.play(&node, |update| StandDownResponse { update: Some(update) })
    }

    async fn list_nodes(&self, request: Request<ListNodesRequest>) -> Answer<ListNodesResponse> {
        let request = request.into_inner();
        self.script().listed.push(request.clone());
        if let Some(status) = self.script().unlisted.clone() {
            return Err(status);
        }
        let nodes = self.select(&request.nodes)?;
        // Pages of three, whatever is asked for, so that every list of more has to turn pages.
        let from: usize = request.page_token.parse().unwrap_or(0);
        let to = nodes.len().min(from + 3);
        let next = if to < nodes.len() { to.to_string() } else { String::new() };
        Ok(Response::new(ListNodesResponse {
            nodes: nodes[from..to].to_vec(),
            next_page_token: next,
            revision: "life/40".to_owned(),
            total_size: i32::try_from(nodes.len()).expect("few"),
            troubles: Vec::new(),
            served: self.script().served.clone(),
        }))
    }

    async fn watch_nodes(&self, request: Request<WatchNodesRequest>) -> Answer<Self::WatchNodesStream> {
        let mut script = self.script();
        script.watched.push(request.into_inner());
        let steps =
            script.watches.pop_front().ok_or_else(|| Status::unavailable("nothing is scripted any more"))?;
        Ok(Response::new(Box::pin(tokio_stream::iter(steps).throttle(Duration::from_millis(1)))))
    }

    async fn list_gateways(&self, _: Request<ListGatewaysRequest>) -> Answer<ListGatewaysResponse> {
        Ok(Response::new(self.script().gateways.clone()))
    }

    async fn get_fence(&self, request: Request<GetFenceRequest>) -> Answer<GetFenceResponse> {
        let id = request.into_inner().fence_id;
        let fence = self.script().fences.iter().find(|fence| fence.id == id).cloned();
        match fence {
            Some(fence) => Ok(Response::new(GetFenceResponse { fence: Some(fence) })),
            None => Err(Status::not_found(format!("there is no fence {id}"))),
        }
    }

    async fn list_fences(&self, request: Request<ListFencesRequest>) -> Answer<ListFencesResponse> {
        let request = request.into_inner();
        let all = self.script().fences.clone();
        let from: usize = request.page_token.parse().unwrap_or(0);
        let size = usize::try_from(request.page_size).expect("a size").min(2);
        let to = all.len().min(from + size);
        let next_page_token = if to < all.len() { to.to_string() } else { String::new() };
        Ok(Response::new(ListFencesResponse { fences: all[from..to].to_vec(), next_page_token }))
    }

    async fn abandon_release(
        &self,
        request: Request<AbandonReleaseRequest>,
    ) -> Answer<AbandonReleaseResponse> {
        let request = request.into_inner();
        let name = name_of(&request.node);
        let mut script = self.script();
        script.abandoned.push(request);
        if let Some(status) = &script.abandon {
            return Err(status.clone());
        }
        let node = script.nodes.iter().find(|node| node.name == name).cloned();
        Ok(Response::new(AbandonReleaseResponse { node }))
    }

    async fn pause(&self, request: Request<PauseRequest>) -> Answer<PauseResponse> {
        let PauseRequest { scope, reason, lasts } = request.into_inner();
        let mut script = self.script();
        script.paused.push((scope.clone(), reason.clone(), lasts.map(|lasts| lasts.seconds)));
        if let Some(status) = &script.abandon {
            return Err(status.clone());
        }
        let expires_at = Some(prost_types::Timestamp { seconds: 1_795_252_220, nanos: 0 });
        let pause = Pause { scope, reason, by: "alice".to_owned(), since: None, expires_at };
        Ok(Response::new(PauseResponse { pause: Some(pause) }))
    }

    async fn resume(&self, request: Request<ResumeRequest>) -> Answer<ResumeResponse> {
        let ResumeRequest { scope, reason } = request.into_inner();
        let mut script = self.script();
        script.paused.push((scope, reason, None));
        match &script.abandon {
            Some(status) => Err(status.clone()),
            None => Ok(Response::new(ResumeResponse { pauses: Vec::new() })),
        }
    }

    async fn plan_fence(&self, request: Request<PlanFenceRequest>) -> Answer<PlanFenceResponse> {
        let request = request.into_inner().fence.unwrap_or_default();
        let name = name_of(&request.node);
        let mut script = self.script();
        script.fenced.push(request);
        let plan = script.plans.iter().find(|plan| plan.node == name).cloned();
        plan.map(Response::new).ok_or_else(|| Status::internal("no plan in the script"))
    }

    async fn drill(&self, request: Request<DrillRequest>) -> Answer<Self::DrillStream> {
        let request = request.into_inner();
        let node = match &request.target {
            Some(drill_request::Target::Node(node)) => name_of(&Some(node.clone())),
            _ => "r1n07".to_owned(),
        };
        self.script().drilled.push(request);
        let findings = || vec!["off by bmc, and back".to_owned()];
        let wrap = move |update| DrillResponse { update: Some(update), findings: findings() };
        self.play(&node, wrap)
    }

    async fn attest(&self, request: Request<AttestRequest>) -> Answer<Self::AttestStream> {
        let request = request.into_inner();
        let node = name_of(&request.node);
        self.script().attested.push(request);
        self.play(&node, |update| AttestResponse { update: Some(update) })
    }

    async fn backup(&self, _: Request<BackupRequest>) -> Answer<Self::BackupStream> {
        let told: Vec<_> = self.script().backup.iter().cloned().map(Ok).collect();
        Ok(Response::new(Box::pin(tokio_stream::iter(told))))
    }

    async fn check_devices(&self, _: Request<CheckDevicesRequest>) -> Answer<Self::CheckDevicesStream> {
        let told: Vec<_> = self.script().checked.iter().cloned().map(Ok).collect();
        Ok(Response::new(Box::pin(tokio_stream::iter(told))))
    }

    async fn hold(&self, request: Request<HoldRequest>) -> Answer<HoldResponse> {
        let asked = request.into_inner();
        let said = format!("hold {:?} {:?}", asked.holder, asked.expected_generation);
        Ok(Response::new(HoldResponse { node: Some(self.called(&asked.node, said)?) }))
    }

    async fn drop_hold(&self, request: Request<DropHoldRequest>) -> Answer<DropHoldResponse> {
        let asked = request.into_inner();
        let said = format!("drop {:?} {:?}", asked.holder, asked.expected_generation);
        Ok(Response::new(DropHoldResponse { node: Some(self.called(&asked.node, said)?) }))
    }

    async fn retire(&self, request: Request<RetireRequest>) -> Answer<RetireResponse> {
        let asked = request.into_inner();
        let said = format!("retire {:?} {:?}", asked.reason, asked.expected_generation);
        Ok(Response::new(RetireResponse { node: Some(self.called(&asked.node, said)?) }))
    }

    async fn accept_identity(
        &self,
        request: Request<AcceptIdentityRequest>,
    ) -> Answer<AcceptIdentityResponse> {
        let asked = request.into_inner();
        let said = format!("accept {} {:?}", asked.device, asked.uuid);
        Ok(Response::new(AcceptIdentityResponse { node: Some(self.called(&asked.node, said)?) }))
    }

    not_scripted! {
        get_node: GetNodeRequest -> GetNodeResponse;
        get_receipt: GetReceiptRequest -> GetReceiptResponse;
        return_receipt: ReturnReceiptRequest -> ReturnReceiptResponse;
        verify_receipt: VerifyReceiptRequest -> VerifyReceiptResponse;
        list_receipt_keys: ListReceiptKeysRequest -> ListReceiptKeysResponse;
    }
}
