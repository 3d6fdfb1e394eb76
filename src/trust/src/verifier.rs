//! The judgement of one certificate, and of the handshake that is signed with its key.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use ring::signature::{
    RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY, RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY,
    UnparsedPublicKey, VerificationAlgorithm,
};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::{
    CertificateError, DigitallySignedStruct, Error, OtherError, PeerMisbehaved, RootCertStore,
    SignatureScheme,
};
use sha2::{Digest, Sha256};

use crate::failure::reason;
use crate::key::Key;

const PSS: [SignatureScheme; 3] =
    [SignatureScheme::RSA_PSS_SHA256, SignatureScheme::RSA_PSS_SHA384, SignatureScheme::RSA_PSS_SHA512];

/// Which certificate is believed for itself: whatever it says, and whoever made it.
#[derive(Debug)]
pub enum Pin {
    /// None.
    Nobody,
    /// The one with this SHA-256.
    Digest([u8; 32]),
    /// Any.
    Anyone,
}

impl Pin {
    fn has(&self, certificate: &CertificateDer<'_>) -> bool {
        match self {
            Self::Nobody => false,
            Self::Digest(digest) => *digest == sha256(certificate),
            Self::Anyone => true,
        }
    }
}

fn sha256(certificate: &CertificateDer<'_>) -> [u8; 32] {
    Sha256::digest(certificate).into()
}

/// What a CA file vouches for, by all rules.
#[derive(Debug)]
struct Authorities {
    rules: Arc<WebPkiServerVerifier>,
    /// All that stand in the file.
    file: Vec<CertificateDer<'static>>,
}

impl Authorities {
    /// The error, with what would be right.
    fn told(&self, shown: &CertificateDer<'_>, error: Error) -> Error {
        let Error::InvalidCertificate(why) = &error else { return error };
        let right = if !self.file.contains(shown) {
            "expected one that a CA in the CA file vouches for, or that is the only one in that file"
        } else if self.file.len() > 1 {
            "it stands in the CA file beside others, and so is believed by these rules alone: as the service's own certificate it needs \
             a file of its own"
        } else {
            "it is the only one in the CA file, but a CA that is bound to some names (name constraints), and so no service's own \
             certificate"
        };
        own(format!("{}; {right}", reason(why)))
    }
}

/// Believes one certificate for itself, and besides that what CAs vouch for, by all of their rules.
#[derive(Debug)]
pub struct Verifier {
    pin: Pin,
    authorities: Option<Authorities>,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    /// Believes that alone.
    pub fn of(pin: Pin, provider: Arc<CryptoProvider>) -> Self {
        Self { pin, authorities: None, provider }
    }

    /// Believes what the certificates of a file vouch for; and the only one of a file where a server shows it as its own.
    ///
    /// A pin asks for no name, no date and no length of its key. One of many would be believed at each address at which another of them is
    /// meant; a CA of 1024 bits, which vouches for nobody by the rules, would be every server. A CA that is bound to some names is no pin:
    /// its key vouches for these alone.
    ///
    /// # Errors
    /// Words: none of them is of use as a CA.
    pub fn of_authorities(
        file: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        let mut useless = None;
        for certificate in &file {
            if let Err(error) = roots.add(certificate.clone()) {
                let why = match &error {
                    Error::InvalidCertificate(why) => reason(why),
                    other => other.to_string(),
                };
                warn_once(certificate, &why);
                useless.get_or_insert(why);
            }
        }
        let pin = match (&file[..], &roots.roots[..]) {
            ([only], [root]) if root.name_constraints.is_none() => Pin::Digest(sha256(only)),
            _ => Pin::Nobody,
        };
        let rules = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
        let rules = rules.map_err(|error| match useless {
            Some(useless) => format!("has no certificate that is of use: {useless}"),
            None => format!("names no CA: {error}"),
        })?;
        Ok(Self { pin, authorities: Some(Authorities { rules, file }), provider })
    }

    /// Who judges by rules, where the certificate is not believed for itself.
    fn strict(&self, certificate: &CertificateDer<'_>) -> Option<&WebPkiServerVerifier> {
        self.authorities
            .as_ref()
            .filter(|_| !self.pin.has(certificate))
            .map(|authorities| &*authorities.rules)
    }

