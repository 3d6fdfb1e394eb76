//! Names that an unknown one may have been meant to be, for messages.

/// Of a long name no more letters may differ: who looks for more reads the list, and each letter more costs a row of every comparison.
const FAR: usize = 6;

/// At most so many are offered.
const OFFERED: usize = 3;

/// The `candidates` that resemble `word` most, best first; none if nothing comes close.
///
/// Close is: a third of the letters may differ, and one may always, but never more than six. Zeros in front of a number do not count: `r1n9` is
/// as close to `r1n01` as to `r1n1`.
pub fn near<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = letters(word);
    let (short, allowed) = (without_zeros(&wanted), (wanted.len() / 3).clamp(1, FAR));
    let mut found: Vec<(usize, &str)> = candidates
        .into_iter()
        .filter_map(|candidate| {
            let letters = letters(candidate);
            let close = |a: &[char], b: &[char]| distance(a, b, allowed);
            let distances = [close(&wanted, &letters), close(&short, &without_zeros(&letters))];
            Some((distances.into_iter().flatten().min()?, candidate))
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().take(OFFERED).map(|(_, candidate)| candidate).collect()
}

fn letters(name: &str) -> Vec<char> {
    name.to_lowercase().chars().take(64).collect()
}

/// The same name with each of its numbers as it would be counted.
fn without_zeros(name: &[char]) -> Vec<char> {
    let mut kept: Vec<char> = Vec::new();
    for (at, &letter) in name.iter().enumerate() {
        let in_number = kept.last().is_some_and(char::is_ascii_digit);
        let goes_on = name.get(at + 1).is_some_and(char::is_ascii_digit);
        if letter != '0' || in_number || !goes_on {
            kept.push(letter);
        }
    }
    kept
}

/// `; did you mean "a" or "b"?`, or nothing where nothing comes close: the end of a message about `word`.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = near(word, candidates).iter().map(|name| format!("{name:?}")).collect();
    if names.is_empty() { String::new() } else { format!("; did you mean {}?", names.join(" or ")) }
}

/// How many letters must be put in, taken out, changed, or swapped with their neighbour; `None`: more than `most`.
fn distance(a: &[char], b: &[char], most: usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > most {
        return None;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, &x) in a.iter().enumerate() {
        let mut row = vec![i + 1; b.len() + 1];
        for (j, &y) in b.iter().enumerate() {
            row[j + 1] = (last[j] + usize::from(x != y)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && x == b[j - 1] && a[i - 1] == y {
                row[j + 1] = row[j + 1].min(before[j - 1] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
        // A swap reaches back over one row: what both of these rows are beyond, no later one comes back from.
        if before.iter().chain(&last).all(|letters| *letters > most) {
            return None;
        }
    }
    Some(last[b.len()]).filter(|letters| *letters <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_meant_comes_first_and_what_was_not_does_not_come() {
        let keys = ["readings", "dwell", "password_file", "username"];
        assert_eq!(near("readngs", keys), ["readings"]);
        assert_eq!(near("dwlel", keys), ["dwell"]);
        assert_eq!(near("pasword_file", keys), ["password_file"]);
        assert_eq!(near("colour", keys), Vec::<&str>::new());
        assert_eq!(near("r1n9", ["r1n01", "r1n02", "r1n03", "r1n04"]), ["r1n01", "r1n02", "r1n03"]);
        assert_eq!(near("r1n007", ["r1n70", "r1n7"]), ["r1n7", "r1n70"]);
        assert_eq!(near("r1n0", ["r2n00"]), ["r2n00"]);
        assert_eq!(near("R1N7", ["r1n07", "r1n17", "r2n7", "x"]), ["r1n07", "r1n17", "r2n7"]);
    }

    #[test]
    fn of_a_long_name_six_letters_may_differ_and_no_more() {
        let long = "rack-17-compute-node-with-a-very-long-name-that-somebody-gave-it";
        let other = |wrong: usize| "x".repeat(wrong) + &long[wrong..];
        assert_eq!(near(long, [other(6).as_str()]), [other(6)]);
        assert_eq!(near(long, [other(7).as_str()]), Vec::<&str>::new());
        assert_eq!(near(long, [&long[..58], &long[..57]]), [&long[..58]]);
        assert_eq!(near("ba", ["ab"]), ["ab"], "two that are swapped");
    }

    #[test]
    fn a_message_ends_with_the_offer() {
        assert_eq!(did_you_mean("dwel", ["dwell"]), "; did you mean \"dwell\"?");
        assert_eq!(did_you_mean("x", ["dwell"]), "");
        assert_eq!(did_you_mean("", []), "");
    }
}
