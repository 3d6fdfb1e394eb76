//! Nodes that are brought back: the gateway is asked whether their machines come.
//!
//! # Invariants
//!
//! - Of a Node one question is under way at most, and few of all of them: other questions to the gateway
//!   want room, too (S14). Shown by
//!   `one_question_a_node_is_under_way_and_few_of_all_and_each_has_its_turn`.
//! - A late answer is heard before the next question is asked, or not at all. Shown by
//!   `an_answer_to_an_earlier_question_is_not_heard`.
//! - Silence is told (S16). Shown by `a_minute_of_silence_is_told_once_and_again_after_an_answer`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use picket_proto::v1;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Control;
use crate::decider::{Node, Note, ReturnEvent, ReturnProgress};
use crate::event_recorder::ClusterWrite;
use crate::events;
use crate::fence_request::FenceRequester;
use crate::hold_release;
use crate::outcome::OutcomeReport;
use crate::request;
use crate::waits;

/// Between two questions of one Node.
const EVERY: Duration = Duration::from_secs(10);
/// So many questions are under way at most.
const AT_ONCE: usize = 16;
/// So long nobody answers before that is told.
const SILENT: Duration = Duration::from_secs(60);

/// A question under way, or what came of it: the Node's name, the question's number, its key.
type Answer = (String, u64, String, Result<ReturnProgress, String>);

/// Who is asked about.
#[derive(Debug, Default)]
pub(super) struct ReturningNodes {
    /// By a Node's name.
    asked: BTreeMap<String, ReturnQuestion>,
    asking: JoinSet<Answer>,
    /// How many were asked.
    questions: u64,
}

/// What was asked of one Node.
#[derive(Debug)]
struct ReturnQuestion {
    last: Instant,
    /// The number of the question under way.
    open: Option<u64>,
    /// Since when nobody answers.
    silent: Option<Instant>,
    is_told: bool,
}

impl ReturningNodes {
    /// Another replica leads. What was answered meanwhile is nothing that is heard later.
    pub(super) fn rest(&mut self) {
        *self = Self::default();
    }

    /// Of these Nodes those that are to be asked about now, longest not asked first.
    fn due(&mut self, on_their_way: &BTreeSet<String>, now: Instant) -> Vec<String> {
        self.asked.retain(|name, _| on_their_way.contains(name));
        let is_due = |name: &&String| {
            self.asked.get(*name).is_none_or(|one| one.open.is_none() && now - one.last >= EVERY)
        };
        let mut due: Vec<_> = on_their_way.iter().filter(is_due).cloned().collect();
        due.sort_by_key(|name| self.asked.get(name).map(|one| one.last));
        due.truncate(AT_ONCE.saturating_sub(self.asking.len()));
        due
    }

    /// It is asked. The number of the question.
    fn asks(&mut self, name: &str, now: Instant) -> u64 {
        self.questions += 1;
        let new = || ReturnQuestion { last: now, open: None, silent: None, is_told: false };
        let asked = self.asked.entry(name.to_owned()).or_insert_with(new);
        (asked.last, asked.open) = (now, Some(self.questions));
        asked.silent = asked.silent.or(Some(now));
        self.questions
    }

    /// That question has come to an end. False: it is another one's answer that is awaited, or none.
    fn answered(&mut self, name: &str, number: u64, is_answer: bool) -> bool {
        let Some(asked) = self.asked.get_mut(name).filter(|one| one.open == Some(number)) else {
            return false;
        };
        asked.open = None;
        if is_answer {
            (asked.silent, asked.is_told) = (None, false);
        }
        true
    }

    /// Nobody knows which question was lost.
    fn lost(&mut self) {
        self.asked.values_mut().for_each(|one| one.open = None);
    }

    /// Those of which it is to be told now that nobody answers: each once.
    fn silent(&mut self, now: Instant) -> Vec<String> {
        let is_silent =
            |one: &ReturnQuestion| !one.is_told && one.silent.is_some_and(|since| now - since >= SILENT);
        let silent = self.asked.iter_mut().filter(|(_, one)| is_silent(one));
        silent.map(|(name, one)| (one.is_told = true, name.clone()).1).collect()
    }
}

