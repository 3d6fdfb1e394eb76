//! What is news of a policy: that it stops, that it acts again, that something of it is wrong. Each is told
//! once, by Event and log.
//!
//! # Invariants
//!
//! - Whatever stops a policy that acted is news, also to a new leader, which goes by the policy's status.
//!   Shown by `whatever_stops_a_policy_that_acted_is_told_once_and_so_is_its_end`.
//! - While Nodes come and go nothing is told twice: the words before the first colon of a fault's message
//!   name no Node. Shown by `a_fault_is_told_once_however_many_nodes_come_and_go_and_a_new_one_at_once`.
//! - Whoever may label a Node has the same told once in ten minutes at most. Shown by
//!   `what_comes_and_goes_is_told_once_in_ten_minutes_and_what_is_so_then_at_last`.

use std::collections::BTreeMap;

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::decider::PolicyReport;
use crate::events::{self, PolicyCondition};

/// Before the words of what stopped a policy, and of what is so since nothing does.
const STOPPED: &str = "it does not act any more: ";
const ACTS: &str = "it acts: ";

/// The reason of an Event, and its words.
pub type PolicyEvent = (&'static str, String);

/// Before the same of one policy is told again.
const AGAIN: Duration = Duration::from_secs(600);

/// By a policy's name: what was told of it.
#[derive(Debug, Default)]
pub struct NewsLog(BTreeMap<String, ReportedPolicy>);

/// What was told of one policy.
#[derive(Debug, Default)]
struct ReportedPolicy {
    /// Its status as it was told last.
    status: Value,
    /// When each thing was told last.
    lately: BTreeMap<String, Instant>,
}

impl NewsLog {
    /// Another replica leads: what is known is what stands in the policies' statuses.
    pub fn rest(&mut self) {
        self.0.clear();
    }

    /// There are these policies and no others.
    pub fn only(&mut self, is_there: impl Fn(&str) -> bool) {
        self.0.retain(|name, _| is_there(name));
    }

    /// What is news by its status of now. `before`: the one that the API server has, which may be older than what was told.
    pub fn of(
        &mut self,
        policy: &str,
        now: &Value,
        before: &Value,
        found: &PolicyStatus<'_>,
        at: Instant,
    ) -> Vec<PolicyEvent> {
        let known = self.0.get(policy).map_or(before, |of| &of.status);
        if events::is_same(known, now) {
            return Vec::new();
        }
        let mut news = news(found, known);
        let all = news.len();
        let of = self
            .0
            .entry(policy.to_owned())
            .or_insert_with(|| ReportedPolicy { status: before.clone(), ..ReportedPolicy::default() });
        of.lately.retain(|_, told| at.saturating_duration_since(*told) < AGAIN);
        news.retain(|one| !of.lately.contains_key(&head(one)));
        of.lately.extend(news.iter().map(|one| (head(one), at)));
        // What was told lately is told later, unless it is otherwise again by then.
        if news.len() == all {
            of.status = now.clone();
        }
        news
    }
}

/// What is the same of two of them, however many Nodes they count or name.
fn head((reason, words): &PolicyEvent) -> String {
    let words = [STOPPED, ACTS].iter().find_map(|before| words.strip_prefix(before)).unwrap_or(words);
    let head = words.split(':').next().unwrap_or_default();
    let head: String = head.chars().filter(|one| !one.is_ascii_digit()).collect();
    format!("{reason} {head}")
}

/// What was found of a policy.
#[derive(Debug)]
pub enum PolicyStatus<'a> {
    /// It can be read.
    Read(&'a PolicyReport),
    /// It cannot, for that reason.
    Malformed(&'a str),
}

fn news(found: &PolicyStatus<'_>, known: &Value) -> Vec<PolicyEvent> {
    let was = |kind: &str| {
        let all = known["conditions"].as_array();
        all.and_then(|all| all.iter().find(|one| one["type"] == kind)).unwrap_or(&Value::Null)
    };
    let ((status, reason, message), report): (PolicyCondition, _) = match found {
        PolicyStatus::Read(report) => (events::acting(report), Some(*report)),
        PolicyStatus::Malformed(why) => (events::not_understood(why), None),
    };
    let (faults, is_held) = match report {
        Some(report) => (&*report.faults, report.holding.is_some()),
        None => (&[][..], false),
    };
    let acting = was("Acting");
    let was_so = |status: &str| acting["status"] == status;
    let has_stopped = status == "False" && !(was_so("False") && acting["reason"] == reason);
    let is_of_one = matches!(reason, "ClaimedIdentity" | "OneAtATime");
    let mut all = Vec::new();
    match status {
        "False" if has_stopped && was_so("True") && !is_of_one => {
            all.push((reason, format!("{STOPPED}{message}")));
        }
        "False" if has_stopped => all.push((reason, message)),
        "True" if was_so("False") => all.push((reason, format!("{ACTS}{message}"))),
        _ => {}
    }
    // A policy that stops by its faults has them all in its words.
    if has_stopped && !is_held {
        return all;
    }
    let accepted = was("Accepted");
    let said = accepted["message"].as_str().filter(|_| accepted["status"] == "False").unwrap_or_default();
    let is_known = |message: &str| message.split(':').next().is_some_and(|head| said.contains(head));
    let new = faults.iter().filter(|fault| !is_known(&fault.message));
    all.extend(new.map(|fault| (fault.reason, fault.message.clone())));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decider::PolicyFault;

    fn report(
        reasons: &[(&'static str, &str)],
        holding: Option<(&'static str, &str)>,
        selected: usize,
    ) -> PolicyReport {
        let fault =
            |(reason, message): &(&'static str, &str)| PolicyFault { reason, message: (*message).to_owned() };
        PolicyReport {
            policy: "p".to_owned(),
            generation: 7,
            selected,
            unhealthy: 0,
            fencing: 0,
            faults: reasons.iter().map(fault).collect(),
            holding: holding.as_ref().map(fault),
        }
    }

    /// What each of these reports, one after the other, has told. A new leader each time, or one that goes on.
    fn told_of(reports: &[PolicyReport], is_new: bool) -> Vec<Vec<PolicyEvent>> {
        let (mut told, mut stored, mut at) = (NewsLog::default(), Value::Null, Instant::now());
        let each = reports.iter().map(|report| {
            at += AGAIN;
            if is_new {
                told.rest();
            }
            let now = events::status(report, &stored);
            let news = told.of("p", &now, &stored, &PolicyStatus::Read(report), at);
            // It is told once, as long as its status is not seen to be written, and after that.
            assert_eq!(told.of("p", &now, &stored, &PolicyStatus::Read(report), at), []);
            assert_eq!(told.of("p", &now, &now, &PolicyStatus::Read(report), at), []);
            stored = now;
            news
        });
        each.collect()
    }

    #[test]
    fn whatever_stops_a_policy_that_acted_is_told_once_and_so_is_its_end() {
        let right = || report(&[], None, 5);
        for stopped in [
            report(&[], Some(("Braked", "too much looks dead")), 5),
            report(&[], Some(("Paused", "spec.paused is true")), 5),
            report(&[("SelectsEverything", "nodeSelector wants no label: nobody")], None, 0),
            report(&[("SharesNodes", "the FencingPolicy q acts too: n1")], None, 0),
        ] {
            for is_new in [false, true] {
                let told = told_of(&[right(), stopped.clone(), stopped.clone(), right()], is_new);
                let [begun, stops, goes_on, ends] = &*told else { panic!("{told:?}") };
                assert!(begun.is_empty() && goes_on.is_empty(), "{told:?}");
                assert!(
                    matches!(&**stops, [(_, words)] if words.starts_with("it does not act any more: ")),
                    "{stops:?}"
                );
                assert!(matches!(&**ends, [("Acting", words)] if words.starts_with("it acts: ")), "{ends:?}");
            }
        }
    }

    #[test]
    fn a_fault_is_told_once_however_many_nodes_come_and_go_and_a_new_one_at_once() {
        let shares = |other: &str, nodes: &str| {
            ("SharesNodes", format!("the FencingPolicy {other} acts too: {nodes}"))
        };
        let with = |all: &[(&'static str, String)]| {
            let all: Vec<(&'static str, &str)> =
                all.iter().map(|(reason, words)| (*reason, words.as_str())).collect();
            report(&all, None, 3)
        };
        let told = told_of(
            &[
                with(&[shares("q", "n1")]),
                with(&[shares("q", "n1, n2")]),
                with(&[shares("q", "n1"), shares("r", "n3")]),
                with(&[shares("q", "n1")]),
                with(&[]),
                with(&[shares("q", "n1")]),
            ],
            true,
        );
        let reasons: Vec<usize> = told.iter().map(Vec::len).collect();
        assert_eq!(reasons, [1, 0, 1, 0, 0, 1], "{told:?}");
        assert!(told[2][0].1.contains("FencingPolicy r"), "{told:?}");
    }

    /// A kubelet that changes its Node's label each second takes a policy's only Node away, and brings a second policy's beside it.
    #[test]
    fn what_comes_and_goes_is_told_once_in_ten_minutes_and_what_is_so_then_at_last() {
        let (mut told, mut stored, begun) = (NewsLog::default(), Value::Null, Instant::now());
        let nothing = || report(&[("SelectsNothing", "no Node is selected: look")], None, 0);
        let shares = || report(&[("SharesNodes", "the FencingPolicy q acts too: n1")], None, 3);
        let mut all = Vec::new();
        for second in 0..1_300 {
            let found = match (second, second % 3) {
                (900.., _) | (_, 0) => nothing(),
                (_, 1) => report(&[], None, 5),
                _ => shares(),
            };
            let (now, at) = (events::status(&found, &stored), begun + Duration::from_secs(second));
            all.extend(
                told.of("p", &now, &stored, &PolicyStatus::Read(&found), at)
                    .into_iter()
                    .map(|one| (second, one.0)),
            );
            stored = now;
        }
        for reason in ["SelectsNothing", "SharesNodes", "Acting"] {
            let of: Vec<u64> = all.iter().filter(|one| one.1 == reason).map(|one| one.0).collect();
            assert!(!of.is_empty() && of.windows(2).all(|two| two[1] - two[0] >= 600), "{reason}: {all:?}");
        }
        let last = all.iter().rfind(|one| one.1 != "SharesNodes");
        assert_eq!(last.map(|one| one.1), Some("SelectsNothing"), "as it is now: {all:?}");
    }

    #[test]
    fn one_that_was_never_right_is_told_without_a_word_of_before_and_one_that_cannot_be_read_is_told_too() {
        let never = told_of(&[report(&[("SelectsNothing", "no Node is selected: look")], None, 0)], true);
        assert_eq!(never, [[("SelectsNothing", "no Node is selected: look".to_owned())]]);
        let (mut told, right) = (NewsLog::default(), events::status(&report(&[], None, 5), &Value::Null));
        let now = events::malformed(8, "colour", &right);
        let news = told.of("p", &now, &right, &PolicyStatus::Malformed("colour"), Instant::now());
        assert!(
            matches!(&*news, [("Malformed", words)] if words.starts_with("it does not act any more") && words.contains("colour")),
            "{news:?}"
        );
        assert_eq!(told.of("p", &now, &now, &PolicyStatus::Malformed("colour"), Instant::now()), []);
    }

    /// A policy that is right and selects nobody yet has nothing to tell, and none that is gone is remembered.
    #[test]
    fn the_words_of_a_policy_that_is_gone_are_forgotten() {
        let (mut told, right) = (NewsLog::default(), report(&[], None, 5));
        let now = events::status(&right, &Value::Null);
        assert_eq!(told.of("p", &now, &Value::Null, &PolicyStatus::Read(&right), Instant::now()), []);
        told.only(|name| name == "p");
        assert_eq!(told.0.len(), 1);
        told.only(|_| false);
        assert!(told.0.is_empty());
    }
}
