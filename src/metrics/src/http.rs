//! Metrics and health over plain HTTP: `/metrics`, `/healthz`, `/readyz`. Says nothing of callers, and no secret.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::Metrics;
use crate::flight::{self, Asking};
use crate::room::Room;

/// How long the head of a request may take to arrive. A probe of Kubernetes waits for one second by default.
const HEAD: Duration = Duration::from_secs(1);
/// How long a connection may take in all.
const PATIENCE: Duration = Duration::from_secs(10);
const TEXT: &str = "text/plain; charset=utf-8";

/// Metrics are told at most so often: a walk over a large fleet takes a good part of a second.
const TOLD: Duration = Duration::from_secs(1);
/// Whether it is ready is asked at most so often. It asks the store; and a probe is not to wait for long.
const PROBED: Duration = Duration::from_millis(250);

/// What is asked.
pub trait Answers: Send + Sync + 'static {
    /// All metrics, as they are now. It may take its time: it is asked where that keeps no other task waiting, once at a time, and once a
    /// second at most.
    fn metrics(&self) -> String;

    /// Whether it does its work, and how; else what is missing. It is asked once at a time, and four times a second at most.
    fn ready(&self) -> impl Future<Output = Result<String, String>> + Send;
}

/// Listens there.
///
/// # Errors
/// The address is not to be had.
pub async fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    let listener = TcpListener::bind(address).await?;
    tracing::info!(address = %listener.local_addr()?, "metrics and health over HTTP");
    Ok(listener)
}

/// A status, the kind of the text, and the text.
type Answer = (StatusCode, &'static str, Bytes);

/// Where answers are asked for that cost something.
#[derive(Clone, Debug)]
struct Doors {
    metrics: Asking<Answer>,
    ready: Asking<Answer>,
}

/// Answers for as long as it is polled.
pub async fn serve(listener: TcpListener, asked: Arc<impl Answers>) {
    let ((metrics, told), (ready, probed)) = (flight::pair(), flight::pair());
    tokio::select! {
        () = accept(listener, Doors { metrics, ready }) => {}
        () = told.serve(TOLD, || metrics_of(asked.clone())) => {}
        () = probed.serve(PROBED, || ready_of(&*asked)) => {}
    }
}

/// Off the workers of the runtime: fences wait for these.
async fn metrics_of(asked: Arc<impl Answers>) -> Answer {
    match tokio::task::spawn_blocking(move || asked.metrics()).await {
        Ok(text) => (StatusCode::OK, Metrics::CONTENT_TYPE, text.into()),
        Err(_) => defect(),
    }
}

async fn ready_of(asked: &impl Answers) -> Answer {
    match asked.ready().await {
        Ok(how) => (StatusCode::OK, TEXT, format!("{how}\n").into()),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, TEXT, format!("{why}\n").into()),
    }
}

/// What the log has more of.
fn defect() -> Answer {
    let text = "it could not be told: a defect, or it is stopping\n";
    (StatusCode::INTERNAL_SERVER_ERROR, TEXT, Bytes::from_static(text.as_bytes()))
}

async fn accept(listener: TcpListener, doors: Doors) {
    let room = Room::default();
    let mut serving = JoinSet::new();
    loop {
        while serving.try_join_next().is_some() {}
        let (stream, address) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection for metrics cannot be taken");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let doors = doors.clone();
        // Connections of a stranger that say nothing make room: a probe that had to wait for them would have the gateway killed.
        let mut place = room.take(address.ip());
        serving.spawn(async move {
            let service = service_fn(move |request| {
                let doors = doors.clone();
                async move { Ok::<_, Infallible>(answer(&request, &doors).await) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD)
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), service);
            tokio::select! {
                biased;
                _ = &mut place.out => {}
                _ = tokio::time::timeout(PATIENCE, connection) => {}
            }
        });
    }
}

