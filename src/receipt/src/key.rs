//! One key pair, Ed25519 (RFC 8032).

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use picket_core::receipt::ReceiptOrder;
use ring::signature::{Ed25519KeyPair, KeyPair};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::body::Body;
use crate::signed::{Signed, signed_bytes};

/// What stands before the 32 bytes of the seed in PKCS#8: version 1, the algorithm's identifier, two octet strings
/// (RFC 8410 §7, as OpenSSL writes it).
const PKCS8: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/// Bytes of a seed.
pub(crate) const SEED: usize = 32;

/// Which key: the first 16 bytes of the SHA-256 of its public half, as 32 lowercase hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(String);

impl KeyId {
    /// That of a public key.
    pub fn of(public: &[u8]) -> Self {
        let digest = Sha256::digest(public);
        Self(digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect())
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A key that signs.
pub struct SigningKey {
    pair: Ed25519KeyPair,
    id: KeyId,
}

impl fmt::Debug for SigningKey {
    /// Its private half is never told.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("id", &self.id).finish_non_exhaustive()
    }
}

impl SigningKey {
    fn of(pair: Ed25519KeyPair) -> Self {
        let id = KeyId::of(pair.public_key().as_ref());
        Self { pair, id }
    }

    /// The key of a seed: 32 random bytes. `None`: there are not 32.
    pub fn from_seed(seed: &[u8]) -> Option<Self> {
        Ed25519KeyPair::from_seed_unchecked(seed).ok().map(Self::of)
    }

    /// The key of a PEM file: PKCS#8, with or without its public half (`openssl genpkey -algorithm ed25519`). The error is
    /// what the file lacks, and nothing of what is in it.
    pub(crate) fn from_pem(text: &[u8]) -> Result<Self, &'static str> {
        let der = PrivatePkcs8KeyDer::from_pem_slice(text)
            .map_err(|_| "has no private key in PEM form (\"-----BEGIN PRIVATE KEY-----\")")?;
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der.secret_pkcs8_der());
        pair.map(Self::of).map_err(|_| "has a private key that is no Ed25519 key")
    }

    /// The key of a seed as a PEM file.
    pub(crate) fn pem(seed: &[u8; SEED]) -> Zeroizing<String> {
        let mut der = Zeroizing::new([0; PKCS8.len() + SEED]);
        der[..PKCS8.len()].copy_from_slice(&PKCS8);
        der[PKCS8.len()..].copy_from_slice(seed);
        let text = Zeroizing::new(STANDARD.encode(*der));
        Zeroizing::new(format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", *text))
    }

    /// Which key it is.
    pub fn id(&self) -> &KeyId {
        &self.id
    }

    /// Its public half, 32 bytes.
    pub fn public(&self) -> &[u8] {
        self.pair.public_key().as_ref()
    }

    /// Signs what the store has as issued.
    pub fn sign(&self, order: &ReceiptOrder) -> Signed {
        self.sign_body(&Body::from(order.statement()))
    }

    pub(crate) fn sign_body(&self, body: &Body) -> Signed {
        let body = body.bytes();
        let signature = self.pair.sign(&signed_bytes(&body)).as_ref().to_vec();
        Signed { body, key_id: self.id.to_string(), signature }
    }
}
