//! A door before the API server, for gateways that ask there: what was asked and answered is noted, a request is held for as long as a
//! test wants, and the door shuts.

use std::io::{Error, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use picket_tests::peers::{Kubernetes, Place, Process, eventually, fresh_address, parse_yaml, until};
use picket_tests::{PeerError, Result};
use rcgen::{CertificateParams, KeyPair, SanType};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::{TlsAcceptor, TlsConnector};

const API: &str = "10.250.0.1:6443";
const PORT: u16 = 16_443;
const WITHIN: Duration = Duration::from_secs(180);

/// What came to the door.
#[derive(Clone, Debug)]
pub struct Asked {
    pub method: String,
    pub path: String,
    pub body: String,
    /// When it was here.
    pub came: SystemTime,
    /// When it was passed on.
    pub at: SystemTime,
    /// When it was answered, by the API server or by the door itself; `None`: it was not.
    pub answered: Option<SystemTime>,
    /// `None`: nothing was answered.
    pub status: Option<u16>,
}

type Which = Box<dyn Fn(&Asked) -> bool + Send>;

/// Who has its login goes by it. Dropped, nobody does.
pub struct Door {
    login: PathBuf,
    state: Arc<State>,
    _tasks: JoinSet<()>,
    _bridges: [Process; 2],
    _directory: TempDir,
}

struct State {
    acceptor: TlsAcceptor,
    connector: TlsConnector,
    /// Leads to the API server.
    server: PathBuf,
    asked: Mutex<Vec<Asked>>,
    /// So many more of these are held.
    holding: Mutex<Option<(usize, Which)>>,
    held: Mutex<Vec<usize>>,
    let_go: watch::Sender<bool>,
    /// Such a one is answered by the door itself, once, with that code.
    failing: Mutex<Vec<(u16, Which)>>,
    shut: AtomicBool,
    turned_away: AtomicUsize,
}

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> PeerError {
    PeerError::io("make a door before the API server")(Error::other(error))
}

impl Door {
    /// One on the host of the control plane, where gateways are, for whose login that is.
    pub async fn before(cluster: &Kubernetes, login: &Path) -> Result<Self> {
        Self::between(cluster.place(), cluster, login).await
    }

    /// One at that place, wherever the cluster is, for whose login that is.
    pub async fn between(place: &Place, cluster: &Kubernetes, login: &Path) -> Result<Self> {
        let made = tempfile::Builder::new().prefix("picket-door-").tempdir();
        let directory = made.map_err(PeerError::io("create a door's directory"))?;
        let (front, server) = (directory.path().join("front"), directory.path().join("server"));
        let address = fresh_address().ip();
        let (acceptor, ca) = certificate(address)?;
        let state = Arc::new(State {
            acceptor,
            connector: connector(&cluster.directory().join("pki/ca.crt"))?,
            server: server.clone(),
            asked: Mutex::default(),
            holding: Mutex::default(),
            held: Mutex::default(),
            let_go: watch::Sender::new(false),
            failing: Mutex::default(),
            shut: AtomicBool::new(false),
            turned_away: AtomicUsize::new(0),
        });
        let listener = UnixListener::bind(&front).map_err(PeerError::io("listen behind a door"))?;
        let mut tasks = JoinSet::new();
        let shared = state.clone();
        tasks.spawn(async move {
            let mut streams = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                streams.spawn(serve(stream, shared.clone()));
                while streams.try_join_next().is_some() {}
            }
        });

        let (listens, leads) = (format!("{address}:{PORT}"), server.display().to_string());
        let bridges = [
            bridge(place, &listens, &front.display().to_string(), &directory.path().join("front.log"))
                .await?,
            bridge(cluster.place(), &leads, API, &directory.path().join("server.log")).await?,
        ];

        let text = std::fs::read_to_string(login).map_err(PeerError::io("read a login"))?;
        let known = parse_yaml(&text).await?;
        let token = known["users"][0]["user"]["token"].as_str().unwrap_or_default();
        let trusted = directory.path().join("ca.crt");
        std::fs::write(&trusted, ca).map_err(PeerError::io("write a door's certificate"))?;
        let text = serde_json::json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "door",
            "clusters": [{ "name": "door", "cluster": { "server": format!("https://{address}:{PORT}"), "certificate-authority": trusted } }],
            "users": [{ "name": "gateway", "user": { "token": token } }],
            "contexts": [{ "name": "door", "context": { "cluster": "door", "user": "gateway" } }],
        });
        let login = directory.path().join("kubeconfig");
        std::fs::write(&login, text.to_string()).map_err(PeerError::io("write a login"))?;
        let private = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(&login, private).map_err(PeerError::io("chmod a login"))?;
        Ok(Self { login, state, _tasks: tasks, _bridges: bridges, _directory: directory })
    }

    /// The kubeconfig that leads here.
    pub fn login(&self) -> &Path {
        &self.login
    }

    /// So many of such requests are held from now on, until they are let go.
    pub fn hold(&self, count: usize, which: impl Fn(&Asked) -> bool + Send + 'static) {
        *self.state.holding.lock() = Some((count, Box::new(which)));
    }

    /// The next such request is answered with that code, and goes no further.
    pub fn fail(&self, code: u16, which: impl Fn(&Asked) -> bool + Send + 'static) {
        self.state.failing.lock().push((code, Box::new(which)));
    }

    /// How many of them have not come yet.
    pub fn to_fail(&self) -> usize {
        self.state.failing.lock().len()
    }

    /// Waits until so many are held.
    pub async fn until_held(&self, count: usize) -> Result<()> {
        until("a request is held", WITHIN, async || Ok(self.state.held.lock().len() == count)).await
    }

    /// Lets go what was held, and holds nothing more: what came of each.
    pub async fn let_go(&self) -> Result<Vec<Asked>> {
        *self.state.holding.lock() = None;
        self.state.let_go.send_replace(true);
        let held = self.state.held.lock().clone();
        let of = || -> Vec<Asked> {
            let asked = self.state.asked.lock();
            held.iter().filter_map(|n| asked.get(*n)).cloned().collect()
        };
        let all = || of().iter().all(|one| one.status.is_some());
        until("what was held is answered", WITHIN, async || Ok(all())).await?;
        Ok(of())
    }

    /// From now on nobody gets in, and who is in hears nothing.
    pub fn shut(&self) {
        self.state.shut.store(true, Ordering::SeqCst);
    }

    /// As it was.
    pub fn open(&self) {
        self.state.shut.store(false, Ordering::SeqCst);
    }

    /// How many were turned away.
    pub fn turned_away(&self) -> usize {
        self.state.turned_away.load(Ordering::SeqCst)
    }

    /// Whatever was asked for that changes something said for itself how long it is worked on at most (K6).
    pub fn all_end(&self) {
        for one in self.changes() {
            let query = one.path.split_once('?').map_or("", |(_, query)| query);
            assert!(query.split('&').any(|part| part == "timeout=10s"), "{one:#?}");
        }
    }

    /// For how long of that time anything that had come was without its answer.
    pub fn waited(&self, from: SystemTime, to: SystemTime) -> Duration {
        let mut asked = self.state.asked.lock().clone();
        asked.sort_by_key(|one| one.came);
        let (mut waited, mut until) = (Duration::ZERO, from);
        for one in asked {
            let end = one.answered.unwrap_or(to).min(to);
            waited += end.duration_since(until.max(one.came)).unwrap_or_default();
            until = until.max(end);
        }
        waited
    }

    /// How often a Node of that name was read, and was not there.
    pub fn missed(&self, name: &str) -> usize {
        let path = format!("/api/v1/nodes/{name}");
        let of_it = |one: &&Asked| one.method == "GET" && one.path.split('?').next() == Some(path.as_str());
        self.state.asked.lock().iter().filter(of_it).filter(|one| one.status == Some(404)).count()
    }

    /// What was asked for that changes something, in the order in which it came.
    pub fn changes(&self) -> Vec<Asked> {
        self.state.asked.lock().iter().filter(|one| one.method != "GET").cloned().collect()
    }
}