impl Control {
    /// What became of those that are to come back, as far as it is known.
    pub(super) fn follow_back(&mut self, now: Instant) {
        while let Some(done) = self.bringing.asking.try_join_next() {
            match done {
                Ok((name, number, key, said)) if self.bringing.answered(&name, number, said.is_ok()) => {
                    match said {
                        Ok(way) => self.brought(&name, &key, &way, now),
                        Err(why) => tracing::debug!(node = name, why, "nobody says whether it comes back"),
                    }
                }
                Ok(_) => {}
                Err(_) => self.bringing.lost(),
            }
        }
        let on_their_way = self.decider.on_their_way();
        let keys: BTreeMap<&str, &str> =
            on_their_way.iter().map(|(node, key)| (node.name.as_str(), *key)).collect();
        let names = keys.keys().map(|name| (*name).to_owned()).collect();
        for name in self.bringing.due(&names, now) {
            let (Some(node), Some(key)) = (self.decider.node(&name).cloned(), keys.get(name.as_str())) else {
                continue;
            };
            let (requester, key) = (self.requester.clone(), (*key).to_owned());
            let number = self.bringing.asks(&name, now);
            self.bringing.asking.spawn(async move {
                let way = way(&requester, &node).await;
                (name, number, key, way)
            });
        }
        for name in self.bringing.silent(now) {
            let Some(node) = self.decider.node(&name) else { continue };
            let text = "for a minute no gateway has said whether its machine comes back: it is not fenced again before one does";
            tracing::warn!(node = name, text);
            self.recorder.event(node, "GatewaysUnreachable", text);
        }
    }

    fn brought(&mut self, name: &str, key: &str, said: &ReturnProgress, now: Instant) {
        let Some(news) = self.decider.brought(name, key, said, self.moment(now)) else { return };
        let Some(node) = self.decider.node(name).cloned() else { return };
        let ReturnEvent { policy, phase, reason, text } = news;
        self.recorder.event(&node, reason, &text);
        let note = Note { phase, text, policy, key: key.to_owned(), at: events::time() };
        self.recorder.tell(ClusterWrite::Note(Box::new(node), Some(note)));
    }
}

async fn way(requester: &FenceRequester, node: &Node) -> Result<ReturnProgress, String> {
    let select = request::selected(node, requester.settings.select)?;
    hold_release::known(requester, &select).await.map(|known| said_of(&known))
}

