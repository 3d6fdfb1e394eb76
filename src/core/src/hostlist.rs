//! Host lists as operators write them for powerman, SLURM and ClusterShell: `r1n[01-40,45]`,
//! `a[1-2]b[3-4],login`.
//!
//! **Purpose.** Many names in one word: [`expand`] unfolds them, [`fold`] folds them.
//!
//! # Invariants
//!
//! - A list is expanded wholly or refused: nothing of a list that is wrong anywhere is returned.
//! - Zeros in front are kept (`[01-10]` is 01, 02, ... 10). A name that is written twice comes once, where
//!   it came first.

use std::collections::{BTreeMap, BTreeSet};

/// The most names that one list may stand for.
pub const MOST: usize = 65_536;

/// The longest list that is read, in bytes.
const LONGEST: usize = 1 << 20;

/// A list that cannot be read: where, what is wrong, what would be right.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("host list, column {column}: {what}")]
pub struct HostListError {
    /// The character, counted from 1.
    pub column: usize,
    /// What is wrong there and what would be right.
    pub what: String,
}

fn wrong<T>(column: usize, what: impl Into<String>) -> Result<T, HostListError> {
    Err(HostListError { column, what: what.into() })
}

/// `low` to `high` inclusive, written with at least `width` digits.
#[derive(Clone, Copy, Debug)]
struct Range {
    low: u64,
    high: u64,
    width: usize,
}

/// One piece of a name: text that stands for itself, or numbers of which each is taken in turn.
#[derive(Debug)]
enum Piece {
    Text(String),
    Numbers(Vec<Range>),
}

/// The names that `list` stands for, in the order in which it names them.
///
/// Names are separated by commas, with blanks around them if you like. Within brackets stand numbers and ranges;
/// a name may have several brackets, of which the last one runs fastest.
///
/// # Errors
/// The list cannot be read, or stands for more than [`MOST`] names. Nothing was asked of any node.
pub fn expand(list: &str) -> Result<Vec<String>, HostListError> {
    expand_at_most(list, MOST)
}

/// The same of a list that stands for at most so many names.
///
/// # Errors
/// As [`expand`], with `most` in the place of [`MOST`].
pub fn expand_at_most(list: &str, most: usize) -> Result<Vec<String>, HostListError> {
    if list.len() > LONGEST {
        return wrong(1, format!("the list is {} bytes long: at most {LONGEST}", list.len()));
    }
    let mut reader = Reader { chars: list.chars().collect(), at: 0 };
    let mut names = Vec::new();
    let mut seen = BTreeSet::new();
    loop {
        reader.skip_blanks();
        let column = reader.column();
        let pieces = reader.name()?;
        if names.len() + count(&pieces) > most {
            return wrong(column, format!("the list stands for more than {most} names: split it"));
        }
        for name in product(&pieces) {
            if name.len() > 253 {
                return wrong(column, format!("the name {name:.40}... is longer than 253 characters"));
            }
            if seen.insert(name.clone()) {
                names.push(name);
            }
        }
        reader.skip_blanks();
        match reader.next() {
            None => return Ok(names),
            Some(',') => {}
            Some(other) => {
                return wrong(
                    reader.at,
                    format!("{other:?} does not belong into a name: separate names by commas"),
                );
            }
        }
    }
}

struct Reader {
    chars: Vec<char>,
    at: usize,
}

impl Reader {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek();
        self.at += usize::from(next.is_some());
        next
    }

    /// The column of the character that comes next.
    fn column(&self) -> usize {
        self.at + 1
    }

    fn skip_blanks(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    fn name(&mut self) -> Result<Vec<Piece>, HostListError> {
        let start = self.column();
        let mut pieces = Vec::new();
        loop {
            match self.peek() {
                Some('[') => pieces.push(Piece::Numbers(self.bracket()?)),
                Some(']') => return wrong(self.column(), "this bracket was never opened"),
                Some(c) if is_name(c) => pieces.push(Piece::Text(self.take_while(is_name))),
                _ => break,
            }
        }
        match pieces.first() {
            None => {
                wrong(start, "a name is missing: write names, separated by single commas (r1n[01-40],login)")
            }
            Some(Piece::Text(text)) if !text.starts_with(|c: char| c.is_ascii_alphanumeric()) => {
                wrong(start, "a name begins with a letter or a digit")
            }
            Some(_) => Ok(pieces),
        }
    }

    fn bracket(&mut self) -> Result<Vec<Range>, HostListError> {
        let opened = self.column();
        self.at += 1;
        let mut ranges = Vec::new();
        loop {
            ranges.push(self.range()?);
            match self.next() {
                Some(',') => {}
                Some(']') => return Ok(ranges),
                None => {
                    return wrong(
                        self.column(),
                        format!("the bracket opened in column {opened} is not closed"),
                    );
                }
                Some(other) => {
                    return wrong(
                        self.at,
                        format!(
                            "{other:?} does not belong into brackets: write numbers and ranges ([01-40,45])"
                        ),
                    );
                }
            }
        }
    }

    fn range(&mut self) -> Result<Range, HostListError> {
        let column = self.column();
        let (low_text, low) = self.number()?;
        let (high_text, high) = if self.peek() == Some('-') {
            self.at += 1;
            self.number()?
        } else {
            (low_text.clone(), low)
        };
        let padded = |text: &str| text.len() > 1 && text.starts_with('0');
        if low > high {
            return wrong(column, format!("the range {low_text}-{high_text} runs backwards"));
        }
        let uneven = low_text.len() != high_text.len();
        if uneven && (padded(&high_text) || (padded(&low_text) && high_text.len() < low_text.len())) {
            return wrong(
                column,
                format!("{low_text}-{high_text}: write both ends with the same number of digits"),
            );
        }
        Ok(Range { low, high, width: if padded(&low_text) { low_text.len() } else { 0 } })
    }

    fn number(&mut self) -> Result<(String, u64), HostListError> {
        let column = self.column();
        let text = self.take_while(|c| c.is_ascii_digit());
        if text.is_empty() {
            return wrong(column, "a number is missing: write numbers and ranges ([01-40,45])");
        }
        match text.parse() {
            Ok(number) if text.len() <= MOST_DIGITS => Ok((text, number)),
            _ => wrong(column, format!("the number {text:.40} is longer than {MOST_DIGITS} digits")),
        }
    }

    fn take_while(&mut self, fits: impl Fn(char) -> bool) -> String {
        let mut text = String::new();
        while let Some(c) = self.peek().filter(|&c| fits(c)) {
            text.push(c);
            self.at += 1;
        }
        text
    }
}

