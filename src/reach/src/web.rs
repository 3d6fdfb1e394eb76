//! One question to a place on the web, and its answer, within bounds.

use std::path::Path;
use std::time::Duration;

use picket_trust::Believed;
use reqwest::header::{AUTHORIZATION, HeaderMap, LOCATION};
use reqwest::{Client, ClientBuilder, RequestBuilder, StatusCode};
use tokio::time::{Instant, timeout_at};

use crate::last_word::{self, Asked, LastWord};
use crate::text::KEPT;
use crate::token::Token;

const CONNECT: Duration = Duration::from_secs(5);
const IDLE: Duration = Duration::from_secs(4);

/// What came back.
#[derive(Debug)]
pub struct Answer {
    /// Its status.
    pub code: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// The beginning of its body, as much as was to be kept.
    pub body: Vec<u8>,
    /// The body was longer than what is kept, or broke off.
    pub cut: bool,
}

impl Answer {
    /// A header, where it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Where it points to.
    pub fn location(&self) -> Option<&str> {
        self.header(LOCATION.as_str())
    }
}

/// Why there is no answer. The words name no URL.
#[derive(Debug)]
pub enum NoAnswer {
    /// Nothing was sent: no connection came to be.
    NeverSent(String),
    /// The question may have been read.
    Broken(String),
    /// Its time was over.
    Late,
}

/// A client for an https place, believed by `ca_file` or else by the system's CAs; or for plain http. Each question has a
/// connection of its own.
pub fn client(https: bool, ca_file: Option<&Path>) -> Result<Client, String> {
    client_keeping(0, https, ca_file)
}

/// The same, with so many connections that are kept for the next question: for questions alone, as one that is just being closed
/// at the far side leaves it unknown whether what was sent on it was read.
pub fn client_keeping(connections: usize, https: bool, ca_file: Option<&Path>) -> Result<Client, String> {
    built(builder(connections, https, ca_file)?)
}

/// A client for commands alone, which go by [`exchange_at_a_word`] or not at all. Each has a connection of its own.
pub fn commands(https: bool, ca_file: Option<&Path>) -> Result<Client, String> {
    built(builder(0, https, ca_file)?.connector_layer(Asked))
}

fn builder(connections: usize, https: bool, ca_file: Option<&Path>) -> Result<ClientBuilder, String> {
    let believed = ca_file.map_or(Believed::System, |path| Believed::Authorities(path.to_owned()));
    let config = if https { picket_trust::config(&believed) } else { picket_trust::none() }?;
    Ok(Client::builder()
        .tls_backend_preconfigured(config)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .no_proxy()
        .http1_only()
        .pool_max_idle_per_host(connections)
        // Servers close idle ones after 5 s and more: a question on one that is just being closed is lost.
        .pool_idle_timeout(IDLE)
        .connect_timeout(CONNECT)
        .user_agent(concat!("picket/", env!("CARGO_PKG_VERSION"))))
}

fn built(builder: ClientBuilder) -> Result<Client, String> {
    builder.build().map_err(|error| format!("no client can be made: {}", chain(&error)))
}

/// Sends it, once, and takes the answer until `end`.
pub async fn exchange(
    request: RequestBuilder,
    token: Option<&Token>,
    end: Instant,
) -> Result<Answer, NoAnswer> {
    exchange_up_to(KEPT, bearing(request, token), end).await
}

/// The request with our token, where there is one.
pub fn bearing(request: RequestBuilder, token: Option<&Token>) -> RequestBuilder {
    match token.and_then(Token::header) {
        Some(value) => request.header(AUTHORIZATION, value),
        None => request,
    }
}

/// The same, with no token of ours, and so much of the answer's body.
pub async fn exchange_up_to(kept: usize, request: RequestBuilder, end: Instant) -> Result<Answer, NoAnswer> {
    let answered = timeout_at(end, async {
        let mut response = request.send().await.map_err(failure)?;
        let headers = std::mem::take(response.headers_mut());
        let (code, mut body, mut cut) = (response.status(), Vec::new(), false);
        loop {
            let piece = match response.chunk().await {
                Ok(Some(piece)) => piece,
                Ok(None) => break,
                // A refusal is one once its status was read: a token that is not known any more is renewed.
                Err(_) if !code.is_success() => {
                    cut = true;
                    break;
                }
                Err(error) => return Err(failure(error)),
            };
            let room = kept - body.len();
            body.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.len() > room {
                cut = true;
                break;
            }
        }
        Ok(Answer { code, headers, body, cut })
    });
    answered.await.unwrap_or(Err(NoAnswer::Late))
}

/// The same by a client for [`commands`], where `word` is asked for once there is a connection: without it nothing is sent.
pub async fn exchange_at_a_word(
    kept: usize,
    request: RequestBuilder,
    end: Instant,
    word: LastWord,
) -> Result<Answer, NoAnswer> {
    last_word::within(word, exchange_up_to(kept, request, end)).await
}

/// What failed before an answer was complete. Only where no connection came to be was nothing sent.
fn failure(error: reqwest::Error) -> NoAnswer {
    let never_sent = error.is_connect() || error.is_builder();
    let shakes_hands = error.is_connect() && error.url().is_some_and(|url| url.scheme() == "https");
    let tls = shakes_hands.then(|| picket_trust::failure(&error)).flatten();
    let why = tls.map_or_else(|| chain(&error.without_url()), |why| why.to_string());
    if never_sent { NoAnswer::NeverSent(why) } else { NoAnswer::Broken(why) }
}

/// An error with all that caused it, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let next = error.to_string();
        if !text.contains(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests;
