//! Where the public key stands in a certificate (RFC 5280, 4.1), of any version and whatever else it says.

use rustls::pki_types::alg_id;

/// A public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key<'a> {
    /// The whole SubjectPublicKeyInfo.
    pub info: &'a [u8],
    /// What its AlgorithmIdentifier holds, without tag and length.
    pub algorithm: &'a [u8],
    /// The key itself.
    pub bits: &'a [u8],
}

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const SEQUENCE: u8 = 0x30;
/// `[0]`, which a certificate of version 1 lacks.
const VERSION: u8 = 0xa0;

impl<'a> Key<'a> {
    /// The key of that certificate; `None`: it is none, as far as is looked here.
    pub fn of(certificate: &'a [u8]) -> Option<Self> {
        let mut outer = Reader(certificate);
        let mut signed = Reader(Reader(outer.next(SEQUENCE)?.inner).next(SEQUENCE)?.inner);
        if signed.0.first() == Some(&VERSION) {
            signed.next(VERSION)?;
        }
        signed.next(INTEGER)?;
        // The signature's algorithm, the issuer, the validity and the subject.
        for _ in 0..4 {
            signed.next(SEQUENCE)?;
        }
        let info = signed.next(SEQUENCE)?;
        let mut parts = Reader(info.inner);
        let algorithm = parts.next(SEQUENCE)?.inner;
        // The first byte says how many bits of the last one are not used: of a key none.
        let bits = parts.next(BIT_STRING)?.inner.strip_prefix(&[0])?;
        Some(Self { info: info.whole, algorithm, bits })
    }

    /// Whether it is one of RSA.
    pub fn is_rsa(&self) -> bool {
        self.algorithm == alg_id::RSA_ENCRYPTION.as_ref()
    }

    /// How many bits its modulus has (RFC 8017, A.1.1); `None`: it is none of RSA.
    pub fn rsa_bits(&self) -> Option<usize> {
        let inner = Reader(self.bits).next(SEQUENCE).filter(|_| self.is_rsa())?.inner;
        let modulus = Reader(inner).next(INTEGER)?.inner;
        let zeros = modulus.iter().take_while(|byte| **byte == 0).count();
        let first = modulus.get(zeros)?;
        Some((modulus.len() - zeros) * 8 - first.leading_zeros() as usize)
    }
}

/// An element of DER, with its tag and length and without.
struct Element<'a> {
    whole: &'a [u8],
    inner: &'a [u8],
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// The next element, if it has that tag.
    fn next(&mut self, tag: u8) -> Option<Element<'a>> {
        let (length, head) = match *self.0 {
            [found, short, ..] if found == tag && short < 0x80 => (usize::from(short), 2),
            [found, 0x81, a, ..] if found == tag => (usize::from(a), 3),
            // A handshake's certificate may be longer; none that a device shows is.
            [found, 0x82, a, b, ..] if found == tag => (usize::from(u16::from_be_bytes([a, b])), 4),
            _ => return None,
        };
        let (whole, rest) = self.0.split_at_checked(head + length)?;
        self.0 = rest;
        Some(Element { whole, inner: &whole[head..] })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rcgen::PublicKeyData;

    use super::*;

    #[test]
    fn the_key_of_a_certificate_is_found_and_of_a_part_of_one_never() {
        let pair = rcgen::KeyPair::generate().expect("a key");
        let made = rcgen::CertificateParams::default().self_signed(&pair).expect("a certificate");
        let whole = made.der().as_ref();
        let key = Key::of(whole).expect("a key");
        assert_eq!((key.info, key.bits), (&pair.subject_public_key_info()[..], pair.public_key_raw()));
        for end in 0..whole.len() {
            assert_eq!(Key::of(&whole[..end]), None, "cut after {end}");
        }
    }

    #[test]
    fn the_bits_of_an_rsa_modulus_are_counted_and_no_other_keys() {
        let of = |algorithm, bits| Key { info: &[], algorithm, bits }.rsa_bits();
        let rsa = alg_id::RSA_ENCRYPTION;
        // A modulus of 0x00ff01 or 0x7f, and an exponent of 3.
        assert_eq!(of(&rsa, &[0x30, 8, 2, 3, 0, 0xff, 1, 2, 1, 3]), Some(16));
        assert_eq!(of(&rsa, &[0x30, 6, 2, 1, 0x7f, 2, 1, 3]), Some(7));
        assert_eq!(of(&rsa, &[0x30, 6, 2, 1, 0, 2, 1, 3]), None);
        assert_eq!(of(&rsa, &[]), None);
        assert_eq!(of(&alg_id::ECDSA_P256, &[0x30, 6, 2, 1, 0x7f, 2, 1, 3]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_to_an_end(bytes in proptest::collection::vec(any::<u8>(), 0..200), at in 0_usize..400, with: u8) {
            let _ = Key::of(&bytes);
            let pair = rcgen::KeyPair::generate().expect("a key");
            let made = rcgen::CertificateParams::default().self_signed(&pair).expect("a certificate");
            let mut bent = made.der().to_vec();
            let place = at % bent.len();
            bent[place] = with;
            if let Some(key) = Key::of(&bent) {
                prop_assert_eq!(key.rsa_bits(), None);
                prop_assert!(key.info.len() > key.bits.len() + key.algorithm.len());
            }
        }
    }
}