/// Longer numbers do not surely fit into 64 bits.
const MOST_DIGITS: usize = 18;

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// How many names the pieces stand for, repeated ones counted each.
fn count(pieces: &[Piece]) -> usize {
    pieces.iter().fold(1, |names: usize, piece| match piece {
        Piece::Text(_) => names,
        Piece::Numbers(ranges) => {
            let numbers =
                ranges.iter().fold(0_u64, |sum, range| sum.saturating_add(range.high - range.low + 1));
            names.saturating_mul(usize::try_from(numbers).unwrap_or(usize::MAX))
        }
    })
}

fn product(pieces: &[Piece]) -> Vec<String> {
    pieces.iter().fold(vec![String::new()], |names, piece| match piece {
        Piece::Text(text) => names.into_iter().map(|name| name + text).collect(),
        Piece::Numbers(ranges) => names
            .iter()
            .flat_map(|name| {
                ranges.iter().flat_map(move |range| {
                    (range.low..=range.high).map(move |n| format!("{name}{n:0width$}", width = range.width))
                })
            })
            .collect(),
    })
}

/// The shortest list for `names` that folds their last numbers: sorted, each name once.
///
/// `expand(&fold(names))` is `names` again, sorted by the text around their last number and then by that number.
pub fn fold<S: AsRef<str>>(names: &[S]) -> String {
    let names: BTreeSet<&str> = names.iter().map(AsRef::as_ref).collect();
    // Numbers are told apart by how many digits zeros in front fill them up to, since 7, 07 and 007 are three names.
    let mut widths: BTreeMap<(&str, &str), BTreeSet<usize>> = BTreeMap::new();
    for (before, digits, after) in names.iter().filter_map(|name| last_number(name)) {
        if digits.len() > 1 && digits.starts_with('0') {
            widths.entry((before, after)).or_default().insert(digits.len());
        }
    }
    let mut groups: BTreeMap<(&str, &str, usize), BTreeSet<u64>> = BTreeMap::new();
    let mut plain = Vec::new();
    for name in names {
        let Some((before, digits, after)) = last_number(name) else {
            plain.push(name.to_owned());
            continue;
        };
        let fits = |width: &&usize| **width <= digits.len();
        let width = widths.get(&(before, after)).and_then(|widths| widths.iter().rev().find(fits));
        let number = digits.parse().unwrap_or_default();
        groups.entry((before, after, width.copied().unwrap_or(0))).or_default().insert(number);
    }
    let folded = groups.into_iter().map(|((before, after, width), numbers)| {
        let ranges = ranges(&numbers, width);
        let alone = numbers.len() == 1;
        if alone { format!("{before}{ranges}{after}") } else { format!("{before}[{ranges}]{after}") }
    });
    folded.chain(plain).collect::<Vec<_>>().join(",")
}

/// A name around its last number, where it has one that fits.
fn last_number(name: &str) -> Option<(&str, &str, &str)> {
    let end = name.rfind(|c: char| c.is_ascii_digit())? + 1;
    let start = name[..end].rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1);
    (end - start <= MOST_DIGITS).then(|| (&name[..start], &name[start..end], &name[end..]))
}

fn ranges(numbers: &BTreeSet<u64>, width: usize) -> String {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, high)) if *high + 1 == number => *high = number,
            _ => ranges.push((number, number)),
        }
    }
    let written = ranges.iter().map(|&(low, high)| match high - low {
        0 => format!("{low:0width$}"),
        1 => format!("{low:0width$},{high:0width$}"),
        _ => format!("{low:0width$}-{high:0width$}"),
    });
    written.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests;
