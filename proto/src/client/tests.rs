use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::server::NamedService;
use tonic::transport::{ClientTlsConfig, Server};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use super::*;
use crate::v1::GetNodeRequest;
use crate::v1::fencing_service_client::FencingServiceClient;

/// A gateway that answers everything with one status, which tells who it was.
#[derive(Clone)]
struct Gateway {
    status: Status,
    asked: Arc<AtomicUsize>,
}

impl Service<Request<Body>> for Gateway {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        self.asked.fetch_add(1, Ordering::SeqCst);
        std::future::ready(Ok(self.status.clone().into_http()))
    }
}

impl NamedService for Gateway {
    const NAME: &'static str = "picket.v1.FencingService";
}

/// One that runs, until it is dropped.
struct Running {
    name: String,
    asked: Arc<AtomicUsize>,
    stop: tokio::sync::oneshot::Sender<()>,
    task: tokio::task::JoinHandle<()>,
}

impl Running {
    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// Ends it; its port refuses from then on.
    async fn end(self) -> String {
        let _ = self.stop.send(());
        let _ = self.task.await;
        self.name
    }
}

async fn gateway(status: Status) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let name = format!("http://{}", listener.local_addr().expect("an address"));
    let asked = Arc::new(AtomicUsize::new(0));
    let service = Gateway { status, asked: asked.clone() };
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let task = tokio::spawn(async move {
        let serving = Server::builder().add_service(service);
        let stopped = async { drop(stopped.await) };
        let _ = serving.serve_with_incoming_shutdown(TcpListenerStream::new(listener), stopped).await;
    });
    Running { name, asked, stop, task }
}

/// Tells that it was reached.
fn leader(name: &str) -> Status {
    Status::already_exists(name)
}

fn follower(endpoint: &str) -> Status {
    let metadata = [("endpoint".to_owned(), endpoint.to_owned())];
    let details = ErrorDetails::with_error_info("NOT_LEADER", crate::DOMAIN, metadata);
    Status::with_error_details(Code::Unavailable, "another one leads", details)
}

fn client(names: &[&str]) -> Gateways {
    let make: Arc<Maker> = Arc::new(|name: &str| {
        Ok(Endpoint::from_shared(name.to_owned())?.connect_timeout(Duration::from_secs(5)))
    });
    Gateways::new(names.iter().map(|name| (*name).to_owned()), make)
}

async fn ask(gateways: &Gateways) -> Status {
    let mut client = FencingServiceClient::new(gateways.clone());
    client.get_node(GetNodeRequest::default()).await.expect_err("they answer with errors alone")
}

#[tokio::test]
async fn who_does_not_lead_is_left_for_who_does() {
    let leading = gateway(leader("b")).await;
    let following = gateway(follower(&leading.name)).await;
    // Who leads may be known, or be named by the other.
    for names in [&[&*following.name, &*leading.name][..], &[&*following.name]] {
        let gateways = client(names);
        for _ in 0..3 {
            assert_eq!(ask(&gateways).await.message(), "b");
        }
        assert_eq!(gateways.asked(), leading.name);
    }
    assert_eq!((following.asked(), leading.asked()), (2, 6), "it is remembered");
}

#[tokio::test]
async fn one_that_cannot_be_reached_is_passed_over_also_later() {
    let dead = gateway(leader("dead")).await.end().await;
    let (first, second) = (gateway(leader("first")).await, gateway(leader("second")).await);
    let gateways = client(&[&dead, &first.name, &second.name]);
    gateways.connect().await.expect("two are there");
    assert_eq!(ask(&gateways).await.message(), "first");
    first.end().await;
    // That the connection broke may be seen before the next request, or by it: then its fate is not known.
    let mut told = ask(&gateways).await;
    if told.code() != Code::AlreadyExists {
        told = ask(&gateways).await;
    }
    assert_eq!(told.message(), "second");
}

/// One that stands still (SIGSTOP, a hung machine): the kernel takes the connection, and nobody answers.
#[tokio::test]
async fn one_that_takes_connections_and_answers_nothing_is_passed_over() {
    let frozen = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let name = format!("http://{}", frozen.local_addr().expect("an address"));
    let leading = gateway(leader("b")).await;
    let following = gateway(follower(&leading.name)).await;
    let mut gateways = client(&[&name, &following.name, &leading.name]);
    gateways.answers_within = Duration::from_millis(300);
    let told = tokio::time::timeout(Duration::from_secs(10), ask(&gateways)).await.expect("it goes on");
    assert_eq!(told.message(), "b");
    let alone = client(&[&name]);
    alone.connect().await.expect("the only one is asked all the same: it says itself that it is not heard");
}

