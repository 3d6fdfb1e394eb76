//! HTTP/1.1 over TLS in front of a [`RedfishBmc`](super::RedfishBmc).
//!
//! # Invariants
//!
//! - Connections of one BMC, and the bytes of a request, are bounded.
//! - A BMC that is silent neither answers nor refuses. Its connections end with its restart.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use futures::{StreamExt, TryStreamExt, stream};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Collected, Full, Limited, StreamBody};
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::header::{ALLOW, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use picket_core::time::BootTime;
use picket_driver_sim::{Fault, Way};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::{Answer, Request, Silence};
use crate::bmc::Bmc;

/// The most bytes of a body.
const BODY: usize = 64 << 10;
/// How many connections a BMC has at once.
const CONNECTIONS: usize = 32;
/// How long an idle connection stays, and how long somebody who gets no answer is kept waiting.
const PATIENCE: Duration = Duration::from_secs(120);
/// Fatal alerts, after the minor version in which they are told: of a server of TLS 1.1, and of one of 1.2 (RFC 5246 §7.2).
const PROTOCOL_VERSION: [u8; 2] = [2, 70];
const HANDSHAKE_FAILURE: [u8; 2] = [3, 40];

/// An answer's body.
type Sent = BoxBody<Bytes, std::io::Error>;

/// Serves one BMC for ever.
pub(crate) async fn serve(bmc: Arc<Bmc>, listener: TcpListener) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let Ok(place) = room.clone().acquire_owned().await else { return };
        // Whatever is wrong with one connection is not wrong with the next; without descriptors there is none for a while.
        let Ok((stream, _)) = listener.accept().await else {
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        let bmc = bmc.clone();
        connections.spawn(async move {
            converse(bmc, stream).await;
            drop(place);
        });
        while connections.try_join_next().is_some() {}
    }
}

