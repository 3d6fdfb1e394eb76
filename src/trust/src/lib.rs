//! Whom TLS believes: CAs, one certificate, or, by a setting named for what it is, anybody.
//!
//! **Purpose.** One answer for every client of the gateway that reads a CA file or a certificate's digest.
//! `failure` says in words why a handshake came to nothing.
//! **Non-goals.** The gateway's own door, which judges callers, is picket-server's (`tls`). No connections
//! are made here.
//!
//! # Invariants
//!
//! - A signature of the handshake is always checked: the far side holds the key of the certificate that was
//!   judged. Shown by `who_shows_a_pinned_certificate_without_its_key_is_refused`.
//! - A certificate that the settings name itself (its digest, or byte for byte in a CA file) is asked for
//!   nothing else. Shown by `a_certificate_is_pinned_whatever_else_it_says`.
//! - What a CA vouches for is judged by all rules, its key and signature too (`verifier::strict`). Shown by
//!   `what_a_ca_vouches_for_is_judged_by_all_rules`.
//! - Nothing but `Believed::Anyone` turns the judgement off.

mod failure;
#[cfg(feature = "fakes")]
pub mod fakes;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod key;
mod verifier;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, SupportedProtocolVersion, WantsVerifier};

pub use crate::failure::{Failure, failure};
use crate::verifier::{Pin, Verifier};

const VERSIONS: [&SupportedProtocolVersion; 2] = [&rustls::version::TLS13, &rustls::version::TLS12];

/// Whom to believe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Believed {
    /// The CAs of the system.
    System,
    /// What the certificates in this file vouch for; and where there is one alone, that one as a server's own.
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
    let verifier: Arc<dyn ServerCertVerifier> = match believed {
        Believed::System => {
            return Ok(builder.with_root_certificates(of_the_system()?).with_no_client_auth());
        }
        Believed::Authorities(path) => verifier(path)?,
        Believed::Pinned(digest) => Arc::new(Verifier::of(Pin::Digest(*digest), provider)),
        Believed::Anyone => Arc::new(Verifier::of(Pin::Anyone, provider)),
    };
    Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

/// Who believes the certificates in that file: what they vouch for; and where there is one alone, that one as a server's own.
///
/// # Errors
/// Words, with the file's name: it cannot be read, somebody else may change it, or it has no certificate of use.
pub fn verifier(path: &Path) -> Result<Arc<dyn ServerCertVerifier>, String> {
    let shown = path.display();
    let wrong =
        |error: &dyn std::fmt::Display| format!("{shown} cannot be read as PEM certificates: {error}");
    // Who may change whom we believe may answer in the place of the service.
    picket_permissions::check_if_there(path).map_err(|why| format!("{shown}: {why}"))?;
    let read = CertificateDer::pem_file_iter(path).map_err(|error| wrong(&error))?;
    let certificates: Vec<_> = read.collect::<Result<_, _>>().map_err(|error| wrong(&error))?;
    if certificates.is_empty() {
        return Err(format!("{shown} has no certificate in PEM form"));
    }
    verifier_of(certificates).map_err(|why| format!("{shown} {why}"))
}

/// The same of certificates that were read already, all of a place. One that is of no use is skipped, and told in the log, once.
///
/// # Errors
/// Words: that place has none of use.
pub fn verifier_of(
    certificates: Vec<CertificateDer<'static>>,
) -> Result<Arc<dyn ServerCertVerifier>, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(Arc::new(Verifier::of_authorities(certificates, provider)?))
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
