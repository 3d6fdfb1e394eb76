//! The certificates of simulated BMCs: an authority of the process's own, and one certificate an address, made when it is
//! first asked for.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType, SigningKey};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::{default_provider, sign};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::sign::{CertifiedKey, SingleCertAndKey};

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

/// Who made a certificate, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IssuerKind {
    /// The authority.
    Authority,
    /// The BMC itself, as `openssl req -x509` does it: `CA:TRUE`, no name.
    Itself,
    /// The same, as X.509 v1.
    ItselfV1,
}

/// A certificate as it is shown.
#[derive(Clone, Debug)]
pub(crate) struct ShownCertificate {
    maker: IssuerKind,
    pub(crate) der: CertificateDer<'static>,
    /// TLS 1.2 and 1.3 with it.
    pub(crate) server: Arc<ServerConfig>,
}

/// One BMC's certificate.
#[derive(Debug)]
pub(crate) struct Certificate {
    authority: Mutex<Arc<Authority>>,
    made: Mutex<Option<ShownCertificate>>,
    /// How many times it became another one.
    renewals: AtomicU64,
    /// Handshakes with the present one.
    handshakes: AtomicU64,
}

impl Certificate {
    pub(crate) fn of(authority: &Arc<Authority>) -> Self {
        let (renewals, handshakes) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { authority: Mutex::new(authority.clone()), made: Mutex::new(None), renewals, handshakes }
    }

    /// It is another one, by the same authority.
    pub(crate) fn renew(&self) {
        let mut made = self.made.lock();
        self.renewals.fetch_add(1, Ordering::Relaxed);
        self.handshakes.store(0, Ordering::Relaxed);
        *made = None;
    }

    /// How many times it became another one.
    pub(crate) fn renewals(&self) -> u64 {
        self.renewals.load(Ordering::Relaxed)
    }

    /// A client took it that came after so many renewals.
    pub(crate) fn shown(&self, renewals: u64) {
        let _made = self.made.lock();
        if renewals == self.renewals() {
            self.handshakes.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Handshakes with the present one.
    pub(crate) fn handshakes(&self) -> u64 {
        self.handshakes.load(Ordering::Relaxed)
    }

    /// From the next connection on it is another one, by an authority that nobody knows.
    pub(crate) fn forge(&self) -> Result<(), PkiError> {
        *self.authority.lock() = Arc::new(Authority::new()?);
        self.renew();
        Ok(())
    }

    /// The one that is shown now, if that is who makes it.
    pub(crate) fn shown_at(&self, address: IpAddr, maker: IssuerKind) -> Result<ShownCertificate, PkiError> {
        let mut made = self.made.lock();
        if let Some(made) = made.as_ref().filter(|made| made.maker == maker) {
            return Ok(made.clone());
        }
        let key = KeyPair::generate()?;
        let der = self.make(address, maker, &key)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        // A server that looked at its own certificate would refuse to show an odd one.
        let shown = CertifiedKey::new(vec![der.clone()], sign::any_supported_type(&key)?);
        let config = ServerConfig::builder_with_provider(default_provider().into())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(shown)));
        self.handshakes.store(0, Ordering::Relaxed);
        Ok(made.insert(ShownCertificate { maker, der, server: Arc::new(config) }).clone())
    }

    fn make(
        &self,
        address: IpAddr,
        maker: IssuerKind,
        key: &KeyPair,
    ) -> Result<CertificateDer<'static>, PkiError> {
        let mut params = CertificateParams::new(Vec::<String>::new())?;
        params.distinguished_name.push(DnType::CommonName, address.to_string());
        if maker == IssuerKind::Authority {
            params.subject_alt_names.push(SanType::IpAddress(address));
            let authority = self.authority.lock().clone();
            return Ok(params.signed_by(key, &authority.issuer)?.der().clone());
        }
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let own = params.self_signed(key)?.der().clone();
        match maker {
            IssuerKind::ItselfV1 => first_version(&own, key),
            _ => Ok(own),
        }
    }
}

/// The same certificate as X.509 v1 (RFC 5280 §4.1): without its number of version and its extensions.
fn first_version(third: &[u8], key: &KeyPair) -> Result<CertificateDer<'static>, PkiError> {
    const VERSION: u8 = 0xA0;
    const EXTENSIONS: u8 = 0xA3;
    let parts = |der| Element::all(der).ok_or(rcgen::Error::CouldNotParseCertificate);
    let whole = parts(third)?.first().map(|whole| whole.content).unwrap_or_default();
    let [told, algorithm, _] = parts(whole)?[..] else {
        return Err(rcgen::Error::CouldNotParseCertificate.into());
    };
    let kept = parts(told.content)?.into_iter().filter(|part| ![VERSION, EXTENSIONS].contains(&part.tag));
    let told = element(0x30, &kept.flat_map(|part| part.whole.to_vec()).collect::<Vec<_>>());
    // A bit string begins with how many of its last bits do not count.
    let signature = element(0x03, &[&[0], &key.sign(&told)?[..]].concat());
    Ok(element(0x30, &[&told, algorithm.whole, &signature].concat()).into())
}

