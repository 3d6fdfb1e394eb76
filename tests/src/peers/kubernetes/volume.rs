//! What stands on a volume: each line tells who wrote it and when.

use std::path::Path;
use std::time::{Duration, SystemTime};

/// A line on a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// When.
    pub at: SystemTime,
    /// The Node of whoever wrote it.
    pub node: String,
    /// Another one for each start of a writer.
    pub life: String,
}

/// All lines on a volume, in the order in which they were written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writers(pub Vec<Write>);

impl Writers {
    pub(super) fn read(log: &Path) -> Self {
        let text = std::fs::read_to_string(log).unwrap_or_default();
        // The last line may be half written.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        Self(whole.lines().filter_map(parse).collect())
    }

    /// The last line.
    pub fn last(&self) -> Option<&Write> {
        self.0.last()
    }

    /// How often a line was written by another writer than the one before. One change is a handover.
    pub fn changes(&self) -> usize {
        self.0.windows(2).filter(|pair| pair[0].life != pair[1].life).count()
    }

    /// How often a writer wrote again after another one had begun: two wrote at the same time. A handover is none, and however many
    /// handovers follow each other are none.
    pub fn overlaps(&self) -> usize {
        let mut begun: Vec<&str> = Vec::new();
        let mut before = None;
        let mut overlaps = 0;
        for write in &self.0 {
            let life = write.life.as_str();
            if before != Some(life) {
                if begun.contains(&life) {
                    overlaps += 1;
                } else {
                    begun.push(life);
                }
            }
            before = Some(life);
        }
        overlaps
    }

    /// The Nodes on which it was written, one for each change.
    pub fn nodes(&self) -> Vec<&str> {
        let mut nodes: Vec<&Write> = self.0.iter().collect();
        nodes.dedup_by_key(|write| &write.life);
        nodes.into_iter().map(|write| write.node.as_str()).collect()
    }

    /// Lines that were written after that moment.
    pub fn after(&self, moment: SystemTime) -> Self {
        Self(self.0.iter().filter(|write| write.at > moment).cloned().collect())
    }

    /// Those of one Node.
    pub fn of(&self, node: &str) -> Self {
        Self(self.0.iter().filter(|write| write.node == node).cloned().collect())
    }
}

/// "TIME NODE LIFE", as `tests/peers/kubernetes/images/writer` writes it.
fn parse(line: &str) -> Option<Write> {
    let mut words = line.split(' ');
    let at = SystemTime::UNIX_EPOCH + Duration::from_nanos(words.next()?.parse().ok()?);
    Some(Write { at, node: words.next()?.to_owned(), life: words.next()?.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(by: &str) -> Writers {
        let line = |(n, life)| parse(&format!("{n} n{life} {life}")).expect("a line");
        Writers(by.chars().enumerate().map(line).collect())
    }

    #[test]
    fn a_handover_is_no_overlap_and_who_comes_back_is_one() {
        for (by, changes, overlaps) in [
            ("", 0, 0),
            ("aaa", 0, 0),
            ("aaabbb", 1, 0),
            ("aabbccdd", 3, 0),
            ("aababb", 3, 2),
            ("aabba", 2, 1),
            ("abcabc", 5, 3),
        ] {
            let writers = written(by);
            assert_eq!((writers.changes(), writers.overlaps()), (changes, overlaps), "{by}");
        }
        assert_eq!(written("aabba").nodes(), ["na", "nb", "na"]);
    }
}
