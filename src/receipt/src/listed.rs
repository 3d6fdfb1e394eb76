//! The public keys as they are listed in the store, so that what was signed stays verifiable after a key was replaced.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::key::{KeyId, SigningKey};
use crate::signed::ALGORITHM;

/// What the names of the store's notes begin with; the key's id follows.
pub const NOTES: &str = "receipt-key/";

/// A public key as it is listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedKey {
    /// Which key.
    pub key_id: String,
    /// For which algorithm: its name on the wire.
    pub algorithm: String,
    /// The public half, in base64.
    pub public_key: String,
    /// The gateway that signs with it.
    pub gateway: String,
    /// Since when, RFC 3339.
    pub since: String,
}

impl ListedKey {
    /// A gateway's key.
    pub fn of(key: &SigningKey, gateway: &str, since: impl ToString) -> Self {
        Self {
            key_id: key.id().to_string(),
            algorithm: ALGORITHM.to_owned(),
            public_key: STANDARD.encode(key.public()),
            gateway: gateway.to_owned(),
            since: since.to_string(),
        }
    }

    /// The note's name.
    pub fn note(&self) -> String {
        format!("{NOTES}{}", self.key_id)
    }

    /// The note's text.
    pub fn text(&self) -> String {
        // Strings alone: there is nothing in it that could not be written.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads a note, or an entry of a file with keys; what is wrong, in words.
    pub fn read(text: &str) -> Result<Self, String> {
        let key: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        key.bytes().map(|_| key)
    }

    /// The public half.
    pub fn bytes(&self) -> Result<Vec<u8>, String> {
        if self.algorithm != ALGORITHM {
            return Err(format!("key {}: {:?} is not {ALGORITHM}", self.key_id, self.algorithm));
        }
        let public =
            STANDARD.decode(&self.public_key).map_err(|error| format!("key {}: {error}", self.key_id))?;
        if public.len() != 32 || KeyId::of(&public).as_str() != self.key_id {
            return Err(format!("key {}: its id is not that of the key that stands there", self.key_id));
        }
        Ok(public)
    }
}

/// Public keys by their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublicKeys(BTreeMap<String, Vec<u8>>);

impl PublicKeys {
    /// These; what is wrong with one of them, in words.
    pub fn of<'k>(keys: impl IntoIterator<Item = &'k ListedKey>) -> Result<Self, String> {
        keys.into_iter().map(|key| Ok((key.key_id.clone(), key.bytes()?))).collect::<Result<_, _>>().map(Self)
    }

    pub(crate) fn get(&self, id: &str) -> Option<&[u8]> {
        self.0.get(id).map(Vec::as_slice)
    }
}
