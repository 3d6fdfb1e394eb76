//! The BMC without sockets.

use std::time::Duration;

use picket_driver_sim::{Act, Fault, HoldSettings};

use super::task::TASKS;
use super::*;
use crate::account::Role;

mod odd;

const BMC: &str = "n1";
const SYSTEM: &str = "/redfish/v1/Systems/1";
const RESET: &str = "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset";

fn at(seconds: u64) -> BootTime {
    BootTime::from_boot(Duration::from_secs(seconds))
}

struct Scene {
    world: World,
    bmc: RedfishBmc,
    headers: BTreeMap<String, String>,
}

impl Scene {
    fn new(tasks: bool) -> Self {
        let mut world = World::new(1);
        world.add_machine(BMC).add_host(BMC, BMC).set_sessions(BMC, 2, Duration::from_secs(60));
        let account =
            Account { name: "admin".to_owned(), password: "secret12".to_owned(), role: Role::Administrator };
        let options = RedfishOptions {
            machine: BMC.to_owned(),
            device: BMC.to_owned(),
            accounts: Arc::new([account]),
            tasks,
            began: WallTime::from_millis(1_767_225_600_000),
        };
        Self { world, bmc: RedfishBmc::new(options, 7), headers: BTreeMap::new() }
    }

    fn ask(&mut self, now: BootTime, method: &str, path: &str, body: Value) -> Handled {
        let request = Request {
            method: method.to_owned(),
            path: path.to_owned(),
            headers: self.headers.clone(),
            body: if body.is_null() { Vec::new() } else { body.to_string().into_bytes() },
        };
        self.bmc.handle(now, &mut self.world, &request)
    }

    fn status(&mut self, now: BootTime, method: &str, path: &str, body: Value) -> u16 {
        self.ask(now, method, path, body).expect("an answer").status
    }

    fn basic(mut self) -> Self {
        // admin:secret12
        self.headers.insert("authorization".to_owned(), "Basic YWRtaW46c2VjcmV0MTI=".to_owned());
        self
    }

    fn log_in(&mut self, now: BootTime) -> Result<String, u16> {
        let who = json!({"UserName": "admin", "Password": "secret12"});
        let answer = self.ask(now, "POST", "/redfish/v1/SessionService/Sessions", who).expect("an answer");
        let header =
            |name| answer.headers.iter().find(|(key, _)| *key == name).map(|(_, value)| value.clone());
        if answer.status != 201 {
            return Err(answer.status);
        }
        self.headers.insert("x-auth-token".to_owned(), header("X-Auth-Token").expect("a token"));
        Ok(header("Location").expect("its place"))
    }

    fn power(&mut self, now: BootTime) -> Value {
        self.ask(now, "GET", SYSTEM, Value::Null).expect("an answer").body["PowerState"].clone()
    }
}

#[test]
fn power_is_switched_by_basic_authentication_and_in_a_session() {
    for session in [false, true] {
        let mut scene = if session { Scene::new(false) } else { Scene::new(false).basic() };
        let place = session.then(|| scene.log_in(at(1)).expect("a session"));
        assert_eq!(scene.power(at(1)), json!("On"));
        assert_eq!(scene.status(at(2), "POST", RESET, json!({"ResetType": "ForceOff"})), 204);
        assert_eq!(scene.power(at(2)), json!("Off"));
        assert!(!scene.world.truth(BMC, at(2)));
        assert_eq!(scene.status(at(3), "POST", RESET, json!({"ResetType": "On"})), 204);
        assert!(scene.world.truth(BMC, at(3)));
        if let Some(place) = place {
            assert_eq!(scene.status(at(4), "DELETE", &place, Value::Null), 204);
            assert_eq!(scene.status(at(4), "POST", RESET, json!({"ResetType": "ForceOff"})), 401);
            assert!(scene.world.truth(BMC, at(5)));
        }
        assert_eq!(scene.world.sessions(BMC, at(5)), 0);
    }
}

#[test]
fn who_is_nobody_reads_the_root_alone() {
    let mut scene = Scene::new(false);
    assert_eq!(scene.status(at(1), "GET", "/redfish/v1/", Value::Null), 200);
    for (method, path) in
        [("GET", SYSTEM), ("GET", "/redfish/v1/Managers/1"), ("POST", RESET), ("PATCH", SYSTEM)]
    {
        assert_eq!(
            scene.status(at(1), method, path, json!({"ResetType": "ForceOff"})),
            401,
            "{method} {path}"
        );
    }
    let who = json!({"UserName": "admin", "Password": "guess"});
    assert_eq!(scene.status(at(1), "POST", "/redfish/v1/SessionService/Sessions", who), 401);
    let mut scene = scene.basic();
    scene.world.fault(BMC, Fault::WrongPassword);
    assert_eq!(scene.status(at(1), "GET", SYSTEM, Value::Null), 401);
    assert!(scene.world.truth(BMC, at(2)));
}

