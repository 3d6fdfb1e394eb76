//! Bodies for fuzzing what callers may send (feature `fuzz`).
//!
//! Each takes any bytes, says whether they were taken as what they stand for, and panics where something does not hold.

use std::fmt::Debug;

use picket_proto::v1;
use prost::Message;
use rustls::pki_types::CertificateDer;

use crate::convert::request;
use crate::fault::Fault;
use crate::tls::certificate;

/// A request that reads back as it was, and is judged the same each time; a refusal says something.
fn judged<M: Message + Default + PartialEq, A: Debug>(
    bytes: &[u8],
    judge: impl Fn(&M) -> Result<A, Fault>,
) -> bool {
    let Ok(message) = M::decode(bytes) else { return false };
    let again = M::decode(message.encode_to_vec().as_slice());
    assert!(again.is_ok_and(|again| again == message), "it does not come back");
    let verdict =
        |message: &M| judge(message).map(|asked| format!("{asked:?}")).map_err(|fault| fault.status());
    match (verdict(&message), verdict(&message)) {
        (Ok(asked), Ok(again)) => {
            assert_eq!(asked, again);
            true
        }
        (Err(status), Err(again)) => {
            assert_eq!((status.code(), status.message()), (again.code(), again.message()));
            assert!(!status.message().is_empty());
            // Details travel in headers, which are small.
            assert!(
                status.details().len() + status.message().len() <= 16 * 1_024,
                "{}",
                status.message().len()
            );
            false
        }
        _ => panic!("judged in two ways"),
    }
}

/// Requests that change something: the first byte says which, the rest is the message.
pub fn request(data: &[u8]) -> bool {
    let Some((&kind, bytes)) = data.split_first() else { return false };
    // As much as admission lets in.
    let bytes = &bytes[..bytes.len().min(64 * 1_024)];
    match kind % 13 {
        0 => judged(bytes, |message: &v1::FenceRequest| request::fence(message, "db")),
        1 => judged(bytes, |message: &v1::UnfenceRequest| request::unfence(message, "db")),
        2 => judged(bytes, |message: &v1::RetryRequest| request::retry(message, "db")),
        3 => judged(bytes, |message: &v1::StandDownRequest| request::stand_down(message, "db")),
        4 => judged(bytes, |message: &v1::AbandonReleaseRequest| request::abandon(message, "db")),
        5 => judged(bytes, |message: &v1::HoldRequest| request::hold(message, "db")),
        6 => judged(bytes, |message: &v1::DropHoldRequest| request::drop_hold(message, "db")),
        7 => judged(bytes, |message: &v1::AttestRequest| request::attest(message, "db")),
        8 => judged(bytes, |message: &v1::RetireRequest| request::retire(message, "db")),
        9 => judged(bytes, |message: &v1::AcceptIdentityRequest| request::accept_identity(message, "db")),
        10 => judged(bytes, |message: &v1::PauseRequest| request::pause::pause(message, "db")),
        11 => judged(bytes, |message: &v1::ResumeRequest| request::pause::resume(message, "db")),
        _ => judged(bytes, |message: &v1::DrillRequest| request::drill(message, "db")),
    }
}

/// A certificate, as if it had been verified: it names one caller, who cannot be taken for another kind's.
pub fn certificate_of_a_caller(data: &[u8]) -> bool {
    let Ok(shown) = certificate::read(&CertificateDer::from(data)) else { return false };
    let name = shown.name;
    assert!((1..=253).contains(&name.len()) && name.trim() == name, "{name:?}");
    assert!(!name.contains(char::is_control) && !name.contains('*'), "{name:?}");
    assert!(!name.starts_with("uid:") && !name.starts_with("tcp:"), "{name:?}");
    assert!(name.starts_with("spiffe://") || !name.contains([':', '/']), "{name:?}");
    true
}
