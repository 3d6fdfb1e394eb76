//! On which hypervisor a server runs, and whether it may be about to run elsewhere (S22). Administrators alone are told.

use picket_core::parent::Placement;
use picket_driver::{Call, DriverError, Effect, ErrorKind};
use serde::Deserialize;

use crate::cloud::{QueryResult, Service};
use crate::driver::OpenstackDriver;
use crate::evacuations;
use crate::live::LIVE;
use crate::server::{Field, Server};

/// States of a migration that is over (Compute API, os-migrations). What is not among them is open, known or not: `finished` too,
/// which waits for somebody's word.
const OVER: [&str; 7] = ["completed", "done", "confirmed", "reverted", "failed", "error", "cancelled"];
/// Of these, the states after which the server runs where Nova has it. A cold migration's are none: it takes along what Nova has.
const PLACES: [&str; 2] = ["completed", "done"];

#[derive(Deserialize)]
struct Migrations {
    migrations: Vec<Migration>,
}

#[derive(Deserialize)]
pub(crate) struct Migration {
    /// They only grow. Without it no migration is known to be the later one.
    pub(crate) id: u64,
    #[serde(default)]
    pub(crate) status: String,
    #[serde(default)]
    pub(crate) migration_type: Option<String>,
    #[serde(default)]
    pub(crate) source_compute: Option<String>,
    /// What Nova calls the hypervisor there.
    #[serde(default)]
    pub(crate) source_node: Option<String>,
    #[serde(default)]
    pub(crate) dest_compute: Option<String>,
    #[serde(default)]
    pub(crate) dest_node: Option<String>,
}

impl Migration {
    pub(crate) fn is_a(&self, kind: &str) -> bool {
        self.migration_type.as_deref() == Some(kind)
    }

    /// Why the guest may run at the destination though Nova has it at the source, in words.
    fn may_run_there(&self, server: &Server) -> Option<String> {
        if self.dest_compute.is_some() && self.dest_compute == server.host {
            return None;
        }
        let to = self.dest_compute.as_deref();
        let how = match self.status.as_str() {
            // A live migration that fails after the guest has moved is in `error`, like one that was rolled back, and a nova-compute
            // that starts at the source takes the guest for its own then.
            "error" if self.is_a(LIVE) => {
                let to = to.unwrap_or("a host that is not told");
                format!("its last live migration, to {to}, ended in error")
            }
            // Nova starts the guest at the destination first. It saves the server after that, and ends no guest where that fails.
            // Without a destination no host was found, and no guest was started.
            "failed" | "error" if self.is_a("evacuation") => format!("its evacuation to {} failed", to?),
            _ => return None,
        };
        Some(format!("{how}, and it may run there: look there; one that completes says where Nova has it"))
    }
}

impl OpenstackDriver {
    pub(crate) async fn whereabouts(&self, call: &Call) -> Result<Placement, DriverError> {
        let asked_at = call.now();
        // Before the server: a move that begins after this answer, and is done before the server's, shows in its host. One that is not
        // done shows in its status or task.
        let migrations = self.migrations(call).await;
        let server = self.server_there(call).await?;
        let Some(host) = server.hypervisor.clone() else {
            let detail = "Nova does not show this user on which hypervisor the server runs: that is an administrator's to see \
                          (os_compute_api:os-extended-server-attributes)";
            return Err(DriverError::new(ErrorKind::Forbidden, Effect::DidNotHappen, detail));
        };
        let migrations = migrations?;
        let mut moving = moving(&server, &migrations);
        // The host from which it was evacuated may start it yet, of which no migration says anything.
        if moving.is_none() && evacuations::have_evacuation(&migrations) {
            moving = self.may_start_where_it_was(call).await?;
        }
        let copies = evacuations::copies(&migrations, server.host.as_deref());
        self.remarks.found_left(evacuations::left_behind(&migrations, server.host.as_deref()));
        Ok(Placement { host: Some(host), moving, copies, asked_at, answered_at: call.now() })
    }

