//! OpenStack's sushy-emulator, untouched: a Redfish service whose machines fall, and rise, 1 to 11 s after the command. It has no
//! sessions, and closes each connection after its answer.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use self::hand::Hand;
use super::{ADMIN, HANGS, PASSWORD, Process, Truth, fresh_address, peer_file, python};
use crate::error::{PeerError, Result};

mod hand;

/// Its machines' UUIDs, which are their ids too.
pub const SYSTEMS: [&str; 2] =
    ["27946b59-9e44-4fa7-8e91-f3527a1ef094", "27946b59-9e44-4fa7-8e91-f3527a1ef095"];

/// Runs the emulator's own main, with its arguments.
const MAIN: &str = "import sys; from sushy_tools.emulator.main import main; sys.exit(main())";
/// The only hash that the emulator takes.
const HASH: &str =
    "import bcrypt, sys; print(bcrypt.hashpw(sys.argv[1].encode(), bcrypt.gensalt(4)).decode())";

/// A running emulator with the account [`ADMIN`] and two machines, which are on.
#[derive(Debug)]
pub struct Sushy {
    address: SocketAddr,
    process: Process,
    hand: Mutex<Hand>,
    directory: TempDir,
}

/// What the layer before an emulator does wrong, and to which requests; see `tests/peers/sushy_layer.py`.
#[derive(Clone, Debug)]
pub struct SushyFault {
    /// The end of the request's line, after its method: `POST ...Reset`.
    pub at: &'static str,
    /// What: `busy`, `throttled`, `task`, `already`, `unanswered`, `cut`, `slow`, `forgotten`, `full`, `gentle`.
    pub what: &'static str,
    /// So often.
    pub times: u32,
    /// How long it takes, in seconds.
    pub after: f32,
}

impl SushyFault {
    /// So often, at once.
    pub fn new(at: &'static str, what: &'static str, times: u32) -> Self {
        Self { at, what, times, after: 0.0 }
    }
}

impl Sushy {
    /// Starts one.
    pub async fn start() -> Result<Self> {
        Self::begin(false).await
    }

    /// The same behind a layer of ours, which has sessions and, when it is told so, faults.
    pub async fn in_sessions() -> Result<Self> {
        Self::begin(true).await
    }

    async fn begin(layered: bool) -> Result<Self> {
        let directory = tempfile::Builder::new()
            .prefix("picket-sushy-")
            .tempdir()
            .map_err(PeerError::io("create an emulator's directory"))?;
        let address = fresh_address();
        let place = |name: &str| directory.path().join(name);
        let write = |name: &str, text: String| {
            std::fs::write(place(name), text).map_err(PeerError::io(format!("write {name}")))
        };
        let (ca, certificate, key) = certificates(address);
        write("ca.pem", ca)?;
        write("cert.pem", certificate)?;
        write("key.pem", key)?;
        let python = python::interpreter()?;
        let hashed = Command::new(&python)
            .args(["-c", HASH, PASSWORD])
            .output()
            .map_err(PeerError::io("run python"))?;
        write("htpasswd", format!("{ADMIN}:{}", String::from_utf8_lossy(&hashed.stdout)))?;
        let systems: Vec<String> = (1..)
            .zip(SYSTEMS)
            .map(|(n, uuid)| {
                format!(
                    "{{'uuid': '{uuid}', 'name': 'node{n}', 'power_state': 'On', 'external_notifier': False, \
                     'nics': [{{'mac': '00:5c:52:31:3a:{n:02x}', 'ip': '172.22.0.{n}'}}]}}"
                )
            })
            .collect();
        write(
            "emulator.conf",
            format!(
                "SUSHY_EMULATOR_LISTEN_IP = '{}'\nSUSHY_EMULATOR_LISTEN_PORT = {}\nSUSHY_EMULATOR_SSL_CERT = {:?}\n\
                 SUSHY_EMULATOR_SSL_KEY = {:?}\nSUSHY_EMULATOR_AUTH_FILE = {:?}\nSUSHY_EMULATOR_FAKE_DRIVER = True\n\
                 SUSHY_EMULATOR_STATE_DIR = {:?}\nSUSHY_EMULATOR_FAKE_SYSTEMS = [{}]\n",
                address.ip(),
                address.port(),
                place("cert.pem"),
                place("key.pem"),
                place("htpasswd"),
                directory.path(),
                systems.join(", ")
            ),
        )?;
        let mut command = Command::new(&python);
        match layered {
            true => command.arg(peer_file("sushy_layer.py")).arg(directory.path()).args([ADMIN, PASSWORD]),
            false => command.args(["-c", MAIN]),
        };
        command.arg("--config").arg(place("emulator.conf"));
        let mut process = Process::start(command, &place("emulator.log"), "python3-venv")?;
        until_it_listens(&mut process, address).await?;
        let hand = Mutex::new(Hand::at(directory.path())?);
        Ok(Self { address, process, hand, directory })
    }

