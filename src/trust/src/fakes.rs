//! A server's own certificate, for the tests of clients (feature `fakes`).

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// As `openssl req -x509` makes one: its own CA, without names.
#[derive(Debug)]
pub struct OwnCertificate {
    /// As a CA file has it.
    pub pem: String,
    /// The same, in DER.
    pub der: CertificateDer<'static>,
    /// A server that shows it, by TLS 1.2 and 1.3.
    pub server: ServerConfig,
}

impl OwnCertificate {
    /// Another one each time.
    ///
    /// # Panics
    /// None can be made.
    #[expect(clippy::new_without_default, reason = "no two are equal")]
    pub fn new() -> Self {
        let key = rcgen::KeyPair::generate().expect("a key");
        let mut params = rcgen::CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let made = params.self_signed(&key).expect("a certificate");
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let server = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![made.der().clone()], key)
            .expect("a certificate with its key");
        Self { pem: made.pem(), der: made.der().clone(), server }
    }
}
