//! Boards that do what no specification says.

use picket_driver_sim::{Login, RestorePolicy, Version};

use super::*;

const ROOT: &str = "/redfish/v1/";
const SESSIONS: &str = "/redfish/v1/SessionService/Sessions";

/// The three parts of an answer to a login: token, place and body.
type LoginAnswer = (Option<String>, Option<String>, Value);

fn log_in(scene: &mut Scene) -> LoginAnswer {
    let who = json!({"UserName": "admin", "Password": "secret12"});
    let answer = scene.ask(at(1), "POST", SESSIONS, who).expect("an answer");
    assert_eq!(answer.status, 201);
    let header = |name| answer.headers.iter().find(|(key, _)| *key == name).map(|(_, value)| value.clone());
    (header("X-Auth-Token"), header("Location"), answer.body)
}

#[test]
fn a_login_makes_a_session_and_does_not_say_all_of_it() {
    for says in [Login::Slashless, Login::Beside, Login::Id, Login::Token, Login::Place] {
        let mut scene = Scene::new(false);
        scene.world.fault(BMC, Fault::LoginSays(says));
        let (token, place, body) = log_in(&mut scene);
        assert_eq!(scene.world.sessions(BMC, at(1)), 1, "{says:?}");
        let id = scene.bmc.sessions.keys().next().expect("it was made").clone();
        let own = format!("{SESSIONS}/{id}");
        let place_said = match says {
            Login::Slashless => Some(own[1..].to_owned()),
            Login::Beside => Some(format!("/redfish/v1/AccountService/Accounts/{id}")),
            Login::Place => Some(own.clone()),
            Login::Id | Login::Token => None,
        };
        assert_eq!((token.is_some(), place), (says != Login::Place, place_said), "{says:?}");
        let said = match says {
            Login::Slashless | Login::Beside | Login::Id => json!({"Id": id}),
            Login::Token => Value::Null,
            Login::Place => json!(own),
        };
        assert_eq!(if says == Login::Place { body["@odata.id"].clone() } else { body }, said, "{says:?}");
        // It is one as any other, and is ended where it is.
        let mut scene = scene.basic();
        if let Some(token) = token {
            scene.headers.insert("x-auth-token".to_owned(), token);
        }
        assert_eq!(scene.power(at(2)), json!("On"), "{says:?}");
        assert_eq!(scene.status(at(2), "DELETE", &own, Value::Null), 204, "{says:?}");
        assert_eq!(scene.world.sessions(BMC, at(2)), 0, "{says:?}");
    }
}

#[test]
fn a_login_is_refused_where_basic_authentication_works() {
    let mut scene = Scene::new(false);
    scene.world.fault(BMC, Fault::LoginsRefused);
    assert_eq!(scene.log_in(at(1)), Err(401));
    let mut scene = scene.basic();
    assert_eq!(scene.status(at(1), "POST", RESET, json!({"ResetType": "ForceOff"})), 204);
    assert_eq!(scene.power(at(2)), json!("Off"));
    scene.world.mend(BMC);
    scene.log_in(at(3)).expect("a session");
}

#[test]
fn a_root_shows_its_links_to_whom_it_knows() {
    let links = |scene: &mut Scene| {
        let root = scene.ask(at(1), "GET", ROOT, Value::Null).expect("an answer");
        assert_eq!((root.status, &root.body["RedfishVersion"]), (200, &json!("1.9.0")));
        ["Systems", "Managers", "SessionService", "Tasks", "Links"].map(|name| !root.body[name].is_null())
    };
    let mut scene = Scene::new(false);
    assert_eq!(links(&mut scene), [true; 5]);
    scene.world.fault(BMC, Fault::HidesLinks);
    assert_eq!(links(&mut scene), [false; 5]);
    scene.log_in(at(1)).expect("a session is made all the same");
    assert_eq!(links(&mut scene), [true; 5]);
    scene.headers.clear();
    let mut scene = scene.basic();
    assert_eq!(links(&mut scene), [true; 5]);
    scene.headers.insert("x-auth-token".to_owned(), "of another one".to_owned());
    assert_eq!(scene.status(at(2), "GET", ROOT, Value::Null), 401);
}

#[test]
fn a_restore_policy_stands_where_an_ilo_has_it() {
    let mut scene = Scene::new(false).basic();
    scene.world.fault(BMC, Fault::HoldsAsIlo);
    let system = scene.ask(at(1), "GET", SYSTEM, Value::Null).expect("an answer").body;
    assert_eq!(system.get("PowerRestorePolicy"), None);
    assert_eq!(system["Oem"], json!({"Hpe": {"PowerAutoOn": "Restore"}}));
    for (word, policy) in [("RemainOff", RestorePolicy::AlwaysOff), ("PowerOn", RestorePolicy::AlwaysOn)] {
        let change = json!({"Oem": {"Hpe": {"PowerAutoOn": word}}});
        assert_eq!(scene.status(at(1), "PATCH", SYSTEM, change.clone()), 204);
        assert_eq!(scene.world.hold(BMC).restore, policy);
        let system = scene.ask(at(1), "GET", SYSTEM, Value::Null).expect("an answer").body;
        assert_eq!(system["Oem"], change["Oem"]);
    }
    for wrong in [
        json!({"PowerRestorePolicy": "AlwaysOff"}),
        json!({"Oem": {"Hpe": {"PowerAutoOn": "AlwaysOff"}}}),
        json!({"Oem": {"Hpe": {"PowerAutoOn": "RemainOff", "Other": 1}}}),
    ] {
        assert_eq!(scene.status(at(2), "PATCH", SYSTEM, wrong.clone()), 400, "{wrong}");
    }
    assert_eq!(scene.world.hold(BMC).restore, RestorePolicy::AlwaysOn);
}

