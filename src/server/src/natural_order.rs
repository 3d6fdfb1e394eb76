//! The order of names: numbers within them count by their value, so that `n9` comes before `n10`.

use std::cmp::Ordering;

/// Compares two names. Only equal names are equal.
pub(crate) fn compare(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    while let (Some(x), Some(y)) = (left.chars().next(), right.chars().next()) {
        let order = if x.is_ascii_digit() && y.is_ascii_digit() {
            let (m, n) = (take_number(&mut left), take_number(&mut right));
            m.len().cmp(&n.len()).then_with(|| m.cmp(n))
        } else {
            left = &left[x.len_utf8()..];
            right = &right[y.len_utf8()..];
            x.cmp(&y)
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    left.len().cmp(&right.len()).then_with(|| a.cmp(b))
}

/// Takes the number at the beginning of `text`, without zeros in front.
fn take_number<'a>(text: &mut &'a str) -> &'a str {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    *text = rest;
    number.trim_start_matches('0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_as_people_count() {
        let mut names = vec!["n10", "n9", "login", "n1-b2", "n1-b10", "n09", "n", "r2n1", "r10n1", "1", "01"];
        names.sort_by(|a, b| compare(a, b));
        assert_eq!(names, ["01", "1", "login", "n", "n1-b2", "n1-b10", "n09", "n9", "n10", "r2n1", "r10n1"]);
    }

    #[test]
    fn only_equal_names_are_equal() {
        assert_eq!(compare("n007", "n7"), compare("n7", "n007").reverse());
        assert_ne!(compare("n007", "n7"), Ordering::Equal);
        assert_eq!(compare("n7", "n7"), Ordering::Equal);
    }
}
