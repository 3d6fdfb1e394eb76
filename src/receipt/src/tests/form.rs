//! The form: what was signed once is read by every later version.

use picket_core::device::Grade;

use super::{body, key, keys, listed};
use crate::body::Body;
use crate::key::KeyId;
use crate::listed::ListedKey;
use crate::signed::{CONTEXT, Signed};

/// As `docs/receipts-form.md` has it.
const BODY: &str = concat!(
    r#"{"id":"019aa53b-3f0a-7909-8909-090909090909","node":"r1n07","#,
    r#""systemUuid":"00112233445566778899aabbccddeeff","incarnation":"019aa53b-3f0a-7707-8707-070707070707","#,
    r#""fenceId":"019aa53b-3f0a-7808-8808-080808080808","generation":"18446744073709551615","#,
    r#""grade":"GRADE_OBSERVED","offAt":"2026-11-21T08:39:31.900Z","issuedAt":"2026-11-21T08:39:32.042Z","#,
    r#""expiresAt":"2026-11-21T08:40:32.042Z","audience":"storage","simulated":false}"#,
);

#[test]
fn a_body_is_written_as_it_always_was_and_read_again() {
    assert_eq!(String::from_utf8(body().bytes()).unwrap(), BODY);
    let read = Body::read(BODY.as_bytes()).unwrap();
    assert_eq!(read, body());
    let said = read.statement().unwrap();
    assert_eq!((said.generation.0, said.grade), (u64::MAX, Grade::Observed));
    assert_eq!(said.expires_at.millis() - said.issued_at.millis(), 60_000);
    assert_eq!(Body::from(&said), body());
}

#[test]
fn what_is_simulated_is_signed_and_what_an_older_version_wrote_says_nothing_of_it() {
    let older = BODY.replace(r#","simulated":false"#, "").into_bytes();
    let signature = include_str!("signature-without-simulated.hex").trim().as_bytes();
    let digit = |of: u8| (of as char).to_digit(16).unwrap() as u8;
    let signature = signature.chunks(2).map(|two| digit(two[0]) << 4 | digit(two[1])).collect();
    let older = Signed { body: older, key_id: key(1).id().to_string(), signature };
    assert_eq!(older.verify(&keys(&[1])).unwrap(), body());
    let simulated = Body { simulated: true, ..body() };
    let signed = key(1).sign_body(&simulated);
    let said = signed.verify(&keys(&[1])).unwrap().statement().unwrap();
    assert!(said.simulated);
    assert_eq!(Body::from(&said), simulated);
    // Who strikes the word out of it has a body that nobody signed.
    let real = Signed { body: body().bytes(), ..signed };
    assert!(real.verify(&keys(&[1])).is_err());
}

#[test]
fn what_a_later_version_adds_is_passed_over_and_what_is_wrong_is_named() {
    let later = BODY.replacen('{', r#"{"weather":"fine","#, 1);
    assert_eq!(Body::read(later.as_bytes()).unwrap(), body());
    for (from, to, names) in [
        ("2026-11-21T08:40:32.042Z", "soon", "expiresAt is \"soon\""),
        ("GRADE_OBSERVED", "GRADE_GUESSED", "grade is"),
        ("18446744073709551615", "-1", "generation is"),
        ("r1n07", "r1 n07", "node name"),
        (r#""simulated":false}"#, "", "EOF"),
        (r#""node":"r1n07","#, "", "missing field `node`"),
    ] {
        let error = Body::read(BODY.replace(from, to).as_bytes()).unwrap_err().to_string();
        assert!(error.contains(names), "{error}");
    }
}

#[test]
fn a_signature_is_over_the_context_a_zero_byte_and_the_body() {
    use ring::signature::{ED25519, UnparsedPublicKey};
    let (key, signed) = (key(1), key(1).sign_body(&body()));
    let bytes = [CONTEXT.as_bytes(), b"\0", BODY.as_bytes()].concat();
    assert_eq!(signed.body, BODY.as_bytes());
    assert_eq!((signed.key_id.as_str(), signed.signature.len()), (key.id().as_str(), 64));
    UnparsedPublicKey::new(&ED25519, key.public()).verify(&bytes, &signed.signature).unwrap();
    // Ed25519 is deterministic: this is what every version since the flag `simulated` writes.
    let hex: String = signed.signature.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, include_str!("signature.hex").trim());
    let again = Signed { body: bytes, ..signed };
    assert!(again.verify(&keys(&[1])).is_err(), "the body alone is not what is signed");
}

#[test]
fn a_key_is_listed_by_the_digest_of_its_public_half() {
    let key = key(1);
    let note = listed(&key);
    assert_eq!(note.note(), format!("receipt-key/{}", KeyId::of(key.public())));
    assert_eq!(ListedKey::read(&note.text()).unwrap(), note);
    let other = ListedKey { public_key: listed(&super::key(2)).public_key, ..note.clone() };
    assert!(ListedKey::read(&other.text()).unwrap_err().contains("its id is not that of the key"));
    let odd = ListedKey { algorithm: "SIGNATURE_ALGORITHM_NONE".to_owned(), ..note };
    assert!(ListedKey::read(&odd.text()).unwrap_err().contains("SIGNATURE_ALGORITHM_NONE"));
}

#[test]
fn a_private_key_is_in_no_debug_print() {
    let shown = format!("{:?}", key(7));
    assert!(shown.contains(key(7).id().as_str()) && !shown.contains("7, 7, 7"), "{shown}");
}
