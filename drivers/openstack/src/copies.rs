//! The copies of a server that its evacuations left, of which Nova's own Off of it says nothing.
//!
//! **Boundary.** Only an administrator sees migrations. Whether the host of a copy is off is the engine's
//! matter.
//!
//! # Invariants
//!
//! - The server and its actions are asked first, and its migrations after that. Of an evacuation which that
//!   Off may follow, Nova notes the action before the migration, and `done` before the action's end. Shown
//!   by `an_evacuation_between_two_answers_of_one_reading_is_not_missed`.
//! - Where no evacuation ever happened nothing more is asked. Shown by
//!   `nothing_is_asked_for_copies_of_a_server_that_was_never_evacuated_or_has_none_for_good`.

use parking_lot::MutexGuard;
use picket_driver::{Call, DriverError};

use crate::driver::OpenstackDriver;
use crate::evacuations;
use crate::server::Server;

/// A host of which Nova says no name.
pub(crate) const NOT_TOLD: &str = "a host that is not told";

/// A server's evacuations, as far as they are known, in whichever generation its node is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Evacuated {
    /// The newest evacuation among its actions.
    newest: Option<String>,
    /// No evacuation up to this one has left a copy that is still there: that is so for good.
    cleared: Option<String>,
    /// The hosts of the copies, as told when this evacuation was the newest.
    left: Option<(String, Vec<String>)>,
    /// On which hypervisor Nova showed the server last.
    at: Option<String>,
    /// The host of the compute service there.
    host: Option<String>,
    /// Nova shows this user the state of compute hosts.
    sees_hosts: bool,
    /// Nova does not show the server any more.
    is_gone: bool,
}

impl Evacuated {
    /// On which hypervisor Nova showed the server last.
    pub(crate) fn at(&self) -> Option<&String> {
        self.at.as_ref()
    }

    /// The host of the compute service there.
    pub(crate) fn host(&self) -> Option<&String> {
        self.host.as_ref()
    }

    pub(crate) fn shown(&mut self, server: &Server) {
        self.is_gone = false;
        self.at.clone_from(&server.hypervisor);
        self.host.clone_from(&server.host);
        self.sees_hosts = server.host_status.is_some();
    }

    pub(crate) fn gone(&mut self) {
        self.is_gone = true;
    }

    pub(crate) fn newest(&mut self, request: &str) {
        self.newest = Some(request.to_owned());
    }
}

