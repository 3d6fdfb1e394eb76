//! The HTTP client of one API server.
//!
//! # Invariants
//!
//! - A connection serves one request after another.
//! - A request that goes by a permit asks for it once its connection stands, right before its first byte is
//!   written. Without the permit nothing of it is sent. Shown by
//!   `without_its_word_nothing_of_a_request_goes_on_its_connection`.
//! - What was written and is not acknowledged in time is thrown away with its connection, so that nothing
//!   of it arrives later (S8). Shown by `what_is_not_acknowledged_ends_with_its_connection`.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response, Uri};
use http_body::{Frame, SizeHint};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::Client;
use kube::client::Body;
use picket_login::{Known, Wrong};
use picket_reach::LastWord;
use tokio::net::TcpStream;
use tower::util::{MapRequest, MapResponse};
use tower::{BoxError, Service, ServiceExt};

use crate::clock::ServerClock;

/// How long what was written may stay unacknowledged before the kernel ends the connection.
const UNACKNOWLEDGED: Duration = Duration::from_secs(10);

/// The word for one request: asked once, right before its first byte.
#[derive(Clone)]
pub(crate) struct Word {
    asked: LastWord,
    refused: Arc<OnceLock<String>>,
}

impl Word {
    pub(crate) fn new(asked: LastWord) -> Self {
        Self { asked, refused: Arc::default() }
    }

    /// Why the word was not given: nothing of the request was sent. `None`: it was given, or not asked for yet.
    pub(crate) fn refused(&self) -> Option<&str> {
        self.refused.get().map(String::as_str)
    }

    fn ask(&self) -> Result<(), BoxError> {
        (self.asked)().map_err(|why| self.refused.get_or_init(|| why).clone().into())
    }
}

/// The body of a request that waits for its word.
///
/// HTTP/1.1 writes the head of a request together with the beginning of its body: a body that ends in an error takes its head with it.
pub(crate) struct AtAWord {
    body: Body,
    word: Option<Word>,
}

impl http_body::Body for AtAWord {
    type Data = <Body as http_body::Body>::Data;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, BoxError>>> {
        if let Some(word) = self.word.take()
            && let Err(refused) = word.ask()
        {
            return Poll::Ready(Some(Err(refused)));
        }
        Pin::new(&mut self.body).poll_frame(context).map_err(BoxError::from)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}

type AtWords<S> = MapRequest<S, fn(Request<Body>) -> Request<AtAWord>>;

/// What sends requests, each at the word that is among its extensions, if one is there; and hears by each answer what time it is there.
pub(crate) fn at_a_word<S, B>(
    sends: S,
    clock: &Arc<ServerClock>,
) -> MapResponse<AtWords<S>, impl FnOnce(Response<B>) -> Response<B> + Clone + use<S, B>>
where
    S: Service<Request<AtAWord>, Response = Response<B>>,
{
    let at_word: fn(Request<Body>) -> Request<AtAWord> = |mut request| {
        let word = request.extensions_mut().remove::<Word>();
        request.map(|body| AtAWord { body, word })
    };
    let clock = clock.clone();
    let heard = move |response: Response<B>| {
        clock.hear(response.headers());
        response
    };
    ServiceExt::<Request<Body>>::map_response(sends.map_request(at_word), heard)
}

/// Makes one by that login. Sends nothing.
pub(crate) fn client(known: &Known, clock: &Arc<ServerClock>) -> Result<Client, Wrong> {
    let clock = clock.clone();
    picket_login::client(known, move |config| {
        let connects = picket_login::connects(config, tcp())?;
        Ok(at_a_word(legacy::Client::builder(TokioExecutor::new()).build(connects), &clock))
    })
}

fn tcp() -> impl Service<Uri, Response = TokioIo<TcpStream>, Error = BoxError, Future: Send + 'static>
+ Clone
+ Send
+ Sync
+ 'static {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
    ServiceExt::<Uri>::map_result(tcp, thrown_away_at_its_end)
}

