//! What statuses mean, and what services do that the specification does not say. One predicate a fact, with its reason.

use crate::answer::Answer;

/// What the status of an answer to a reset means for the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Done, or under way.
    Done,
    /// A task was begun that does it (DSP0266, "Asynchronous operations").
    Task,
    /// Not done: not in this state, or not with this value.
    NotInThisState,
    /// Not done: this user may not.
    Forbidden,
    /// Not done: what was found at the service before is not there any more.
    Gone,
    /// Not done: no such action.
    Unsupported,
    /// Not now.
    Busy,
    /// Not done: elsewhere, and nowhere else is asked.
    Redirect,
    /// It may have been done.
    Uncertain,
    /// Not done.
    Refused,
}

/// What the status means.
pub fn verdict(status: u16) -> Verdict {
    match status {
        202 => Verdict::Task,
        200..=299 => Verdict::Done,
        300..=399 => Verdict::Redirect,
        // Both are what services say to an off of a machine that is off: 409 by DSP0266's table of status codes (the state of
        // the resource), 400 by those that take the value for a wrong one then. Power is read before it is believed.
        400 | 409 => Verdict::NotInThisState,
        401 | 403 => Verdict::Forbidden,
        404 | 410 => Verdict::Gone,
        405 | 501 => Verdict::Unsupported,
        429 | 503 => Verdict::Busy,
        // The service waited for the rest of the request, or so it says.
        408 => Verdict::Uncertain,
        411..=499 | 402 | 406 | 407 => Verdict::Refused,
        _ => Verdict::Uncertain,
    }
}

/// Whether a busy service surely did nothing. 429 counts requests before they are looked at (RFC 6585 §4). A 503 that says when
/// to come again is the service's own word; one without may come from a web server whose back end died with the request.
pub fn is_surely_refused(answer: &Answer) -> bool {
    !answer.stored && (answer.status == 429 || answer.status == 503 && answer.retry_after.is_some())
}

/// Whether the service itself refused this very command. What a gateway in front of it says (502, 504), a service that is busy, or has not
/// read the request (408, 421, 425), a login that is over and a place that is not there say nothing of the command.
pub fn is_its_own_refusal(answer: &Answer) -> bool {
    !answer.stored && matches!(answer.status, 400 | 403 | 405 | 409 | 412 | 422 | 500 | 501)
}

/// Whether it says yes or no to a command. What a cache had kept is no answer to it.
pub fn is_clear(answer: &Answer) -> bool {
    match verdict(answer.status) {
        Verdict::Uncertain => false,
        Verdict::Busy => is_surely_refused(answer),
        _ => !answer.stored,
    }
}

/// Whether a change that said a version was refused for that, and may be taken without. Where the service names a property (`Property...`
/// of the Base registry), that is what it does not take.
pub fn is_of_its_version(answer: &Answer) -> bool {
    matches!(answer.status, 412 | 428) || answer.status == 400 && !answer.names("Property")
}

/// Whether a change was taken and has no effect before a reboot of the machine: `ResetRequired` of the Base registry (DSP8011), and
/// `SystemResetRequired` of HPE's.
pub fn waits_for_a_reset(answer: &Answer) -> bool {
    answer.is_success() && answer.names("ResetRequired")
}

/// What `If-Match` says at a try, by the version that was read just before it and the status that refused the last one. A weak version
/// never matches (RFC 9110 §13.1.1), and some services ask for one all the same; others quote theirs twice, or change it with each
/// answer. A service that wants a version (428) and takes none is told that any will do.
pub fn if_match(read: Option<String>, tries: u32, refused: Option<u16>) -> Option<String> {
    match (tries, read) {
        (0, read) => read,
        (1, Some(read)) if refused != Some(400) => {
            let plain = read.strip_prefix("W/").unwrap_or(&read).trim_matches(['"', '\\']);
            Some(format!("\"{plain}\""))
        }
        _ => (refused == Some(428)).then(|| "*".to_owned()),
    }
}

/// Whether the answer to a login says that all sessions are taken: `SessionLimitExceeded` of the Base registry (DSP8011), or
/// iDRAC's own RAC0218 ("the maximum number of user sessions has been reached"), with whatever status; and 503 and 429.
pub fn has_no_session_left(answer: &Answer) -> bool {
    matches!(answer.status, 429 | 503)
        || !answer.is_success() && (answer.names("SessionLimitExceeded") || answer.names("RAC0218"))
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    #[test]
    fn every_status_has_a_meaning_and_only_success_is_done() {
        for status in 100..1_000 {
            let done = matches!(verdict(status), Verdict::Done | Verdict::Task);
            assert_eq!(done, (200..300).contains(&status), "{status}");
        }
        for (status, expected) in [
            (204, Verdict::Done),
            (202, Verdict::Task),
            (307, Verdict::Redirect),
            (400, Verdict::NotInThisState),
            (409, Verdict::NotInThisState),
            (403, Verdict::Forbidden),
            (408, Verdict::Uncertain),
            (412, Verdict::Refused),
            (500, Verdict::Uncertain),
            (503, Verdict::Busy),
            (504, Verdict::Uncertain),
        ] {
            assert_eq!(verdict(status), expected, "{status}");
        }
    }

    #[test]
    fn each_try_says_another_version_and_the_first_the_one_that_was_read() {
        for (read, tries, refused, expected) in [
            (Some("W/\"7\""), 0, None, Some("W/\"7\"")),
            (Some("W/\"7\""), 1, Some(412), Some("\"7\"")),
            (Some("\"7\""), 1, Some(412), Some("\"7\"")),
            (Some("\"\"7\"\""), 1, Some(412), Some("\"7\"")),
            (Some("\"7\""), 1, Some(400), None),
            (Some("\"\\\"7\\\"\""), 1, Some(412), Some("\"7\"")),
            (Some("7"), 1, Some(412), Some("\"7\"")),
            (Some("\"7\""), 2, Some(412), None),
            (Some("\"7\""), 3, Some(428), Some("*")),
            (None, 0, None, None),
            (None, 1, Some(428), Some("*")),
            (None, 1, Some(412), None),
        ] {
            let said = if_match(read.map(str::to_owned), tries, refused);
            assert_eq!(said.as_deref(), expected, "{read:?} {tries} {refused:?}");
        }
    }

    #[test]
    fn a_full_service_is_known_by_its_words_whatever_its_status() {
        let answer = |status, body: &str| {
            let mut answer = Answer::begun(status, &HeaderMap::new());
            answer.body = body.as_bytes().to_vec();
            answer
        };
        let full = r#"{"error":{"@Message.ExtendedInfo":[{"MessageId":"Base.1.8.SessionLimitExceeded"}]}}"#;
        // As an iDRAC words it: the message id and its text (Dell, "Event and Error Message Reference Guide").
        let dell = r#"{"error":{"@Message.ExtendedInfo":[{"MessageId":"IDRAC.2.8.RAC0218"}]}}"#;
        for (status, body, expected) in [
            (400, full, true),
            (403, full, true),
            (400, dell, true),
            (503, "", true),
            (401, r#"{"error":{"code":"Base.1.8.ResourceAtUriUnauthorized"}}"#, false),
            (201, full, false),
        ] {
            assert_eq!(has_no_session_left(&answer(status, body)), expected, "{status} {body}");
        }
    }
}