impl OpenstackDriver {
    pub(crate) fn evacuated(&self) -> MutexGuard<'_, Evacuated> {
        self.evacuated.lock()
    }

    /// Nova tells this user of no migration.
    pub(crate) fn is_tenant(&self) -> bool {
        !self.evacuated().sees_hosts && self.cloud.is_admin() == Some(false)
    }

    /// The hypervisors on which a copy of the server may be, after an Off of it was read.
    pub(crate) async fn copies_left(&self, call: &Call) -> Result<Vec<String>, DriverError> {
        let known = self.evacuated().clone();
        let Some(newest) = known.newest.filter(|newest| known.cleared.as_ref() != Some(newest)) else {
            return Ok(Vec::new());
        };
        if self.is_tenant() {
            return Ok(Vec::new());
        }
        let migrations = if known.is_gone { Vec::new() } else { self.migrations(call).await? };
        let hosts = if !evacuations::have_evacuation(&migrations) {
            // Nova shows no migration of a server that it deleted, and may have deleted this one since it was read: no evacuation among
            // them means that nothing is told, and clears none.
            let told = known.left.filter(|(as_of, _)| *as_of == newest);
            told.map_or_else(|| vec![NOT_TOLD.to_owned()], |(_, hosts)| hosts)
        } else {
            let host = known.host.as_deref();
            let hosts = evacuations::copies(&migrations, host);
            self.remarks.found_left(evacuations::left_behind(&migrations, host));
            let mut evacuated = self.evacuated();
            if evacuations::have_cleared(&migrations) {
                evacuated.cleared = Some(newest.clone());
            }
            evacuated.left = Some((newest, hosts.clone()));
            hosts
        };
        // One domain of that name is all that there is on a host, and Off of it was read there.
        Ok(hosts.into_iter().filter(|host| known.at.as_ref() != Some(host)).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;
    use picket_core::power::Power;
    use serde_json::{Value, json};

    use crate::driver::OpenstackDriver;
    use crate::fake_nova::{self, SERVER, stopped};

    /// An action: its name, its request, its step, and the host of that.
    type Done = (&'static str, &'static str, &'static str, &'static str);

    /// A Nova with one server: its actions from the newest on, and its migrations.
    #[derive(Debug, Default)]
    struct Nova {
        server: Option<Value>,
        /// The server, once it was shown, and one more action, once the actions were.
        then: (Option<Option<Value>>, Option<Done>),
        /// That one is not the newest.
        is_later: bool,
        actions: Vec<Done>,
        /// How each ended, and where it was to go, if that is not where the server is.
        evacuations: Vec<&'static str>,
        asked: Vec<String>,
    }

    const GOOD: Done = ("evacuate", "req-1", "compute_rebuild_instance", "hv8");
    const STOP: Done = ("stop", "req-2", "compute_stop_instance", "hv8");
    const DELETE: Done = ("delete", "req-9", "compute_terminate_instance", "hv8");

    impl Nova {
        fn answer(&mut self, path: &str) -> Option<Value> {
            self.asked.push(path.to_owned());
            if path.starts_with("/os-migrations") {
                let one = |(id, told): (usize, &&str)| {
                    let (status, to) = told.split_once(" to ").unwrap_or((told, "compute-7"));
                    json!({ "id": id, "status": status, "migration_type": "evacuation",
                        "source_compute": "compute-6", "source_node": "compute-6.example", "dest_compute": to })
                };
                let all: Vec<Value> = self.evacuations.iter().enumerate().map(one).collect();
                return Some(json!({ "migrations": all }));
            }
            let Some(rest) = path.strip_prefix(&format!("/servers/{SERVER}/os-instance-actions")) else {
                let server = self.server.clone();
                if let Some(then) = self.then.0.take() {
                    self.server = then;
                }
                return server.map(|server| json!({ "server": server }));
            };
            let shown = |(action, request, step, host): &Done| {
                json!({ "action": action, "request_id": request, "user_id": fake_nova::USER, "events": [{
                    "event": step, "result": "Success", "finish_time": "2026-11-22T13:00:09.000000", "hostId": host }] })
            };
            match rest.strip_prefix('/') {
                Some(request) => {
                    let one = self.actions.iter().find(|(_, id, ..)| *id == request)?;
                    Some(json!({ "instanceAction": shown(one) }))
                }
                None => {
                    let all: Vec<Value> = self.actions.iter().map(shown).collect();
                    let at = usize::from(self.is_later);
                    self.actions.splice(at..at, self.then.1.take());
                    Some(json!({ "instanceActions": all }))
                }
            }
        }
    }

    async fn driver(role: &str, nova: Nova) -> (OpenstackDriver, Arc<Mutex<Nova>>) {
        let nova = Arc::new(Mutex::new(nova));
        let answers = nova.clone();
        let driver = fake_nova::driver(role, move |path| answers.lock().answer(path)).await;
        driver.ours().before = Some(Default::default());
        (driver, nova)
    }

    /// A reading, and the hosts on which a copy may be.
    async fn read(driver: &OpenstackDriver) -> (Power, Vec<String>) {
        let call = fake_nova::reading();
        let reading = driver.reading(&call).await.expect("a reading");
        (reading.power, driver.copies_left(&call).await.expect("an answer"))
    }

    fn asked(nova: &Mutex<Nova>, of: &str) -> usize {
        nova.lock().asked.iter().filter(|path| path.starts_with(of)).count()
    }

    #[tokio::test]
    async fn an_off_tells_of_the_copy_that_an_evacuation_left() {
        for (role, evacuations, left) in [
            ("admin", vec!["done"], vec!["compute-6.example"]),
            ("admin", vec!["completed", "done"], vec!["compute-6.example"]),
            ("admin", vec!["completed"], vec![]),
            ("member", vec!["done"], vec![]),
            // It may have started the guest there, and what came later does not end that one.
            ("admin", vec!["failed to compute-8", "completed"], vec!["compute-8"]),
            ("admin", vec!["error to compute-8", "done"], vec!["compute-6.example", "compute-8"]),
            ("admin", vec!["failed", "completed"], vec![]),
        ] {
            let mut server = stopped();
            if role == "member" {
                server.as_object_mut().expect("a table").retain(|key, _| !key.contains("host"));
            }
            let actions = vec![STOP, GOOD];
            let nova = Nova { server: Some(server), actions, evacuations, ..Nova::default() };
            let (driver, nova) = driver(role, nova).await;
            assert_eq!(read(&driver).await, (Power::Off, left.iter().map(|&host| host.to_owned()).collect()));
            assert_eq!(asked(&nova, "/os-migrations"), usize::from(role == "admin"), "a tenant is refused");
        }
    }

    #[tokio::test]
    async fn nothing_is_asked_for_copies_of_a_server_that_was_never_evacuated_or_has_none_for_good() {
        for (actions, turns) in [(vec![STOP], 0), (vec![STOP, GOOD], 1)] {
            let evacuations = vec!["completed"];
            let nova = Nova { server: Some(stopped()), actions, evacuations, ..Nova::default() };
            let (driver, nova) = driver("admin", nova).await;
            for _ in 0..3 {
                assert_eq!(read(&driver).await, (Power::Off, vec![]));
            }
            assert_eq!(asked(&nova, "/os-migrations"), turns);
            // A later one is asked for, also in another generation.
            let later = ("evacuate", "req-5", "compute_rebuild_instance", "hv8");
            {
                let mut nova = nova.lock();
                nova.actions.insert(0, later);
                nova.evacuations.push("done");
            }
            assert_eq!(read(&driver).await, (Power::Off, vec!["compute-6.example".to_owned()]));
        }
    }

    /// Nova's list has it for good, and the server may go on from where it is.
    #[tokio::test]
    async fn an_evacuation_that_failed_clears_nothing() {
        for failed in ["failed to compute-8", "failed"] {
            let (actions, evacuations) = (vec![STOP, GOOD], vec![failed, "completed"]);
            let nova = Nova { server: Some(stopped()), actions, evacuations, ..Nova::default() };
            let (driver, nova) = driver("admin", nova).await;
            let first = read(&driver).await;
            assert_eq!(read(&driver).await, first);
            assert_eq!(asked(&nova, "/os-migrations"), 2, "{failed}");
        }
    }

    /// While it is under way nobody knows what it will leave.
    #[tokio::test]
    async fn an_evacuation_that_is_not_over_clears_nothing() {
        let (actions, evacuations) = (vec![STOP, GOOD], vec!["pre-migrating"]);
        let nova = Nova { server: Some(stopped()), actions, evacuations, ..Nova::default() };
        let (driver, nova) = driver("admin", nova).await;
        assert_eq!(read(&driver).await, (Power::Off, vec![]));
        nova.lock().evacuations = vec!["done"];
        assert_eq!(read(&driver).await, (Power::Off, vec!["compute-6.example".to_owned()]));
    }

    #[tokio::test]
    async fn a_server_that_is_back_where_it_came_from_has_no_copy_there() {
        let mut server = stopped();
        server["OS-EXT-SRV-ATTR:hypervisor_hostname"] = json!("compute-6.example");
        let (actions, evacuations) = (vec![STOP, GOOD], vec!["done"]);
        let nova = Nova { server: Some(server), actions, evacuations, ..Nova::default() };
        assert_eq!(read(&driver("admin", nova).await.0).await, (Power::Off, vec![]));
    }

    /// Nova shows no migrations of a deleted server: what was told before counts, and else nobody knows.
    #[tokio::test]
    async fn a_deleted_server_s_copies_are_those_that_were_told_before() {
        for (was_read, evacuation, left) in [
            (true, "done", vec!["compute-6.example"]),
            (true, "completed", vec![]),
            (false, "completed", vec!["a host that is not told"]),
        ] {
            let (actions, evacuations) = (vec![STOP, GOOD], vec![evacuation]);
            let nova = Nova { server: Some(stopped()), actions, evacuations, ..Nova::default() };
            let (driver, nova) = driver("admin", nova).await;
            if was_read {
                read(&driver).await;
            }
            {
                let mut nova = nova.lock();
                (nova.server, nova.evacuations) = (None, Vec::new());
                nova.actions.insert(0, DELETE);
            }
            let left: Vec<String> = left.into_iter().map(str::to_owned).collect();
            assert_eq!(read(&driver).await, (Power::Off, left), "{was_read} {evacuation}");
        }
    }

    /// Nova shows no migrations of a deleted server, also where it was read before that.
    #[tokio::test]
    async fn a_delete_between_two_answers_clears_no_copy() {
        let (actions, evacuations) = (vec![STOP, GOOD], vec!["done"]);
        let nova = Nova { server: Some(stopped()), actions, evacuations, ..Nova::default() };
        let (driver, nova) = driver("admin", nova).await;
        let call = fake_nova::reading();
        assert_eq!(driver.reading(&call).await.expect("a reading").power, Power::Off);
        {
            let mut nova = nova.lock();
            (nova.server, nova.evacuations) = (None, Vec::new());
            nova.actions.insert(0, DELETE);
        }
        let not_told = vec!["a host that is not told".to_owned()];
        assert_eq!(driver.copies_left(&call).await.expect("an answer"), not_told);
        for _ in 0..2 {
            assert_eq!(read(&driver).await, (Power::Off, not_told.clone()));
        }
    }

    /// The source says off of its copy until the move ends.
    #[tokio::test]
    async fn an_off_that_is_older_than_the_end_of_a_move_does_not_count() {
        let mut runs = stopped();
        (runs["status"], runs["OS-EXT-STS:power_state"]) = (json!("ACTIVE"), json!(1));
        let (actions, evacuations) = (vec![STOP, GOOD], vec!["done"]);
        let then = (Some(Some(runs)), None);
        let nova = Nova { server: Some(stopped()), then, actions, evacuations, ..Nova::default() };
        assert_eq!(read(&driver("admin", nova).await.0).await.0, Power::On);
    }

    /// The steps of an evacuation say Success, since a delete interrupted it that began after its actions were told.
    #[tokio::test]
    async fn a_move_has_arrived_only_by_actions_that_were_asked_for_after_its_end() {
        const BY_SOURCE: Done = ("delete", "req-9", "compute_terminate_instance", "hv7");
        let (then, actions) = ((Some(None), Some(BY_SOURCE)), vec![STOP, GOOD]);
        let nova = Nova { server: Some(stopped()), then, actions, ..Nova::default() };
        let driver = driver("admin", nova).await.0;
        for _ in 0..2 {
            assert_eq!(read(&driver).await.0, Power::Unknown);
        }
    }

    /// Its actions were answered first, and its evacuation shows in its host alone.
    #[tokio::test]
    async fn an_evacuation_between_two_answers_of_one_reading_is_not_missed() {
        let nova = Nova {
            server: Some(stopped()),
            then: (None, Some(GOOD)),
            is_later: true,
            actions: vec![STOP],
            evacuations: vec!["done"],
            ..Nova::default()
        };
        let driver = driver("admin", nova).await.0;
        // The hosts that Nova showed before this reading began.
        driver.ours().last = Some(STOP.1.to_owned());
        let before = json!({ "id": SERVER, "OS-EXT-SRV-ATTR:hypervisor_hostname": "compute-6.example" });
        driver.evacuated().shown(&serde_json::from_value(before).expect("a server"));
        assert_eq!(read(&driver).await.0, Power::Unknown);
        assert_eq!(read(&driver).await, (Power::Off, vec!["compute-6.example".to_owned()]));
    }
}
