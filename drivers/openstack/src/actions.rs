//! What was done to a server, as Nova tells it (`GET /servers/{id}/os-instance-actions`): whether our own
//! stop ended well, for callers who may not see whether the compute host is up.
//!
//! # Invariants
//!
//! - A stop proves only if it is our own user's, was not there before this generation's first off, and
//!   every event of it ended with Success. Nothing may have come after it but what changes no power: stop,
//!   lock, unlock, detach_volume (S1). Shown by
//!   `our_own_stop_decides_where_nothing_came_after_it_that_switches`,
//!   `only_steps_that_ended_well_are_a_success`, `what_an_earlier_generation_sent_is_not_this_one_s`.

use std::collections::BTreeSet;

use picket_core::ids::Generation;
use picket_driver::{Call, DriverError, Effect, ErrorKind};
use serde::Deserialize;

use crate::cloud::{Cloud, QueryResult, Service, tame};
use crate::moves::Moves;

/// What may follow the stop that proves: none of it switches anything on.
const HARMLESS: [&str; 4] = ["stop", "lock", "unlock", "detach_volume"];
/// What starts no guest, and defines none anew. Of an action that is not among them nothing is known: that of tomorrow, too.
pub(crate) const CALM: [&str; 15] = [
    "stop",
    "lock",
    "unlock",
    "detach_volume",
    "attach_volume",
    "extend_volume",
    "attach_interface",
    "detach_interface",
    "changePassword",
    "resetState",
    "live_migration_cancel",
    "live_migration_force_complete",
    "delete",
    "forceDelete",
    "softDelete",
];
/// As many actions are asked for at once: enough of the newest for most servers, and of the older ones as many as Nova gives by its
/// default, since years of attached volumes are to be read within one call. Nova's own limit (`max_limit`) may be less.
const PAGE: usize = 100;
const OLDER: usize = 1_000;

/// One action.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Action {
    pub(crate) action: String,
    pub(crate) request_id: String,
    #[serde(default)]
    pub(crate) user_id: Option<String>,
    /// When it was asked for, by the clock of the API's host.
    #[serde(default)]
    pub(crate) start_time: Option<String>,
    /// The project for which its user was logged in.
    #[serde(default)]
    pub(crate) project_id: Option<String>,
    /// Said of one action alone, from 2.51 on also to who is no admin.
    #[serde(default)]
    pub(crate) events: Option<Vec<ActionEvent>>,
    /// That it failed, in a word.
    #[serde(default)]
    pub(crate) message: Option<String>,
}

/// A step of an action.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct ActionEvent {
    #[serde(default)]
    pub(crate) event: String,
    #[serde(default)]
    pub(crate) result: Option<String>,
    #[serde(default)]
    pub(crate) start_time: Option<String>,
    #[serde(default)]
    pub(crate) finish_time: Option<String>,
    /// Why it failed, from 2.84 on.
    #[serde(default)]
    pub(crate) details: Option<String>,
    /// Nova's digest of the compute host that did the step, the same in each step of that host; empty for a step of the control plane.
    #[serde(default, rename = "hostId")]
    pub(crate) host: Option<String>,
}

/// Some of a server's actions, newest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Page {
    pub(crate) actions: Vec<Action>,
    /// That there are older ones.
    pub(crate) goes_on: bool,
    /// The move that was known to have ended well before these were asked for.
    pub(crate) landed: Option<String>,
    /// Nova has no actions of it: what was done to it is not known.
    pub(crate) are_hidden: bool,
}

#[derive(Deserialize)]
struct List {
    #[serde(rename = "instanceActions")]
    actions: Vec<Action>,
    /// To the next page.
    #[serde(default)]
    links: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct One {
    #[serde(rename = "instanceAction")]
    action: Action,
}

impl Action {
    /// Whether it came to its end, and that is Success. Without a word of its steps it did not.
    pub(crate) fn succeeded(&self) -> bool {
        let steps = self.events.as_deref().unwrap_or_default();
        !steps.is_empty() && steps.iter().all(ActionEvent::succeeded)
    }

    /// That it failed, and where and why as far as Nova says.
    pub(crate) fn failure(&self) -> Option<String> {
        let steps = self.events.iter().flatten();
        let mut failed = steps.filter(|step| step.result.as_deref() == Some("Error")).map(|step| {
            let why = step.details.as_deref().or(self.message.as_deref()).unwrap_or("no reason is told");
            format!("{}: {}", step.event, tame(why))
        });
        failed.next_back()
    }

    /// Whether it deletes the server, or tries to.
    pub(crate) fn deletes(&self) -> bool {
        matches!(self.action.as_str(), "delete" | "forceDelete" | "softDelete")
    }