    /// Whether the key of that certificate, and no other, signed that (RFC 5246, 7.4.3).
    fn is_signed(&self, message: &[u8], key: Key<'_>, signed: &DigitallySignedStruct) -> bool {
        if key.is_rsa() {
            let short: Option<&dyn VerificationAlgorithm> = match signed.scheme {
                SignatureScheme::RSA_PKCS1_SHA256 => Some(&RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY),
                SignatureScheme::RSA_PKCS1_SHA512 => Some(&RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY),
                _ => None,
            };
            if let Some(algorithm) = short {
                let key = UnparsedPublicKey::new(algorithm, key.bits);
                return key.verify(message, signed.signature()).is_ok();
            }
        }
        let mapping = self.provider.signature_verification_algorithms.mapping;
        let of_scheme = mapping.iter().filter(|(scheme, _)| *scheme == signed.scheme);
        of_scheme.flat_map(|(_, algorithms)| *algorithms).any(|algorithm| {
            algorithm.public_key_alg_id().as_ref() == key.algorithm
                && algorithm.verify_signature(key.bits, message, signed.signature()).is_ok()
        })
    }
}

/// Of each certificate once: a file is read anew at each connection.
fn warn_once(certificate: &CertificateDer<'_>, why: &str) {
    static TOLD: Mutex<BTreeSet<[u8; 32]>> = Mutex::new(BTreeSet::new());
    let digest = sha256(certificate);
    if TOLD.lock().insert(digest) {
        let sha256 = hexadecimal(&digest);
        tracing::warn!(sha256, why, "a certificate of a CA file is of no use: it is skipped");
    }
}

fn hexadecimal(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn own(words: String) -> Error {
    Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(Own(words)))))
}

/// That was shown, and another one is pinned.
fn another(shown: &CertificateDer<'_>) -> Error {
    let digest = hexadecimal(&sha256(shown));
    own(format!("it is another one than the pinned one: its SHA-256 is {digest}"))
}

/// Why a signature counts for nothing, where that certificate's key should have made it.
fn unsigned(key: Key<'_>, signed: &DigitallySignedStruct) -> Error {
    let is_pss = PSS.contains(&signed.scheme);
    match key.rsa_bits() {
        // What is not checked may still be its own: a signature has the length of its modulus.
        Some(bits)
            if bits < 2048
                && (is_pss || signed.scheme == SignatureScheme::RSA_PKCS1_SHA384)
                && signed.signature().len() == bits.div_ceil(8) =>
        {
            let or = if is_pss { ", or switch its TLS 1.3 off, which has PSS alone" } else { "" };
            own(format!(
                "its RSA key has {bits} bits, and signed by {:?}; of one with fewer than 2048 bits a signature counts by PKCS #1 with \
                 SHA-256 or SHA-512 alone: give the service a longer key{or}",
                signed.scheme
            ))
        }
        _ => CertificateError::BadSignature.into(),
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.pin.has(certificate) {
            return Ok(ServerCertVerified::assertion());
        }
        match &self.authorities {
            Some(authorities) => {
                let judged =
                    authorities.rules.verify_server_cert(certificate, intermediates, name, ocsp, now);
                judged.map_err(|error| authorities.told(certificate, error))
            }
            None => Err(another(certificate)),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if let Some(strict) = self.strict(certificate) {
            return strict.verify_tls12_signature(message, certificate, signed);
        }
        let key = Key::of(certificate).ok_or(CertificateError::BadEncoding)?;
        if !self.supported_verify_schemes().contains(&signed.scheme) {
            return Err(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into());
        }
        if self.is_signed(message, key, signed) {
            Ok(HandshakeSignatureValid::assertion())
        } else {
            Err(unsigned(key, signed))
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if let Some(strict) = self.strict(certificate) {
            return strict.verify_tls13_signature(message, certificate, signed);
        }
        let key = Key::of(certificate).ok_or(CertificateError::BadEncoding)?;
        let info = SubjectPublicKeyInfoDer::from(key.info);
        let algorithms = &self.provider.signature_verification_algorithms;
        let checked = verify_tls13_signature_with_raw_key(message, &info, signed, algorithms);
        checked.map_err(|error| match error {
            Error::InvalidCertificate(_) => unsigned(key, signed),
            other => other,
        })
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let mut schemes = self.provider.signature_verification_algorithms.supported_schemes();
        // Of short keys PKCS #1 alone can be checked: it stands before PSS, so that a server of TLS 1.2 takes it.
        schemes.sort_by_key(|scheme| PSS.contains(scheme));
        schemes
    }
}

/// What no rule of the library's says, in whole words.
#[derive(Debug)]
pub struct Own(String);

impl fmt::Display for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Own {}
