//! Connections that stand by a certificate, for as long as a CA of `client_ca_file` vouches for it.

use std::sync::{Arc, Weak};

use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use tokio_util::sync::CancellationToken;

/// What one connection stands by.
#[derive(Debug)]
pub(crate) struct TrustedConnection {
    chain: Vec<CertificateDer<'static>>,
    /// Ends when nothing vouches for it any more.
    pub(crate) over: CancellationToken,
}

impl TrustedConnection {
    fn by(&self, verifier: &dyn ClientCertVerifier) -> Result<(), String> {
        let (first, rest) = self.chain.split_first().ok_or("no certificate was shown")?;
        let verified = verifier.verify_client_cert(first, rest, UnixTime::now());
        verified.map(|_| ()).map_err(|error| error.to_string())
    }
}

/// Those of all connections that are open.
#[derive(Debug, Default)]
pub(super) struct TrustedConnections(Vec<Weak<TrustedConnection>>);

impl TrustedConnections {
    /// One more, if the verifier in force vouches for it.
    pub(super) fn add(
        &mut self,
        chain: &[CertificateDer<'_>],
        verifier: Option<&dyn ClientCertVerifier>,
    ) -> Result<Arc<TrustedConnection>, String> {
        let chain = chain.iter().map(|one| one.clone().into_owned()).collect();
        let trusted = TrustedConnection { chain, over: CancellationToken::new() };
        verifier.map_or(Ok(()), |verifier| trusted.by(verifier))?;
        let trusted = Arc::new(trusted);
        self.0.retain(|one| one.strong_count() > 0);
        self.0.push(Arc::downgrade(&trusted));
        Ok(trusted)
    }

    /// Ends those for which another verifier does not vouch; tells how many.
    pub(super) fn judge(&mut self, verifier: &dyn ClientCertVerifier) -> usize {
        let open = self.0.iter().filter_map(Weak::upgrade);
        let fallen: Vec<_> = open.filter(|one| one.by(verifier).is_err()).collect();
        fallen.iter().for_each(|one| one.over.cancel());
        self.0.retain(|one| one.upgrade().is_some_and(|one| !one.over.is_cancelled()));
        fallen.len()
    }
}