    /// Whether that step of it is among those that ended well.
    pub(crate) fn did(&self, event: &str) -> bool {
        self.events.iter().flatten().any(|step| step.event == event && step.succeeded())
    }
}

impl ActionEvent {
    pub(crate) fn succeeded(&self) -> bool {
        self.finish_time.is_some() && self.result.as_deref() == Some("Success")
    }
}

/// Which stops are this generation's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnStops {
    /// Which that is.
    pub(crate) generation: Generation,
    /// Our own user's stops that there were before the first off; `None`: nobody looked, and only those that are named count.
    pub(crate) before: Option<BTreeSet<String>>,
    /// What Nova called those that we sent ourselves.
    pub(crate) sent: BTreeSet<String>,
    /// And the last of them, until a start is sent.
    pub(crate) last: Option<String>,
    /// One of them that failed, and why.
    pub(crate) failed: Option<(String, String)>,
    /// The one that was seen to have ended well: it has for good.
    pub(crate) ended: Option<String>,
    /// The server's moves, as far as their actions have settled where it runs.
    pub(crate) moves: Moves,
}

impl OwnStops {
    /// An off of that generation is about to be sent: what an earlier one sent is not its own.
    pub(crate) fn begin(&mut self, generation: Generation, before: Option<BTreeSet<String>>) {
        if self.generation != generation {
            *self = Self { generation, ..Self::default() };
        }
        self.before = before;
    }

    /// Nova took a stop of ours, and calls it so.
    pub(crate) fn took(&mut self, request: Option<&str>) {
        self.sent.extend(request.map(str::to_owned));
        self.last = request.map(str::to_owned);
    }

    fn has(&self, request: &str) -> bool {
        self.sent.contains(request) || self.before.as_ref().is_some_and(|before| !before.contains(request))
    }
}

/// The stop whose end decides: our own newest one of this generation, where nothing but what is harmless came after it. Newest first.
/// Whether it [`succeeded`](Action::succeeded) is told by its steps, which are asked for by its id.
pub(crate) fn deciding<'a>(actions: &'a [Action], user: &str, ours: &OwnStops) -> Option<&'a Action> {
    let is_ours = |action: &&Action| {
        action.action == "stop" && action.user_id.as_deref() == Some(user) && ours.has(&action.request_id)
    };
    actions.iter().take_while(|action| HARMLESS.contains(&action.action.as_str())).find(is_ours)
}

/// The stops of that user, by what Nova calls them.
pub(crate) fn stops(actions: &[Action], user: &str) -> BTreeSet<String> {
    let of_user = |action: &&Action| action.action == "stop" && action.user_id.as_deref() == Some(user);
    actions.iter().filter(of_user).map(|action| action.request_id.clone()).collect()
}

/// The newest actions of a server, newest first: as Nova lists them, whose times are of a second.
pub(crate) async fn newest(cloud: &Cloud, server: &str, call: &Call) -> Result<Page, DriverError> {
    page(cloud, server, None, call).await
}

/// The same, older than the action of that request.
pub(crate) async fn page(
    cloud: &Cloud,
    server: &str,
    older_than: Option<&str>,
    call: &Call,
) -> Result<Page, DriverError> {
    let marker = older_than.map(|request| format!("&marker={request}")).unwrap_or_default();
    let limit = if older_than.is_some() { OLDER } else { PAGE };
    let path = format!("/servers/{server}/os-instance-actions?limit={limit}{marker}");
    match cloud.get::<List>(Service::Compute, &path, call).await? {
        QueryResult::It(List { actions, links }) => {
            let goes_on = !links.is_empty() || actions.len() >= limit;
            Ok(Page { actions, goes_on, ..Page::default() })
        }
        QueryResult::NotThere(_) if older_than.is_none() => Ok(Page { are_hidden: true, ..Page::default() }),
        QueryResult::NotThere(why) => {
            let detail = format!("os-instance-actions: {why}");
            Err(DriverError::new(ErrorKind::Protocol, Effect::DidNotHappen, detail))
        }
    }
}

/// One action, with its steps.
pub(crate) async fn one(
    cloud: &Cloud,
    server: &str,
    request: &str,
    call: &Call,
) -> Result<Option<Action>, DriverError> {
    let path = format!("/servers/{server}/os-instance-actions/{request}");
    match cloud.get::<One>(Service::Compute, &path, call).await? {
        QueryResult::It(one) => Ok(Some(one.action)),
        QueryResult::NotThere(_) => Ok(None),
    }
}