/// The same with TLS: a session is not had in the time of a connection.
#[tokio::test]
async fn one_that_takes_connections_and_no_session_is_passed_over() {
    let frozen = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let name = format!("https://{}", frozen.local_addr().expect("an address"));
    let leading = gateway(leader("b")).await;
    let make: Arc<Maker> = Arc::new(|name: &str| {
        let endpoint = Endpoint::from_shared(name.to_owned())?.connect_timeout(Duration::from_millis(300));
        Ok(match name.starts_with("https://") {
            true => endpoint.tls_config(ClientTlsConfig::new())?,
            false => endpoint,
        })
    });
    let gateways = Gateways::new([name.clone(), leading.name.clone()], make.clone());
    let told = tokio::time::timeout(Duration::from_secs(10), ask(&gateways)).await.expect("it goes on");
    assert_eq!(told.message(), "b");
    let alone = Gateways::new([name], make);
    let told = tokio::time::timeout(Duration::from_secs(10), alone.connect()).await.expect("it ends");
    assert!(told.expect_err("nobody is there").to_string().contains("no session in 300ms"));
}

/// What was heard once, and stands still since, is passed over like any.
#[tokio::test]
async fn one_that_stands_still_since_it_was_heard_is_passed_over() {
    let (first, second) = (gateway(leader("a")).await, gateway(leader("b")).await);
    let (name, still) = halting(&first).await;
    let mut gateways = client(&[&name, &second.name]);
    (gateways.answers_within, gateways.heard_within) = (Duration::from_millis(300), Duration::ZERO);
    assert_eq!(ask(&gateways).await.message(), "a");
    still.send(true).expect("it is there");
    let told = tokio::time::timeout(Duration::from_secs(10), ask(&gateways)).await.expect("it goes on");
    assert_eq!(told.message(), "b");
    assert_eq!(gateways.asked(), second.name);
    // It is asked no more than it was.
    assert_eq!(first.asked(), 1);
}

/// A machine that was switched off and on again says nothing on the connections that it had.
#[tokio::test]
async fn the_only_one_is_connected_to_anew_where_its_connection_says_nothing() {
    let only = gateway(leader("a")).await;
    let (name, still) = halting(&only).await;
    let mut gateways = client(&[&name]);
    (gateways.answers_within, gateways.heard_within) = (Duration::from_millis(300), Duration::ZERO);
    assert_eq!(ask(&gateways).await.message(), "a");
    still.send(true).expect("it is there");
    while still.receiver_count() > 1 {
        tokio::task::yield_now().await;
    }
    still.send(false).expect("it is there");
    let told = tokio::time::timeout(Duration::from_secs(10), ask(&gateways)).await.expect("it goes on");
    assert_eq!(told.message(), "a");
}

/// A way to that gateway; nothing moves on the connections of now any more once that is said.
async fn halting(to: &Running) -> (String, watch::Sender<bool>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let name = format!("http://{}", listener.local_addr().expect("an address"));
    let (still, stands) = watch::channel(false);
    let behind = to.name.trim_start_matches("http://").to_owned();
    tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok((mut near, _)) = listener.accept().await {
            let mut stands = stands.clone();
            let Ok(mut far) = TcpStream::connect(&behind).await else { continue };
            kept.push(tokio::spawn(async move {
                tokio::select! {
                    _ = stands.wait_for(|stands| *stands) => {}
                    _ = tokio::io::copy_bidirectional(&mut near, &mut far) => return,
                }
                drop(stands);
                // Nothing is read, and nothing is closed.
                std::future::pending::<()>().await;
            }));
        }
    });
    (name, still)
}

/// As one does that does not take the certificate which it was shown: TLS 1.3 tells that after its handshake.
#[tokio::test]
async fn one_that_refuses_is_not_taken_for_silent() {
    let refusing = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let name = format!("http://{}", refusing.local_addr().expect("an address"));
    let task = tokio::spawn(async move { while refusing.accept().await.is_ok() {} });
    client(&[&name, &name]).connect().await.expect("the request itself tells why");
    task.abort();
}

#[tokio::test]
async fn a_foreign_endpoint_without_a_certificate_is_not_followed() {
    let leading = gateway(leader("b")).await;
    let following = gateway(follower("http://192.0.2.1:7070")).await;
    let gateways = client(&[&following.name, &leading.name]);
    assert_eq!(ask(&gateways).await.message(), "b", "it may be one that we know");
    let alone = client(&[&following.name]);
    let told = ask(&alone).await;
    assert_eq!((told.code(), told.message()), (Code::Unavailable, "another one leads"));
}

#[tokio::test]
async fn gateways_that_send_us_round_are_left_in_the_end() {
    let other = gateway(follower("")).await;
    let one = gateway(follower(&other.name)).await;
    let gateways = client(&[&one.name, &other.name]);
    assert_eq!(ask(&gateways).await.message(), "another one leads");
    assert_eq!(one.asked() + other.asked(), HOPS);
}

#[tokio::test]
async fn where_nobody_is_all_are_named() {
    let (a, b) = (gateway(leader("a")).await.end().await, gateway(leader("b")).await.end().await);
    let gateways = client(&[&a, &b]);
    let told = gateways.connect().await.expect_err("nobody is there").to_string();
    assert!(told.contains(&a) && told.contains(&b), "{told}");
    assert_eq!(ask(&gateways).await.code(), Code::Unknown);
}
