//! Whom TLS believes: CAs, one certificate, or, by a setting named for what it is, anybody.
//!
//! **Purpose.** One answer for every client of the gateway that reads a CA file or a certificate's digest.
//! **Non-goals.** The gateway's own door, which judges callers, is picket-server's. No connections are made here.
//! **Invariants.** A signature of the handshake is always checked: the far side holds the key of the certificate that was judged. Nothing
//! but `Believed::Anyone` turns the judgement off.

mod verifier;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, SupportedProtocolVersion, WantsVerifier};

use crate::verifier::Certain;

const VERSIONS: [&SupportedProtocolVersion; 2] = [&rustls::version::TLS13, &rustls::version::TLS12];

/// Whom to believe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Believed {
    /// The CAs of the system.
    System,
    /// The CAs in this file.
    Authorities(PathBuf),
    /// The certificate with this SHA-256, whatever else it says.
    Pinned([u8; 32]),
    /// Any certificate: a stranger on the way may answer in the service's place.
    Anyone,
}

/// TLS 1.2 and 1.3 with whom the settings believe.
///
/// # Errors
/// Words: a file that cannot be read or that somebody else may change, a system without CAs.
pub fn config(believed: &Believed) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = builder(&provider)?;
    let pinned = match believed {
        Believed::System => {
            return Ok(builder.with_root_certificates(of_the_system()?).with_no_client_auth());
        }
        Believed::Authorities(path) => {
            return Ok(builder.with_root_certificates(authorities(path)?).with_no_client_auth());
        }
        Believed::Pinned(digest) => Some(*digest),
        Believed::Anyone => None,
    };
    let verifier = Arc::new(Certain { pinned, provider });
    Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

/// For plain HTTP: no TLS can succeed with it.
///
/// # Errors
/// Words: TLS cannot be set up.
pub fn none() -> Result<ClientConfig, String> {
    let builder = builder(&Arc::new(rustls::crypto::ring::default_provider()))?;
    Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}

/// The provider is named, so that no default of the process is needed and none can change this.
fn builder(provider: &Arc<CryptoProvider>) -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, String> {
    ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&VERSIONS)
        .map_err(|error| format!("TLS cannot be set up: {error}"))
}

/// The CAs in a file.
///
/// # Errors
/// Words, with the file's name.
pub fn authorities(path: &Path) -> Result<RootCertStore, String> {
    let shown = path.display();
    let wrong =
        |error: &dyn std::fmt::Display| format!("{shown} cannot be read as PEM certificates: {error}");
    // Who may change whom we believe may answer in the place of the service.
    picket_permissions::check_if_there(path).map_err(|why| format!("{shown}: {why}"))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| wrong(&error))? {
        let certificate = certificate.map_err(|error| wrong(&error))?;
        roots
            .add(certificate)
            .map_err(|error| format!("{shown} has a certificate that is of no use: {error}"))?;
    }
    if roots.is_empty() { Err(format!("{shown} has no certificate in PEM form")) } else { Ok(roots) }
}

fn of_the_system() -> Result<RootCertStore, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // Systems carry some that cannot be used; what matters is that there are others.
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why = found.errors.first().map(|error| format!(": {error}")).unwrap_or_default();
        return Err(format!(
            "the system has no CA certificates{why}; name the CA of the service, or its certificate, in ca_file"
        ));
    }
    Ok(roots)
}
