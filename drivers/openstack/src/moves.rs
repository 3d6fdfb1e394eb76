//! Whether a server runs on the host that Nova has for it, by what was done to it (`os-instance-actions`, which a tenant may read, too).
//!
//! **Invariant.** The server's own host says Off of its own guest alone. After an evacuation that is not known to have ended well the
//! guest may run at the destination, while the source has a copy that is shut off (S1, S13): then no Off of the source counts until
//! another move ends well. A cold migration is none: it takes that copy along, and says nothing of the guest.
//! Other moves leave no such copy: a cold one starts a guest only where Nova already has the server, and the source of a live migration
//! keeps no definition of the guest, so that Nova says power_state 0 of it.

use picket_driver::{Call, DriverError};

use crate::actions::{self, Action};
use crate::driver::OpenstackDriver;

const EVACUATE: &str = "evacuate";
/// The actions that move a running server, each with the step of it that ends on the host where the server runs from then on.
const MOVES: [(&str, &str); 2] = [
    (EVACUATE, "compute_rebuild_instance"),
    ("live-migration", "compute_post_live_migration_at_destination"),
];

/// What a move says of where the server runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    /// On the host that Nova has for it.
    Here,
    /// Nothing: it started no guest elsewhere.
    Nothing,
    /// Perhaps on the host to which it was to go.
    PerhapsThere,
}

fn arrival(action: &Action) -> Option<&'static str> {
    MOVES.iter().find(|(name, _)| *name == action.action).map(|(_, step)| *step)
}

fn says(action: &Action) -> Says {
    let Some(arrival) = arrival(action) else { return Says::Nothing };
    if action.succeeded() && action.did(arrival) {
        return Says::Here;
    }
    // Nova notes the step before the destination does anything. Without that step a failed evacuation reached no host.
    let arrived = action.events.iter().flatten().any(|step| step.event == arrival);
    match action.action == EVACUATE && (arrived || action.failure().is_none()) {
        true => Says::PerhapsThere,
        false => Says::Nothing,
    }
}

