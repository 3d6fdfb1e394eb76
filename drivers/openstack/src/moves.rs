//! Whether a server runs on the host that Nova has for it, by what was done to it (`os-instance-actions`, which a tenant may read, too).
//!
//! **Invariant.** The server's own host says Off of its own guest alone. After an evacuation that is not known to have ended well the
//! guest may run at the destination, while the source has a copy that is shut off (S1, S13): then no Off of the source counts. Another
//! move that ends well does not end that guest, which is a copy from then on (copies.rs); a tenant is told of none. A cold migration is none: it takes that copy along, and says nothing of the guest.
//! Other moves leave no such copy: a cold one starts a guest only where Nova already has the server, and the source of a live migration
//! keeps no definition of the guest, so that Nova says power_state 0 of it.

use std::collections::BTreeSet;

use picket_driver::{Call, DriverError};

use crate::actions::{self, Action, Page, Step};
use crate::driver::OpenstackDriver;

const EVACUATE: &str = "evacuate";
/// The actions that move a running server, each with the step of it that ends on the host where the server runs from then on.
const MOVES: [(&str, &str); 2] = [
    (EVACUATE, "compute_rebuild_instance"),
    ("live-migration", "compute_post_live_migration_at_destination"),
];

/// A cold migration, and the step of it that Nova has the host do from which the server goes: it was there.
const COLD: [&str; 2] = ["migrate", "resize"];
const LEAVES: &str = "compute_resize_instance";

/// Where the server runs, as far as one move tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    /// On the host that Nova has for it.
    Here,
    /// Nothing: it started no guest elsewhere.
    Nothing,
    /// Perhaps on the host to which it was to go.
    PerhapsThere,
}

/// Facts about a server's moves that no later action changes: a reading does not ask for them again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moves {
    /// The newest that ended well, where every evacuation before it did, too: what came before it says nothing.
    arrived: Option<String>,
    /// One whose steps say that it ended well. A delete that interrupts an evacuation makes them say so, too: only a list of actions that
    /// is asked for after that shows it.
    pub(crate) landed: Option<String>,
    /// Those that ended, and moved nothing.
    idle: BTreeSet<String>,
    /// Neither this action nor an older one is an evacuation.
    searched: Option<String>,
}

fn arrival(action: &Action) -> Option<&'static str> {
    MOVES.iter().find(|(name, _)| *name == action.action).map(|(_, step)| *step)
}

/// Reads one move. `delete`: the first delete of the server after it. `cold`: the cold migrations between the two.
fn says(action: &Action, delete: Option<&Action>, cold: &[Action]) -> Says {
    let Some(arrival) = arrival(action) else { return Says::Nothing };
    let is_evacuate = action.action == EVACUATE;
    let left = |cold: &[Action]| cold.iter().any(|cold| cold.is_of(action, arrival, LEAVES));
    if action.succeeded()
        && action.did(arrival)
        && (!is_evacuate
            || delete.is_none_or(|delete| delete.is_of(action, arrival, "compute_") || left(cold)))
    {
        return Says::Here;
    }
    // Nova notes the step before the destination does anything. Without that step a failed evacuation reached no host.
    let arrived = action.events.iter().flatten().any(|step| step.event == arrival);
    match action.action == EVACUATE && (arrived || action.failure().is_none()) {
        true => Says::PerhapsThere,
        false => Says::Nothing,
    }
}

impl Action {
    /// Whether a host that did a step of this is the one on which a move arrived. The evacuation that a delete interrupts ends with
    /// Success, too (`rebuild_instance` drops what it is told then), and starts its guest at the destination, while the delete is done
    /// by the source. `steps`: how the names of those steps begin.
    fn is_of(&self, moved: &Action, arrival: &str, steps: &str) -> bool {
        let hosts = |action: &Action, is_meant: &dyn Fn(&Step) -> bool| -> Vec<String> {
            let steps = action.events.iter().flatten().filter(|step| is_meant(step));
            steps.filter_map(|step| step.host.clone()).filter(|host| !host.is_empty()).collect()
        };
        let at = hosts(moved, &|step| step.event == arrival);
        hosts(self, &|step| step.event.starts_with(steps)).iter().any(|host| at.contains(host))
    }
}

