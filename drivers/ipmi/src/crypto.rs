//! The two cipher suites that are allowed, and the keys of a session.
//!
//! **Non-goals.** No suite without authentication, integrity and encryption; no MD5, no RC4.
//!
//! # Invariants
//!
//! - Codes are compared in constant time.
//! - Keys have no debug print (S18). Shown by `keys_have_no_debug_print`.

use std::fmt;

use aes::Aes128;
use cbc::cipher::{Block, BlockModeDecrypt, BlockModeEncrypt, InnerIvInit, KeyInit};
use hmac::{Hmac, Mac};
use ipmi_rs_core::app::auth::{AuthenticationAlgorithm, ConfidentialityAlgorithm, IntegrityAlgorithm};
use sha1::Sha1;
use sha2::Sha256;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// Length of an AES block and of the initialisation vector that begins each encrypted payload (IPMI 2.0 §13.29).
pub const BLOCK: usize = 16;

/// A cipher suite (IPMI 2.0 table 22-20).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    /// 3: RAKP-HMAC-SHA1, HMAC-SHA1-96, AES-CBC-128.
    Sha1,
    /// 17: RAKP-HMAC-SHA256, HMAC-SHA256-128, AES-CBC-128.
    Sha256,
}

impl Suite {
    /// The suite of that number, if it is one of the two.
    pub fn from_id(id: u64) -> Option<Self> {
        match id {
            3 => Some(Suite::Sha1),
            17 => Some(Suite::Sha256),
            _ => None,
        }
    }

    /// Its number.
    pub fn id(self) -> u8 {
        match self {
            Suite::Sha1 => 3,
            Suite::Sha256 => 17,
        }
    }

    /// The numbers of its algorithms: authentication, integrity, confidentiality.
    pub fn algorithms(self) -> [u8; 3] {
        let (authentication, integrity) = match self {
            Suite::Sha1 => (AuthenticationAlgorithm::RakpHmacSha1, IntegrityAlgorithm::HmacSha1_96),
            Suite::Sha256 => (AuthenticationAlgorithm::RakpHmacSha256, IntegrityAlgorithm::HmacSha256_128),
        };
        [authentication.into(), integrity.into(), ConfidentialityAlgorithm::AesCbc128.into()]
    }

    /// Length of the whole hash: the key exchange code of RAKP 2 and 3.
    pub fn hash_len(self) -> usize {
        match self {
            Suite::Sha1 => 20,
            Suite::Sha256 => 32,
        }
    }

    /// Length of a truncated code: RAKP 4, and the trailer of each packet.
    pub fn code_len(self) -> usize {
        match self {
            Suite::Sha1 => 12,
            Suite::Sha256 => 16,
        }
    }
}

/// A hash of up to 32 bytes; wiped on drop, because some of them are keys.
pub struct Hash {
    bytes: Zeroizing<[u8; 32]>,
    len: usize,
}

impl Hash {
    fn of(hash: &[u8]) -> Self {
        let mut bytes = Zeroizing::new([0; 32]);
        let len = hash.len().min(32);
        bytes[..len].copy_from_slice(&hash[..len]);
        Self { bytes, len }
    }

    /// All of it.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Whether `code` is the first `code.len()` bytes of it and has the length that it must have; constant time.
    pub fn matches(&self, code: &[u8], len: usize) -> bool {
        code.len() == len && len <= self.len && bool::from(self.bytes[..len].ct_eq(code))
    }
}

#[derive(Clone)]
enum Keyed {
    Sha1(Hmac<Sha1>),
    Sha256(Hmac<Sha256>),
}

impl Keyed {
    fn new(suite: Suite, key: &[u8]) -> Self {
        // HMAC takes keys of any length; the type of the constructor does not know it.
        match suite {
            Suite::Sha1 => Keyed::Sha1(Hmac::new_from_slice(key).expect("HMAC takes a key of any length")),
            Suite::Sha256 => {
                Keyed::Sha256(Hmac::new_from_slice(key).expect("HMAC takes a key of any length"))
            }
        }
    }

    fn hash(self, parts: &[&[u8]]) -> Hash {
        match self {
            Keyed::Sha1(mut mac) => {
                parts.iter().for_each(|part| mac.update(part));
                Hash::of(&mac.finalize().into_bytes())
            }
            Keyed::Sha256(mut mac) => {
                parts.iter().for_each(|part| mac.update(part));
                Hash::of(&mac.finalize().into_bytes())
            }
        }
    }
}

/// The suite's HMAC of the concatenated `parts`.
pub fn hmac(suite: Suite, key: &[u8], parts: &[&[u8]]) -> Hash {
    Keyed::new(suite, key).hash(parts)
}