#[test]
fn sessions_are_few_idle_out_and_are_lost_with_a_restart() {
    let mut scene = Scene::new(false);
    scene.log_in(at(1)).expect("a session");
    scene.log_in(at(2)).expect("another one");
    assert_eq!(scene.log_in(at(3)), Err(503));
    assert_eq!(scene.power(at(50)), json!("On"));
    scene.log_in(at(62)).expect("the first one idled out");
    let before = scene.ask(at(62), "GET", "/redfish/v1/Managers/1", Value::Null).expect("an answer").body;
    let restart = Act::RestartBmc { device: BMC.to_owned(), down: Duration::from_secs(5), estranged: true };
    scene.world.happen(at(63), restart);
    assert_eq!(scene.ask(at(64), "GET", SYSTEM, Value::Null), Err(Silence));
    assert_eq!(scene.status(at(70), "GET", SYSTEM, Value::Null), 401, "it forgot its sessions");
    scene.log_in(at(70)).expect("a session");
    assert_eq!(scene.power(at(70)), json!("Off"), "it lies");
    let after = scene.ask(at(70), "GET", "/redfish/v1/Managers/1", Value::Null).expect("an answer").body;
    assert_eq!(before["LastResetTime"], json!("2026-01-01T00:00:00.000Z"));
    assert_eq!(after["LastResetTime"], json!("2026-01-01T00:01:08.000Z"));
    assert!(scene.world.truth(BMC, at(71)));
}

/// Faults that boards in the field have for a while, or for good.
#[test]
fn a_board_starts_names_no_system_and_redirects() {
    let mut scene = Scene::new(false).basic();
    let systems = "/redfish/v1/Systems";
    let members = |scene: &mut Scene| {
        scene.ask(at(1), "GET", systems, Value::Null).expect("an answer").body["Members"].clone()
    };
    assert_eq!(members(&mut scene).as_array().map(Vec::len), Some(1));
    scene.world.fault(BMC, Fault::NamesNoSystem);
    assert_eq!(members(&mut scene), json!([]));
    assert_eq!(scene.status(at(1), "GET", SYSTEM, Value::Null), 200, "it is there all the same");
    scene.world.fault(BMC, Fault::Redirects);
    let moved = scene.ask(at(1), "GET", systems, Value::Null).expect("an answer");
    assert_eq!((moved.status, moved.headers), (308, vec![("Location", format!("{systems}/"))]));
    assert_eq!(scene.status(at(1), "GET", &format!("{SYSTEM}/"), Value::Null), 200);
    scene.world.fault(BMC, Fault::Starting);
    for (method, path) in [("GET", "/redfish/v1/"), ("GET", SYSTEM), ("POST", RESET)] {
        assert_eq!(scene.status(at(2), method, path, json!({"ResetType": "ForceOff"})), 503, "{path}");
    }
    assert!(scene.world.truth(BMC, at(3)));
}

#[test]
fn troubles_have_their_statuses() {
    let off = || json!({"ResetType": "ForceOff"});
    for (fault, status) in [
        (Fault::Busy { times: 9 }, 503),
        (Fault::OffRefused, 500),
        (Fault::OffForbidden, 403),
        (Fault::OffIgnored, 204),
    ] {
        let mut scene = Scene::new(false).basic();
        scene.world.fault(BMC, fault.clone());
        assert_eq!(scene.status(at(1), "POST", RESET, off()), status, "{fault:?}");
        assert!(scene.world.truth(BMC, at(2)), "{fault:?}");
    }
    let mut scene = Scene::new(false).basic();
    scene.world.fault(BMC, Fault::AlreadyIsError);
    assert_eq!(scene.status(at(1), "POST", RESET, json!({"ResetType": "On"})), 409);
    assert_eq!(scene.status(at(1), "POST", RESET, json!({"ResetType": "GracefulShutdown"})), 400);
    assert_eq!(scene.status(at(1), "POST", RESET, Value::Null), 400);
    assert_eq!(scene.status(at(1), "GET", "/redfish/v1/Systems/2", Value::Null), 404);
    assert_eq!(scene.status(at(1), "DELETE", SYSTEM, Value::Null), 405);
    scene.world.mend(BMC);
    let takes = Duration::from_secs(5);
    scene.world.fault(BMC, Fault::OffTakes { least: takes, most: takes }).fault(BMC, Fault::SaysTransition);
    assert_eq!(scene.status(at(1), "POST", RESET, off()), 204);
    assert_eq!(scene.power(at(3)), json!("PoweringOff"));
    assert_eq!(scene.power(at(6)), json!("Off"));
    scene.world.fault(BMC, Fault::SaysNothing);
    assert_eq!(scene.power(at(6)), Value::Null);
}