/// What was not sent yet when a connection is closed is not sent afterwards.
fn thrown_away_at_its_end<E: Into<BoxError>>(
    connected: Result<TokioIo<TcpStream>, E>,
) -> Result<TokioIo<TcpStream>, BoxError> {
    let stream = connected.map_err(Into::into)?;
    stream.inner().set_zero_linger()?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use kube::Config;
    use picket_trust::fakes::OwnCertificate;
    use rustls::pki_types::CertificateDer;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;

    use super::*;
    use crate::fault::Fault;

    /// Sends a patch at that word to a place that answers; whether it was answered, and what the place read.
    async fn sent(word: LastWord) -> (bool, std::io::Result<String>) {
        let place = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = place.local_addr().expect("an address");
        let serves = tokio::spawn(async move {
            let (mut stream, _) = place.accept().await.expect("a connection");
            let mut read = [0; 4_096];
            let length = stream.read(&mut read).await?;
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").await?;
            Ok(String::from_utf8_lossy(&read[..length]).into_owned())
        });
        let mut config = Config::new(format!("http://{address}").parse().expect("an address"));
        config.root_cert = Some(Vec::new());
        let client = client(&config.into(), &Arc::default()).expect("a client");
        let mut request = Request::patch("/api/v1/nodes/n1").body(b"[]".to_vec()).expect("a request");
        request.extensions_mut().insert(Word::new(word));
        let answered = client.request::<serde_json::Value>(request).await.is_ok();
        (answered, serves.await.expect("it ends"))
    }

    #[tokio::test]
    async fn without_its_word_nothing_of_a_request_goes_on_its_connection() {
        let (answered, read) = sent(Arc::new(|| Err("it leads no more".to_owned()))).await;
        assert!(!answered);
        assert_eq!(read.expect_err("nothing").kind(), ErrorKind::ConnectionReset);
    }

    #[tokio::test]
    async fn with_its_word_a_request_goes_as_it_is() {
        let (answered, read) = sent(Arc::new(|| Ok(()))).await;
        let read = read.expect("a request");
        assert!(
            answered && read.starts_with("PATCH /api/v1/nodes/n1 HTTP/1.1") && read.ends_with("[]"),
            "{read}"
        );
    }

    #[tokio::test]
    async fn an_api_server_is_believed_by_its_own_certificate_in_the_kubeconfig() {
        let place = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = place.local_addr().expect("an address");
        let shown = OwnCertificate::new();
        let acceptor = TlsAcceptor::from(Arc::new(shown.server));
        tokio::spawn(async move {
            while let Ok((stream, _)) = place.accept().await {
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                let _request = stream.read(&mut [0; 4_096]).await;
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").await.expect("written");
            }
        });
        let asked = async |believed: CertificateDer<'_>| {
            let mut config = Config::new(format!("https://{address}").parse().expect("an address"));
            config.root_cert = Some(vec![believed.to_vec()]);
            let client = client(&config.into(), &Arc::default()).expect("a client");
            let request = Request::get("/version").body(Vec::new()).expect("a request");
            client
                .request::<serde_json::Value>(request)
                .await
                .map_err(|error| Fault::of("look", error).to_string())
        };
        asked(shown.der).await.expect("an answer");
        let why = asked(OwnCertificate::new().der).await.expect_err("another one");
        assert!(why.starts_with("look: its certificate is not believed"), "{why}");
    }

    #[tokio::test]
    async fn what_is_not_acknowledged_ends_with_its_connection() {
        let place = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let uri = format!("http://{}", place.local_addr().expect("an address")).parse().expect("an address");
        let stream = tcp().oneshot(uri).await.expect("connected");
        let millis = rustix::net::sockopt::tcp_user_timeout(stream.inner()).expect("an option");
        assert_eq!(Duration::from_millis(millis.into()), UNACKNOWLEDGED);
    }
}
