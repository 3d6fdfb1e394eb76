//! Bodies that come packed, although they are asked for as they are: some web servers in front of a service
//! pack whatever they pass on.
//!
//! # Invariants
//!
//! - A packed body is whole only where its own length and checksum say so (RFC 1952) and nothing stands
//!   behind it. Of anything else nothing counts (S1). Shown by `half_a_packed_answer_is_none`.

use std::io::Read;

use flate2::bufread::GzDecoder;
use http::HeaderMap;
use http::header::CONTENT_ENCODING;

use crate::answer::{LARGEST, TruncatedBody, tame};

/// How the body is packed; `None`: it is not.
pub(crate) fn coding(headers: &HeaderMap) -> Option<String> {
    let values = headers.get_all(CONTENT_ENCODING).iter();
    let all: Vec<String> =
        values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect();
    let all = all.join(", ").trim().to_ascii_lowercase();
    (!matches!(&*all, "" | "identity")).then_some(all)
}

/// The body as it was before it was packed.
///
/// # Errors
/// Why there is none.
pub(crate) fn unpack(coding: &str, body: &[u8]) -> Result<Vec<u8>, TruncatedBody> {
    if !matches!(coding, "gzip" | "x-gzip") {
        return Err(TruncatedBody::Coded(tame(coding)));
    }
    let (mut packed, mut plain) = (GzDecoder::new(body), Vec::new());
    // One byte more than may be: a few kilobytes may unpack to gigabytes.
    let read = packed.by_ref().take(LARGEST as u64 + 1).read_to_end(&mut plain);
    match read {
        Ok(_) if plain.len() > LARGEST => Err(TruncatedBody::Long),
        Ok(_) if !packed.get_ref().is_empty() => {
            Err(TruncatedBody::Broken("gzip: more stands behind it".to_owned()))
        }
        Ok(_) => Ok(plain),
        Err(error) => Err(TruncatedBody::Broken(format!("gzip: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(plain: &[u8]) -> Vec<u8> {
        let mut packer = GzEncoder::new(Vec::new(), Compression::default());
        packer.write_all(plain).expect("packed");
        packer.finish().expect("packed")
    }

    #[test]
    fn a_packed_answer_is_unpacked_within_bounds() {
        for length in [0, 1, 70_000, LARGEST] {
            let plain = vec![b'x'; length];
            assert_eq!(unpack("gzip", &packed(&plain)).expect("whole"), plain, "{length}");
        }
        for bomb in [LARGEST + 1, LARGEST * 64] {
            let why = unpack("x-gzip", &packed(&vec![b'x'; bomb])).expect_err("too long");
            assert!(matches!(why, TruncatedBody::Long), "{bomb}: {why:?}");
        }
    }

    #[test]
    fn half_a_packed_answer_is_none() {
        let whole = packed(br#"{"PowerState": "Off"}"#);
        for end in 0..whole.len() {
            let why = unpack("gzip", &whole[..end]).expect_err("not whole");
            assert!(matches!(why, TruncatedBody::Broken(_)), "{end}: {why:?}");
        }
        // Its checksum and its length stand last.
        for at in whole.len() - 8..whole.len() {
            let mut other = whole.clone();
            other[at] ^= 1;
            unpack("gzip", &other).expect_err("not what was packed");
        }
        for behind in [&b"{}"[..], &whole] {
            unpack("gzip", &[&whole[..], behind].concat()).expect_err("more than one");
        }
        unpack("gzip", br#"{"PowerState": "Off"}"#).expect_err("not packed at all");
    }

    #[test]
    fn other_codings_are_named() {
        let said = |values: &[&'static str]| {
            let value = |text: &&'static str| (CONTENT_ENCODING, http::HeaderValue::from_static(text));
            coding(&values.iter().map(value).collect())
        };
        assert_eq!(said(&[]), None);
        assert_eq!(said(&["identity"]), None);
        assert_eq!(said(&["GZip"]).as_deref(), Some("gzip"));
        assert_eq!(said(&["gzip", "br"]).as_deref(), Some("gzip, br"));
        for odd in ["br", "deflate", "gzip, br", "gzip, gzip"] {
            let why = unpack(odd, &packed(b"{}")).expect_err(odd);
            assert!(matches!(&why, TruncatedBody::Coded(named) if named == odd), "{why:?}");
        }
    }
}