/// Whether our own stop of this generation ended well, by the newest actions: what Nova calls it, and else why not.
pub(crate) async fn our_stop_ended(
    cloud: &Cloud,
    server: &str,
    actions: &[Action],
    ours: &OwnStops,
    call: &Call,
) -> Result<Result<String, String>, DriverError> {
    let user = cloud.token(call).await?.said.user.clone();
    let Some(stop) = deciding(actions, &user, ours) else {
        let last = actions.first().map_or("none", |action| action.action.as_str());
        return Ok(Err(format!("no stop of ours is the last that happened to it (that is: {last})")));
    };
    if ours.ended.as_ref() == Some(&stop.request_id) {
        return Ok(Ok(stop.request_id.clone()));
    }
    match one(cloud, server, &stop.request_id, call).await? {
        Some(action) if action.succeeded() => Ok(Ok(action.request_id)),
        Some(_) => Ok(Err(format!("our stop {} did not end well, or not yet", stop.request_id))),
        None => Ok(Err(format!("our stop {} is not told any more", stop.request_id))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn action(name: &str, id: &str, user: &str) -> Action {
        Action {
            action: name.to_owned(),
            request_id: id.to_owned(),
            user_id: Some(user.to_owned()),
            ..Action::default()
        }
    }

    fn since(before: &[&str]) -> OwnStops {
        OwnStops { before: Some(before.iter().map(ToString::to_string).collect()), ..OwnStops::default() }
    }

    #[test]
    fn our_own_stop_decides_where_nothing_came_after_it_that_switches() {
        let (ours, old) = (action("stop", "req-2", "us"), action("stop", "req-1", "us"));
        let decides = |actions: &[Action]| {
            deciding(actions, "us", &since(&["req-1"])).map(|one| one.request_id.clone())
        };
        assert_eq!(decides(std::slice::from_ref(&old)), None, "it was there before the off");
        assert_eq!(decides(&[ours.clone(), old.clone()]).as_deref(), Some("req-2"));
        for (name, still) in [
            ("lock", true),
            ("unlock", true),
            ("detach_volume", true),
            ("start", false),
            ("reboot", false),
            ("evacuate", false),
            ("live-migration", false),
            ("rebuild", false),
            ("resize", false),
            ("attach_volume", false),
        ] {
            let after = [action(name, "req-3", "them"), ours.clone(), old.clone()];
            assert_eq!(decides(&after).is_some(), still, "{name}");
        }
        let theirs = [action("stop", "req-3", "them"), old.clone()];
        assert_eq!(decides(&theirs), None, "another user's stop is none of ours");
        let both = [action("stop", "req-3", "them"), ours, old];
        assert_eq!(decides(&both).as_deref(), Some("req-2"));
    }

    #[test]
    fn where_nobody_looked_before_only_what_we_sent_ourselves_counts() {
        let list = [action("stop", "req-2", "us"), action("stop", "req-1", "us")];
        let mut ours = OwnStops::default();
        assert_eq!(deciding(&list, "us", &ours), None);
        ours.sent.insert("req-1".to_owned());
        assert_eq!(deciding(&list, "us", &ours).map(|one| one.request_id.as_str()), Some("req-1"));
        assert_eq!(stops(&list, "us").len(), 2);
        assert!(stops(&list, "them").is_empty());
    }

    /// A person said that it was alive after all, and it is fenced again: what was sent then proves nothing now.
    #[test]
    fn what_an_earlier_generation_sent_is_not_this_one_s() {
        let list = [action("stop", "req-1", "us")];
        let mut ours = OwnStops::default();
        ours.begin(Generation(1), Some(BTreeSet::new()));
        ours.sent.insert("req-1".to_owned());
        ours.ended = Some("req-1".to_owned());
        ours.begin(Generation(1), Some(BTreeSet::new()));
        assert!(deciding(&list, "us", &ours).is_some(), "sent again in the same one");
        ours.begin(Generation(3), Some(BTreeSet::from(["req-1".to_owned()])));
        assert_eq!(deciding(&list, "us", &ours), None);
        ours.begin(Generation(5), None);
        assert_eq!((deciding(&list, "us", &ours), ours.ended), (None, None));
    }

    #[test]
    fn only_steps_that_ended_well_are_a_success() {
        let step = |result: Option<&str>, finished: bool| ActionEvent {
            event: "compute_stop_instance".to_owned(),
            result: result.map(str::to_owned),
            finish_time: finished.then(|| "2026-11-22T13:00:09.000000".to_owned()),
            ..ActionEvent::default()
        };
        for (events, good) in [
            (None, false),
            (Some(vec![]), false),
            (Some(vec![step(Some("Success"), true)]), true),
            (Some(vec![step(Some("Success"), true), step(Some("Error"), true)]), false),
            (Some(vec![step(Some("Success"), false)]), false),
            (Some(vec![step(None, true)]), false),
        ] {
            let action = Action { events: events.clone(), ..action("stop", "req-2", "us") };
            assert_eq!(action.succeeded(), good, "{events:?}");
        }
        let bad = ActionEvent { details: Some("libvirt is\ngone".to_owned()), ..step(Some("Error"), true) };
        let failed =
            Action { events: Some(vec![step(Some("Success"), true), bad]), ..action("stop", "r", "us") };
        assert_eq!(failed.failure().as_deref(), Some("compute_stop_instance: libvirt is gone"));
        let good = Action { events: Some(vec![step(Some("Success"), true)]), ..action("stop", "r", "us") };
        assert_eq!(good.failure(), None);
        assert!(good.did("compute_stop_instance") && !good.did("compute_terminate_instance"));
    }
}