impl OpenstackDriver {
    /// Why the server may run on another host than Nova says, by its newest actions, in words; `None`: no evacuation speaks for that.
    pub(crate) async fn may_run_elsewhere(
        &self,
        newest: &[Action],
        call: &Call,
    ) -> Result<Option<String>, DriverError> {
        let known = self.ours().moved.clone();
        let since = newest.iter().take_while(|action| known.as_ref() != Some(&action.request_id));
        let moves: Vec<&Action> = since.filter(|action| arrival(action).is_some()).collect();
        // Most servers were never evacuated: no steps need be asked for.
        if !moves.iter().any(|action| action.action == EVACUATE) {
            return Ok(None);
        }
        for action in moves {
            let request = &action.request_id;
            let whole = actions::one(&self.cloud, &self.settings.server, request, call).await?;
            match says(whole.as_ref().unwrap_or(action)) {
                Says::Here => {
                    self.ours().moved = Some(request.clone());
                    return Ok(None);
                }
                Says::Nothing => {}
                Says::PerhapsThere => {
                    return Ok(Some(format!(
                        "its evacuate {request} is not known to have ended well, and it may run on the host to which it was to go: \
                         look there; a move that ends well says where it runs"
                    )));
                }
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use picket_core::power::Power;
    use serde_json::{Value, json};

    use crate::fake_nova::{self, SERVER, USER, stopped};

    /// A step: its name and result. Without a result it has not ended.
    type Step = (&'static str, Option<&'static str>);
    /// An action: its name, its request, its steps.
    type Done = (&'static str, &'static str, &'static [Step]);

    const STOPPED: Done = ("stop", "req-stop", &[("compute_stop_instance", Some("Success"))]);
    const CHOSEN: Step = ("conductor_rebuild_server", Some("Success"));
    const ARRIVED: Step = ("compute_rebuild_instance", Some("Success"));
    const BROKEN: Step = ("compute_rebuild_instance", Some("Error"));

    const LANDED: Step = ("compute_post_live_migration_at_destination", Some("Success"));
    const GOOD: Done = ("evacuate", "req-good", &[CHOSEN, ARRIVED]);
    const BAD: Done = ("evacuate", "req-bad", &[CHOSEN, BROKEN]);
    const NOWHERE: Done = ("evacuate", "req-none", &[("conductor_rebuild_server", Some("Error"))]);

    fn shown(done: &Done) -> Value {
        let (action, request, steps) = done;
        let events: Vec<Value> = steps
            .iter()
            .map(|(event, result)| {
                let end = result.map(|_| "2026-11-22T13:00:09.000000");
                json!({ "event": event, "result": result, "finish_time": end })
            })
            .collect();
        json!({ "action": action, "request_id": request, "user_id": USER, "events": events })
    }

    /// What the driver reads of a server that looks like this, after these actions, newest first.
    async fn read(role: &str, server: Option<Value>, done: Vec<Done>) -> (Power, String) {
        let actions = format!("/servers/{SERVER}/os-instance-actions");
        let nova = move |path: &str| match path.strip_prefix(&actions) {
            None => server.clone().map(|server| json!({ "server": server })),
            Some(rest) if rest.starts_with('?') => {
                Some(json!({ "instanceActions": done.iter().map(shown).collect::<Vec<_>>() }))
            }
            Some(rest) => {
                let one = done.iter().find(|(_, request, _)| rest.trim_start_matches('/') == *request);
                one.map(|one| json!({ "instanceAction": shown(one) }))
            }
        };
        let driver = fake_nova::driver(role, nova).await;
        driver.ours().before = Some(BTreeSet::new());
        let reading = driver.reading(&fake_nova::reading()).await.expect("a reading");
        (reading.power, reading.said)
    }

    /// The source of a failed evacuation has a copy of the guest, shut off: to stop it there says nothing of the guest.
    #[tokio::test]
    async fn a_stop_proves_nothing_after_an_evacuation_that_is_not_known_to_have_ended_well() {
        let hidden = || {
            let mut server = stopped();
            server.as_object_mut().expect("a table").remove("host_status");
            server
        };
        let cases: [(&[Done], Power); 14] = [
            (&[], Power::Off),
            (&[GOOD], Power::Off),
            (&[BAD], Power::Unknown),
            (&[("evacuate", "req-1", &[CHOSEN])], Power::Unknown),
            (&[("evacuate", "req-1", &[CHOSEN, ("compute_rebuild_instance", None)])], Power::Unknown),
            (&[("evacuate", "req-1", &[])], Power::Unknown),
            // No host was found: no guest was started.
            (&[NOWHERE], Power::Off),
            (&[NOWHERE, BAD], Power::Unknown),
            (&[GOOD, BAD], Power::Off),
            (&[BAD, GOOD], Power::Unknown),
            (&[("live-migration", "req-2", &[LANDED]), BAD], Power::Off),
            // A move that moved nothing says nothing of where the guest is, and leaves none elsewhere.
            (
                &[("live-migration", "req-2", &[("compute_live_migration", Some("Success"))]), BAD],
                Power::Unknown,
            ),
            (&[("resize", "req-2", &[("compute_prep_resize", Some("Error"))]), BAD], Power::Unknown),
            (&[("resize", "req-2", &[("compute_prep_resize", Some("Error"))])], Power::Off),
        ];
        for (before, power) in cases {
            for (role, server) in [("admin", stopped()), ("member", hidden())] {
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

    #[tokio::test]
    async fn a_server_whose_source_was_deleted_after_a_failed_evacuation_is_not_off() {
        let delete: Done = ("delete", "req-9", &[("compute_terminate_instance", Some("Success"))]);
        for (evacuate, power) in [(GOOD, Power::Off), (BAD, Power::Unknown)] {
            let (is, said) = read("admin", None, vec![delete, evacuate]).await;
            assert_eq!(is, power, "{said}");
        }
    }
}
