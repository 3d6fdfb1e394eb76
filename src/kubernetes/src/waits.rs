//! What a release waits for, told at its Node in the words of `picket status`, for readers who have kubectl
//! alone.
//!
//! # Invariants
//!
//! - Waits change nothing but Events, and never go by a permit. They cost a release two seconds in ten at
//!   most.
//! - Nothing is told to a cluster that is not the one of the settings.

use std::time::Duration;

use parking_lot::MutexGuard;
use picket_core::ids::Generation;
use picket_release::{Progress, ReleaseError, Subject};
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::macros::format_description;
use tokio::time::Instant;

use crate::identity::Met;
use crate::release::{OfNode, OutOfService};

const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";
/// Of a note (events.k8s.io: 1,024 bytes).
const LONGEST: usize = 900;
/// What goes on by itself is told once it takes so long.
const SOON: Duration = Duration::from_secs(5);
/// Between two Events of one node at least.
const APART: Duration = Duration::from_secs(10);
/// An Event is forgotten after an hour: the same is told again.
const AGAIN: Duration = Duration::from_secs(1_800);
/// The telling of one takes so long at most.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a release of one node waits for.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    /// In words, whether something is wrong, and since when.
    now: Option<(String, bool, Instant)>,
    told: Option<(String, Instant)>,
    /// The Node that was met, where the record has none yet.
    met: Option<String>,
    /// Of which fence all of this is.
    generation: Generation,
}

impl Waits {
    /// Of that Node, if of any.
    pub(crate) fn is_of(&mut self, met: &str) {
        self.met = Some(met.to_owned());
    }

    /// What an attempt, or a look, came to.
    pub(crate) fn note(&mut self, came: &Result<Progress, ReleaseError>, at: Instant) {
        let (words, is_wrong) = match came {
            Ok(Progress::Complete(_)) => {
                (self.now, self.told) = (None, None);
                return;
            }
            Ok(progress) => (progress.words().to_owned(), false),
            Err(error) => (error.clone().into_words(), true),
        };
        let since =
            self.now.as_ref().filter(|(_, wrong, _)| *wrong == is_wrong).map_or(at, |(.., since)| *since);
        self.now = Some((words, is_wrong, since));
    }

    /// What was noted for an earlier fence is over.
    fn is_of_fence(&mut self, generation: Generation) {
        if self.generation != generation {
            *self = Self { generation, ..Self::default() };
        }
    }

    /// What is to be told now, and whether something is wrong.
    fn due(&mut self, now: Instant) -> Option<(String, bool)> {
        let (words, is_wrong, since) = self.now.as_ref()?;
        let is_due = match &self.told {
            Some((told, at)) if told == words => now >= *at + AGAIN,
            Some((_, at)) => now >= *at + APART,
            None => true,
        };
        if !is_due || !is_wrong && now < *since + SOON {
            return None;
        }
        self.told = Some((words.clone(), now));
        Some((words.clone(), *is_wrong))
    }
}

impl OfNode {
    pub(crate) fn waits(&self) -> MutexGuard<'_, Waits> {
        self.waits.lock()
    }
}

impl OutOfService {
    /// What is noted from here on is of that fence.
    pub(crate) fn waits_of(&self, subject: &Subject) {
        if let Some(of) = &self.of {
            of.waits().is_of_fence(subject.generation);
        }
    }

    /// Notes why something came to nothing.
    pub(crate) fn noted_if_wrong<T>(&self, came: Result<T, ReleaseError>) -> Result<T, ReleaseError> {
        came.inspect_err(|error| drop(self.noted(Err(error.clone()))))
    }

    /// Notes what an attempt, or a look, came to.
    pub(crate) fn noted(&self, came: Result<Progress, ReleaseError>) -> Result<Progress, ReleaseError> {
        if let Some(of) = &self.of {
            of.waits().note(&came, Instant::now());
        }
        came
    }

    /// Tells what the release waits for, where that is another thing by now. One that is not told is no fault of the release's.
    pub(crate) async fn tell(&self, subject: &Subject, until: Instant) {
        let Some(of) = &self.of else { return };
        of.waits().is_of_fence(subject.generation);
        let Some(noted) = subject.met.clone().or_else(|| of.waits().met.clone()) else { return };
        let Some(met) = Met::read(&noted) else { return };
        let Some((words, is_wrong)) = of.waits().due(Instant::now()) else { return };
        let until = until.min(Instant::now() + PATIENCE);
        let told = async {
            self.cluster.is_where(Some(&noted))?;
            self.cluster.is_meant(until).await?;
            let event = event(&met, &of.sought.ours.owner, &words, is_wrong);
            self.cluster.question::<Value>(EVENTS, &event, until).await
        };
        if let Err(fault) = told.await {
            tracing::debug!(node = met.node(), %fault, "what its release waits for is not told at the Node");
        }
    }
}

fn event(met: &Met, owner: &str, words: &str, is_wrong: bool) -> Value {
    let form = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z");
    let end = (0..=LONGEST.min(words.len())).rev().find(|at| words.is_char_boundary(*at)).unwrap_or(0);
    json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": { "generateName": "picket-", "namespace": "default" },
        "eventTime": OffsetDateTime::now_utc().format(&form).unwrap_or_default(),
        "type": if is_wrong { "Warning" } else { "Normal" },
        "reason": "ReleaseWaits",
        "action": "Fence",
        "note": format!("its volumes are not let go yet: {}", &words[..end]),
        "regarding": { "apiVersion": "v1", "kind": "Node", "name": met.node(), "uid": met.uid() },
        "reportingController": "picket.dev/gateway",
        "reportingInstance": owner,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(words: &str) -> Result<Progress, ReleaseError> {
        Ok(Progress::Accepted(words.to_owned()))
    }

    fn fails(words: &str) -> Result<Progress, ReleaseError> {
        Err(ReleaseError::Unknown(words.to_owned()))
    }

    #[test]
    fn what_is_wrong_is_told_at_once_and_what_goes_on_once_it_takes_long() {
        let (begun, mut waits_for) = (Instant::now(), Waits::default());
        let at = |seconds| begun + Duration::from_secs(seconds);
        waits_for.note(&waits("left: a pod"), at(0));
        assert_eq!(waits_for.due(at(4)), None, "it may be over soon");
        waits_for.note(&waits("left: a volume"), at(4));
        assert_eq!(waits_for.due(at(5)), Some(("left: a volume".to_owned(), false)));
        waits_for.note(&fails("a webhook"), at(6));
        assert_eq!(waits_for.due(at(14)), None, "not one after the other");
        assert_eq!(waits_for.due(at(15)), Some(("a webhook".to_owned(), true)));
        waits_for.note(&fails("a webhook"), at(200));
        assert_eq!(waits_for.due(at(1_814)), None, "it was told");
        assert_eq!(waits_for.due(at(1_815)), Some(("a webhook".to_owned(), true)), "and is forgotten");
        waits_for.note(&Ok(Progress::Complete("nothing is left".to_owned())), at(1_816));
        assert_eq!(waits_for.due(at(2_000)), None);
        waits_for.note(&fails("a webhook"), at(2_001));
        assert_eq!(waits_for.due(at(2_001)), Some(("a webhook".to_owned(), true)), "of another fence");
    }
}