    pub(crate) async fn migrations(&self, call: &Call) -> Result<Vec<Migration>, DriverError> {
        let path = format!("/os-migrations?instance_uuid={}", self.settings.server);
        match self.cloud.get::<Migrations>(Service::Compute, &path, call).await? {
            QueryResult::It(list) => Ok(list.migrations),
            QueryResult::NotThere(why) => {
                let detail = format!("os-migrations: {why}");
                Err(DriverError::new(ErrorKind::Protocol, Effect::DidNotHappen, detail))
            }
        }
    }
}

fn moving(server: &Server, migrations: &[Migration]) -> Option<String> {
    let open = migrations.iter().find(|migration| !OVER.contains(&migration.status.as_str()));
    if let Some(open) = open {
        let kind = open.migration_type.as_deref().unwrap_or("migration");
        let to = open.dest_compute.as_deref().map(|to| format!(" to {to}")).unwrap_or_default();
        return Some(format!("a {kind}{to} is {:?}", open.status));
    }
    // A migration that moved nothing says nothing of where an earlier one left the guest.
    let places = |migration: &&Migration| PLACES.contains(&migration.status.as_str());
    let placed = migrations.iter().filter(places).map(|migration| migration.id).max();
    let since = migrations.iter().filter(|migration| placed.is_none_or(|placed| migration.id > placed));
    let doubts = since.filter_map(|migration| Some((migration.id, migration.may_run_there(server)?)));
    if let Some((_, why)) = doubts.max_by_key(|(id, _)| *id) {
        return Some(why);
    }
    // A stop that waits for a dead host moves nothing.
    let still =
        ["powering-off", "powering-on", "rebooting", "reboot_started_hard", "reboot_started", "deleting"];
    match (&server.task_state, server.status.as_deref()) {
        (_, Some(status @ ("MIGRATING" | "REBUILD" | "RESIZE" | "VERIFY_RESIZE" | "REVERT_RESIZE"))) => {
            Some(format!("its status is {status}"))
        }
        (Field::Is(task), _) if !still.contains(&task.as_str()) => Some(format!("its task is {task}")),
        (Field::Absent, _) => Some("its task is not told".to_owned()),
        _ => None,
    }
}

/// Whether each live migration of a server that Nova has at `host` is told to have come to nothing, or to have brought it there. Where none is
/// told that is not known: Nova tells none of a server that it deleted.
pub(crate) fn live_ones_are_over(migrations: &[Migration], host: Option<&str>) -> bool {
    let mut live = migrations.iter().filter(|migration| migration.is_a(LIVE)).peekable();
    live.peek().is_some()
        && live.all(|migration| match migration.status.as_str() {
            "completed" | "failed" | "cancelled" => true,
            "error" => migration.dest_compute.is_some() && migration.dest_compute.as_deref() == host,
            _ => false,
        })
}

