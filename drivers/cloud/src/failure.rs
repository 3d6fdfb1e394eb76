//! The error of a request without an answer, and foreign texts on one line.

use picket_driver::ErrorKind;
use picket_reach::proxy;
use picket_reach::web::NoAnswer;

/// Why there is no answer of that place.
#[derive(Debug)]
pub struct Unanswered {
    /// The stable kind.
    pub kind: ErrorKind,
    /// The far side may have read what was sent.
    pub unclear: bool,
    /// For people.
    pub why: String,
}

impl Unanswered {
    /// By what its sender saw. Where nobody was reached it is told that a proxy is set for the place, and not asked.
    pub fn of(failed: NoAnswer, place: &str) -> Self {
        let (kind, unclear, why) = match failed {
            NoAnswer::NeverSent(why) => {
                let proxy = place.parse().ok().and_then(|url| proxy::unused(&url));
                let proxy = proxy.map(|told| format!(" ({told})")).unwrap_or_default();
                (ErrorKind::Unreachable, false, format!("{why}{proxy}"))
            }
            NoAnswer::Broken(why) => (ErrorKind::Protocol, true, format!("the answer broke off: {why}")),
            NoAnswer::Late => (ErrorKind::TimedOut, true, "no answer in time".to_owned()),
        };
        Self { kind, unclear, why }
    }
}

/// One line of at most so many characters, as a log bears it.
pub fn one_line(text: &str, most: usize) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(most).collect();
    line.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_answered_is_unclear_unless_nothing_was_sent() {
        for (failed, kind, unclear) in [
            (NoAnswer::NeverSent("refused".to_owned()), ErrorKind::Unreachable, false),
            (NoAnswer::Broken("reset".to_owned()), ErrorKind::Protocol, true),
            (NoAnswer::Late, ErrorKind::TimedOut, true),
        ] {
            let said = Unanswered::of(failed, "https://cloud.example");
            assert_eq!((said.kind, said.unclear), (kind, unclear), "{said:?}");
        }
    }

    #[test]
    fn a_line_is_one_and_not_too_long() {
        assert_eq!(one_line(" a\x1b[31m\r\nb ", 100), "a [31m  b");
        assert_eq!(one_line("ääää", 3), "äää");
    }
}
