//! A receipt in a file: `Receipt` of `picket.v1` in proto3's JSON mapping.

use std::io::Read;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use picket_proto::v1::{self, SignatureAlgorithm};
use picket_receipt::{Body, Signed};
use serde::{Deserialize, Serialize};

use crate::fault::Fault;

/// The largest file that is read, in bytes.
const LARGEST: u64 = 256 * 1_024;

/// A receipt as it is given on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReceiptFile {
    /// The JSON that was signed, in base64.
    pub body: String,
    /// How: `SIGNATURE_ALGORITHM_ED25519`.
    pub algorithm: String,
    /// With which key.
    pub key_id: String,
    /// The signature, in base64.
    pub signature: String,
}

/// Also the document of `picket receipt get -o json` is a receipt.
#[derive(Deserialize)]
struct Document {
    receipt: ReceiptFile,
}

impl From<&v1::Receipt> for ReceiptFile {
    fn from(receipt: &v1::Receipt) -> Self {
        Self {
            body: STANDARD.encode(&receipt.body),
            algorithm: receipt.algorithm().as_str_name().to_owned(),
            key_id: receipt.key_id.clone(),
            signature: STANDARD.encode(&receipt.signature),
        }
    }
}

impl ReceiptFile {
    /// Reads one.
    pub fn read(path: &Path) -> Result<Self, Fault> {
        let text = text(path)?;
        let read = serde_json::from_str::<Document>(&text).map(|document| document.receipt);
        read.or_else(|_| serde_json::from_str(&text)).map_err(|error| {
            Fault::Usage(format!(
                "{} is no receipt: {error}; wanted is what `picket receipt get --out FILE` writes",
                path.display()
            ))
        })
    }

    /// As it goes to the gateway.
    pub fn wire(&self, path: &Path) -> Result<v1::Receipt, Fault> {
        let Signed { body, key_id, signature } = self.signed(path)?;
        let algorithm = SignatureAlgorithm::from_str_name(&self.algorithm).unwrap_or_default().into();
        Ok(v1::Receipt { body, algorithm, key_id, signature })
    }

    /// As it is verified.
    pub fn signed(&self, path: &Path) -> Result<Signed, Fault> {
        let bytes = |field: &str, text: &str| {
            STANDARD.decode(text).map_err(|error| {
                Fault::Usage(format!("{} is no receipt: its {field} is not base64: {error}", path.display()))
            })
        };
        Ok(Signed {
            body: bytes("body", &self.body)?,
            key_id: self.key_id.clone(),
            signature: bytes("signature", &self.signature)?,
        })
    }
}

/// What the body says, whoever signed it; `None`: it cannot be read.
pub fn said(body: &[u8]) -> Option<Body> {
    Body::read(body).ok()
}

/// The text of a file, or of standard input (`-`).
pub fn text(path: &Path) -> Result<String, Fault> {
    let unread = |error: std::io::Error| Fault::Usage(format!("{} cannot be read: {error}", path.display()));
    let mut text = String::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(LARGEST).read_to_string(&mut text)
    } else {
        std::fs::File::open(path).map_err(unread)?.take(LARGEST).read_to_string(&mut text)
    };
    read.map_err(unread)?;
    Ok(text)
}
