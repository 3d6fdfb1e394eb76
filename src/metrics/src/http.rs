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
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::Metrics;

/// Connections that are served at once; more wait.
const AT_ONCE: usize = 16;
/// How long a request may take to arrive, and a connection to be done with.
const PATIENCE: Duration = Duration::from_secs(10);
const TEXT: &str = "text/plain; charset=utf-8";

/// What is asked.
pub trait Answers: Send + Sync + 'static {
    /// All metrics, as they are now.
    fn metrics(&self) -> String;

    /// Whether it does its work, and how; else what is missing.
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

/// Answers for as long as it is polled.
pub async fn serve(listener: TcpListener, asked: Arc<impl Answers>) {
    let room = Arc::new(Semaphore::new(AT_ONCE));
    let mut serving = JoinSet::new();
    loop {
        while serving.try_join_next().is_some() {}
        let Ok(place) = room.clone().acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a connection for metrics cannot be taken");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let asked = asked.clone();
        serving.spawn(async move {
            let _place = place;
            let service = service_fn(move |request| {
                let asked = asked.clone();
                async move { Ok::<_, Infallible>(answer(&request, &*asked).await) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(PATIENCE)
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), service);
            let _ = tokio::time::timeout(PATIENCE * 2, connection).await;
        });
    }
}

async fn answer(request: &Request<Incoming>, asked: &impl Answers) -> Response<Full<Bytes>> {
    let (status, kind, text) = match (request.method(), request.uri().path()) {
        (&Method::GET, "/metrics") => (StatusCode::OK, Metrics::CONTENT_TYPE, asked.metrics()),
        (&Method::GET, "/healthz") => (StatusCode::OK, TEXT, "alive\n".to_owned()),
        (&Method::GET, "/readyz") => match asked.ready().await {
            Ok(how) => (StatusCode::OK, TEXT, format!("{how}\n")),
            Err(why) => (StatusCode::SERVICE_UNAVAILABLE, TEXT, format!("{why}\n")),
        },
        (&Method::GET, _) => {
            (StatusCode::NOT_FOUND, TEXT, "there are /metrics, /healthz and /readyz\n".to_owned())
        }
        _ => (StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET is answered\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
    }
    response
}
