//! Receipts on the wire.

use std::time::Duration;

use picket_core::ids::{FenceId, ReceiptId};
use picket_core::time::WallTime;
use picket_engine::{ReceiptCall, Receipted, Verified};
use picket_proto::v1::{self, ReceiptVerdict, SignatureAlgorithm};
use picket_receipt::{ListedKey, Signed};

use crate::convert::request::fields::printable;
use crate::convert::time::{duration, timestamp};
use crate::fault::Fields;

/// The longest name of an audience, in bytes.
const AUDIENCE: usize = 253;
/// The longest id, in bytes.
const ID: usize = 64;

/// What a request for a receipt says, checked.
pub(crate) fn call(request: &v1::GetReceiptRequest, caller: &str, fields: &mut Fields) -> ReceiptCall {
    let fence = id::<FenceId>("fence_id", &request.fence_id, fields);
    let renews = id::<ReceiptId>("renews", &request.renews, fields);
    printable("audience", &request.audience, AUDIENCE, fields);
    ReceiptCall { by: caller.to_owned(), fence, renews, audience: request.audience.clone() }
}

/// An id that may be left out.
pub(crate) fn id<T: std::str::FromStr>(field: &str, text: &str, fields: &mut Fields) -> Option<T> {
    if text.is_empty() {
        return None;
    }
    let read = (text.len() <= ID).then(|| text.parse().ok()).flatten();
    if read.is_none() {
        fields.wrong(field, "is no id: a UUID is wanted, as this gateway told it");
    }
    read
}

/// A receipt that was issued just now.
pub(crate) fn issued(receipted: Receipted) -> v1::GetReceiptResponse {
    let Signed { body, key_id, signature } = receipted.signed;
    let algorithm = SignatureAlgorithm::Ed25519.into();
    v1::GetReceiptResponse {
        receipt: Some(v1::Receipt { body, algorithm, key_id, signature }),
        lasts: Some(duration(receipted.lasts)),
    }
}

/// What a receipt is worth; one of which nothing is kept any more has expired, or its fence has ended since.
pub(crate) fn verified(verified: Verified, expires_at: WallTime, now: WallTime) -> v1::VerifyReceiptResponse {
    match verified {
        Verified::Holds { lasts, unsure } => {
            let unsure = unsure.map(|words| format!("; {words}")).unwrap_or_default();
            let detail = format!("no on is sent before {expires_at}{unsure}");
            answer(ReceiptVerdict::Holds, Some(lasts), detail)
        }
        Verified::Expired => answer(ReceiptVerdict::Expired, None, format!("it expired at {expires_at}")),
        Verified::Returned(None) => answer(ReceiptVerdict::Returned, None, "it was handed back".to_owned()),
        Verified::Returned(Some(by)) => {
            answer(ReceiptVerdict::Returned, None, format!("it was renewed by receipt {by}"))
        }
        Verified::Void(why) => answer(ReceiptVerdict::Void, None, why),
        Verified::Gone if expires_at <= now => {
            answer(ReceiptVerdict::Expired, None, format!("it expired at {expires_at}"))
        }
        Verified::Gone => {
            let why = "nothing is kept of it: its fence has ended, or it was handed back, or it has expired by the \
                       gateway's count";
            answer(ReceiptVerdict::Void, None, why.to_owned())
        }
    }
}

/// Not one of ours, and why.
pub(crate) fn not_ours(why: String) -> v1::VerifyReceiptResponse {
    answer(ReceiptVerdict::NotOurs, None, why)
}

fn answer(verdict: ReceiptVerdict, lasts: Option<Duration>, detail: String) -> v1::VerifyReceiptResponse {
    v1::VerifyReceiptResponse { verdict: verdict.into(), lasts: lasts.map(duration), detail }
}

/// A public key; what is wrong with it, in words.
pub(crate) fn key(listed: &ListedKey, signs: Option<&str>) -> Result<v1::ReceiptKey, String> {
    Ok(v1::ReceiptKey {
        key_id: listed.key_id.clone(),
        algorithm: SignatureAlgorithm::Ed25519.into(),
        public_key: listed.bytes()?,
        gateway: listed.gateway.clone(),
        since: WallTime::parse(&listed.since).map(timestamp),
        signs: signs == Some(listed.key_id.as_str()),
    })
}