/// One connection, to its end.
async fn converse(bmc: Arc<Bmc>, stream: TcpStream) {
    let Some(redfish) = bmc.redfish() else { return };
    if bmc.is_silent(&redfish.device) {
        // It took the connection as a kernel does, and says nothing.
        sleep(PATIENCE).await;
        return;
    }
    let _ = stream.set_nodelay(true);
    let suffers = |fault| bmc.world().suffers(&redfish.device, &fault);
    for (fault, alert) in [(Fault::OldTls, PROTOCOL_VERSION), (Fault::OldCiphers, HANDSHAKE_FAILURE)] {
        if suffers(fault) {
            // Whoever breaks off before that hears no alert.
            let _ = timeout(PATIENCE, refuse(stream, alert)).await;
            return;
        }
    }
    let renewals = redfish.pki.renewals();
    let Some(shown) = bmc.certificate_shown() else { return };
    let born = bmc.world().device_born(&redfish.device);
    let handshake = timeout(PATIENCE, TlsAcceptor::from(shown.server).accept(stream)).await;
    let Ok(Ok(stream)) = handshake else { return };
    redfish.pki.shown(renewals);
    let life = Life { born, renewals };
    let service = service_fn(|request| {
        let bmc = bmc.clone();
        async move {
            match answer(&bmc, request, life).await {
                Ok(answer) => Ok(answer),
                // Hyper ends a connection whose service fails.
                Err(Silence) => Err(std::io::Error::other("silent")),
            }
        }
    });
    // A client that breaks off ends its own connection.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// Hears what a client offers, and ends the handshake by a fatal alert.
async fn refuse(mut stream: TcpStream, [version, alert]: [u8; 2]) -> std::io::Result<()> {
    let mut head = [0; 5];
    stream.read_exact(&mut head).await?;
    let mut hello = vec![0; usize::from(u16::from_be_bytes([head[3], head[4]]))];
    stream.read_exact(&mut hello).await?;
    stream.write_all(&[21, 3, version, 0, 2, 2, alert]).await?;
    stream.shutdown().await
}

/// In which a connection was made.
#[derive(Clone, Copy)]
struct Life {
    born: BootTime,
    renewals: u64,
}

async fn answer(bmc: &Bmc, request: hyper::Request<Incoming>, life: Life) -> Result<Response<Sent>, Silence> {
    let redfish = bmc.redfish().ok_or(Silence)?;
    let request = match read(request).await {
        Ok(request) => request,
        Err(refused) => return Ok(write(refused)),
    };
    travel(bmc, Way::There).await?;
    if bmc.world().device_born(&redfish.device) != life.born || redfish.pki.renewals() != life.renewals {
        // It, or what serves its pages, started again since: what was connected is not any more.
        return Err(Silence);
    }
    let answer = {
        let (mut world, now) = (bmc.world(), bmc.now());
        redfish.bmc.lock().handle(now, &mut world, &request)
    };
    let Ok(answer) = answer else { return hang().await };
    sleep(answer.late).await;
    travel(bmc, Way::Back).await?;
    let suffers = |fault| bmc.world().suffers(&redfish.device, &fault);
    let is_cut = suffers(Fault::CutsAnswers);
    let is_cut_refusal = matches!(answer.status, 401 | 503) && suffers(Fault::CutsRefusals);
    let answer = write(answer);
    let answer = if suffers(Fault::PacksAnswers) { packed(answer).await } else { answer };
    Ok(if is_cut || is_cut_refusal { cut(answer, is_cut) } else { answer })
}

/// Half of its body comes. Either its head tells of the whole, or it is in chunks, of which the last is missing.
fn cut(answer: Response<Sent>, tells_length: bool) -> Response<Sent> {
    let (mut head, body) = answer.into_parts();
    let whole = body.size_hint().exact().unwrap_or_default();
    if tells_length {
        head.headers.insert(CONTENT_LENGTH, HeaderValue::from(whole));
    }
    let ends = stream::once(async {
        // The server sends the half that is written once nothing more is ready to be written.
        tokio::task::yield_now().await;
        Err(std::io::Error::other("the answer is cut"))
    });
    let half = body.into_data_stream().map_ok(move |bytes| {
        let half = usize::try_from(whole / 2).unwrap_or_default();
        Frame::data(bytes.slice(..half.min(bytes.len())))
    });
    Response::from_parts(head, BodyExt::boxed(StreamBody::new(half.chain(ends))))
}

/// Its body comes packed, if it has one.
async fn packed(answer: Response<Sent>) -> Response<Sent> {
    let (mut head, body) = answer.into_parts();
    // It was made here, and is whole.
    let plain = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    let body = match packer.write_all(&plain).and_then(|()| packer.finish()) {
        Ok(body) if !plain.is_empty() => {
            head.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            body.into()
        }
        _ => plain,
    };
    Response::from_parts(head, whole(body))
}

/// What happens on the way.
async fn travel(bmc: &Bmc, way: Way) -> Result<(), Silence> {
    let redfish = bmc.redfish().ok_or(Silence)?;
    let passage = bmc.world().stream_passage(bmc.now(), &redfish.device, way);
    match passage {
        None => hang().await,
        Some(delay) if delay.is_zero() => Ok(()),
        Some(delay) => {
            sleep(delay).await;
            Ok(())
        }
    }
}

/// Nothing comes, until who waits has had enough.
async fn hang<T>() -> Result<T, Silence> {
    sleep(PATIENCE).await;
    Err(Silence)
}

/// A request as it matters; else what is answered at once.
async fn read(request: hyper::Request<Incoming>) -> Result<Request, Answer> {
    let (head, body) = request.into_parts();
    let body = timeout(PATIENCE, Limited::new(body, BODY).collect()).await;
    let Ok(Ok(body)) = body else {
        return Err(Answer { status: 413, ..Answer::default() });
    };
    let text = |value: &HeaderValue| value.to_str().map(str::to_owned).ok();
    let headers = head
        .headers
        .iter()
        .filter_map(|(name, value)| Some((name.as_str().to_owned(), text(value)?)))
        .collect();
    Ok(Request {
        method: head.method.as_str().to_owned(),
        path: head.uri.path().to_owned(),
        headers,
        body: body.to_bytes().to_vec(),
    })
}

fn whole(body: Bytes) -> Sent {
    Full::new(body).map_err(|never| match never {}).boxed()
}

fn write(answer: Answer) -> Response<Sent> {
    let body = if answer.body.is_null() { Bytes::new() } else { answer.body.to_string().into() };
    let mut response = Response::new(whole(body));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert("odata-version", HeaderValue::from_static("4.0"));
    headers.insert("cache-control", HeaderValue::from_static("no-cache"));
    if !answer.body.is_null() {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    for (name, value) in answer.headers {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap_or(ALLOW);
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    }
    response
}

#[cfg(test)]
mod tests;
