//! Whom we believe: a CA, one certificate, or, by a setting named for what it is, anybody.
//!
//! **Invariant.** A signature of the handshake is always checked: whoever answers holds the key of the certificate that was judged.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    SupportedProtocolVersion,
};
use sha2::{Digest, Sha256};

use picket_driver::source;

use crate::settings::Believed;

const VERSIONS: [&SupportedProtocolVersion; 2] = [&rustls::version::TLS13, &rustls::version::TLS12];

/// TLS 1.2 and 1.3 with whom the settings believe.
///
/// # Errors
/// Words: a file that cannot be read, a system without CAs.
pub fn config(believed: &Believed) -> Result<ClientConfig, String> {
    // The provider is named, so that no default of the process is needed and none can change this.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&VERSIONS)
        .map_err(|error| format!("TLS cannot be set up: {error}"))?;
    let mut config = match believed {
        Believed::System => builder.with_root_certificates(of_the_system()?).with_no_client_auth(),
        Believed::Authorities(path) => {
            builder.with_root_certificates(authorities(path)?).with_no_client_auth()
        }
        Believed::Pinned(_) | Believed::Anyone => {
            let pinned = match believed {
                Believed::Pinned(digest) => Some(*digest),
                _ => None,
            };
            let verifier = Arc::new(Certain { pinned, provider });
            builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
        }
    };
    // Each connection judges the certificate anew: a service that was replaced is not believed for its ticket's sake.
    config.resumption = rustls::client::Resumption::disabled();
    Ok(config)
}

/// The CAs in a file.
///
/// # Errors
/// Words, with the file's name.
pub fn authorities(path: &Path) -> Result<RootCertStore, String> {
    let shown = path.display();
    let wrong =
        |error: &dyn std::fmt::Display| format!("{shown} cannot be read as PEM certificates: {error}");
    // Who may change whom we believe may answer Off in the place of the service.
    source::unchanged(path).map_err(|why| format!("{shown}: {why}"))?;
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
        return Err(
            "the system has no CA certificates: name the service's in ca_file, or its certificate in \
                    certificate_sha256"
                .to_owned(),
        );
    }
    Ok(roots)
}

/// Takes the one certificate, or any.
#[derive(Debug)]
struct Certain {
    pinned: Option<[u8; 32]>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Certain {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let digest: [u8; 32] = Sha256::digest(certificate.as_ref()).into();
        match self.pinned {
            Some(pinned) if pinned != digest => {
                Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
            }
            _ => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
