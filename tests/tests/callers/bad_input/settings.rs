//! Settings that are wrong, as `picketd --check` and `picketd` itself tell it: file, line, key, what, and what would be
//! right; exit code 78.

use picket_tests::Said;

use crate::bad_input::home::{GOOD, Home};

/// The faults, a line each.
fn faults(said: &Said) -> Vec<&str> {
    let mut lines = said.err.lines();
    assert_eq!((said.code, lines.next()), (78, Some("picketd: the settings are wrong:")), "{said:?}");
    lines.collect()
}

/// The settings with `old` replaced by `new` have one fault: at `place`, and with these words in it.
async fn one_fault(old: &str, new: &str, place: &str, words: &[&str]) {
    assert!(GOOD.contains(old), "{old}");
    let home = Home::with(&GOOD.replace(old, new));
    let said = home.says(&["--check"]).await;
    let faults = faults(&said);
    assert_eq!(faults.len(), 1, "{new}: {faults:#?}");
    assert!(faults[0].starts_with(&format!("picket.toml:{place}: ")), "{new}: {faults:#?}");
    assert!(words.iter().all(|word| faults[0].contains(word)), "{new}: {words:?} in {faults:#?}");
    assert_eq!(home.says(&[]).await.err, said.err, "without --check the same is said");
    assert!(!home.path("picket.redb").exists(), "nothing was begun");
}

#[tokio::test]
async fn what_is_right_is_said_to_be_right() {
    let said = Home::with(GOOD).says(&["--check"]).await;
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    let right = "picket.toml: right, with 2 nodes\nnote: n1/detach and 1 more: has no token: ";
    assert!(said.out.starts_with(right), "{said:?}");
}

#[tokio::test]
async fn an_unknown_key() {
    let word = ["unknown key", "did you mean \"dwell\"?"];
    one_fault("[releases.detach]", "[rules]\ndwel = \"1s\"\n[releases.detach]", "16: rules.dwel", &word)
        .await;
    let word = ["unknown key", "host", "password_file"];
    one_fault("username", "hots = \"x\"\nusername", "11: templates.rack.devices.bmc.hots", &word).await;
    let word = ["unknown key", "url"];
    one_fault("kind = ", "urls = \"x\"\nkind = ", "16: releases.detach.urls", &word).await;
}

#[tokio::test]
async fn what_no_node_uses_or_can_be_given_to_is_checked_as_well() {
    let device = "driver = \"ipmi\"\nhost = \"{node}-bmc\"\ncipher_suites = [0]\nhots = 1\n";
    let spare = format!("[templates.spare.devices.bmc]\n{device}[nodes.\"n[3-\".devices.bmc]\n{device}");
    let home = Home::with(&GOOD.replace("[releases.detach]", &(spare + "[releases.detach]")));
    let said = home.says(&["--check"]).await;
    let places: Vec<String> =
        faults(&said).iter().map(|fault| fault.split(": ").take(2).collect::<Vec<_>>().join(": ")).collect();
    let expected = [
        "picket.toml:18: templates.spare.devices.bmc.cipher_suites",
        "picket.toml:19: templates.spare.devices.bmc.hots",
        "picket.toml:20: nodes.\"n[3-\"",
        "picket.toml:23: nodes.\"n[3-\".devices.bmc.cipher_suites",
        "picket.toml:24: nodes.\"n[3-\".devices.bmc.hots",
    ];
    assert_eq!(places, expected, "{said:?}");
}

#[tokio::test]
async fn two_nodes_with_one_bmc() {
    let word = ["n2", "127.0.0.7:623", "n1/bmc", "each device belongs to one node"];
    one_fault("127.0.0.{number}", "127.0.0.7", "13: nodes.\"n[1-2]\".devices", &word).await;
}