impl OpenstackDriver {
    /// Why the server may run on another host than Nova says, by its newest actions, in words; `None`: no evacuation speaks for that.
    pub(crate) async fn may_run_elsewhere(
        &self,
        actions: &Page,
        call: &Call,
    ) -> Result<Option<String>, DriverError> {
        let known = self.ours().moves.clone();
        let since = self.since(actions, &known, call).await?;
        // Most servers were never evacuated: no steps need be asked for.
        let Some(newest) = since.iter().find(|action| action.action == EVACUATE) else { return Ok(None) };
        self.evacuated().newest(&newest.request_id);
        // What came between the evacuation and the first delete after it, and the newest move that ended well.
        let (mut delete, mut between, mut here) = (None, Vec::new(), None);
        for action in &since {
            let request = &action.request_id;
            if action.deletes() {
                delete = Some(action);
                between.clear();
            }
            if COLD.contains(&action.action.as_str()) {
                between.push(action);
            }
            let is_evacuate = action.action == EVACUATE;
            if arrival(action).is_none() || known.idle.contains(request) || here.is_some() && !is_evacuate {
                continue;
            }
            let whole = self.with_steps(action, call).await?;
            let delete = match delete {
                Some(delete) if is_evacuate => Some(self.with_steps(delete, call).await?),
                _ => None,
            };
            let mut left = Vec::new();
            for cold in between.iter().filter(|_| delete.is_some()) {
                left.push(self.with_steps(cold, call).await?);
            }
            match says(&whole, delete.as_ref(), &left) {
                // It does not end the guest that an older evacuation started.
                Says::Here if here.is_none() => {
                    self.ours().moves.landed = Some(request.clone());
                    here = Some(request);
                }
                Says::Here => {}
                // A failed evacuation stays one; a live migration may arrive yet, which ends doubts and makes none.
                Says::Nothing if whole.failure().is_some() => {
                    self.ours().moves.idle.insert(request.clone());
                }
                Says::Nothing => {}
                // That guest counts as a copy of the server, whose hosts an administrator is told.
                Says::PerhapsThere if here.is_some() && !self.is_tenant() => return Ok(None),
                Says::PerhapsThere => {
                    return Ok(Some(format!(
                        "its evacuate {request} is not known to have ended well, and it may run on the host to which it was to go: \
                         look there; Nova does not end that guest"
                    )));
                }
            }
        }
        if here.is_some() && actions.landed.as_ref() == here {
            self.ours().moves.arrived = here.cloned();
        }
        Ok(None)
    }

    async fn with_steps(&self, action: &Action, call: &Call) -> Result<Action, DriverError> {
        let whole = actions::one(&self.cloud, &self.settings.server, &action.request_id, call).await?;
        Ok(whole.unwrap_or_else(|| action.clone()))
    }

