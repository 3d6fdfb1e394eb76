//! The judgement of one certificate, and of the handshake that is signed with its key.

use std::fmt;
use std::sync::Arc;

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

use crate::key::Key;

const PSS: [SignatureScheme; 3] =
    [SignatureScheme::RSA_PSS_SHA256, SignatureScheme::RSA_PSS_SHA384, SignatureScheme::RSA_PSS_SHA512];

/// Which certificates are believed for themselves: whatever they say, and whoever made them.
#[derive(Debug)]
pub enum Pins {
    /// All.
    Anyone,
    /// The one with this SHA-256.
    Digest([u8; 32]),
    /// These, byte for byte.
    These(Vec<CertificateDer<'static>>),
}

impl Pins {
    fn has(&self, certificate: &CertificateDer<'_>) -> bool {
        match self {
            Self::Anyone => true,
            Self::Digest(digest) => *digest == sha256(certificate),
            Self::These(these) => these.contains(certificate),
        }
    }
}

fn sha256(certificate: &CertificateDer<'_>) -> [u8; 32] {
    Sha256::digest(certificate).into()
}

/// Believes certificates for themselves, and besides these what CAs vouch for, by all of their rules.
#[derive(Debug)]
pub struct Verifier {
    pins: Pins,
    authorities: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    /// Believes these alone.
    pub fn of(pins: Pins, provider: Arc<CryptoProvider>) -> Self {
        Self { pins, authorities: None, provider }
    }

    /// Believes what these certificates vouch for; and each of them where a server shows it as its own.
    ///
    /// A pin asks for no name and no date. The holder of its key gains nothing by that: as a CA's, it could sign any name and any
    /// date, and the dates of a CA are not looked at. A CA that is bound to some names is no pin, since its key cannot do that.
    ///
    /// # Errors
    /// Words: one of them is of no use as a CA, or there is none.
    pub fn of_authorities(
        certificates: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        let mut pins = Vec::new();
        for certificate in certificates {
            roots
                .add(certificate.clone())
                .map_err(|error| format!("has a certificate that is of no use: {error}"))?;
            if roots.roots.last().is_some_and(|root| root.name_constraints.is_none()) {
                pins.push(certificate);
            }
        }
        let authorities = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .build()
            .map_err(|error| format!("names no CA: {error}"))?;
        Ok(Self { pins: Pins::These(pins), authorities: Some(authorities), provider })
    }

    /// Who judges by rules, where the certificate is not believed for itself.
    fn strict(&self, certificate: &CertificateDer<'_>) -> Option<&WebPkiServerVerifier> {
        self.authorities.as_deref().filter(|_| !self.pins.has(certificate))
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

fn own(words: String) -> Error {
    Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(Own(words)))))
}

/// That was shown, and another one is pinned.
fn another(shown: &CertificateDer<'_>) -> Error {
    let digest: String = sha256(shown).iter().map(|byte| format!("{byte:02x}")).collect();
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
        if self.pins.has(certificate) {
            return Ok(ServerCertVerified::assertion());
        }
        match &self.authorities {
            Some(authorities) => authorities.verify_server_cert(certificate, intermediates, name, ocsp, now),
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