/// Carries what comes to one of them in that place to the other.
async fn bridge(place: &Place, from: &str, to: &str, log: &Path) -> Result<Process> {
    let mut command = place.command("python3");
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/bridge.py")).args([from, to]);
    let mut bridge = Process::start(command, log, "python3")?;
    let there = || bridge.log().contains("ready") || bridge.ended().is_some();
    eventually("a bridge stands", Duration::from_secs(30), there).await?;
    bridge.still_runs()?;
    Ok(bridge)
}

/// Who serves at that address, and by which certificate that is believed.
fn certificate(address: std::net::IpAddr) -> Result<(TlsAcceptor, String)> {
    let mut params = CertificateParams::default();
    params.subject_alt_names.push(SanType::IpAddress(address));
    let key = KeyPair::generate().map_err(failed)?;
    let own = params.self_signed(&key).map_err(failed)?;
    let secret = PrivateKeyDer::try_from(key.serialize_der()).map_err(|why| failed(Error::other(why)))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(failed)?
        .with_no_client_auth()
        .with_single_cert(vec![own.der().clone()], secret)
        .map_err(failed)?;
    Ok((TlsAcceptor::from(Arc::new(config)), own.pem()))
}

fn connector(ca: &Path) -> Result<TlsConnector> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(ca).map_err(failed)?).map_err(failed)?;
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(failed)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// One request, and its answer; then its connection ends. Whoever asked may be gone by then: what was sent off comes all the same.
async fn serve(stream: UnixStream, state: Arc<State>) {
    // Who is cut off asks again.
    let _ = answered(stream, &state).await;
}

