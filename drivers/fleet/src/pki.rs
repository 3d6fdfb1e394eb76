//! The certificates of simulated BMCs: an authority of the process's own, and one certificate an address, made when it is
//! first asked for.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// It cannot be made.
    #[error("a certificate for a simulated BMC cannot be made")]
    Make(#[from] rcgen::Error),
    /// TLS does not take it.
    #[error("TLS does not take the certificate of a simulated BMC")]
    Take(#[from] tokio_rustls::rustls::Error),
}

/// The authority behind all certificates of a fleet.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    /// A new one, of this process alone.
    ///
    /// # Errors
    /// No key could be made.
    pub fn new() -> Result<Self, PkiError> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(Vec::<String>::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "simulated BMCs");
        let pem = params.self_signed(&key)?.pem();
        Ok(Self { issuer: Issuer::new(params, key), pem })
    }

    /// Its own certificate, which clients may trust.
    pub fn pem(&self) -> &str {
        &self.pem
    }
}

/// One BMC's certificate.
#[derive(Debug)]
pub(crate) struct Certificate {
    authority: Mutex<Arc<Authority>>,
    made: Mutex<Option<Arc<ServerConfig>>>,
}

impl Certificate {
    pub(crate) fn of(authority: &Arc<Authority>) -> Self {
        Self { authority: Mutex::new(authority.clone()), made: Mutex::new(None) }
    }

    /// From the next connection on it is another one, by the same authority.
    pub(crate) fn renew(&self) {
        *self.made.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// From the next connection on it is another one, by an authority that nobody knows.
    pub(crate) fn forge(&self) -> Result<(), PkiError> {
        *self.authority.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(Authority::new()?);
        self.renew();
        Ok(())
    }

    /// TLS 1.2 and 1.3 with it.
    pub(crate) fn server(&self, address: IpAddr) -> Result<Arc<ServerConfig>, PkiError> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = &*made {
            return Ok(config.clone());
        }
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(Vec::<String>::new())?;
        params.distinguished_name.push(DnType::CommonName, address.to_string());
        params.subject_alt_names.push(SanType::IpAddress(address));
        let authority = self.authority.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let certificate = params.signed_by(&key, &authority.issuer)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = tokio_rustls::rustls::crypto::ring::default_provider();
        let config = ServerConfig::builder_with_provider(provider.into())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)?;
        Ok(made.insert(Arc::new(config)).clone())
    }
}
