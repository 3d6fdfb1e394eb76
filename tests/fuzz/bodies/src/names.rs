//! Names: host lists, and the patterns of roles.

use std::collections::BTreeSet;

use picket_core::hostlist::{self, MOST};
use picket_core::roles::Pattern;

/// A host list: bounded, and the same after it was folded.
pub(crate) fn hostlist(data: &[u8]) -> bool {
    let Ok(list) = std::str::from_utf8(data) else { return false };
    let Ok(names) = hostlist::expand(list) else { return false };
    assert!(names.len() <= MOST && names.iter().all(|name| !name.is_empty()));
    let folded = hostlist::fold(&names);
    let again = hostlist::expand(&folded).unwrap_or_else(|error| panic!("{folded:?}: {error}"));
    let set = |names: Vec<String>| names.into_iter().collect::<BTreeSet<_>>();
    assert_eq!(set(again), set(names), "{list:?} folds to {folded:?}");
    true
}

/// A pattern in the first line, a name in the second: it fits exactly where the text says so, and never another kind of name.
pub(crate) fn roles(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else { return false };
    let (pattern, name) = text.split_once('\n').unwrap_or((text, ""));
    let Ok(read) = Pattern::new(pattern) else {
        let plain = !pattern.is_empty() && pattern.trim() == pattern && !pattern.contains(char::is_control);
        assert!(!plain || pattern.matches('*').count() > 1, "{pattern:?} is a pattern");
        return false;
    };
    let begins = |name: &str| ["spiffe://", "uid:", "tcp:"].into_iter().find(|kind| name.starts_with(kind));
    // A name of none of these kinds that has an @ is a mailbox; of a pattern either side may say so.
    let kind = |begin: &str, whole: &str| begins(begin).or(whole.contains('@').then_some("@"));
    let expected = match pattern.split_once('*') {
        None => pattern == name,
        Some((before, after)) => {
            let rest = name.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
            rest.is_some() && kind(before, pattern) == kind(name, name)
        }
    };
    assert_eq!(read.fits(name), expected, "{pattern:?} and {name:?}");
    expected
}
