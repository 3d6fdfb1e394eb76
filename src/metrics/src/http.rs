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
use crate::room::Room;

/// How long the head of a request may take to arrive. A probe of Kubernetes waits for one second by default.
const HEAD: Duration = Duration::from_secs(1);
/// How long a connection may take in all.
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
        let asked = asked.clone();
        // Connections of a stranger that say nothing make room: a probe that had to wait for them would have the gateway killed.
        let mut place = room.take(address.ip());
        serving.spawn(async move {
            let service = service_fn(move |request| {
                let asked = asked.clone();
                async move { Ok::<_, Infallible>(answer(&request, &*asked).await) }
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

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

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

    async fn connected(address: SocketAddr) -> TcpStream {
        TcpStream::connect(address).await.expect("connected")
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
        let mut probe = connected(address).await;
        probe.write_all(b"GET /healthz HTTP/1.1\r\nhost: gateway\r\n\r\n").await.expect("sent");
        let mut answer = String::new();
        probe.read_to_string(&mut answer).await.expect("read");
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("alive\n"), "{answer}");
        let mut rest = Vec::new();
        let last = silent.last_mut().expect("many");
        let _closed = last.read_to_end(&mut rest).await;
        serving.abort();
    }
}