#[test]
fn a_power_state_is_a_word_that_nobody_knows() {
    let mut scene = Scene::new(false).basic();
    let takes = Duration::from_secs(5);
    scene.world.fault(BMC, Fault::OffTakes { least: takes, most: takes });
    scene.world.fault(BMC, Fault::SaysNonsense);
    assert_eq!(scene.power(at(1)), json!("Dreaming"));
    assert_eq!(scene.status(at(1), "POST", RESET, json!({"ResetType": "ForceOff"})), 204);
    assert_eq!((scene.power(at(2)), scene.power(at(9))), (json!("Dreaming"), json!("Dreaming")));
    assert!(!scene.world.truth(BMC, at(9)));
}

#[test]
fn the_end_of_a_session_is_answered_late_and_nothing_else_is() {
    let late = Duration::from_millis(2_500);
    let mut scene = Scene::new(false);
    scene.world.fault(BMC, Fault::LateEnd(late));
    let place = scene.log_in(at(1)).expect("a session");
    let other = scene.ask(at(1), "GET", SYSTEM, Value::Null).expect("an answer");
    let end = scene.ask(at(1), "DELETE", &place, Value::Null).expect("an answer");
    assert_eq!((other.late, end.status, end.late), (Duration::ZERO, 204, late));
    assert_eq!(scene.world.sessions(BMC, at(1)), 0, "it ended at once");
    assert_eq!(scene.status(at(1), "GET", SYSTEM, Value::Null), 401);
}

#[test]
fn a_root_is_refused_to_who_brings_no_credentials() {
    let mut scene = Scene::new(false);
    scene.world.fault(BMC, Fault::RootRefused);
    assert_eq!(scene.status(at(1), "GET", ROOT, Value::Null), 401);
    scene.log_in(at(1)).expect("a session is made all the same");
    let root = scene.ask(at(1), "GET", ROOT, Value::Null).expect("an answer");
    assert_eq!((root.status, root.body["Systems"].is_null()), (200, false));
    scene.headers.insert("x-auth-token".to_owned(), "of another one".to_owned());
    assert_eq!(scene.status(at(2), "GET", ROOT, Value::Null), 401);
    scene.headers.clear();
    assert_eq!(scene.basic().status(at(2), "GET", ROOT, Value::Null), 200);
}

#[test]
fn a_restore_policy_is_a_bios_setting_that_cannot_be_set() {
    let mut scene = Scene::new(false).basic();
    let bios = format!("{SYSTEM}/Bios");
    assert_eq!(scene.status(at(1), "GET", &bios, Value::Null), 404);
    scene.world.fault(BMC, Fault::HoldsAsIdrac);
    let system = scene.ask(at(1), "GET", SYSTEM, Value::Null).expect("an answer").body;
    assert_eq!(
        (system.get("PowerRestorePolicy"), &system["Bios"]),
        (None, &json!({ "@odata.id": bios.clone() }))
    );
    for (policy, word) in [
        (RestorePolicy::AlwaysOn, "On"),
        (RestorePolicy::LastState, "Last"),
        (RestorePolicy::AlwaysOff, "Off"),
    ] {
        scene.world.set_restore(BMC, policy);
        let said = scene.ask(at(1), "GET", &bios, Value::Null).expect("an answer").body;
        assert_eq!(said["Attributes"], json!({ "AcPwrRcvry": word }));
    }
    let change = json!({ "Attributes": { "AcPwrRcvry": "On" } });
    assert_eq!(scene.status(at(2), "PATCH", &bios, change), 405);
    assert_eq!(scene.status(at(2), "PATCH", SYSTEM, json!({ "PowerRestorePolicy": "AlwaysOn" })), 400);
    assert_eq!(scene.world.hold(BMC).restore, RestorePolicy::AlwaysOff);
}

#[test]
fn a_change_is_taken_by_another_version_than_is_said() {
    for takes in [Version::Strong, Version::QuotedOnce, Version::None, Version::Any] {
        let mut scene = Scene::new(false).basic();
        scene.world.fault(BMC, Fault::TakesVersion(takes));
        let system = scene.ask(at(1), "GET", SYSTEM, Value::Null).expect("an answer");
        let said = system.headers.first().map(|(_, value)| value.clone());
        let starts = |with: &str| said.as_deref().is_some_and(|said| said.starts_with(with));
        let is_said = match takes {
            Version::Strong | Version::None => starts("W/\""),
            Version::QuotedOnce => starts("\"\""),
            Version::Any => said.is_none(),
        };
        assert!(is_said, "{takes:?}: {said:?}");
        let plain = said.as_deref().unwrap_or("W/\"\"").trim_start_matches("W/").trim_matches('"');
        let strong = format!("\"{plain}\"");
        for (version, status) in [
            (said.clone(), if takes == Version::Any { 428 } else { 412 }),
            (Some(strong), if matches!(takes, Version::Strong | Version::QuotedOnce) { 204 } else { 412 }),
        ] {
            scene.headers.remove("if-match");
            scene.headers.extend(version.map(|version| ("if-match".to_owned(), version)));
            let change = json!({ "PowerRestorePolicy": "AlwaysOff" });
            assert_eq!(scene.status(at(1), "PATCH", SYSTEM, change), status, "{takes:?}");
        }
        scene.headers.remove("if-match");
        if takes == Version::Any {
            scene.headers.insert("if-match".to_owned(), "*".to_owned());
        }
        assert_eq!(scene.status(at(2), "PATCH", SYSTEM, json!({ "PowerRestorePolicy": "AlwaysOn" })), 204);
        assert_eq!(scene.world.hold(BMC).restore, RestorePolicy::AlwaysOn, "{takes:?}");
    }
}
