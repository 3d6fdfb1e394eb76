//! The server: TLS with certificates of its own, and HTTP/1.1 as far as it is needed.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Mutex, MutexGuard};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::{Asked, PASSWORD, USER, World};

/// A running service.
#[derive(Debug)]
pub struct Fake {
    address: SocketAddr,
    world: Arc<Mutex<World>>,
    directory: TempDir,
    digest: String,
    task: JoinHandle<()>,
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Fake {
    /// On a free port of the loopback, with a certificate that the CA in [`Fake::ca_file`] vouches for.
    pub async fn start() -> Self {
        let ca_key = KeyPair::generate().expect("a key");
        let mut ca = CertificateParams::new(Vec::new()).expect("parameters");
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca_certificate = ca.self_signed(&ca_key).expect("a CA");
        let issuer = Issuer::new(ca, ca_key);
        let key = KeyPair::generate().expect("a key");
        let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
        let leaf = CertificateParams::new(names)
            .expect("parameters")
            .signed_by(&key, &issuer)
            .expect("a certificate");
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        Self::showing(leaf.der().clone(), key, &ca_certificate.pem()).await
    }

    /// The same with this certificate, whatever it says, and with these ones in [`Fake::ca_file`].
    pub async fn showing(leaf: CertificateDer<'static>, key: PrivateKeyDer<'static>, ca: &str) -> Self {
        let digest: String = Sha256::digest(&leaf).iter().map(|byte| format!("{byte:02X}")).collect();
        let directory = tempfile::Builder::new().prefix("picket-redfish-").tempdir().expect("a directory");
        std::fs::write(directory.path().join("ca.pem"), ca).expect("written");
        let password = directory.path().join("password");
        std::fs::write(&password, PASSWORD).expect("written");
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&password, private).expect("ours");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        // A server that is checked itself would refuse to show an odd one.
        let key = rustls::crypto::ring::sign::any_supported_type(&key).expect("a key");
        let shown = SingleCertAndKey::from(CertifiedKey::new(vec![leaf], key));
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(shown));
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let world = Arc::new(Mutex::new(World::new()));
        let task = tokio::spawn(accept(listener, acceptor, world.clone()));
        Self { address, world, directory, digest, task }
    }

    /// What is so.
    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock()
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The CA.
    pub fn ca_file(&self) -> PathBuf {
        self.directory.path().join("ca.pem")
    }

    /// Its certificate's SHA-256.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// A device's settings, with these over them; `null` takes one away.
    pub fn settings(&self, more: Value) -> serde_json::Map<String, Value> {
        let mut settings = json!({
            "host": self.address.ip().to_string(), "port": self.address.port(), "username": USER,
            "password_file": self.directory.path().join("password"), "ca_file": self.ca_file(),
        });
        for (key, value) in more.as_object().expect("a table") {
            settings[key] = value.clone();
        }
        let settings = settings.as_object().expect("a table").clone();
        settings.into_iter().filter(|(_, value)| !value.is_null()).collect()
    }
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, world: Arc<Mutex<World>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, world) = (acceptor.clone(), world.clone());
        tokio::spawn(async move {
            let epoch = {
                let mut world = world.lock();
                world.connections += 1;
                if world.silent { None } else { Some(world.epoch) }
            };
            // Who is silent does not shake hands either.
            let Some(epoch) = epoch else { return std::future::pending().await };
            let (turn, ends) = {
                let world = world.lock();
                (world.one_at_a_time.clone(), world.ends.clone())
            };
            let shaken = match &turn {
                Some(turn) => {
                    let _turn = turn.lock().await;
                    acceptor.accept(stream).await
                }
                None => acceptor.accept(stream).await,
            };
            let Ok(mut stream) = shaken else { return };
            loop {
                let over = async {
                    loop {
                        let ends = ends.notified();
                        if world.lock().epoch != epoch {
                            break;
                        }
                        ends.await;
                    }
                };
                tokio::select! {
                    biased;
                    () = over => return,
                    goes_on = serve(&mut stream, &world, epoch) => if goes_on != Some(true) { return },
                }
            }
        });
    }
}

async fn serve(stream: &mut TlsStream<TcpStream>, world: &Arc<Mutex<World>>, epoch: u64) -> Option<bool> {
    let request = listen(stream).await?;
    let turn = world.lock().one_at_a_time.clone();
    let _turn = match &turn {
        Some(turn) => Some(turn.lock().await),
        None => None,
    };
    let (reply, closes) = {
        let mut world = world.lock();
        if world.epoch != epoch {
            // Its connection ended before it was read.
            return None;
        }
        if world.silent {
            (None, true)
        } else {
            let reply = world.answer(&request);
            world.log.push(format!("{} {} {}", request.method, request.path, reply.status));
            (Some(reply), world.closes)
        }
    };
    let Some(reply) = reply else { return std::future::pending().await };
    tokio::time::sleep(reply.after).await;
    if reply.hangs_up {
        return None;
    }
    let length = match reply.cut {
        true => "Transfer-Encoding: chunked".to_owned(),
        false => format!("Content-Length: {}", reply.body.len()),
    };
    let mut head = format!("HTTP/1.1 {} Said\r\n{length}\r\n", reply.status);
    for (name, value) in &reply.head {
        head += &format!("{name}: {value}\r\n");
    }
    if closes {
        head += "Connection: close\r\n";
    }
    stream.write_all(format!("{head}\r\n").as_bytes()).await.ok()?;
    if reply.cut {
        let chunk = format!("{:x}\r\n{}\r\n", reply.body.len(), String::from_utf8_lossy(&reply.body));
        stream.write_all(chunk.as_bytes()).await.ok()?;
        stream.flush().await.ok()?;
        return None;
    }
    if reply.drip.is_zero() {
        stream.write_all(&reply.body).await.ok()?;
    } else {
        for byte in &reply.body {
            tokio::time::sleep(reply.drip).await;
            stream.write_all(&[*byte]).await.ok()?;
            stream.flush().await.ok()?;
        }
    }
    stream.flush().await.ok()?;
    let line = format!("{} {} {}", request.method, request.path, reply.status);
    world.lock().answered.push((line, Instant::now()));
    Some(!closes)
}

async fn listen(stream: &mut TlsStream<TcpStream>) -> Option<Asked> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        let mut piece = [0; 4_096];
        match stream.read(&mut piece).await.ok()? {
            0 => return None,
            len => bytes.extend_from_slice(&piece[..len]),
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
    let mut lines = head.lines();
    let mut words = lines.next()?.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let value = |name: &str| {
        head.lines()
            .filter_map(|line| line.split_once(':'))
            .find_map(|(key, value)| key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned()))
    };
    let length: usize = value("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut body = bytes[end..].to_vec();
    while body.len() < length {
        let mut piece = [0; 4_096];
        match stream.read(&mut piece).await.ok()? {
            0 => return None,
            len => body.extend_from_slice(&piece[..len]),
        }
    }
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let (token, basic, if_match) = (value("x-auth-token"), value("authorization"), value("if-match"));
    Some(Asked { method, path, token, basic, if_match, body })
}
