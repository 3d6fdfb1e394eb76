//! Right settings, and wrong ones.

use std::time::Duration;

use picket_driver_sim::{Fault, Verb};

use super::*;

const RIGHT: &str = r#"
seed = 7
[accounts.admin]
password = "secret12"
role = "administrator"
[groups.rack1]
count = 3
ipmi = "127.6.1.1:623"
redfish = "127.6.1.1:443"
faults = ["off_ignored", { off_takes = { least = "2s", most = "8s" } }, { slow = "300ms" }]
[groups.rack2]
count = 2
ipmi = "127.6.2.1:623"
suites = [17]
sessions = 2
idle = "30s"
[[events]]
at = "1m"
nodes = "rack2"
what = { restart_bmc = { down = "5s", estranged = true } }
[[events]]
at = "30s"
nodes = "rack1-2"
what = "press_button"
[[events]]
at = "45s"
nodes = "all"
what = { fault = { loss = { percent = 5 } } }
[[events]]
at = "50s"
nodes = "rack1-1"
what = { foreign = "on" }
"#;

#[test]
fn right_settings_say_what_there_is_and_what_happens() {
    let settings = Settings::parse(RIGHT).expect("they are right");
    let names: Vec<&str> = settings.bmcs.iter().map(|bmc| bmc.name.as_str()).collect();
    assert_eq!(names, ["rack1-1", "rack1-2", "rack1-3", "rack2-1", "rack2-2"]);
    assert_eq!(settings.bmcs[2].ipmi.to_string(), "127.6.1.3:623");
    assert_eq!(
        settings.bmcs[2].redfish.as_ref().map(|place| place.address.to_string()).as_deref(),
        Some("127.6.1.3:443")
    );
    assert!(settings.bmcs[3].redfish.is_none() && settings.bmcs[3].suites.len() == 1);
    assert_eq!((settings.bmcs[3].sessions, settings.bmcs[3].idle), (2, Duration::from_secs(30)));
    assert_ne!(settings.bmcs[0].seed, settings.bmcs[1].seed);
    assert_eq!(settings.faults.len(), 9);
    assert_eq!(settings.faults[2], ("rack1-1".to_owned(), Fault::Slow(Duration::from_millis(300))));
    let events: Vec<(u64, usize, &What)> =
        settings.events.iter().map(|event| (event.at.as_secs(), event.nodes.len(), &event.what)).collect();
    assert_eq!(
        events,
        [
            (30, 1, &What::PressButton),
            (45, 5, &What::Fault(Fault::Loss { percent: 5 })),
            (50, 1, &What::Foreign(Verb::On)),
            (60, 2, &What::RestartBmc { down: Duration::from_secs(5), estranged: true }),
        ]
    );
}

#[test]
fn the_shipped_example_is_right() {
    let example = include_str!("../../../../deploy/examples/rehearse.toml");
    let settings = Settings::parse(example).expect("it is right");
    assert!(settings.bmcs.len() >= 10 && !settings.events.is_empty() && !settings.faults.is_empty());
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let wrong = r#"
[accounts.a-name-that-is-too-long]
password = ""
role = "administrator"
[groups.rack1]
count = 300
ipmi = "127.255.255.1:623"
suites = [0]
sessions = 0
idle = "0s"
[groups.rack2]
count = 2
ipmi = "127.6.1.1:623"
[groups.rack3]
count = 2
ipmi = "127.6.1.2:623"
[groups.rack4]
count = 0
ipmi = "10.0.0.1:623"
[[events]]
at = "1s"
nodes = "rack9"
what = "mend"
"#;
    let said = Settings::parse(wrong).expect_err("they are wrong").to_string();
    for part in [
        "[accounts.a-name-that-is-too-long]: a name has 1 to 16 bytes",
        "password: a password has 1 to 20 bytes",
        "[groups.rack1]: suites: [0]: give 3, 17 or both",
        "[groups.rack1]: sessions: 0: give 1 to 63",
        "[groups.rack1]: idle: 0ns: give",
        "[groups.rack1]: 300 machines from there leave 127.0.0.0/8",
        "[groups.rack3]: rack3-1 and rack2-2 are both at 127.6.1.2:623",
        "[groups.rack4]: count: give at least 1",
        "[[events]] number 1: there is no machine or group \"rack9\"",
    ] {
        assert!(said.contains(part), "{part}\nis not in\n{said}");
    }
    for (wrong, part) in [
        ("", "[groups]: there is none"),
        ("[accounts.a]\npassword = \"x\"\nrole = \"king\"\n", "king"),
        ("colour = 1\n", "colour"),
        (&RIGHT.replace("\"30s\"", "\"30\""), "write \"250ms\""),
        (&RIGHT.replace("count = 3", "count = 4000000000"), "more than the 20000"),
    ] {
        let said = Settings::parse(wrong).expect_err("they are wrong").to_string();
        assert!(said.contains(part), "{part}\nis not in\n{said}");
    }
}
