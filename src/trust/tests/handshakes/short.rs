//! A server's RSA key of 1024 bits: the TLS library's own keys are longer, so it signs by plain arithmetic. No secret: a key of tests.

use num_bigint::BigUint;
use rustls::sign::{Signer, SigningKey};
use rustls::{Error, SignatureAlgorithm, SignatureScheme};
use sha2::{Digest, Sha256, Sha384, Sha512};

const MODULUS: &str = "cd6923a152f5c1748d50271ac52b4f78cc33e1e760c8395f969b51421bed21eab5a5b0fa14545e05e98e89aea13ded0b\
                       7cd171d65dff6d635b38f394ebf2331404aecf7265dada6e342bf2e43964495552bbbbef30a23b4ed22ff92acf61aef2\
                       833bb2edbfd69cc924882e3e6163329313500157cba800c2586773280daba27d";
const EXPONENT: &str = "1eb5a754091920d1120777b132e524be8499051f188316c0c9bd72ca956e4071dcb266e11c84f8819dc767a22a0d1e11\
                        6799d09122007c142ca139197ca4fb29b0683db16e19fdbce06aa05f03280f9a55de2fde46ded3f8d7c09812872353bf\
                        3805fc5568695152aa41b360f604e5516201cd37f5824286511c9508200dd241";
/// DigestInfo before its digest (RFC 8017, 9.2, note 1).
const SHA256: [u8; 19] = [0x30, 0x31, 0x30, 0x0d, 6, 9, 0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1, 5, 0, 4, 0x20];
const SHA384: [u8; 19] = [0x30, 0x41, 0x30, 0x0d, 6, 9, 0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 2, 5, 0, 4, 0x30];
const SHA512: [u8; 19] = [0x30, 0x51, 0x30, 0x0d, 6, 9, 0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 3, 5, 0, 4, 0x40];

/// The key of `short.pem`, and what it signs by, in order.
#[derive(Debug)]
pub struct Short(Vec<SignatureScheme>);

impl Default for Short {
    /// As OpenSSL of that time, which knows no PSS; of PSS this key can write nothing that is right.
    fn default() -> Self {
        Self(vec![
            SignatureScheme::RSA_PKCS1_SHA512,
            SignatureScheme::RSA_PKCS1_SHA256,
            SignatureScheme::RSA_PSS_SHA256,
        ])
    }
}

impl Short {
    pub fn by(scheme: SignatureScheme) -> Self {
        Self(vec![scheme])
    }
}

#[derive(Debug)]
struct By(SignatureScheme);

impl SigningKey for Short {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let scheme = self.0.iter().find(|scheme| offered.contains(scheme))?;
        Some(Box::new(By(*scheme)))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        SignatureAlgorithm::RSA
    }
}

impl Signer for By {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        let digest = match self.0 {
            SignatureScheme::RSA_PKCS1_SHA384 => [&SHA384[..], &Sha384::digest(message)].concat(),
            SignatureScheme::RSA_PKCS1_SHA512 => [&SHA512[..], &Sha512::digest(message)].concat(),
            _ => [&SHA256[..], &Sha256::digest(message)].concat(),
        };
        let mut padded = vec![0xff; 128 - digest.len()];
        let last = padded.len() - 1;
        (padded[0], padded[1], padded[last]) = (0, 1, 0);
        padded.extend(digest);
        let number = |text: &str| BigUint::parse_bytes(text.as_bytes(), 16).expect("a number");
        let signed =
            BigUint::from_bytes_be(&padded).modpow(&number(EXPONENT), &number(MODULUS)).to_bytes_be();
        Ok([vec![0; 128 - signed.len()], signed].concat())
    }

    fn scheme(&self) -> SignatureScheme {
        self.0
    }
}