#[cfg(test)]
impl Migration {
    /// An evacuation from `compute-7`, of which no destination is told.
    pub(crate) fn evacuation(status: &str) -> Self {
        Self {
            id: 0,
            status: status.to_owned(),
            migration_type: Some("evacuation".to_owned()),
            source_compute: Some("compute-7".to_owned()),
            source_node: Some("compute-7.example".to_owned()),
            dest_compute: None,
            dest_node: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fake_nova::{self, action, stopped};

    fn moved(kind: &str, id: u64, status: &str, to: Option<&str>) -> Migration {
        Migration {
            id,
            migration_type: Some(kind.to_owned()),
            dest_compute: to.map(str::to_owned),
            ..Migration::evacuation(status)
        }
    }

    fn evacuation(id: u64, status: &str, to: Option<&str>) -> Migration {
        moved("evacuation", id, status, to)
    }

    fn cold(id: u64, status: &str, to: Option<&str>) -> Migration {
        moved("migration", id, status, to)
    }

    /// Nova's own table has the source where what comes after the move failed.
    #[test]
    fn the_last_live_migration_that_ended_in_error_is_open_where_nova_does_not_have_its_destination() {
        let server = Server {
            task_state: Field::Null,
            status: Some("ACTIVE".to_owned()),
            host: Some("compute-7".to_owned()),
            ..Server::default()
        };
        let live = |id, status, to| moved("live-migration", id, status, to);
        for (migrations, open) in [
            (vec![live(1, "error", Some("compute-8"))], true),
            (vec![live(1, "error", None)], true),
            (vec![live(1, "error", Some("compute-7"))], false),
            (vec![live(1, "failed", Some("compute-8"))], false),
            (vec![live(1, "cancelled", Some("compute-8"))], false),
            (vec![live(2, "completed", Some("compute-7")), live(1, "error", Some("compute-8"))], false),
            (vec![live(1, "completed", Some("compute-7")), live(2, "error", Some("compute-8"))], true),
            // A later one that moved nothing says nothing of where the guest is.
            (vec![evacuation(3, "error", None), live(2, "error", Some("compute-8"))], true),
            (vec![live(3, "cancelled", Some("compute-9")), live(2, "error", Some("compute-8"))], true),
            (vec![cold(3, "failed", Some("compute-9")), live(2, "error", Some("compute-8"))], true),
            (
                vec![
                    evacuation(4, "error", None),
                    live(3, "completed", Some("compute-7")),
                    live(2, "error", Some("compute-8")),
                ],
                false,
            ),
            // It took along what Nova has, and says nothing of the guest.
            (vec![cold(3, "reverted", Some("compute-9")), live(2, "error", Some("compute-8"))], true),
            (vec![cold(3, "confirmed", Some("compute-7")), live(2, "error", Some("compute-8"))], true),
        ] {
            let told = moving(&server, &migrations);
            assert_eq!(told.is_some(), open, "{told:?}");
            assert!(told.is_none_or(|told| told.contains("ended in error, and it may run there")));
        }
    }

    /// An evacuation that begins and ends between the two questions of one reading.
    #[tokio::test]
    async fn a_move_that_is_done_between_two_questions_is_not_missed() {
        let mut is_over = false;
        let nova = move |_: &str| {
            let mut server = stopped();
            let mut migrations = json!([]);
            if std::mem::replace(&mut is_over, true) {
                server["OS-EXT-SRV-ATTR:host"] = json!("compute-8");
                server["OS-EXT-SRV-ATTR:hypervisor_hostname"] = json!("compute-8");
                migrations = json!([{
                    "id": 1, "status": "done", "migration_type": "evacuation",
                    "source_compute": "compute-7", "dest_compute": "compute-8",
                }]);
            }
            Some(json!({ "server": server, "migrations": migrations }))
        };
        let driver = fake_nova::driver("admin", nova).await;
        let placement = driver.whereabouts(&fake_nova::reading()).await.expect("a placement");
        assert_eq!((placement.host.as_deref(), placement.moving), (Some("compute-8"), None));
    }

    /// The host from which it was evacuated is back, and does what lies in its queue: its copy was removed, and nothing of Nova's says that it runs there.
    #[tokio::test]
    async fn a_server_that_its_old_host_may_start_late_is_not_told_to_be_on_the_new_one_alone() {
        let evacuated = || {
            let steps = [("compute_rebuild_instance", Some("Success"), "hv2", "13:00:01", "13:00:20")];
            action("evacuate", "req-evacuate", "13:00:00", &steps)
        };
        let start = |result, ended| {
            action(
                "start",
                "req-start",
                "12:00:00",
                &[("compute_start_instance", result, "hv1", "12:00:01", ended)],
            )
        };
        let waits = action("start", "req-start", "12:00:00", &[]);
        for (status, actions, why) in [
            ("completed", Some(vec![evacuated(), waits.clone()]), Some("its start req-start")),
            ("done", Some(vec![evacuated(), start(Some("Error"), "18:00:00")]), Some("its start req-start")),
            ("completed", Some(vec![evacuated(), start(Some("Success"), "12:00:09")]), None),
            ("completed", None, Some("Nova has no actions of it")),
        ] {
            let nova = move |path: &str| {
                if let Some(actions) = &actions
                    && let Some(told) = fake_nova::actions(path, actions)
                {
                    return told;
                }
                let done = json!({
                    "id": 1, "status": status, "migration_type": "evacuation",
                    "source_compute": "compute-6", "dest_compute": "compute-7",
                });
                let others = json!({ "server": stopped(), "migrations": [done] });
                (!path.contains("os-instance-actions")).then_some(others)
            };
            let driver = fake_nova::driver("admin", nova).await;
            let placement = driver.whereabouts(&fake_nova::reading()).await.expect("a placement");
            let moving = placement.moving;
            assert_eq!(moving.is_some(), why.is_some(), "{moving:?}");
            assert!(moving.is_none_or(|moving| moving.contains(why.unwrap_or_default())));
        }
        // Nothing is asked for where it was never evacuated.
        let nova = move |path: &str| {
            let others = json!({ "server": stopped(), "migrations": [] });
            (!path.contains("os-instance-actions")).then_some(others)
        };
        let driver = fake_nova::driver("admin", nova).await;
        let placement = driver.whereabouts(&fake_nova::reading()).await.expect("a placement");
        assert_eq!(placement.moving, None);
    }

    /// Nova starts the guest at the destination, saves the server after that, and names the destination its host last of all.
    #[test]
    fn an_evacuation_that_failed_after_a_host_was_chosen_is_open_until_another_move_completes() {
        let mut server = Server {
            task_state: Field::Null,
            status: Some("ERROR".to_owned()),
            host: Some("compute-7".to_owned()),
            ..Server::default()
        };
        let on = |host: &str| Some(host.to_owned());
        for (host, migrations, open) in [
            ("compute-7", vec![evacuation(1, "failed", Some("compute-8"))], true),
            ("compute-7", vec![evacuation(1, "error", Some("compute-8"))], true),
            // The conductor found no host: nothing was started.
            ("compute-7", vec![evacuation(1, "failed", None)], false),
            ("compute-7", vec![evacuation(1, "error", None)], false),
            ("compute-8", vec![evacuation(1, "failed", Some("compute-8"))], false),
            (
                "compute-9",
                vec![evacuation(2, "done", Some("compute-9")), evacuation(1, "failed", Some("compute-8"))],
                false,
            ),
            (
                "compute-7",
                vec![evacuation(2, "error", None), evacuation(1, "failed", Some("compute-8"))],
                true,
            ),
            (
                "compute-7",
                vec![
                    evacuation(1, "completed", Some("compute-7")),
                    evacuation(2, "failed", Some("compute-8")),
                ],
                true,
            ),
        ] {
            server.host = on(host);
            let told = moving(&server, &migrations);
            assert_eq!(told.is_some(), open, "{told:?}");
            assert!(told.is_none_or(|told| {
                told.contains("its evacuation to compute-8 failed, and it may run there")
            }));
        }
    }

    #[test]
    fn what_is_not_known_to_be_over_is_open() {
        let still =
            Server { task_state: Field::Null, status: Some("ACTIVE".to_owned()), ..Server::default() };
        for (status, open) in [
            ("done", false),
            ("completed", false),
            ("confirmed", false),
            ("reverted", false),
            ("failed", false),
            ("error", false),
            ("cancelled", false),
            ("accepted", true),
            ("queued", true),
            ("preparing", true),
            ("running", true),
            ("pre-migrating", true),
            ("finished", true),
            ("a word of tomorrow", true),
            ("", true),
        ] {
            assert_eq!(
                moving(&still, &[Migration::evacuation("done"), Migration::evacuation(status)]).is_some(),
                open,
                "{status}"
            );
        }
        for (task, open) in [
            (Field::Null, false),
            (Field::Is("powering-off".to_owned()), false),
            (Field::Is("migrating".to_owned()), true),
            (Field::Is("rebuilding".to_owned()), true),
            (Field::Is("a word of tomorrow".to_owned()), true),
            (Field::Absent, true),
        ] {
            let server = Server { task_state: task.clone(), ..still.clone() };
            assert_eq!(moving(&server, &[]).is_some(), open, "{task:?}");
        }
        let resized = Server { status: Some("VERIFY_RESIZE".to_owned()), ..still };
        assert!(moving(&resized, &[]).is_some());
    }
}