    /// Where it listens (TCP).
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its process, to freeze, thaw or kill.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// The CA of its certificate.
    pub fn ca_file(&self) -> PathBuf {
        self.directory.path().join("ca.pem")
    }

    /// Another CA's certificate, which vouches for nobody here.
    pub fn foreign_ca(&self) -> Result<PathBuf> {
        let path = self.directory.path().join("foreign.pem");
        std::fs::write(&path, certificates(self.address).0).map_err(PeerError::io("write a CA"))?;
        Ok(path)
    }

    /// Whether a machine is on, asked by another client. What cannot be asked counts as on.
    pub fn truth(&self, system: &str) -> Truth {
        let url = format!("https://{}/redfish/v1/Systems/{system}", self.address);
        let (ca, python) = (self.ca_file(), python::interpreter());
        Arc::new(move || {
            let Ok(python) = &python else { return true };
            let mut command = Command::new(python);
            command.arg(peer_file("redfish_power.py")).arg(&url).arg(&ca).args([ADMIN, PASSWORD]);
            let Ok(said) = command.output() else { return true };
            if !said.status.success() {
                eprintln!("{url} cannot be asked: {}", String::from_utf8_lossy(&said.stderr));
            }
            String::from_utf8_lossy(&said.stdout).trim() != "Off"
        })
    }

    /// Somebody else's hand, at once and for certain: what a machine's power says from now on (`On`, `Off`, or any word).
    pub fn switch(&self, system: &str, word: &str) -> Result<()> {
        self.hand(system, word).map(drop)
    }

    /// Whether a machine is on, by the emulator's own state: no request is made for it.
    pub fn is_on(&self, system: &str) -> Result<bool> {
        Ok(self.hand(system, "look")? != "Off")
    }

    fn hand(&self, system: &str, word: &str) -> Result<String> {
        self.hand.lock().ask(system, word)
    }

    /// From now on it does these wrong, and nothing else.
    pub fn faults(&self, faults: &[SushyFault]) -> Result<()> {
        let said: Vec<String> = faults
            .iter()
            .map(|SushyFault { at, what, times, after }| {
                format!("{{\"at\": {at:?}, \"do\": {what:?}, \"times\": {times}, \"after\": {after}, \"retry\": 1}}")
            })
            .collect();
        let (place, new) =
            (self.directory.path().join("faults.json"), self.directory.path().join("faults.new"));
        let written = std::fs::write(&new, format!("[{}]", said.join(", ")));
        written.and_then(|()| std::fs::rename(&new, &place)).map_err(PeerError::io("write the faults"))
    }

    /// How many sessions were made, and how many of them are open.
    pub fn sessions(&self) -> Result<(u64, u64)> {
        let text = std::fs::read_to_string(self.directory.path().join("sessions.json"));
        let text = text.map_err(PeerError::io("read how many sessions there are"))?;
        let number = |key: &str| {
            let rest = text.split_once(&format!("\"{key}\": ")).map(|(_, rest)| rest).unwrap_or_default();
            rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0)
        };
        Ok((number("made"), number("open")))
    }

    /// How many resets it was sent, as it logged them.
    pub fn resets(&self) -> usize {
        self.process
            .log()
            .lines()
            .filter(|line| line.contains("POST") && line.contains("ComputerSystem.Reset"))
            .count()
    }
}

async fn until_it_listens(process: &mut Process, address: SocketAddr) -> Result<()> {
    let deadline = Instant::now() + HANGS;
    while TcpStream::connect(address).await.is_err() {
        process.still_runs()?;
        if Instant::now() >= deadline {
            let what = "sushy-emulator listens".to_owned();
            return Err(PeerError::TimedOut { what, within: HANGS, seen: process.log() });
        }
        sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// A CA, and a certificate of its for the address with its key, all in PEM.
fn certificates(address: SocketAddr) -> (String, String, String) {
    let ca_key = KeyPair::generate().expect("a key");
    let mut ca = CertificateParams::default();
    // Named otherwise than the certificate below: OpenSSL takes one that its own name vouches for as signed by itself.
    ca.distinguished_name.push(DnType::CommonName, "the test's CA");
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca_certificate = ca.self_signed(&ca_key).expect("a CA");
    let issuer = Issuer::new(ca, ca_key);
    let key = KeyPair::generate().expect("a key");
    let leaf = CertificateParams::new(vec![address.ip().to_string()]).expect("a name");
    let leaf = leaf.signed_by(&key, &issuer).expect("a certificate");
    (ca_certificate.pem(), leaf.pem(), key.serialize_pem())
}