    /// The actions since the newest move that is known to have ended well, newest first, and else all that there are: an evacuation may
    /// be older than the newest hundred.
    async fn since(&self, newest: &Page, known: &Moves, call: &Call) -> Result<Vec<Action>, DriverError> {
        let is_known = |action: &Action| {
            let request = Some(&action.request_id);
            known.arrived.as_ref() == request || known.searched.as_ref() == request
        };
        let (mut since, mut page) = (Vec::new(), newest.clone());
        loop {
            let whole = since.len() + page.actions.len();
            let goes_on = page.goes_on && !page.actions.is_empty();
            since.extend(page.actions.into_iter().take_while(|action| !is_known(action)));
            match since.last() {
                Some(last) if goes_on && since.len() == whole => {
                    let last = Some(last.request_id.as_str());
                    page = actions::page(&self.cloud, &self.settings.server, last, call).await?;
                }
                _ => break,
            }
        }
        // What is as old as that changes its place in the list no more.
        let is_evacuate = |action: &Action| action.action == EVACUATE;
        let last = newest.actions.last().filter(|_| since.len() > newest.actions.len());
        if let (Some(last), Some(old)) = (last, since.get(newest.actions.len().saturating_sub(1)..))
            && !old.iter().any(is_evacuate)
        {
            self.ours().moves.searched = Some(last.request_id.clone());
        }
        Ok(since)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::{Arc, Mutex};

    use picket_core::power::Power;
    use serde_json::{Value, json};

    use super::OpenstackDriver;
    use crate::fake_nova::{self, SERVER, USER, stopped};

    /// A step: its name and result, and the host that did it. Without a result it has not ended.
    type Step = (&'static str, Option<&'static str>, &'static str);
    /// An action: its name, its request, its steps.
    type Done = (&'static str, &'static str, &'static [Step]);

    const STOPPED: Done = ("stop", "req-stop", &[("compute_stop_instance", Some("Success"), "hv1")]);
    const CHOSEN: Step = ("conductor_rebuild_server", Some("Success"), "");
    const ARRIVED: Step = ("compute_rebuild_instance", Some("Success"), "hv2");
    const BROKEN: Step = ("compute_rebuild_instance", Some("Error"), "hv2");

    const LANDED: Step = ("compute_post_live_migration_at_destination", Some("Success"), "hv2");
    const GOOD: Done = ("evacuate", "req-good", &[CHOSEN, ARRIVED]);
    const BAD: Done = ("evacuate", "req-bad", &[CHOSEN, BROKEN]);
    const NOWHERE: Done = ("evacuate", "req-none", &[("conductor_rebuild_server", Some("Error"), "")]);

    fn shown(done: &Done) -> Value {
        let (action, request, steps) = done;
        let events: Vec<Value> = steps
            .iter()
            .map(|(event, result, host)| {
                let end = result.map(|_| "2026-11-22T13:00:09.000000");
                json!({ "event": event, "result": result, "finish_time": end, "hostId": host })
            })
            .collect();
        json!({ "action": action, "request_id": request, "user_id": USER, "events": events })
    }

    /// The driver of a server that looks like this, after these actions, newest first, of which Nova tells so many at once; and what it
    /// asks of them.
    async fn driver(
        role: &str,
        server: Option<Value>,
        done: Vec<Done>,
        max_limit: usize,
    ) -> (OpenstackDriver, Arc<Mutex<Vec<String>>>) {
        let actions = format!("/servers/{SERVER}/os-instance-actions");
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let heard = asked.clone();
        let nova = move |path: &str| {
            let Some(rest) = path.strip_prefix(&actions) else {
                return server.clone().map(|server| json!({ "server": server }));
            };
            heard.lock().expect("whole").push(rest.to_owned());
            let of = |request: &str| done.iter().position(|(_, one, _)| *one == request);
            let Some(query) = rest.strip_prefix('?') else {
                let one = &done[of(rest.trim_start_matches('/'))?];
                return Some(json!({ "instanceAction": shown(one) }));
            };
            let from = query.split_once("marker=").map_or(0, |(_, last)| of(last).expect("an action") + 1);
            let list = &done[from..done.len().min(from + max_limit)];
            let links = vec![json!({ "rel": "next" }); usize::from(list.len() == max_limit)];
            Some(json!({ "instanceActions": list.iter().map(shown).collect::<Vec<_>>(), "links": links }))
        };
        let driver = fake_nova::driver(role, nova).await;
        driver.ours().before = Some(BTreeSet::new());
        (driver, asked)
    }

    async fn reading(driver: &OpenstackDriver) -> (Power, String) {
        let reading = driver.reading(&fake_nova::reading()).await.expect("a reading");
        (reading.power, reading.said)
    }

    async fn read(role: &str, server: Option<Value>, done: Vec<Done>) -> (Power, String) {
        reading(&driver(role, server, done, 1_000).await.0).await
    }

    /// The source of a failed evacuation has a copy of the guest, shut off: to stop it there says nothing of the guest.
    #[tokio::test]
    async fn a_stop_proves_nothing_after_an_evacuation_that_is_not_known_to_have_ended_well() {
        let hidden = || {
            let mut server = stopped();
            server.as_object_mut().expect("a table").remove("host_status");
            server
        };
        // No later move ends that guest: to an administrator it is a copy, of which a tenant is not told.
        let (off, unknown, copy) = ([Power::Off; 2], [Power::Unknown; 2], [Power::Off, Power::Unknown]);
        let cases: [(&[Done], [Power; 2]); 14] = [
            (&[], off),
            (&[GOOD], off),
            (&[BAD], unknown),
            (&[("evacuate", "req-1", &[CHOSEN])], unknown),
            (&[("evacuate", "req-1", &[CHOSEN, ("compute_rebuild_instance", None, "hv2")])], unknown),
            (&[("evacuate", "req-1", &[])], unknown),
            // No host was found: no guest was started.
            (&[NOWHERE], off),
            (&[NOWHERE, BAD], unknown),
            (&[GOOD, BAD], copy),
            (&[BAD, GOOD], unknown),
            (&[("live-migration", "req-2", &[LANDED]), BAD], copy),
            // A move that moved nothing says nothing of where the guest is, and leaves none elsewhere.
            (
                &[("live-migration", "req-2", &[("compute_live_migration", Some("Success"), "hv2")]), BAD],
                unknown,
            ),
            (&[("resize", "req-2", &[("compute_prep_resize", Some("Error"), "hv2")]), BAD], unknown),
            (&[("resize", "req-2", &[("compute_prep_resize", Some("Error"), "hv2")])], off),
        ];
        for (before, powers) in cases {
            for ((role, server), power) in
                [("admin", stopped()), ("member", hidden())].into_iter().zip(powers)
            {
                let done = std::iter::once(STOPPED).chain(before.iter().copied()).collect();
                let (is, said) = read(role, Some(server), done).await;
                assert_eq!(is, power, "{role}, {before:?}: {said}");
                assert!(
                    is == Power::Off || said.contains("evacuate req-") && said.contains("look there"),
                    "{said}"
                );
            }
        }
    }

    /// A delete that comes in the middle of an evacuation is done by the source. The destination notes Success of what it drops then, and
    /// its guest runs.
    #[tokio::test]
    async fn a_server_that_its_destination_did_not_delete_is_not_off_after_an_evacuation() {
        const BY_SOURCE: Done =
            ("delete", "req-8", &[("compute_terminate_instance", Some("Success"), "hv1")]);
        const BY_DESTINATION: Done =
            ("delete", "req-9", &[("compute_terminate_instance", Some("Success"), "hv2")]);
        const UNSAID: Done = ("delete", "req-8", &[("compute_terminate_instance", Some("Success"), "")]);
        for (delete, evacuate, power) in [
            (BY_DESTINATION, GOOD, Power::Off),
            (BY_SOURCE, GOOD, Power::Unknown),
            (UNSAID, GOOD, Power::Unknown),
            (BY_DESTINATION, BAD, Power::Unknown),
        ] {
            let (is, said) = read("admin", None, vec![delete, evacuate]).await;
            assert_eq!(is, power, "{said}");
        }
        // Nova had the server at the destination, from where it went on and was deleted elsewhere.
        const GONE_ON: Done = (
            "migrate",
            "req-7",
            &[
                ("compute_prep_resize", Some("Success"), "hv1"),
                ("compute_resize_instance", Some("Success"), "hv2"),
            ],
        );
        // It never left the source, and came to the destination without the guest that runs there.
        const COME: Done = (
            "resize",
            "req-7",
            &[
                ("compute_prep_resize", Some("Success"), "hv2"),
                ("compute_resize_instance", Some("Success"), "hv1"),
            ],
        );
        for (moved, evacuate, power) in
            [(GONE_ON, GOOD, Power::Off), (COME, GOOD, Power::Unknown), (GONE_ON, BAD, Power::Unknown)]
        {
            let (is, said) = read("admin", None, vec![BY_SOURCE, moved, evacuate]).await;
            assert_eq!(is, power, "{said}");
        }
        // One that was restored after that.
        let (is, said) = read("admin", Some(stopped()), vec![STOPPED, BY_SOURCE, GOOD]).await;
        assert_eq!(is, Power::Unknown, "{said}");
        let (is, said) = read("admin", Some(stopped()), vec![STOPPED, BY_DESTINATION, GOOD]).await;
        assert_eq!(is, Power::Off, "{said}");
    }

    #[tokio::test]
    async fn an_evacuation_older_than_the_newest_actions_is_found() {
        const LOCK: Done = ("lock", "req-lock", &[]);
        const CREATE: Done = ("create", "req-create", &[]);
        for (max_limit, oldest, power) in
            [(2, BAD, Power::Unknown), (2, GOOD, Power::Off), (4, BAD, Power::Unknown)]
        {
            let done = vec![STOPPED, LOCK, NOWHERE, ("start", "req-start", &[] as &[Step]), oldest, CREATE];
            let (driver, _) = driver("admin", Some(stopped()), done, max_limit).await;
            let (is, said) = reading(&driver).await;
            assert_eq!(is, power, "{max_limit}, {oldest:?}: {said}");
        }
    }

    #[tokio::test]
    async fn what_is_known_of_its_moves_for_good_is_not_asked_for_again() {
        const LOCK: Done = ("lock", "req-lock", &[]);
        const START: Done = ("start", "req-start", &[]);
        const CREATE: Done = ("create", "req-create", &[]);
        const NEVER: Done =
            ("live-migration", "req-live", &[("compute_live_migration", Some("Error"), "hv1")]);
        let long =
            vec![STOPPED, LOCK, START, ("lock", "req-2", &[] as &[Step]), ("start", "req-3", &[]), CREATE];
        for (done, max_limit, first) in [(vec![STOPPED, NOWHERE, NEVER, CREATE], 5, 3), (long, 4, 2)] {
            let (driver, asked) = driver("admin", Some(stopped()), done, max_limit).await;
            // Later readings ask for the newest actions alone.
            for (turn, expected) in [(0, first), (1, 1), (2, 1)] {
                asked.lock().expect("whole").clear();
                assert_eq!(reading(&driver).await.0, Power::Off);
                let asked = asked.lock().expect("whole").clone();
                assert_eq!(asked.len(), expected, "{turn}: {asked:?}");
            }
        }
    }
}