/// The keys of one session (IPMI 2.0 §13.31, §13.32).
pub struct Keys {
    suite: Suite,
    mac: Keyed,
    cipher: Aes128,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("suite", &self.suite).finish_non_exhaustive()
    }
}

impl Keys {
    /// K1 and K2 from the session integrity key.
    pub fn derive(suite: Suite, session_integrity_key: &[u8]) -> Self {
        let k1 = hmac(suite, session_integrity_key, &[&[1; 20]]);
        let k2 = hmac(suite, session_integrity_key, &[&[2; 20]]);
        let mut aes_key = Zeroizing::new([0; BLOCK]);
        aes_key.copy_from_slice(&k2.bytes()[..BLOCK]);
        Self { suite, mac: Keyed::new(suite, k1.bytes()), cipher: Aes128::new((&*aes_key).into()) }
    }

    /// Length of the code that ends each packet.
    pub fn code_len(&self) -> usize {
        self.suite.code_len()
    }

    /// Appends the code of `packet[from..]`.
    pub fn sign(&self, packet: &mut Vec<u8>, from: usize) {
        let hash = self.mac.clone().hash(&[&packet[from..]]);
        packet.extend_from_slice(&hash.bytes()[..self.code_len()]);
    }

    /// Whether `code` signs `signed`.
    pub fn verify(&self, signed: &[u8], code: &[u8]) -> bool {
        self.mac.clone().hash(&[signed]).matches(code, self.code_len())
    }

    /// Encrypts `data` in place; its length is a multiple of [`BLOCK`].
    pub fn encrypt(&self, iv: &[u8; BLOCK], data: &mut [u8]) {
        let mut mode = cbc::Encryptor::<&Aes128>::inner_iv_init(&self.cipher, iv.into());
        for chunk in data.chunks_exact_mut(BLOCK) {
            let block: &mut [u8; BLOCK] = chunk.try_into().expect("chunks_exact gives whole blocks");
            mode.encrypt_block(<&mut Block<Aes128>>::from(block));
        }
    }

    /// Decrypts `data` in place; its length is a multiple of [`BLOCK`].
    pub fn decrypt(&self, iv: &[u8; BLOCK], data: &mut [u8]) {
        let mut mode = cbc::Decryptor::<&Aes128>::inner_iv_init(&self.cipher, iv.into());
        for chunk in data.chunks_exact_mut(BLOCK) {
            let block: &mut [u8; BLOCK] = chunk.try_into().expect("chunks_exact gives whole blocks");
            mode.decrypt_block(<&mut Block<Aes128>>::from(block));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        (0..text.len() / 2)
            .map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("hexadecimal digits"))
            .collect()
    }

    /// RFC 2202 §3 and RFC 4231 §4.3, test case 2 of each.
    #[test]
    fn hmac_is_that_of_the_rfcs() {
        let parts: [&[u8]; 2] = [b"what do ya want ", b"for nothing?"];
        assert_eq!(
            hmac(Suite::Sha1, b"Jefe", &parts).bytes(),
            hex("effcdf6ae5eb2fa2d27416d5f184df9c259a7c79")
        );
        assert_eq!(
            hmac(Suite::Sha256, b"Jefe", &parts).bytes(),
            hex("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
        );
    }

    /// NIST SP 800-38A F.2.1, the first two blocks.
    #[test]
    fn cbc_is_that_of_nist() {
        let mut aes_key = [0; BLOCK];
        aes_key.copy_from_slice(&hex("2b7e151628aed2a6abf7158809cf4f3c"));
        let keys = Keys {
            suite: Suite::Sha1,
            mac: Keyed::new(Suite::Sha1, b""),
            cipher: Aes128::new((&aes_key).into()),
        };
        let mut iv = [0; BLOCK];
        iv.copy_from_slice(&hex("000102030405060708090a0b0c0d0e0f"));
        let plain = hex("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51");
        let mut data = plain.clone();
        keys.encrypt(&iv, &mut data);
        assert_eq!(data, hex("7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2"));
        keys.decrypt(&iv, &mut data);
        assert_eq!(data, plain);
    }

    #[test]
    fn a_code_matches_only_at_its_whole_length() {
        let hash = hmac(Suite::Sha1, b"k", &[b"x"]);
        let code = hash.bytes()[..12].to_vec();
        assert!(hash.matches(&code, 12));
        assert!(!hash.matches(&code[..11], 12));
        assert!(!hash.matches(b"", 12));
        assert!(!hash.matches(hash.bytes(), 12));
    }

    #[test]
    fn keys_have_no_debug_print() {
        let keys = Keys::derive(Suite::Sha256, b"sik");
        assert_eq!(format!("{keys:?}"), "Keys { suite: Sha256, .. }");
    }
}
