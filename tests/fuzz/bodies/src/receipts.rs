//! Receipts and public keys, as they come back from whoever had them.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use picket_receipt::{Body, CONTEXT, ListedKey, PublicKeys, Signed, SigningKey};
use ring::signature::Ed25519KeyPair;

const SEED: [u8; 32] = [7; 32];

/// The first byte says what: a body, a body that is signed, a signature, or a listed key.
pub(crate) fn receipt(data: &[u8]) -> bool {
    let Some((&kind, data)) = data.split_first() else { return false };
    match kind % 4 {
        0 => body(data),
        1 => signed(data),
        2 => forged(data),
        _ => listed(data),
    }
}

/// What is read says the same once it is written again.
fn body(data: &[u8]) -> bool {
    let Ok(body) = Body::read(data) else { return false };
    let statement = body.statement().expect("it was read");
    let again = Body::from(&statement);
    assert_eq!(again.statement().expect("it was made of one"), statement);
    let written = serde_json::to_vec(&again).expect("texts alone");
    assert_eq!(Body::read(&written).expect("it was written by us"), again);
    true
}

fn keys() -> (Ed25519KeyPair, String, PublicKeys) {
    let pair = Ed25519KeyPair::from_seed_unchecked(&SEED).expect("32 bytes");
    let key = SigningKey::from_seed(&SEED).expect("32 bytes");
    let listed = ListedKey::of(&key, "g1", "2026-11-21T12:00:00Z");
    (pair, key.id().to_string(), PublicKeys::of([&listed]).expect("a good key"))
}

/// Whatever was signed is read as what it is, or refused for what it says; and a turned bit is seen.
fn signed(data: &[u8]) -> bool {
    let (pair, key_id, keys) = keys();
    let signature = pair.sign(&[CONTEXT.as_bytes(), &[0], data].concat()).as_ref().to_vec();
    let whole = Signed { body: data.to_vec(), key_id, signature };
    assert_eq!(whole.verify(&keys).ok(), Body::read(data).ok());
    let mut turned = whole.clone();
    turned.signature[data.len() % 64] ^= 1;
    assert!(turned.verify(&keys).is_err(), "another signature");
    if let Some(byte) = whole.body.len().checked_div(2).filter(|at| *at < data.len()) {
        let mut turned = whole.clone();
        turned.body[byte] ^= 1;
        assert!(turned.verify(&keys).is_err(), "another body");
    }
    let unknown = Signed { key_id: "another".to_owned(), ..whole };
    assert!(unknown.verify(&keys).is_err(), "another key");
    Body::read(data).is_ok()
}

/// What nobody signed is nobody's.
fn forged(data: &[u8]) -> bool {
    let (_, key_id, keys) = keys();
    let (signature, body) = data.split_at(data.len().min(64));
    let forged = Signed { body: body.to_vec(), key_id, signature: signature.to_vec() };
    assert!(forged.verify(&keys).is_err(), "nobody signed it");
    false
}

fn listed(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else { return false };
    let Ok(key) = ListedKey::read(text) else { return false };
    let public = key.bytes().expect("it was read");
    assert_eq!((public.len(), BASE64_STANDARD.decode(&key.public_key)), (32, Ok(public)));
    assert_eq!(ListedKey::read(&key.text()), Ok(key));
    true
}