#[tokio::test]
async fn two_nodes_at_one_redfish_service() {
    let device = |node: &str, system: &str| {
        format!(
            "[nodes.{node}.devices.bmc]\ndriver = \"redfish\"\nhost = \"127.0.0.7\"\nusername = \"picket\"\n\
             password_file = \"{{home}}/password\"\naccept_any_certificate = true\n{system}\n"
        )
    };
    let doors = "[listen]\nunix = \"{home}/picket.sock\"\n[store]\npath = \"{home}/picket.redb\"\n";
    let (first, second) = ("system = \"1\"", "system = \"2\"");
    // Both without an id, both with the same one, and one that takes whatever is the only one there, in both orders.
    for (one, other, word) in [
        ("", "", "each device belongs to one node"),
        (first, first, "each device belongs to one node"),
        (first, "", "each has to be named"),
        ("", second, "each has to be named"),
    ] {
        let home = Home::with(&format!("{doors}{}{}", device("n1", one), device("n2", other)));
        let said = home.says(&["--check"]).await;
        let faults = faults(&said);
        assert_eq!(faults.len(), 1, "{one} {other}: {faults:#?}");
        for word in [word, "nodes.", "n2", "n1/bmc", "redfish 127.0.0.7:443"] {
            assert!(faults[0].contains(word), "{one} {other}: {word:?} in {faults:#?}");
        }
    }
    let home = Home::with(&format!("{doors}{}{}", device("n1", first), device("n2", second)));
    let said = home.says(&["--check"]).await;
    assert_eq!(said.code, 0);
    assert!(said.out.contains("note: n1/bmc and 1 more: accept_any_certificate = true"), "{}", said.out);
}

#[tokio::test]
async fn a_parent_that_cannot_be_one() {
    let device = |device: &str, lines: &str| format!("[nodes.vm1.devices.{device}]\n{lines}\n");
    // A simulated server can tell where it runs, and stands beside no real device.
    let hypervisors = "[listen]\nunix = \"{home}/picket.sock\"\n[store]\npath = \"{home}/picket.redb\"\n\
                       [nodes.\"n[1-2]\".devices.bmc]\ndriver = \"sim\"\nmachine = \"{node}\"\n";
    let server = device("server", "driver = \"sim\"\nmachine = \"vm1\"\nruns_on = \"r1n1\"");
    let levels = "[nodes.vm1]\nlevels = [[\"server\"], [\"up\"]]\n";
    for (up, words) in [
        ("node = \"r1n9\"", vec!["there is no node r1n9", "with its own devices"]),
        ("node = \"vm1\"", vec!["cannot run on itself"]),
        ("node = \"vm2\"", vec!["vm2 has a parent of its own"]),
        ("placement = \"sever\"", vec!["no device sever", "did you mean \"server\""]),
        ("grade = \"attested\"", vec!["\"hypervisor\", or \"learned\" or \"claimed\""]),
        ("nodes = \"r1n1\"", vec!["unknown key", "placement, node, grade"]),
    ] {
        let up = device("up", &format!("driver = \"parent\"\n{up}"));
        let other = format!("{levels}{server}{}", device("up", "driver = \"parent\"")).replace("vm1", "vm2");
        let said = Home::with(&format!("{hypervisors}{levels}{server}{up}{other}")).says(&["--check"]).await;
        let faults = faults(&said);
        assert_eq!(faults.len(), 1, "{faults:#?}");
        assert!(faults[0].contains("nodes.vm1.devices.up"), "{faults:#?}");
        assert!(words.iter().all(|word| faults[0].contains(word)), "{words:?} in {faults:#?}");
    }
    // A BMC does not know where its machine runs, and a machine runs on one other.
    let bmc = device("server", "driver = \"sim\"\nmachine = \"vm1\"");
    let up = device("up", "driver = \"parent\"");
    let said = Home::with(&format!("{hypervisors}{levels}{bmc}{up}")).says(&["--check"]).await;
    assert!(faults(&said)[0].contains("a cloud's does, a BMC does not"), "{said:?}");
    let levels = "[nodes.vm1]\nlevels = [[\"server\"], [\"up\", \"also\"]]\n";
    let also = device("also", "driver = \"parent\"");
    let said = Home::with(&format!("{hypervisors}{levels}{server}{up}{also}")).says(&["--check"]).await;
    assert!(said.err.contains("a node runs on one machine at a time"), "{said:?}");
    assert!(said.err.contains("a parent is a level of its own"), "{said:?}");
}

#[tokio::test]
async fn limits_out_of_range_or_two_for_what_is_shared() {
    let word = ["65 is out of range", "1 to 64"];
    one_fault("username", "at_once = 65\nusername", "11: templates.rack.devices.bmc.at_once", &word).await;
    let word = ["11s is out of range", "0s to 10s"];
    one_fault("username", "pause = \"11s\"\nusername", "11: templates.rack.devices.bmc.pause", &word).await;
    let word = ["50ms is out of range", "100ms to 1m"];
    one_fault("username", "retry = \"50ms\"\nusername", "11: templates.rack.devices.bmc.retry", &word).await;
    let redfish = |node: &str, at_once: u32| {
        format!(
            "[nodes.{node}.devices.bmc]\ndriver = \"redfish\"\nhost = \"chassis1\"\nsystem = \"{node}\"\nusername = \"a\"\n\
             password_env = \"PATH\"\nat_once = {at_once}\n"
        )
    };
    let said =
        Home::with(&format!("{GOOD}{}{}", redfish("b1", 2), redfish("b2", 3))).says(&["--check"]).await;
    let faults = faults(&said);
    assert_eq!(faults.len(), 1, "{faults:#?}");
    assert!(faults[0].contains("nodes.b2.devices.bmc.at_once"), "{faults:#?}");
    assert!(faults[0].contains("is 3 for chassis1") && faults[0].contains("2 at b1"), "{faults:#?}");
}

