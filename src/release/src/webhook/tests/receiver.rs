//! A receiver that answers what it is told to.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// What the receiver does with a request once it has read it.
#[derive(Clone)]
pub(super) enum Then {
    Answer(String),
    HangUp,
    Silence,
}

/// A receiver that hears every request and answers them in turn, the last answer for ever.
pub(super) struct Receiver {
    pub(super) origin: String,
    pub(super) heard: Arc<Mutex<Vec<String>>>,
}

impl Receiver {
    pub(super) async fn start(answers: Vec<Then>, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("is bound").port();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let receiver = Self { origin: format!("{scheme}://127.0.0.1:{port}"), heard: Arc::default() };
        let heard = receiver.heard.clone();
        tokio::spawn(async move {
            let mut answers = answers.into_iter().peekable();
            while let Ok((stream, _)) = listener.accept().await {
                let then = match answers.len() {
                    1 => answers.peek().cloned(),
                    _ => answers.next(),
                };
                let (heard, tls) = (heard.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => serve(stream, heard, then.expect("an answer")).await,
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => serve(stream, heard, then.expect("an answer")).await,
                            Err(error) => heard.lock().push(format!("TLS: {error}")),
                        },
                    }
                });
            }
        });
        receiver
    }

    pub(super) fn heard(&self) -> Vec<String> {
        self.heard.lock().clone()
    }
}

async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, heard: Arc<Mutex<Vec<String>>>, then: Then) {
    let mut bytes = Vec::new();
    let whole = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n")?;
        let length =
            head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
        (body.len() >= length.unwrap_or(0)).then_some(text)
    };
    while whole(&bytes).is_none() {
        let mut piece = [0; 4096];
        match stream.read(&mut piece).await {
            Ok(length @ 1..) => bytes.extend_from_slice(&piece[..length]),
            _ => break,
        }
    }
    heard.lock().push(String::from_utf8_lossy(&bytes).into_owned());
    match then {
        Then::Answer(answer) => {
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
        Then::HangUp => drop(stream),
        Then::Silence => std::future::pending().await,
    }
}

pub(super) fn answer(code: &str, body: &str) -> Then {
    let length = body.len();
    Then::Answer(format!("HTTP/1.1 {code}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"))
}
