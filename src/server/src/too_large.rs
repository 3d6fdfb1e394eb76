//! A request that is too large is refused by tonic before any code of ours sees it; here it gets the words and the
//! details that every other error has.

use picket_proto::v1::ErrorReason;
use tonic::body::Body;
use tonic::codegen::http::Response;
use tonic::{Code, Status};

use crate::fault::Fault;

/// How tonic 0.14 begins to say it (`codec/decode.rs`), with the code OUT_OF_RANGE. A test sends such a request.
const WORDS: &str = "Error, decoded message length too large";

/// Leaves every other answer as it is.
pub(crate) fn in_our_words(answer: Response<Body>, limit: usize) -> Response<Body> {
    let too_large = Status::from_header_map(answer.headers())
        .filter(|status| status.code() == Code::OutOfRange && status.message().starts_with(WORDS));
    match too_large {
        None => answer,
        Some(_) => {
            let what = format!("the request is larger than {limit} bytes: ask for fewer nodes at once");
            Fault::new(ErrorReason::BadRequest, what.clone()).field("", &what).status().into_http()
        }
    }
}