/// What the gateway's word for its node is worth.
fn said_of(known: &v1::Node) -> ReturnProgress {
    let v1::Node { name, detail, .. } = known;
    match known.phase() {
        // It knows no such node: whoever asks for a fence is told.
        v1::Phase::Unspecified if name.is_empty() => ReturnProgress::Back,
        v1::Phase::Normal => ReturnProgress::Back,
        v1::Phase::PowerOnFailed => {
            let OutcomeReport { reason, text, .. } = OutcomeReport::not_seen_on(known);
            ReturnProgress::Failed(reason, text)
        }
        v1::Phase::NeedsOperator => ReturnProgress::Failed(
            "NeedsOperator",
            format!(
                "it is not brought back, as a person must decide: {detail}. `picket status {name}` says what there is"
            ),
        ),
        v1::Phase::Retired => ReturnProgress::Failed(
            "NeedsOperator",
            "it is not brought back: its hardware is gone for good, as a person said".to_owned(),
        ),
        v1::Phase::Unspecified
        | v1::Phase::Fencing
        | v1::Phase::Fenced
        | v1::Phase::Released
        | v1::Phase::Unfencing => {
            ReturnProgress::UnderWay(known.wait.as_ref().map(waits::words).unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: usize) -> BTreeSet<String> {
        (0..count).map(|number| format!("n{number:03}")).collect()
    }

    /// S14: an hour in which no gateway answers, and a hundred Nodes.
    #[tokio::test]
    async fn one_question_a_node_is_under_way_and_few_of_all_and_each_has_its_turn() {
        let (mut bringing, begun, all) = (ReturningNodes::default(), Instant::now(), names(100));
        for second in 0..3_600 {
            let now = begun + Duration::from_secs(second);
            // Each takes forty seconds, and comes to nothing.
            if second % 40 == 39 {
                bringing.asking = JoinSet::new();
                let open: Vec<_> =
                    bringing.asked.iter().map(|(name, one)| (name.clone(), one.open)).collect();
                for (name, number) in open.into_iter().filter_map(|(name, open)| Some((name, open?))) {
                    assert!(bringing.answered(&name, number, false));
                }
            }
            for name in bringing.due(&all, now) {
                assert!(bringing.asked.get(&name).is_none_or(|one| one.open.is_none()), "one at a time");
                bringing.asks(&name, now);
                bringing.asking.spawn(std::future::pending());
            }
            assert!(bringing.asking.len() <= AT_ONCE, "{}", bringing.asking.len());
        }
        assert_eq!(bringing.asked.len(), 100, "each is asked about");
        let oldest = bringing.asked.values().map(|one| one.last).min().expect("some");
        assert!(begun + Duration::from_secs(3_600) - oldest < Duration::from_secs(400), "in turn");
    }

    #[tokio::test]
    async fn a_node_is_asked_about_every_ten_seconds() {
        let (mut bringing, begun, all) = (ReturningNodes::default(), Instant::now(), names(1));
        let mut asked = Vec::new();
        for second in 0..25 {
            let now = begun + Duration::from_secs(second);
            for name in bringing.due(&all, now) {
                let number = bringing.asks(&name, now);
                assert!(bringing.answered(&name, number, true));
                asked.push(second);
            }
        }
        assert_eq!(asked, [0, 10, 20]);
    }

    /// It was forgotten meanwhile, and is asked about anew.
    #[test]
    fn an_answer_to_an_earlier_question_is_not_heard() {
        let (mut bringing, now) = (ReturningNodes::default(), Instant::now());
        let first = bringing.asks("n1", now);
        assert_eq!(bringing.due(&BTreeSet::new(), now), [""; 0]);
        assert!(!bringing.answered("n1", first, true), "it is not on its way any more");
        let second = bringing.asks("n1", now);
        assert!(!bringing.answered("n1", first, true), "it would overtake a later one");
        assert!(bringing.answered("n1", second, true) && !bringing.answered("n1", second, true));
        bringing.asks("n1", now);
        assert_eq!(bringing.due(&["n1".to_owned()].into(), now + EVERY * 100), [""; 0], "one at a time");
        bringing.lost();
        assert_eq!(bringing.due(&["n1".to_owned()].into(), now + EVERY), ["n1"]);
    }

    #[test]
    fn a_minute_of_silence_is_told_once_and_again_after_an_answer() {
        let (mut bringing, begun, mut told) = (ReturningNodes::default(), Instant::now(), Vec::new());
        for second in 0..300 {
            let now = begun + Duration::from_secs(second);
            if second % 10 == 0 {
                let number = bringing.asks("n1", now);
                bringing.answered("n1", number, (150..200).contains(&second));
            }
            told.extend(bringing.silent(now).into_iter().map(|_| second));
        }
        assert_eq!(told, [60, 260]);
    }

    #[test]
    fn a_machine_that_was_not_seen_on_is_told_with_what_to_do_and_one_under_way_is_waited_for() {
        let known = |phase: v1::Phase| v1::Node {
            name: "n1".to_owned(),
            phase: phase as i32,
            detail: "bmc: away".to_owned(),
            ..v1::Node::default()
        };
        let ReturnProgress::Failed("PowerOnFailed", words) = said_of(&known(v1::Phase::PowerOnFailed)) else {
            panic!("it has failed");
        };
        assert!(words.contains("bmc: away") && words.contains("picket retry n1"), "{words}");
        for phase in [v1::Phase::NeedsOperator, v1::Phase::Retired] {
            assert!(
                matches!(said_of(&known(phase)), ReturnProgress::Failed("NeedsOperator", _)),
                "{phase:?}"
            );
        }
        for phase in [v1::Phase::Fencing, v1::Phase::Fenced, v1::Phase::Released, v1::Phase::Unfencing] {
            assert_eq!(said_of(&known(phase)), ReturnProgress::UnderWay(String::new()), "{phase:?}");
        }
        assert_eq!(said_of(&known(v1::Phase::Normal)), ReturnProgress::Back);
        assert_eq!(said_of(&v1::Node::default()), ReturnProgress::Back, "there is none");
        assert_eq!(
            said_of(&known(v1::Phase::Unspecified)),
            ReturnProgress::UnderWay(String::new()),
            "a phase of a later gateway"
        );
    }
}
