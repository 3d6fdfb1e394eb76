//! Right settings, and wrong ones.

use std::time::Duration;

use picket_driver_sim::{Fault, Login, Verb, Version};

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
fn what_is_odd_of_a_board_has_a_name() {
    for (text, fault) in [
        ("{ late_end = \"2500ms\" }", Fault::LateEnd(Duration::from_millis(2_500))),
        ("{ late_off = \"3500ms\" }", Fault::LateOff(Duration::from_millis(3_500))),
        ("{ login_says = \"slashless\" }", Fault::LoginSays(Login::Slashless)),
        ("{ login_says = \"beside\" }", Fault::LoginSays(Login::Beside)),
        ("{ login_says = \"id\" }", Fault::LoginSays(Login::Id)),
        ("{ login_says = \"token\" }", Fault::LoginSays(Login::Token)),
        ("{ login_says = \"place\" }", Fault::LoginSays(Login::Place)),
        ("\"logins_refused\"", Fault::LoginsRefused),
        ("\"hides_links\"", Fault::HidesLinks),
        ("\"cuts_refusals\"", Fault::CutsRefusals),
        ("\"packs_answers\"", Fault::PacksAnswers),
        ("\"holds_as_ilo\"", Fault::HoldsAsIlo),
        ("\"says_nonsense\"", Fault::SaysNonsense),
        ("\"wrong_sums\"", Fault::WrongSums),
        ("\"keys_by_open_session\"", Fault::KeysByOpenSession),
        ("\"rakp_refused\"", Fault::RakpRefused),
        ("\"root_refused\"", Fault::RootRefused),
        ("\"holds_as_idrac\"", Fault::HoldsAsIdrac),
        ("{ takes_version = \"strong\" }", Fault::TakesVersion(Version::Strong)),
        ("{ takes_version = \"quoted_once\" }", Fault::TakesVersion(Version::QuotedOnce)),
        ("{ takes_version = \"none\" }", Fault::TakesVersion(Version::None)),
        ("{ takes_version = \"any\" }", Fault::TakesVersion(Version::Any)),
        ("\"own_certificate\"", Fault::OwnCertificate),
        ("\"own_certificate_v1\"", Fault::OwnCertificateV1),
        ("\"old_tls\"", Fault::OldTls),
        ("\"old_ciphers\"", Fault::OldCiphers),
    ] {
        let settings = Settings::parse(&RIGHT.replace("\"off_ignored\"", text));
        let settings = settings.unwrap_or_else(|wrong| panic!("{text}: {wrong}"));
        assert_eq!(settings.faults[0], ("rack1-1".to_owned(), fault), "{text}");
    }
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
        (
            &RIGHT.replace("rack1-2", "rack1-4"),
            "[[events]] number 2: there is no machine or group \"rack1-4\"",
        ),
        (
            &RIGHT.replace("rack1-2", "rack1-02"),
            "[[events]] number 2: there is no machine or group \"rack1-02\"",
        ),
    ] {
        let said = Settings::parse(wrong).expect_err("they are wrong").to_string();
        assert!(said.contains(part), "{part}\nis not in\n{said}");
    }
    let said = said_of(&RIGHT.replace("count = 3", "count = 4000000000"));
    assert_eq!(said, "[groups]: 4000000002 machines are more than the 20000 that one process takes");
}

/// What is said of settings that are wrong.
fn said_of(wrong: &str) -> String {
    Settings::parse(wrong).expect_err("they are wrong").to_string()
}

#[test]
fn unknown_keys_and_wrong_types_are_told_at_once_and_each_with_its_place() {
    let said = said_of(
        r#"
colour = 1
seed = "seven"
ca_file = 3
[accounts.admin]
password = 12345678
role = "king"
roll = "user"
[groups.rack1]
count = "three"
ipmi = "127.6.1.1"
redfish = 443
suites = "all"
sessions = -1
idle = "30"
tasks = "no"
faults = ["off_ignord", { loss = { percent = 250 } }, { loss = { precent = 5 } }, { off_takes = { least = "8s", most = "2s" } }, { late_end = "2.5s" }, { login_says = "nothing" }]
fautls = []
[groups.rack2]
count = 2
[groups.rack3]
count = 1
ipmi = "127.6.3.1:623"
sessions = 64
[[events]]
at = 60
nodes = ["rack1"]
what = "press_buton"
[[events]]
at = "1s"
nodes = "rack1-1"
[[events]]
at = "1s"
nodes = "rack9"
what = { fault = { reordered = { percent = 101, by = "1s" } } }
when = "now"
"#,
    );
    let told: Vec<&str> = said.lines().collect();
    let expected = [
        ("colour: ", "unknown key; known are seed, ca_file, accounts, groups, events"),
        ("seed: ", "expected u64; write seed = 7"),
        ("ca_file: ", "expected path string"),
        ("[accounts.admin]: password: ", "is no text; write password = "),
        ("[accounts.admin]: role: ", "`king`"),
        ("[accounts.admin]: roll: ", "unknown key; known are password, role"),
        ("[groups.rack1]: count: ", "expected u32; write count = 3"),
        ("[groups.rack1]: ipmi: ", "127.6.1.1:623"),
        ("[groups.rack1]: redfish: ", "127.6.1.1:443"),
        ("[groups.rack1]: suites: ", "[3, 17]"),
        ("[groups.rack1]: sessions: ", "-1"),
        ("[groups.rack1]: idle: ", "\"30\" is no duration"),
        ("[groups.rack1]: tasks: ", "expected a boolean"),
        ("[groups.rack1]: faults: number 1: ", "`off_ignord`"),
        ("[groups.rack1]: faults: number 2: ", "250 percent"),
        ("[groups.rack1]: faults: number 3: ", "`precent`"),
        ("[groups.rack1]: faults: number 4: ", "at least 8s and at most 2s"),
        ("[groups.rack1]: faults: number 5: ", "\"2.5s\" is no duration; write \"250ms\""),
        ("[groups.rack1]: faults: number 6: ", "`nothing`, expected one of `slashless`"),
        ("[groups.rack1]: fautls: ", "unknown key; known are count, ipmi"),
        ("[groups.rack2]: ipmi: ", "is missing"),
        ("[groups.rack3]: sessions: ", "64: give 1 to 63"),
        ("[[events]] number 1: at: ", "expected a string"),
        ("[[events]] number 1: nodes: ", "expected a string"),
        ("[[events]] number 1: what: ", "`press_buton`"),
        ("[[events]] number 2: what: ", "is missing"),
        ("[[events]] number 3: what: ", "101 percent"),
        ("[[events]] number 3: when: ", "unknown key"),
        ("[[events]] number 3: there is no machine or group \"rack9\"", ""),
    ];
    for (place, part) in expected {
        let here = told.iter().any(|line| line.starts_with(place) && line.contains(part));
        assert!(here, "{place}… {part}\nis not in\n{said}");
    }
    assert!(!said.contains("12345678"), "{said}");
    // What follows from another fault is none of its own.
    assert_eq!(told.len(), expected.len(), "{said}");
}

#[test]
fn what_is_no_toml_or_no_table_is_told_with_its_place() {
    assert!(said_of("seed = \n").contains("line 1"), "{}", said_of("seed = \n"));
    let said = said_of("accounts = 3\ngroups = [1]\nevents = [\"mend\"]\n");
    for part in
        ["accounts: expected a table", "groups: expected a table", "[[events]] number 1: expected a table"]
    {
        assert!(said.contains(part), "{part}\nis not in\n{said}");
    }
}
