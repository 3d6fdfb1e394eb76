//! The files of TLS: what must hold of them, and whether they changed.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};

use super::certificate;

/// Seconds before its end from which on a certificate is said to expire soon.
const SOON: i64 = 14 * 86_400;

/// Which files: PEM, by absolute paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The gateway's certificate, with what leads from it to its CA.
    pub certificate: PathBuf,
    /// Its key, which not everybody may read.
    pub key: PathBuf,
    /// The CAs that vouch for callers.
    pub client_ca: PathBuf,
}

/// What the files come to.
#[derive(Clone, Debug)]
pub(super) struct LoadedFiles {
    /// What TLS is spoken with.
    pub(super) config: Arc<ServerConfig>,
    /// Who vouches for callers.
    pub(super) verifier: Arc<dyn ClientCertVerifier>,
}

/// What is wrong with one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFault {
    /// The key of the settings that names the file: `cert_file`, `key_file`, `client_ca_file`.
    pub key: &'static str,
    /// What is wrong, and what would be right.
    pub message: String,
}

fn wrong(key: &'static str) -> impl Fn(String) -> TlsFault {
    move |message| TlsFault { key, message }
}

impl TlsFiles {
    /// Reads them all, and tells all that is wrong.
    pub(super) fn read(&self) -> Result<LoadedFiles, Vec<TlsFault>> {
        let mut faults = Vec::new();
        let mut keep = |fault: TlsFault| faults.push(fault);
        let chain = certificates(&self.certificate).map_err(wrong("cert_file")).map_err(&mut keep).ok();
        let key = key(&self.key).map_err(wrong("key_file")).map_err(&mut keep).ok();
        let roots = roots(&self.client_ca).map_err(wrong("client_ca_file")).map_err(&mut keep).ok();
        let (Some(chain), Some(key), Some(roots)) = (chain, key, roots) else { return Err(faults) };
        tell_expiry(&self.certificate, &chain);
        config(chain, key, roots).map_err(|fault| vec![fault])
    }

    /// When the gateway's certificate ends, and the first of the callers' CAs, in seconds since 1970. What cannot be read
    /// is left out.
    pub(super) fn ends(&self) -> Vec<(&'static str, i64)> {
        let end =
            |path: &Path, of: fn(&[CertificateDer<'static>]) -> Option<i64>| of(&certificates(path).ok()?);
        let own = end(&self.certificate, |chain| certificate::not_after(chain.first()?).ok());
        let roots =
            end(&self.client_ca, |all| all.iter().filter_map(|one| certificate::not_after(one).ok()).min());
        own.map(|end| ("server", end)).into_iter().chain(roots.map(|end| ("client_ca", end))).collect()
    }

    fn all(&self) -> [&Path; 3] {
        [&self.certificate, &self.key, &self.client_ca]
    }
}

fn config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    roots: RootCertStore,
) -> Result<LoadedFiles, TlsFault> {
    // The provider is named, so that no default of the process is needed and none can change this.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|error| wrong("client_ca_file")(format!("callers cannot be verified by it: {error}")))?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| wrong("cert_file")(format!("TLS cannot be set up: {error}")))?
        .with_client_cert_verifier(verifier.clone())
        .with_single_cert(chain, key)
        .map_err(|error| {
            wrong("key_file")(format!(
                "it does not go with the certificate in cert_file, or is of no use: {error}"
            ))
        })?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(LoadedFiles { config: Arc::new(config), verifier })
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    // Who may change the callers' CAs may call by any name.
    picket_permissions::check_if_there(path).map_err(|fault| format!("{}: {fault}", path.display()))?;
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = read.map_err(|error| format!("{} cannot be read as PEM: {error}", path.display()))?;
    if found.is_empty() {
        Err(format!("{} has no certificate in PEM form", path.display()))
    } else {
        Ok(found)
    }
}

fn roots(path: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots
            .add(certificate)
            .map_err(|error| format!("{} has a certificate that is of no use: {error}", path.display()))?;
    }
    Ok(roots)
}

/// A key in a file that nobody else may read, or change. What is in it is never told.
fn key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let shown = path.display();
    picket_permissions::check_secret(path).map_err(|fault| fault.to_string())?;
    PrivateKeyDer::from_pem_file(path).map_err(|_| format!("{shown} has no private key in PEM form"))
}

/// A certificate that has expired is served all the same: the gateway goes on for those who call over its socket.
fn tell_expiry(path: &Path, chain: &[CertificateDer<'_>]) {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let end = chain.first().and_then(|first| certificate::not_after(first).ok());
    let Some(left) = end.map(|end| end.saturating_sub_unsigned(now.as_secs())) else { return };
    let file = path.display();
    if left <= 0 {
        tracing::error!(%file, "the gateway's certificate has expired: callers will not trust it");
    } else if left < SOON {
        tracing::warn!(%file, days = left / 86_400, "the gateway's certificate expires soon");
    }
}

/// A file as it stands on the disk; another one, or other contents, has another mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileStamp {
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// Those of all files; `None` for one that is not to be had.
pub(super) type FileStamps = [Option<FileStamp>; 3];

impl FileStamp {
    pub(super) fn of(files: &TlsFiles) -> FileStamps {
        let mark = |found: Metadata| FileStamp {
            inode: found.ino(),
            size: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        };
        files.all().map(|path| std::fs::metadata(path).ok().map(mark))
    }
}