async fn answer(request: &Request<Incoming>, doors: &Doors) -> Response<Full<Bytes>> {
    let said = |status, text: &'static str| (status, TEXT, Bytes::from_static(text.as_bytes()));
    let (status, kind, text) = match (request.method(), request.uri().path()) {
        (&Method::GET, "/metrics") => doors.metrics.next().await.unwrap_or_else(defect),
        (&Method::GET, "/readyz") => doors.ready.next().await.unwrap_or_else(defect),
        (&Method::GET, "/healthz") => said(StatusCode::OK, "alive\n"),
        (&Method::GET, _) => said(StatusCode::NOT_FOUND, "there are /metrics, /healthz and /readyz\n"),
        _ => said(StatusCode::METHOD_NOT_ALLOWED, "only GET is answered\n"),
    };
    let mut response = Response::new(Full::new(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
    }
    response
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::mpsc;

    use parking_lot::Mutex;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;

    struct Healthy;

    impl Answers for Healthy {
        fn metrics(&self) -> String {
            String::new()
        }

        async fn ready(&self) -> Result<String, String> {
            Ok("leads".to_owned())
        }
    }

    /// Of a fleet that takes long to walk: each text says which one it is, and is there once the test says so.
    struct Large {
        begun: AtomicU32,
        go_on: Mutex<mpsc::Receiver<()>>,
    }

    impl Answers for Large {
        fn metrics(&self) -> String {
            let number = self.begun.fetch_add(1, Ordering::Relaxed) + 1;
            // Where it is made on the worker that the test needs, nobody says so.
            let told = self.go_on.lock().recv_timeout(Duration::from_secs(5));
            format!("text {number} {}", told.map_or("alone", |()| "told"))
        }

        async fn ready(&self) -> Result<String, String> {
            Ok("leads".to_owned())
        }
    }

    async fn connected(address: SocketAddr) -> TcpStream {
        TcpStream::connect(address).await.expect("connected")
    }

    async fn asked(address: SocketAddr, path: &str) -> TcpStream {
        let mut stream = connected(address).await;
        let request = format!("GET {path} HTTP/1.1\r\nhost: gateway\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("sent");
        stream
    }

    async fn answered(mut stream: TcpStream) -> String {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("read");
        answer
    }

    /// The runtime of this test has one worker.
    #[tokio::test]
    async fn whoever_asks_for_metrics_without_end_keeps_nobody_waiting_and_has_few_made() {
        let listener = bind((Ipv4Addr::LOCALHOST, 0).into()).await.expect("bound");
        let address = listener.local_addr().expect("an address");
        let (go, go_on) = mpsc::channel();
        let large = Arc::new(Large { begun: AtomicU32::new(0), go_on: Mutex::new(go_on) });
        let serving = tokio::spawn(serve(listener, large.clone()));
        let first = asked(address, "/metrics").await;
        while large.begun.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        let mut others = Vec::new();
        for _ in 0..8 {
            others.push(asked(address, "/metrics").await);
        }
        let probe = answered(asked(address, "/healthz").await).await;
        assert!(probe.ends_with("alive\n"), "{probe}");
        assert_eq!(large.begun.load(Ordering::Relaxed), 1, "one at a time");
        (0..9).for_each(|_| go.send(()).expect("it is waited for"));
        let text = answered(first).await;
        assert!(text.ends_with("text 1 told"), "{text}");
        for other in others {
            let text = answered(other).await;
            assert!(
                text.ends_with(" told") && !text.ends_with("text 1 told"),
                "begun after it was asked for: {text}"
            );
        }
        assert!(large.begun.load(Ordering::Relaxed) < 9, "they share texts");
        serving.abort();
    }

    /// Counts what it is asked.
    #[derive(Default)]
    struct Counting(AtomicU32);

    impl Answers for Counting {
        fn metrics(&self) -> String {
            self.0.fetch_add(1, Ordering::Relaxed);
            String::new()
        }

        async fn ready(&self) -> Result<String, String> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok("leads".to_owned())
        }
    }

    /// All that is ever asked of the gateway is how it is: nothing else reaches it, whatever is sent.
    #[tokio::test]
    async fn whoever_reaches_the_metrics_reads_and_changes_nothing() {
        let listener = bind((Ipv4Addr::LOCALHOST, 0).into()).await.expect("bound");
        let address = listener.local_addr().expect("an address");
        let counting = Arc::new(Counting::default());
        let serving = tokio::spawn(serve(listener, counting.clone()));
        let body = "content-length: 4\r\n\r\nnull";
        for (line, status) in [
            ("POST /metrics", 405),
            ("PUT /readyz", 405),
            ("DELETE /metrics", 405),
            ("PATCH /healthz", 405),
            ("POST /picket.v1.FencingService/Fence", 405),
            ("GET /picket.v1.FencingService/Fence", 404),
            ("GET /metrics/", 404),
            ("GET /healthz", 200),
        ] {
            let mut stream = connected(address).await;
            let request = format!("{line} HTTP/1.1\r\nhost: gateway\r\n{body}");
            stream.write_all(request.as_bytes()).await.expect("sent");
            let answer = answered(stream).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{line}: {answer}");
        }
        assert_eq!(counting.0.load(Ordering::Relaxed), 0, "the gateway was asked nothing");
        let ready = answered(asked(address, "/readyz").await).await;
        assert!(ready.contains("leads"), "{ready}");
        serving.abort();
    }

    #[tokio::test]
    async fn a_probe_does_not_wait_for_connections_that_say_nothing() {
        let listener = bind((Ipv4Addr::LOCALHOST, 0).into()).await.expect("bound");
        let address = listener.local_addr().expect("an address");
        let serving = tokio::spawn(serve(listener, Arc::new(Healthy)));
        let mut silent = Vec::new();
        for _ in 0..100 {
            silent.push(connected(address).await);
        }
        let answer = answered(asked(address, "/healthz").await).await;
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("alive\n"), "{answer}");
        let mut rest = Vec::new();
        let last = silent.last_mut().expect("many");
        let _closed = last.read_to_end(&mut rest).await;
        serving.abort();
    }
}
