//! Nodes that are brought back: whether their machines come is the gateway's to say, and it is asked.

use std::collections::BTreeMap;
use std::time::Duration;

use picket_proto::v1;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Control;
use crate::ask::{self, Asker};
use crate::letting;
use crate::mind::{News, Node, Note, Way};
use crate::outcome::Ended;
use crate::teller::Tell;
use crate::told;
use crate::waits;

/// Between two questions of one Node.
const EVERY: Duration = Duration::from_secs(10);

/// Who is asked about.
#[derive(Debug, Default)]
pub(super) struct Bringing {
    /// By a Node's name: when the gateway was asked last.
    asked: BTreeMap<String, Instant>,
    asking: JoinSet<(String, String, Result<Way, String>)>,
}

impl Bringing {
    /// Another replica leads. What was answered meanwhile is nothing that is heard later.
    pub(super) fn rest(&mut self) {
        *self = Self::default();
    }
}

impl Control {
    /// What became of those that are to come back, as far as it is known.
    pub(super) fn follow_back(&mut self, now: Instant) {
        while let Some(done) = self.bringing.asking.try_join_next() {
            match done {
                Ok((name, key, Ok(way))) => self.brought(&name, &key, &way, now),
                Ok((node, _, Err(why))) => tracing::debug!(node, why, "nobody says whether it comes back"),
                Err(_) => {}
            }
        }
        let all: Vec<(Node, String)> =
            self.mind.on_their_way().into_iter().map(|(node, key)| (node.clone(), key.to_owned())).collect();
        self.bringing.asked.retain(|name, _| all.iter().any(|(node, _)| node.name == *name));
        for (node, key) in all {
            if self.bringing.asked.get(&node.name).is_some_and(|last| now - *last < EVERY) {
                continue;
            }
            self.bringing.asked.insert(node.name.clone(), now);
            let asker = self.asker.clone();
            self.bringing.asking.spawn(async move {
                let way = way(&asker, &node).await;
                (node.name, key, way)
            });
        }
    }

    fn brought(&mut self, name: &str, key: &str, said: &Way, now: Instant) {
        let Some(news) = self.mind.brought(name, key, said, self.moment(now)) else { return };
        let Some(node) = self.mind.node(name).cloned() else { return };
        let News { policy, phase, reason, text } = news;
        self.teller.event(&node, reason, &text);
        let note = Note { phase, text, policy, key: key.to_owned(), at: told::time() };
        self.teller.tell(Tell::Note(Box::new(node), Some(note)));
    }
}

async fn way(asker: &Asker, node: &Node) -> Result<Way, String> {
    let select = ask::selected(node, asker.settings.select)?;
    letting::known(asker, &select).await.map(|known| said_of(&known))
}

/// What the gateway's word for its node is worth.
fn said_of(known: &v1::Node) -> Way {
    let v1::Node { name, detail, .. } = known;
    match known.phase() {
        // It knows no such node: whoever asks for a fence is told.
        v1::Phase::Unspecified if name.is_empty() => Way::Back,
        v1::Phase::Normal => Way::Back,
        v1::Phase::PowerOnFailed => {
            let Ended { reason, text, .. } = Ended::not_seen_on(known);
            Way::Failed(reason, text)
        }
        v1::Phase::NeedsOperator => Way::Failed(
            "NeedsOperator",
            format!(
                "it is not brought back, as a person must decide: {detail}. `picket status {name}` says what there is"
            ),
        ),
        v1::Phase::Retired => Way::Failed(
            "NeedsOperator",
            "it is not brought back: its hardware is gone for good, as a person said".to_owned(),
        ),
        v1::Phase::Unspecified
        | v1::Phase::Fencing
        | v1::Phase::Fenced
        | v1::Phase::Released
        | v1::Phase::Unfencing => Way::UnderWay(known.wait.as_ref().map(waits::words).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_was_not_seen_on_is_told_with_what_to_do_and_one_under_way_is_waited_for() {
        let known = |phase: v1::Phase| v1::Node {
            name: "n1".to_owned(),
            phase: phase as i32,
            detail: "bmc: away".to_owned(),
            ..v1::Node::default()
        };
        let Way::Failed("PowerOnFailed", words) = said_of(&known(v1::Phase::PowerOnFailed)) else {
            panic!("it has failed");
        };
        assert!(words.contains("bmc: away") && words.contains("picket retry n1"), "{words}");
        for phase in [v1::Phase::NeedsOperator, v1::Phase::Retired] {
            assert!(matches!(said_of(&known(phase)), Way::Failed("NeedsOperator", _)), "{phase:?}");
        }
        for phase in [v1::Phase::Fencing, v1::Phase::Fenced, v1::Phase::Released, v1::Phase::Unfencing] {
            assert_eq!(said_of(&known(phase)), Way::UnderWay(String::new()), "{phase:?}");
        }
        assert_eq!(said_of(&known(v1::Phase::Normal)), Way::Back);
        assert_eq!(said_of(&v1::Node::default()), Way::Back, "there is none");
        assert_eq!(
            said_of(&known(v1::Phase::Unspecified)),
            Way::UnderWay(String::new()),
            "a phase of a later gateway"
        );
    }
}