/// An element of DER.
#[derive(Clone, Copy)]
struct Element<'a> {
    tag: u8,
    content: &'a [u8],
    whole: &'a [u8],
}

impl<'a> Element<'a> {
    /// Those that stand one after the other, each of less than 64 KiB.
    fn all(mut der: &'a [u8]) -> Option<Vec<Self>> {
        let mut all = Vec::new();
        while let [tag, first, ..] = *der {
            let (head, length) = match first {
                0x81 => (3, usize::from(*der.get(2)?)),
                0x82 => (4, usize::from(u16::from_be_bytes([*der.get(2)?, *der.get(3)?]))),
                short => (2, usize::from(short)),
            };
            let (whole, rest) = der.split_at_checked(head + length)?;
            all.push(Self { tag, content: &whole[head..], whole });
            der = rest;
        }
        Some(all)
    }
}

/// One element of DER, of less than 64 KiB.
fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let [.., high, low] = content.len().to_be_bytes();
    let head = match (high, low) {
        (0, ..0x80) => vec![tag, low],
        (0, _) => vec![tag, 0x81, low],
        _ => vec![tag, 0x82, high, low],
    };
    [&head, content].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The object identifiers 2.5.29.17 (subjectAltName) and 2.5.29.19 (basicConstraints) as DER, the latter with `CA:TRUE`.
    const NAMES: &[u8] = &[0x55, 0x1D, 0x11];
    const IS_A_CA: &[u8] = &[0x55, 0x1D, 0x13, 0x01, 0x01, 0xFF, 0x04, 0x05, 0x30, 0x03, 0x01, 0x01, 0xFF];

    fn made(maker: IssuerKind) -> ShownCertificate {
        let authority = Arc::new(Authority::new().expect("a key"));
        let address = IpAddr::from([127, 6, 1, 1]);
        Certificate::of(&authority).shown_at(address, maker).expect("a certificate")
    }

    fn has(der: &[u8], part: &[u8]) -> bool {
        der.windows(part.len()).any(|here| here == part)
    }

    fn within(der: &[u8]) -> Vec<Element<'_>> {
        Element::all(der).expect("DER")
    }

    #[test]
    fn an_own_certificate_says_ca_and_no_name() {
        let of = |maker| {
            let der = made(maker).der;
            (has(&der, NAMES), has(&der, IS_A_CA))
        };
        assert_eq!(of(IssuerKind::Authority), (true, false));
        assert_eq!(of(IssuerKind::Itself), (false, true));
        assert_eq!(of(IssuerKind::ItselfV1), (false, false));
    }

    #[test]
    fn a_certificate_of_x509_v1_is_signed_without_version_and_extensions() {
        for (maker, parts) in [(IssuerKind::Itself, 8), (IssuerKind::ItselfV1, 6)] {
            let der = made(maker).der;
            let [signed, _, signature] = within(within(&der)[0].content)[..] else { panic!("three parts") };
            let told = within(signed.content);
            assert_eq!(told.len(), parts, "{maker:?}");
            // Its key is the last of the six, a bit string after an algorithm.
            let key = told[told.len() - if parts == 8 { 2 } else { 1 }];
            let key = &within(key.content)[1].content[1..];
            let known = default_provider().signature_verification_algorithms.all;
            let is_right = |one: &&dyn tokio_rustls::rustls::pki_types::SignatureVerificationAlgorithm| {
                one.verify_signature(key, signed.whole, &signature.content[1..]).is_ok()
            };
            assert!(known.iter().any(is_right), "{maker:?}");
        }
    }

    #[test]
    fn a_certificate_stays_until_somebody_else_makes_it() {
        let authority = Arc::new(Authority::new().expect("a key"));
        let certificate = Certificate::of(&authority);
        let shown =
            |maker| certificate.shown_at(IpAddr::from([127, 6, 1, 1]), maker).expect("a certificate").der;
        let first = shown(IssuerKind::Authority);
        assert_eq!(shown(IssuerKind::Authority), first);
        let own = shown(IssuerKind::Itself);
        assert_eq!(shown(IssuerKind::Itself), own);
        assert_ne!(own, first);
        certificate.renew();
        assert_ne!(shown(IssuerKind::Itself), own);
    }
}
