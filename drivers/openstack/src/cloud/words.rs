//! What services say, for people and for what comes next.

use picket_cloud::one_line;
use picket_driver::ErrorKind;
use picket_reach::excerpt;
use picket_reach::web::Answer;
use reqwest::StatusCode;
use serde_json::Value;

/// Of what a service says so many characters are shown.
const SHOWN: usize = 300;
/// Below this a server's state does not say what is needed (2.79: detaching by the volume's id as it is today; Train).
const OLDEST: (u32, u32) = (2, 79);
/// The newest whose answers are known.
const NEWEST: (u32, u32) = (2, 100);

/// The status, and the service's own words: faults are `{"conflictingRequest": {"code": 409, "message": "…"}}` (Compute API, Faults).
pub(crate) fn said(answer: &Answer) -> String {
    let body: Option<Value> = serde_json::from_slice(&answer.body).ok();
    let message = body.as_ref().and_then(|body| {
        let table = body.as_object()?;
        table.values().find_map(|fault| fault.get("message")?.as_str()).map(str::to_owned)
    });
    let text = message.unwrap_or_else(|| excerpt(&answer.body));
    let retry =
        answer.header("retry-after").map(|after| format!(", retry after {after} s")).unwrap_or_default();
    format!("{}{retry}: {}", answer.code.as_u16(), tame(&text))
}

/// What a service says to a token that Keystone gave just now, and to which request.
pub(crate) fn refused_anew(answer: &Answer, request: &str) -> String {
    format!(
        "{}: the token is not taken; where it is an application credential's, its access rules may not have {request}",
        said(answer)
    )
}

/// Whether Keystone speaks of an application credential, or a user, that it does not know: what else is not found there is the place.
pub(crate) fn is_nobody(answer: &Answer) -> bool {
    said(answer).contains("Could not find")
}

/// What kind of error a status is, of a question.
pub(crate) fn kind_of(code: StatusCode) -> ErrorKind {
    match code.as_u16() {
        401 => ErrorKind::Authentication,
        403 => ErrorKind::Forbidden,
        413 | 429 | 503 => ErrorKind::Throttled,
        300..=399 | 500..=599 => ErrorKind::Protocol,
        _ => ErrorKind::Refused,
    }
}

/// One line, of a length that a log bears.
pub(crate) fn tame(text: &str) -> String {
    one_line(text, SHOWN)
}

/// The microversion to speak, by what the compute API's own document says.
pub(crate) fn microversion(document: &Value) -> Result<String, String> {
    let read = |key: &str| {
        let text = document.get(key)?.as_str()?;
        let (major, minor) = text.split_once('.')?;
        Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
    };
    let Some(newest) = read("version") else {
        return Err(
            "its document names no version: expected the compute API v2.1 with microversions".to_owned()
        );
    };
    if newest < OLDEST {
        return Err(format!(
            "it knows microversion {}.{} at most, and 2.79 (Train) is the least",
            newest.0, newest.1
        ));
    }
    let spoken = newest.min(NEWEST);
    if let Some(least) = read("min_version").filter(|least| *least > spoken) {
        return Err(format!(
            "it knows microversions from {}.{} on, and 2.100 is the newest that is known here",
            least.0, least.1
        ));
    }
    Ok(format!("{}.{}", spoken.0, spoken.1))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_newest_version_that_both_know_is_spoken() {
        for (least, newest, spoken) in [
            ("2.1", "2.79", Ok("2.79")),
            ("2.1", "2.96", Ok("2.96")),
            ("2.1", "2.140", Ok("2.100")),
            ("2.1", "2.78", Err("2.78 at most")),
            ("2.120", "2.140", Err("from 2.120 on")),
            ("", "", Err("names no version")),
        ] {
            let said = microversion(&json!({ "min_version": least, "version": newest }));
            match (said, spoken) {
                (Ok(said), Ok(spoken)) => assert_eq!(said, spoken),
                (Err(said), Err(why)) => assert!(said.contains(why), "{said}"),
                (said, _) => panic!("{least} to {newest}: {said:?}"),
            }
        }
    }
}
