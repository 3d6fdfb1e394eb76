//! What the tests of this crate share.

#![allow(clippy::unwrap_used)] // A fixture that cannot be made ends its test.

mod files;
mod forging;
mod form;

use crate::body::Body;
use crate::key::SigningKey;
use crate::listed::{ListedKey, PublicKeys};

fn key(number: u8) -> SigningKey {
    SigningKey::from_seed(&[number; 32]).unwrap()
}

fn listed(key: &SigningKey) -> ListedKey {
    ListedKey::of(key, "g1", "2026-11-21T08:39:32.042Z")
}

fn keys(numbers: &[u8]) -> PublicKeys {
    let listed: Vec<ListedKey> = numbers.iter().map(|number| listed(&key(*number))).collect();
    PublicKeys::of(&listed).unwrap()
}

fn body() -> Body {
    Body {
        id: "019aa53b-3f0a-7909-8909-090909090909".to_owned(),
        node: "r1n07".to_owned(),
        system_uuid: "00112233445566778899aabbccddeeff".to_owned(),
        incarnation: "019aa53b-3f0a-7707-8707-070707070707".to_owned(),
        fence_id: "019aa53b-3f0a-7808-8808-080808080808".to_owned(),
        generation: "18446744073709551615".to_owned(),
        grade: "GRADE_OBSERVED".to_owned(),
        off_at: "2026-11-21T08:39:31.900Z".to_owned(),
        issued_at: "2026-11-21T08:39:32.042Z".to_owned(),
        expires_at: "2026-11-21T08:40:32.042Z".to_owned(),
        audience: "storage".to_owned(),
        simulated: false,
    }
}