#[test]
fn a_reset_may_be_a_task() {
    let mut scene = Scene::new(true).basic();
    let answer = scene.ask(at(1), "POST", RESET, json!({"ResetType": "ForceOff"})).expect("an answer");
    assert_eq!((answer.status, &answer.body["TaskState"]), (202, &json!("Running")));
    let monitor = &answer.headers.iter().find(|(name, _)| *name == "Location").expect("a monitor").1;
    assert_eq!(scene.status(at(1), "GET", monitor, Value::Null), 202);
    assert_eq!(scene.status(at(2), "GET", monitor, Value::Null), 204);
    for _ in 0..100 {
        assert_eq!(scene.status(at(3), "POST", RESET, json!({"ResetType": "ForceOff"})), 202);
    }
    assert_eq!(scene.bmc.tasks.len(), TASKS);
}

#[test]
fn a_hold_is_set_and_a_stale_tag_refused() {
    let mut scene = Scene::new(false).basic();
    let system = scene.ask(at(1), "GET", SYSTEM, Value::Null).expect("an answer");
    assert_eq!(system.body["PowerRestorePolicy"], json!("LastState"));
    let tag = system.headers[0].1.clone();
    scene.headers.insert("if-none-match".to_owned(), tag.clone());
    assert_eq!(scene.status(at(1), "GET", SYSTEM, Value::Null), 304);
    scene.headers.insert("if-match".to_owned(), tag);
    assert_eq!(scene.status(at(1), "PATCH", SYSTEM, json!({"PowerRestorePolicy": "AlwaysOff"})), 204);
    assert_eq!(
        scene.world.hold(BMC),
        HoldSettings { restore: picket_driver_sim::RestorePolicy::AlwaysOff, ..HoldSettings::FREE }
    );
    assert_eq!(scene.status(at(1), "PATCH", SYSTEM, json!({"PowerRestorePolicy": "AlwaysOn"})), 412);
    assert_eq!(scene.status(at(1), "GET", SYSTEM, Value::Null), 200, "it changed");
    scene.headers.remove("if-match");
    for body in [json!({"PowerRestorePolicy": "Maybe"}), json!({"AssetTag": "x"}), json!([])] {
        assert_eq!(scene.status(at(1), "PATCH", SYSTEM, body), 400);
    }
    scene.world.fault(BMC, Fault::HoldUnsupported);
    assert_eq!(scene.status(at(2), "PATCH", SYSTEM, json!({"PowerRestorePolicy": "AlwaysOn"})), 400);
    scene.headers.clear();
    let mut scene = scene.basic();
    let body = scene.ask(at(2), "GET", SYSTEM, Value::Null).expect("an answer").body;
    assert_eq!(body.get("PowerRestorePolicy"), None);
}

#[test]
fn a_late_off_without_a_session_lands_and_one_of_a_closed_session_does_not() {
    let late = || Fault::Late {
        verb: picket_driver_sim::Verb::Off,
        after: Duration::from_secs(9),
        answered: true,
        times: 1,
    };
    let mut scene = Scene::new(false).basic();
    scene.world.fault(BMC, late());
    assert_eq!(scene.status(at(1), "POST", RESET, json!({"ResetType": "ForceOff"})), 204);
    assert!(scene.world.truth(BMC, at(9)) && !scene.world.truth(BMC, at(10)));
    let mut scene = Scene::new(false);
    let place = scene.log_in(at(1)).expect("a session");
    scene.world.fault(BMC, late());
    assert_eq!(scene.status(at(1), "POST", RESET, json!({"ResetType": "ForceOff"})), 204);
    assert_eq!(scene.status(at(2), "DELETE", &place, Value::Null), 204);
    assert!(scene.world.truth(BMC, at(60)));
}
