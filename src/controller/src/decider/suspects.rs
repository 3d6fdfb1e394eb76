//! Which Nodes are to be looked at, and which first: there may be more than can be looked at.
//!
//! # Invariants
//!
//! - A Node that failed is looked at as soon as those are done with that failed before it: whoever may
//!   register Nodes stops no policy by them (S14). Shown by
//!   `nodes_that_fail_and_recover_in_turn_take_nobody_else_s_turn_to_be_looked_at`,
//!   `nodes_that_are_kept_from_being_asked_for_take_nobody_else_s_turn`.

use super::Decider;
use super::episode::Stage;
use super::node::Moment;
use super::note::Note;
use super::observation::NodeObservation;
use super::policy_source::PolicySource;
use super::verdict::SkipReason;

impl Decider {
    /// Nodes that want to be looked at often: they are unhealthy, may be fenced, and are not asked for yet. First those that are unhealthy for
    /// longest, looked at or not; last those of which no look decides at the moment.
    pub fn suspects(&self, now: Moment) -> Vec<String> {
        let assignments = self.assignments();
        let speaking = self.speaking();
        let wants = |name: &String, observation: &NodeObservation| {
            let source_index = self.source_index(name, &speaking, &assignments)?.ok()?;
            let source = self.source(source_index);
            let since = source.since(observation)?;
            let stage = self.episodes.get(name).map(|episode| &episode.stage);
            let is_settled =
                matches!(stage, Some(Stage::Asking | Stage::Kept | Stage::Person | Stage::NotBack));
            let is_spared = self.spared(observation, source_index, &assignments).is_some();
            // Who does not lead leaves what the leader works on to it.
            let is_others = !self.leading && Note::of(&observation.node).is_some_and(|note| note.is_open());
            let is_held = self.brakes.held_over(observation.zone(), self.policy_of(name, &assignments));
            let is_not_due = match stage {
                Some(Stage::Waiting(_)) => true,
                // For as long as somebody holds it off, or no gateway says how it is.
                Some(Stage::Returning(returning)) => !returning.is_over(now),
                _ => false,
            };
            let waits = is_not_due || is_held || self.is_hindered(observation, source, now);
            (!is_settled && !is_spared && !is_others).then_some((waits, since))
        };
        let mut found: Vec<_> = self
            .nodes
            .iter()
            .filter_map(|(name, observation)| Some((wants(name, observation)?, name.clone())))
            .collect();
        found.sort();
        found.into_iter().map(|(_, name)| name).collect()
    }

    /// Whether something keeps it from being asked for that ends by no look at it.
    fn is_hindered(&self, observation: &NodeObservation, source: PolicySource<'_>, now: Moment) -> bool {
        let is_hindered = match source.early(observation, now) {
            Some(SkipReason::Quiet(_)) => true,
            Some(_) => false,
            None => self.heard_again(observation, source, now).is_some(),
        };
        is_hindered || self.barred_by_another(&observation.node).is_some()
    }
}
