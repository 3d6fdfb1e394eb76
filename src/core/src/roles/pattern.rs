//! Names of callers and holders, exact or with one `*`.

/// A name, or a name with one `*` that stands for anything, also for nothing.
///
/// A `*` never changes what kind of name is meant: `*` alone fits no SPIFFE id, no `uid:1000`, no `tcp:127.0.0.1` and no
/// `alice@example.org`, unless the pattern says `spiffe://`, `uid:` or `tcp:` before it, or has an `@`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    before: String,
    /// What stands after the `*`; `None` where there is none and the name must be equal.
    after: Option<String>,
}

/// A text that is no pattern.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "{0:?} is no name of a caller: one name is wanted, with at most one *, and without blanks at its ends"
)]
pub struct BadPattern(String);

/// The beginnings by which the kinds of names differ.
const KINDS: [&str; 3] = ["spiffe://", "uid:", "tcp:"];
/// What makes a name of no other kind one of a mailbox.
const MAILBOX: &str = "@";

/// `rest` is what stands after the `*` of a pattern: the end of a name says whether it is a mailbox, never that it is
/// one of the others.
fn kind(name: &str, rest: &str) -> Option<&'static str> {
    let begins = KINDS.into_iter().find(|kind| name.starts_with(kind));
    begins.or((name.contains(MAILBOX) || rest.contains(MAILBOX)).then_some(MAILBOX))
}

impl Pattern {
    /// Whether it means users or addresses of one machine, whose numbers are its own.
    pub fn is_of_a_machine(&self) -> bool {
        self.before.starts_with("uid:") || self.before.starts_with("tcp:")
    }

    /// Reads it.
    pub fn new(text: &str) -> Result<Self, BadPattern> {
        let mut parts = text.split('*').map(str::to_owned);
        let (before, after, more) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
        let plain = !text.is_empty() && text.trim() == text && !text.chars().any(char::is_control);
        if plain && more.is_none() { Ok(Self { before, after }) } else { Err(BadPattern(text.to_owned())) }
    }

    /// Whether `name` is meant.
    pub fn fits(&self, name: &str) -> bool {
        match &self.after {
            None => self.before == name,
            Some(after) => {
                kind(name, "") == kind(&self.before, after)
                    && name.len() >= self.before.len() + after.len()
                    && name.starts_with(&self.before)
                    && name.ends_with(after.as_str())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, name: &str) -> bool {
        Pattern::new(pattern).expect("a good pattern").fits(name)
    }

    #[test]
    fn a_name_fits_itself_and_a_star_stands_for_anything() {
        assert!(fits("db", "db") && !fits("db", "db2") && !fits("db", "d"));
        assert!(fits("db-*", "db-") && fits("db-*", "db-1") && !fits("db-*", "db"));
        assert!(fits("*.example.org", "a.b.example.org") && !fits("*.example.org", "example.org"));
        assert!(fits("a*a", "aa") && !fits("a*a", "a"), "the two ends do not overlap");
        assert!(fits("spiffe://lab/ns/*/fencer", "spiffe://lab/ns/db/fencer"));
    }

    #[test]
    fn a_star_does_not_reach_into_another_kind_of_name() {
        for name in ["uid:0", "tcp:127.0.0.1", "spiffe://lab/ns/db"] {
            assert!(!fits("*", name) && !fits("*1", name) && !fits("*db", name), "{name}");
        }
        assert!(fits("*", "db") && fits("uid:*", "uid:0") && fits("spiffe://*", "spiffe://lab/x"));
        assert!(!fits("*.example.org", "spiffe://evil/x.example.org"));
        assert!(!fits("u*", "uid:0"), "half of a kind's word is none");
    }

    #[test]
    fn a_mailbox_is_no_host_and_a_host_no_mailbox() {
        assert!(
            !fits("*.example.org", "bob@corp.example.org") && !fits("*", "bob@x") && !fits("bob*", "bob@x")
        );
        assert!(!fits("*@example.org", "uid:0@example.org") && !fits("*@x", "spiffe://lab/@x"));
        assert!(fits("*@example.org", "bob@example.org") && fits("bob@*", "bob@x") && fits("bob@x", "bob@x"));
        assert!(fits("spiffe://lab/*", "spiffe://lab/a@b"), "what begins as one kind stays it");
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for text in ["", " db", "db ", "a**", "*a*", "a\nb"] {
            assert!(Pattern::new(text).is_err(), "{text:?}");
        }
    }
}
