//! Nobody else's receipt is taken for one of ours.

use proptest::prelude::*;

use super::{body, key, keys};
use crate::body::Body;
use crate::signed::{Forged, Signed};

#[test]
fn what_one_of_our_keys_signed_is_ours() {
    let signed = key(1).sign_body(&body());
    assert_eq!(signed.verify(&keys(&[1])), Ok(body()));
    // A key that was replaced stays listed.
    assert_eq!(signed.verify(&keys(&[2, 1])), Ok(body()));
}

#[test]
fn an_unknown_key_is_named_and_a_foreign_signature_does_not_fit() {
    let signed = key(1).sign_body(&body());
    assert_eq!(signed.verify(&keys(&[2])), Err(Forged::UnknownKey(signed.key_id.clone())));
    let claims = Signed { key_id: key(2).id().to_string(), ..signed.clone() };
    assert_eq!(claims.verify(&keys(&[1, 2])), Err(Forged::Signature));
    assert_eq!(Signed { signature: Vec::new(), ..signed }.verify(&keys(&[1])), Err(Forged::Signature));
}

#[test]
fn another_node_another_life_another_end_do_not_fit() {
    let signed = key(1).sign_body(&body());
    let changed = [
        Body { node: "r1n08".to_owned(), ..body() },
        Body { incarnation: body().fence_id, ..body() },
        Body { expires_at: "2027-11-21T08:40:32.042Z".to_owned(), ..body() },
        Body { audience: "anybody".to_owned(), ..body() },
    ];
    for body in changed {
        let forged = Signed { body: body.bytes(), ..signed.clone() };
        assert_eq!(forged.verify(&keys(&[1])), Err(Forged::Signature), "{body:?}");
    }
}

#[test]
fn signed_and_not_to_be_read_is_said_as_such() {
    let odd = Body { grade: "GRADE_GUESSED".to_owned(), ..body() };
    let verified = key(1).sign_body(&odd).verify(&keys(&[1]));
    assert!(matches!(verified, Err(Forged::Body(fault)) if fault.to_string().contains("GRADE_GUESSED")));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn one_changed_bit_is_found(at in any::<prop::sample::Index>(), bit in 0..8_u8, of_body in any::<bool>()) {
        let mut signed = key(1).sign_body(&body());
        let bytes = if of_body { &mut signed.body } else { &mut signed.signature };
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert_eq!(signed.verify(&keys(&[1])), Err(Forged::Signature));
    }

    #[test]
    fn whatever_comes_from_outside_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = Body::read(&bytes);
        let signed = Signed { body: bytes.clone(), key_id: key(1).id().to_string(), signature: bytes };
        prop_assert!(signed.verify(&keys(&[1])).is_err());
    }
}
