//! Why Nodes that failed are not fenced, as it was told: of each Node once, and again where the reason changes or is so after ten minutes.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::decider::{Node, Note, Phase};

/// A kubelet may change its Node's labels all the time: the same word is told of its Node again after so long.
const AGAIN: Duration = Duration::from_secs(600);

/// By a Node's name.
#[derive(Debug, Default)]
pub(super) struct WithheldFences {
    now: BTreeMap<String, &'static str>,
    told: BTreeMap<(String, &'static str), Instant>,
}

impl WithheldFences {
    /// It is not withheld any more.
    pub(super) fn forget(&mut self, node: &str) {
        self.now.remove(node);
    }

    /// Whether it is to be told now that this keeps the Node from being fenced.
    pub(super) fn is_news(&mut self, node: &Node, word: &'static str, now: Instant) -> bool {
        let name = &node.name;
        self.told.retain(|_, at| now.saturating_duration_since(*at) < AGAIN);
        let lately = (name.clone(), word);
        if is_seen_to(node) || self.now.get(name) == Some(&word) || self.told.contains_key(&lately) {
            return false;
        }
        self.now.insert(name.clone(), word);
        self.told.insert(lately, now);
        true
    }
}

/// Whether it was fenced: it is off, on its way back, or a person's. That it is not fenced would be no word of it.
fn is_seen_to(node: &Node) -> bool {
    Note::of(node)
        .is_some_and(|note| matches!(note.phase, Phase::Fenced | Phase::Returning | Phase::NeedsOperator))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decider::STATUS;

    fn node() -> Node {
        Node { name: "n1".to_owned(), ..Node::default() }
    }

    #[test]
    fn the_same_word_is_told_once_in_ten_minutes_however_often_it_comes_and_goes() {
        let (mut withheld, begun) = (WithheldFences::default(), Instant::now());
        let mut told = Vec::new();
        for second in 0..1_300_u64 {
            let (word, now) =
                (["no policy acts", "paused"][second as usize % 2], begun + Duration::from_secs(second));
            if second % 5 == 0 {
                withheld.forget("n1");
            }
            told.extend(withheld.is_news(&node(), word, now).then_some((second, word)));
        }
        let all = [0, 1, 600, 601, 1_200, 1_201]
            .map(|second| (second, ["no policy acts", "paused"][second as usize % 2]));
        assert_eq!(told, all);
    }

    #[test]
    fn of_a_node_that_was_fenced_nobody_is_told_that_it_is_not() {
        for (phase, is_news) in [
            (Phase::Fenced, false),
            (Phase::Returning, false),
            (Phase::NeedsOperator, false),
            (Phase::Blocked, true),
            (Phase::Refused, true),
            (Phase::Fencing, true),
            (Phase::Recovered, true),
        ] {
            let note = Note {
                phase,
                text: String::new(),
                policy: "p".to_owned(),
                key: "k".to_owned(),
                at: String::new(),
            };
            let note = serde_json::to_string(&note).expect("JSON");
            let node = Node { annotations: [(STATUS.to_owned(), note)].into(), ..node() };
            let told = WithheldFences::default().is_news(&node, "no policy acts", Instant::now());
            assert_eq!(told, is_news, "{phase:?}");
        }
    }
}