#[tokio::test]
async fn a_level_without_devices() {
    let word = ["level 2 has no device", "no device proves nothing"];
    one_fault("[[\"bmc\"]]", "[[\"bmc\"], []]", "6: templates.rack.levels", &word).await;
}

#[tokio::test]
async fn a_host_list_that_does_not_parse() {
    let word = ["host list, column 6", "bracket opened in column 2 is not closed"];
    one_fault("n[1-2]", "n[1-2", "13: nodes.\"n[1-2\"", &word).await;
    one_fault("n[1-2]", "n[2-1]", "13: nodes.\"n[2-1]\"", &["host list, column 3"]).await;
}

#[tokio::test]
async fn fewer_readings_or_a_shorter_dwell_than_is_allowed() {
    let rules = |line: &str| format!("[rules]\n{line}\n[releases.detach]");
    let word = ["1 reading proves nothing", "at least 2"];
    one_fault("[releases.detach]", &rules("readings = 1"), "16: rules.readings", &word).await;
    let word = ["100ms is out of range", "500ms to 1m"];
    one_fault("[releases.detach]", &rules("dwell = \"100ms\""), "16: rules.dwell", &word).await;
    let word = ["0s is out of range", "5s to 10m"];
    one_fault("[releases.detach]", &rules("longest_cycle = \"0s\""), "16: rules.longest_cycle", &word).await;
    let word = ["1h is out of range", "1d to 36500d"];
    one_fault("[releases.detach]", &rules("history = \"1h\""), "16: rules.history", &word).await;
    let word = ["10m is longer than level_share (3m)", "level_share more"];
    one_fault("[releases.detach]", &rules("silent_share = \"10m\""), "16: rules.silent_share", &word).await;
    one_fault(
        "username",
        "readings = 1\nusername",
        "11: templates.rack.devices.bmc.readings",
        &["at least 2"],
    )
    .await;
}

#[tokio::test]
async fn a_password_that_is_not_there_or_that_everybody_may_read() {
    let key = "12: templates.rack.devices.bmc.password_file";
    one_fault("{home}/password", "{home}/pasword", key, &["pasword cannot be read", "No such file"]).await;
    for (mode, word) in
        [(0o644, "everybody may read it (mode 644)"), (0o602, "everybody may change it (mode 602)")]
    {
        let home = Home::with(GOOD);
        home.mode("password", mode);
        let said = home.says(&["--check"]).await;
        let faults = faults(&said);
        let right = faults.len() == 1 && faults[0].contains(word) && faults[0].contains("chmod 600");
        assert!(right && faults[0].starts_with("picket.toml:12: "), "{faults:?}");
    }
    let home = Home::with(&GOOD.replace("url = ", "token_file = \"{home}/token\"\nurl = "));
    home.secret("token", "t0ken", 0o604);
    let said = home.says(&["--check"]).await;
    let faults = faults(&said);
    let right = faults.len() == 1 && faults[0].contains("everybody may read it (mode 604)");
    assert!(right && faults[0].starts_with("picket.toml:17: releases.detach.token_file: "), "{faults:?}");
}

#[tokio::test]
async fn a_secret_in_the_settings_is_refused_and_not_repeated() {
    let home = Home::with(&GOOD.replace("password_file = \"{home}/password\"", "password = \"hunter2\""));
    let said = home.says(&["--check"]).await;
    assert!(faults(&said).iter().any(|fault| fault.contains("password_file")), "{said:?}");
    assert!(!said.err.contains("hunter2"), "{said:?}");
}

/// Of every room: the gateway's own, the rules, templates, nodes, the driver's, a releaser's.
#[tokio::test]
async fn ten_faults_are_told_at_once() {
    let home = Home::with(include_str!("ten_faults.toml"));
    let said = home.says(&["--check"]).await;
    assert_eq!(said.code, 78);
    assert_eq!(said.err, include_str!("ten_faults.golden"), "\n{}", said.err);
    assert_eq!(home.says(&[]).await.err, said.err, "without --check the same is said");
}