async fn answered(stream: UnixStream, state: &State) -> std::io::Result<()> {
    if state.turns_away() {
        return Ok(());
    }
    let mut client = state.acceptor.accept(stream).await?;
    let (asked, bytes) = request(&mut client).await?;
    let number = {
        let mut all = state.asked.lock();
        all.push(asked.clone());
        all.len() - 1
    };
    if state.holds(&asked, number) {
        // Its end is the door's.
        let _ = state.let_go.subscribe().wait_for(|free| *free).await;
    }
    if state.turns_away() {
        return Ok(());
    }
    if let Some(code) = state.fails(&asked) {
        answered_with(state, number, Some(code));
        client.write_all(&failure(code)).await?;
        return client.shutdown().await;
    }
    state.asked.lock()[number].at = SystemTime::now();
    let name = ServerName::try_from("10.250.0.1").map_err(Error::other)?;
    let mut server = state.connector.connect(name, UnixStream::connect(&state.server).await?).await?;
    server.write_all(&bytes).await?;
    let mut answer = Vec::new();
    // A server that ends without a word of TLS has ended all the same.
    let _ = server.read_to_end(&mut answer).await;
    let first = String::from_utf8_lossy(&answer[..answer.len().min(64)]).into_owned();
    answered_with(state, number, first.split(' ').nth(1).and_then(|code| code.parse().ok()));
    if state.turns_away() {
        return Ok(());
    }
    client.write_all(&answer).await?;
    client.shutdown().await
}

fn answered_with(state: &State, number: usize, status: Option<u16>) {
    let one = &mut state.asked.lock()[number];
    (one.status, one.answered) = (status, Some(SystemTime::now()));
}

impl State {
    fn turns_away(&self) -> bool {
        let shut = self.shut.load(Ordering::SeqCst);
        self.turned_away.fetch_add(usize::from(shut), Ordering::SeqCst);
        shut
    }

    fn fails(&self, asked: &Asked) -> Option<u16> {
        let mut failing = self.failing.lock();
        let place = failing.iter().position(|(_, which)| which(asked))?;
        Some(failing.swap_remove(place).0)
    }

    fn holds(&self, asked: &Asked, number: usize) -> bool {
        let mut holding = self.holding.lock();
        let Some((count, which)) = &mut *holding else { return false };
        if *count == 0 || !which(asked) {
            return false;
        }
        *count -= 1;
        self.held.lock().push(number);
        true
    }
}

/// What an API server says that is too busy, or not there yet.
fn failure(code: u16) -> Vec<u8> {
    let message = "not now: a test says so";
    let status = serde_json::json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code });
    let body = status.to_string();
    let head = "content-type: application/json\r\nretry-after: 1\r\nconnection: close";
    format!("HTTP/1.1 {code} Not Now\r\n{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// What is asked, and as it goes on from here: as the last on its connection.
async fn request(client: &mut (impl AsyncReadExt + Unpin)) -> std::io::Result<(Asked, Vec<u8>)> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if client.read_buf(&mut bytes).await? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut body = bytes.split_off(end + 4);
    let of = |line: &str, key: &str| line.to_ascii_lowercase().starts_with(key);
    let length = head.lines().find(|line| of(line, "content-length:"));
    let length = length.and_then(|line| line.split_once(':')?.1.trim().parse::<usize>().ok()).unwrap_or(0);
    while body.len() < length {
        if client.read_buf(&mut body).await? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
    let mut words = head.split_whitespace().map(str::to_owned);
    let now = SystemTime::now();
    let asked = Asked {
        method: words.next().unwrap_or_default(),
        path: words.next().unwrap_or_default(),
        body: String::from_utf8_lossy(&body).into_owned(),
        came: now,
        at: now,
        answered: None,
        status: None,
    };
    let lines = head.lines().filter(|line| !of(line, "connection:"));
    let mut whole: String = lines.map(|line| format!("{line}\r\n")).collect();
    whole += "Connection: close\r\n\r\n";
    Ok((asked, [whole.into_bytes(), body].concat()))
}
