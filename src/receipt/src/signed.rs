//! A signature over a body, and whether it is ours.

use ring::signature::{ED25519, UnparsedPublicKey};

use crate::body::{Body, BodyFault};
use crate::listed::PublicKeys;

/// What is signed before the body, with a zero byte between: a signature over something else is none over a receipt.
pub const CONTEXT: &str = "picket.v1.Receipt";

/// The algorithm's name on the wire.
pub const ALGORITHM: &str = "SIGNATURE_ALGORITHM_ED25519";

/// A body, and who signed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// The JSON that was signed, as these very bytes.
    pub body: Vec<u8>,
    /// With which key.
    pub key_id: String,
    /// The signature, 64 bytes.
    pub signature: Vec<u8>,
}

/// Why a receipt is not one of ours.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum Forged {
    /// No gateway has such a key.
    #[error("it is signed with key {0:?}, which is none of the gateway's")]
    UnknownKey(String),
    /// The body or the signature was changed, or another key signed it.
    #[error("the signature does not fit: the body or the signature was changed, or another key signed it")]
    Signature,
    /// It is signed, and cannot be read: another version wrote it.
    #[error(transparent)]
    Body(#[from] BodyFault),
}

/// What a signature is over.
pub(crate) fn signed_bytes(body: &[u8]) -> Vec<u8> {
    [CONTEXT.as_bytes(), &[0], body].concat()
}

impl Signed {
    /// Whether one of `keys` signed it, and what it says.
    pub fn verify(&self, keys: &PublicKeys) -> Result<Body, Forged> {
        let key = keys.get(&self.key_id).ok_or_else(|| Forged::UnknownKey(self.key_id.clone()))?;
        UnparsedPublicKey::new(&ED25519, key)
            .verify(&signed_bytes(&self.body), &self.signature)
            .map_err(|_| Forged::Signature)?;
        Ok(Body::read(&self.body)?)
    }
}
