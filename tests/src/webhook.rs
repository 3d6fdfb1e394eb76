//! A receiver of releases, which does as a test tells it.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::error::{PeerError, Result};
use crate::peers::{Truth, eventually};

/// The largest body that is taken.
const LARGEST: usize = 1 << 20;

/// What it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// `complete`: the volumes are let go.
    Complete,
    /// `accepted`: it works on it. To a request for release with a status URL.
    Accepted,
    /// `unknown`: it knows nothing of it.
    Unknown,
    /// This HTTP status, with an empty body.
    Status(u16),
    /// Nothing; the connection stays open.
    Silence,
    /// The connection is closed when the request was taken.
    HangUp,
}

/// A request that it got.
#[derive(Clone, Debug)]
pub struct Hook {
    /// When it had been read.
    pub at: SystemTime,
    /// `POST`, `GET`.
    pub method: String,
    /// With its leading slash.
    pub path: String,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    /// As JSON; null where it is none.
    pub body: Value,
    /// Whether the node was on then, in truth; `None` without a witness.
    pub on: Option<bool>,
}

impl Hook {
    /// A text of the body; empty where there is none.
    pub fn text(&self, key: &str) -> &str {
        self.body[key].as_str().unwrap_or_default()
    }

    /// A number of the body; 0 where there is none.
    pub fn number(&self, key: &str) -> u64 {
        self.body[key].as_u64().unwrap_or_default()
    }
}

struct State {
    release: Answer,
    status: Answer,
    hooks: Vec<Hook>,
    truth: Option<Truth>,
}

/// A running receiver on loopback, over plain HTTP. Dropped, it ends.
pub struct Webhook {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    // Aborted on drop, with all its connections.
    _server: JoinSet<()>,
}

impl Webhook {
    /// One that answers [`Answer::Complete`] to everything.
    pub async fn start() -> Result<Self> {
        Self::begin(None).await
    }

    /// One that looks at each request whether the node is on.
    pub async fn with_witness(truth: Truth) -> Result<Self> {
        Self::begin(Some(truth)).await
    }

    async fn begin(truth: Option<Truth>) -> Result<Self> {
        let listener =
            TcpListener::bind("127.0.0.1:0").await.map_err(PeerError::io("bind a webhook's socket"))?;
        let address = listener.local_addr().map_err(PeerError::io("a webhook's address"))?;
        let state = State { release: Answer::Complete, status: Answer::Complete, hooks: Vec::new(), truth };
        let state = Arc::new(Mutex::new(state));
        let mut server = JoinSet::new();
        server.spawn(accept(listener, address, Arc::clone(&state)));
        Ok(Self { address, state, _server: server })
    }

    /// Where releases are to be posted.
    pub fn url(&self) -> String {
        format!("http://{}/release", self.address)
    }

    /// What requests for release are answered from now on.
    pub fn answer(&self, answer: Answer) {
        self.state.lock().release = answer;
    }

    /// What questions for the status are answered from now on.
    pub fn answer_status(&self, answer: Answer) {
        self.state.lock().status = answer;
    }

    /// All requests so far, in order.
    pub fn hooks(&self) -> Vec<Hook> {
        self.state.lock().hooks.clone()
    }

    /// Those for release.
    pub fn releases(&self) -> Vec<Hook> {
        self.hooks().into_iter().filter(|hook| hook.path == "/release").collect()
    }

    /// Waits until there were so many requests for release, and returns them.
    pub async fn wait_for(&self, count: usize, within: Duration) -> Result<Vec<Hook>> {
        eventually(&format!("{count} requests for release"), within, || self.releases().len() >= count)
            .await?;
        Ok(self.releases())
    }
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook").field("address", &self.address).finish_non_exhaustive()
    }
}

async fn accept(listener: TcpListener, address: SocketAddr, state: Arc<Mutex<State>>) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((connection, _)) = listener.accept().await else { continue };
        while connections.try_join_next().is_some() {}
        connections.spawn(serve(connection, address, Arc::clone(&state)));
    }
}

/// One request a connection; an error ends it, as a bad client would find.
async fn serve(connection: TcpStream, address: SocketAddr, state: Arc<Mutex<State>>) {
    let mut connection = BufReader::new(connection);
    let Some(mut hook) = read(&mut connection).await else { return };
    let (answer, path) = {
        let mut state = state.lock();
        hook.on = state.truth.as_ref().map(|is_on| is_on());
        let path = hook.path.clone();
        state.hooks.push(hook);
        (if path == "/release" { state.release } else { state.status }, path)
    };
    let (status, body) = match answer {
        Answer::Complete => (200, json!({ "status": "complete", "detail": "detached" })),
        Answer::Accepted if path == "/release" => {
            let status_url = format!("http://{address}/status");
            (202, json!({ "status": "accepted", "detail": "detaching", "status_url": status_url }))
        }
        Answer::Accepted => (200, json!({ "status": "accepted", "detail": "detaching" })),
        Answer::Unknown => (200, json!({ "status": "unknown", "detail": "never heard of it" })),
        Answer::Status(status) => (status, Value::Null),
        Answer::Silence => return std::future::pending().await,
        Answer::HangUp => return,
    };
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let head = format!(
        "HTTP/1.1 {status} \r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    // Whoever asked may be gone: killed by the test, as likely as not.
    let _ = connection.write_all(format!("{head}{body}").as_bytes()).await;
    let _ = connection.shutdown().await;
}

/// HTTP/1.1 (RFC 9112) as far as clients of releases speak it: a body with its length.
async fn read(connection: &mut BufReader<TcpStream>) -> Option<Hook> {
    let mut line = String::new();
    connection.read_line(&mut line).await.ok()?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        connection.read_line(&mut line).await.ok()?;
        if line.trim().is_empty() {
            break;
        }
        let (name, value) = line.split_once(':')?;
        headers.insert(name.trim().to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").map_or(Some(0), |length| length.parse().ok())?;
    let mut body = vec![0; if length <= LARGEST { length } else { return None }];
    connection.read_exact(&mut body).await.ok()?;
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Some(Hook { at: SystemTime::now(), method, path, headers, body, on: None })
}
