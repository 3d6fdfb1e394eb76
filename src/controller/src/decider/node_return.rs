//! Nodes that are brought back, and whether they come: what the gateway says of their machines.
//!
//! # Invariants
//!
//! - A Node that does not come back is fenced once more only where the gateway says that its machine is on.
//!   That word is a moment old, and has held for a quarter of an hour. Shown by
//!   `the_quarter_of_an_hour_begins_once_its_machine_is_on_and_nothing_is_asked_while_nobody_says_so`.
//! - A Node whose machine was not seen on is a person's matter: it is off, and another fence mends nothing.
//!   Shown by `one_that_was_not_seen_on_is_a_person_s_and_told_once`.

use std::time::Duration;

use super::Decider;
use super::episode::{BACK_WITHIN, Stage};
use super::node::{Moment, Node};
use super::note::Phase;
use super::remediation_request::RemediationRequest;
use super::remediation_state::{Progress, RemediationState};

/// So long what the gateway said of a machine holds. It is asked every ten seconds.
const HOLDS: Duration = Duration::from_secs(30);
/// Before what is waited for.
const WAITS: &str = "; it waits for ";
/// What is told of a remediation beside it.
const BESIDE: &str = "its Node is fenced, and does not come back by itself: a person was told, by an Event of the Node, and another fence mends nothing";
/// After a person's word it goes on.
const AGAIN: &str = "somebody saw to it: it is on its way back again";

/// What the gateway says of a machine that is to come back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReturnProgress {
    /// It is not fenced any more: it is on, and its Node is to come.
    Back,
    /// It is being brought back, or is off as somebody wants it to be. What that waits for, in the words of `picket status`; empty: nothing.
    UnderWay(String),
    /// It does not come back by itself: the reason of the Event, and words.
    Failed(&'static str, String),
}

/// What is told of a Node that is to come back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReturnEvent {
    /// By whose policy or remediation it was fenced.
    pub policy: String,
    /// What is noted.
    pub phase: Phase,
    /// The reason of the Event.
    pub reason: &'static str,
    /// In words.
    pub text: String,
}

/// For how long a Node is given time to come, and whether it may be fenced again then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReturnDeadline {
    pub(super) until: Moment,
    /// When the gateway said last that its machine is on.
    pub(super) on: Option<Moment>,
}

impl ReturnDeadline {
    pub(super) fn from(now: Moment) -> Self {
        Self { until: now + BACK_WITHIN, on: None }
    }

    /// Whether it has not come in its time, and its machine is on.
    pub(super) fn is_over(&self, now: Moment) -> bool {
        now >= self.until && self.on.is_some_and(|at| now.saturating_sub(at) <= HOLDS)
    }
}

impl Decider {
    /// Nodes that are to come back, each with the key under which it was fenced.
    pub fn on_their_way(&self) -> Vec<(&Node, &str)> {
        let all = self.episodes.iter().filter(|(_, episode)| episode.stage.is_awaited());
        all.filter_map(|(name, episode)| Some((self.node(name)?, episode.key.as_str()))).collect()
    }

    /// A remediation beside the one whose machine does not come back asks for nothing: it has failed too, so that whoever made it goes on.
    pub(super) fn fail_beside(&mut self) {
        let fails = |remediation: &&RemediationRequest| {
            let episode = self.episodes.get(&remediation.node).filter(|one| one.stage == Stage::NotBack);
            let is_beside = episode.is_some_and(|one| one.remediation.as_ref() != Some(&remediation.id.uid));
            let may_ask = remediation.wrong.is_none() && !remediation.timed_out && !remediation.deleted;
            is_beside && may_ask && self.state(remediation).progress == Progress::Waiting
        };
        let failed: Vec<RemediationRequest> = self.remediations.iter().filter(fails).cloned().collect();
        for remediation in failed {
            let state = self.state(&remediation).clone();
            let (progress, reason) = (Progress::Failed, "NeedsOperator".to_owned());
            let state = RemediationState { progress, reason, text: BESIDE.to_owned(), ..state };
            self.states.insert(remediation.id.uid, state);
        }
    }

    /// The gateway says that of a machine that was fenced under this key. What is news: that it does not come back by itself, or does again.
    pub fn brought(
        &mut self,
        node: &str,
        key: &str,
        way: &ReturnProgress,
        now: Moment,
    ) -> Option<ReturnEvent> {
        let episode = self.episodes.get_mut(node).filter(|episode| episode.key == key)?;
        let (stage, is_news) = match (&episode.stage, way) {
            (Stage::Returning(_), ReturnProgress::Failed(..)) => (Stage::NotBack, true),
            // Nobody may have been asked since it was switched on: its time counts from when that is heard.
            (Stage::Returning(returning), ReturnProgress::Back) => {
                let begun = returning.on.map_or_else(|| ReturnDeadline::from(now), |_| *returning);
                (Stage::Returning(ReturnDeadline { on: Some(now), ..begun }), false)
            }
            // Its time counts from when its machine is on.
            (Stage::Returning(_), ReturnProgress::UnderWay(_)) => {
                (Stage::Returning(ReturnDeadline::from(now)), false)
            }
            // A person saw to it.
            (Stage::NotBack, ReturnProgress::Back | ReturnProgress::UnderWay(_)) => {
                (Stage::Returning(ReturnDeadline::from(now)), true)
            }
            _ => return None,
        };
        episode.stage = stage;
        let (policy, remediation) = (episode.policy.clone(), episode.remediation.clone());
        let (phase, reason, text) = match way {
            ReturnProgress::Failed(reason, text) => (Phase::NeedsOperator, *reason, text.clone()),
            ReturnProgress::Back | ReturnProgress::UnderWay(_) => {
                (Phase::Returning, "NodeReturning", AGAIN.to_owned())
            }
        };
        if let Some(remediation) =
            self.remediations.iter().find(|one| Some(&one.id.uid) == remediation.as_ref())
        {
            let state = self.state(remediation).clone();
            let state = match (way, state.progress) {
                (ReturnProgress::Failed(..), _) => RemediationState {
                    progress: Progress::Failed,
                    reason: reason.to_owned(),
                    text: text.clone(),
                    ..state
                },
                // That it failed was told, and whoever made it may have gone on by that.
                (_, Progress::Failed) if is_news => RemediationState { text: text.clone(), ..state },
                (ReturnProgress::UnderWay(wait), Progress::Returning) => {
                    RemediationState { text: waiting(&state.text, wait), ..state }
                }
                (ReturnProgress::Back, Progress::Returning) => {
                    RemediationState { text: waiting(&state.text, ""), ..state }
                }
                _ => state,
            };
            self.states.insert(remediation.id.uid.clone(), state);
        }
        is_news.then_some(ReturnEvent { policy, phase, reason, text })
    }
}

/// What is said, with what is waited for; `wait` is empty: nothing is. What was waited for before goes.
pub(crate) fn waiting(said: &str, wait: &str) -> String {
    let said = said.split(WAITS).next().unwrap_or_default();
    if wait.is_empty() { said.to_owned() } else { format!("{said}{WAITS}{wait}") }
}
