//! Settings from files, directory and environment.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::common::*;
use picket_config::{Limits, LogFormat, LogLevel, Nature, Settings, Sources, StoreSettings};
use picket_core::device::{DeviceClass, Grade, MaxInFlight};
use picket_core::ids::ReleaseId;
use picket_core::roles::{Person, Proof, Role};
use picket_core::rules::Rules;

#[test]
fn few_lines_are_many_nodes() {
    let settings = Home::with(GOOD).load().unwrap();
    assert_eq!(settings.nodes.len(), 2);
    let r1n07 = &settings.nodes[&node("r1n07")];
    assert_eq!(r1n07.levels, [[device("bmc")]]);
    assert_eq!(r1n07.releases, [ReleaseId::new("detach").unwrap()]);
    let bmc = &r1n07.devices[&device("bmc")];
    assert_eq!((bmc.driver.as_str(), &bmc.settings["host"]), ("ipmi", &"10.1.0.7".into()));
    assert_eq!(bmc.settings.keys().collect::<Vec<_>>(), ["host", "password_file", "username"]);
    let release = &settings.releases[&ReleaseId::new("detach").unwrap()];
    assert_eq!((release.how.kind.as_str(), release.how.settings.len()), ("webhook", 1));
    assert_eq!(settings.rules, Rules::default());
    assert_eq!(settings.listen.unix.as_deref(), Some(Path::new("/run/picket/picket.sock")));
    assert_eq!(settings.store, StoreSettings::Embedded { path: "/var/lib/picket/picket.redb".into() });
    assert!(!settings.gateway.name.is_empty() && settings.gateway.check_at_start);
}

#[test]
fn the_example_holds_and_names_every_rule() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/picket.example.toml");
    let text = fs::read_to_string(path).unwrap();
    let settings = Home::with(&text).load().unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(settings.nodes.len(), 41);
    assert_eq!(settings.nodes[&node("r1n41")].labels.len(), 2);
    for key in serde_json::to_value(Rules::default()).unwrap().as_object().unwrap().keys() {
        assert!(
            key == "contradiction" || text.contains(&format!("# {key} = ")),
            "{key} is not in the example"
        );
    }
    // With every key that shows a default taken at its word, it still holds, and nothing changes.
    let keyed = |line: &str| {
        line.strip_prefix("# ").filter(|rest| rest.split(' ').nth(1) == Some("=")).map(str::to_owned)
    };
    let all: Vec<String> = text.lines().map(|line| keyed(line).unwrap_or_else(|| line.to_owned())).collect();
    let full = Home::with(
        &all.join("\n").replace("identity = { uuid = \"00112233-4455-6677-8899-aabbccddeeff\" }", ""),
    );
    let full = full.load().unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(full.rules, settings.rules);
    assert_eq!(full.log, settings.log);
    assert_eq!(full.audit, settings.audit);
    assert_eq!(full.receipts, settings.receipts);
    assert_eq!(full.gateway.node, Some(node("r1n41")));
    let bmc = |settings: &Settings| {
        let bmc = settings.nodes[&node("r1n01")].devices[&device("bmc")].clone();
        (bmc.dwell, bmc.readings, bmc.longest_cycle, bmc.trust_after_restart, bmc.verified)
    };
    assert_eq!(bmc(&full), bmc(&settings));
}

/// What stands there behind a # without a blank, from its header to the next empty line.
#[test]
fn the_doors_of_the_example_hold() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/picket.example.toml");
    let text = fs::read_to_string(path).unwrap();
    let block = |header: &str| -> String {
        let lines =
            text.lines().skip_while(|line| *line != header && !line.starts_with(&format!("{header} ")));
        lines
            .take_while(|line| !line.is_empty())
            .map(|line| line.strip_prefix('#').unwrap_or(line).to_owned() + "\n")
            .collect()
    };
    let (tls, roles) = (block("#[listen.tls]"), block("#[roles.operators]"));
    let open = text.replace("# tcp = \"127.0.0.1:7070\"", "tcp = \"0.0.0.0:7070\"");
    let settings =
        Home::with(&format!("{open}\n{tls}{roles}")).load().unwrap_or_else(|faults| panic!("{faults}"));
    assert!(settings.listen.tls.is_some() && !settings.roles.is_of_this_machine());
    let alice = Person { name: "alice@example.org".to_owned(), proof: Proof::Certificate };
    let alice = settings.roles.of(alice);
    let labels = |name: &str| settings.nodes[&node(name)].labels.clone();
    assert!(alice.may(Role::Operator, &node("r1n07"), &labels("r1n07")));
    assert!(!alice.may(Role::Operator, &node("r1n41"), &labels("r1n41")), "it is not in the host list");
    assert!(alice.may_act_for("db-7", &node("r1n07"), &labels("r1n07")));
}

#[test]
fn limits_are_as_the_example_shows_them() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/picket.example.toml");
    let text = fs::read_to_string(path).unwrap();
    let Limits {
        calls,
        calls_each,
        streams,
        streams_each,
        connections,
        connections_each,
        callers,
        rate,
        burst,
        logins,
        agents,
    } = Limits::default();
    for (key, number) in [
        ("calls", calls),
        ("calls_each", calls_each),
        ("streams", streams),
        ("streams_each", streams_each),
        ("connections", connections),
        ("connections_each", connections_each),
        ("callers", callers),
        ("rate", rate),
        ("burst", burst),
        ("logins", logins),
        ("agents", agents),
    ] {
        assert!(
            text.contains(&format!("# {key} = {number} ")) || text.contains(&format!("# {key} = {number}\n")),
            "{key}"
        );
    }
}

#[test]
fn an_audit_is_kept_beside_its_store() {
    let audit = |text: &str| Home::with(&format!("{GOOD}\n{text}")).load().unwrap().audit;
    let usual = audit("[store]\npath = \"/srv/a.redb\"");
    assert_eq!(usual.path.as_deref(), Some(Path::new("/srv/a.audit")));
    assert_eq!((usual.rotate, usual.keep, usual.fsync), (64 << 20, Duration::from_secs(90 * 86_400), true));
    assert_eq!(usual.most, 4 << 30);
    assert_eq!(audit("[store]\nkind = \"memory\"").path, None);
    let own = audit(
        "[store]\nkind = \"memory\"\n[audit]\npath = \"/srv/b\"\nrotate = \"1MiB\"\nkeep = \"1d\"\nfsync = false",
    );
    assert_eq!(own.path.as_deref(), Some(Path::new("/srv/b")));
    assert_eq!((own.rotate, own.keep, own.fsync), (1 << 20, Duration::from_secs(86_400), false));
    let bad =
        "[audit]\npath = \"b\"\nrotate = \"1KiB\"\nkeep = \"1h\"\nmost = \"200MiB\"\nfsync = 1\nsize = 1";
    let faults = Home::with(&format!("{GOOD}\n{bad}")).faults(&[]).join("\n");
    for wrong in [
        "audit.path: expected an absolute path",
        "audit.rotate: expected 64KiB to 4GiB",
        "audit.most: expected four times `rotate` at least",
        "audit.keep: expected 1d to 36500d",
        "audit.fsync: expected true or false",
        "audit.size: unknown key",
    ] {
        assert!(faults.contains(wrong), "no {wrong:?} in\n{faults}");
    }
    assert_eq!(faults.lines().count(), 6, "{faults}");
}

#[test]
fn what_comes_later_wins_and_faults_name_where_it_stands() {
    let home = Home::with(GOOD);
    home.file("conf.d/10-rack.toml", "[templates.r1.devices.bmc]\nport = 6230\nusername = \"x\"\n")
        .file(
            "conf.d/20-user.toml",
            "[templates.r1.devices.bmc]\nusername = \"ops\"\n[rules]\ndwell = \"2s\"\n",
        )
        .file("conf.d/ignored.txt", "no TOML")
        .file("conf.d/.hidden.toml", "no TOML");
    let settings = home.load_with(&[
        ("PICKET__RULES__READINGS", "3"),
        ("PICKET__LOG__FORMAT", "json"),
        ("PICKET__TEMPLATES__R1__DEVICES__BMC__PORT", "6231"),
        ("PICKET__TEMPLATES__R1__RELEASES", "detach"),
        ("PICKET_TOKEN", "of the command"),
    ]);
    let settings = settings.unwrap();
    let bmc = &settings.nodes[&node("r1n08")].devices[&device("bmc")];
    assert_eq!((&bmc.settings["port"], &bmc.settings["username"]), (&6231.into(), &"ops".into()));
    assert_eq!((settings.rules.readings, settings.rules.dwell), (3, Duration::from_secs(2)));
    assert_eq!((bmc.readings, bmc.dwell), (3, Duration::from_secs(2)));
    assert_eq!((settings.log.format, settings.log.level), (LogFormat::Json, LogLevel::Info));

    home.file(
        "conf.d/30-bad.toml",
        "\n[rules]\ndwel = \"2s\"\n[templates.r1.devices.bmc]\ndwell = \"1ms\"\n",
    );
    says(
        &home.faults(&[("PICKET__RULES__READINGS", "1"), ("PICKET__GATWAY__NAME", "x")]),
        &[
            "PICKET__GATWAY__NAME: gatway ~ did you mean \"gateway\"?",
            "PICKET__RULES__READINGS: rules.readings ~ at least 2",
            "conf.d/30-bad.toml:3: rules.dwel: unknown key ~ did you mean \"dwell\"?",
            "conf.d/30-bad.toml:5: templates.r1.devices.bmc.dwell ~ out of range",
        ],
    );
    // A driver's fault is told where the key stands that it is about.
    let fault = |key: &str| bmc.fault(key, "x").place;
    assert!(fault("username").file.ends_with("20-user.toml") && fault("username").line == Some(2));
    assert_eq!(fault("host").key, "templates.r1.devices.bmc.host");
    assert_eq!(
        (fault("gone").key.as_str(), fault("").key.as_str()),
        ("templates.r1.devices.bmc.gone", "templates.r1.devices.bmc")
    );
    assert_eq!(fault("port").file, "PICKET__TEMPLATES__R1__DEVICES__BMC__PORT");
}

#[test]
fn a_node_goes_over_its_template() {
    let home = Home::with(&format!(
        r#"{GOOD}
[templates.r1.labels]
rack = "r1"
[nodes.n1]
template = "r1"
levels = [["bmc"], ["pdu-a", "pdu-b"]]
releases = []
identity = {{ uuid = "8d3f2f1e-64a1-4c2e-9d43-0f5a0a2b6c41" }}
labels = {{ role = "db" }}
[nodes.n1.devices]
bmc = {{ host = "10.9.0.1", dwell = "5s", trust_after_restart = true }}
pdu-a = {{ driver = "agent", outlet = 3, verified = true }}
pdu-b = {{ driver = "agent", outlet = "{{index}}", identity = {{ serial = "P2" }} }}
[nodes.n2]
template = "r1"
levels = [["other"]]
devices.other = {{ driver = "sim", machine = "{{node}}" }}
"#
    ));
    let settings = home.load().unwrap_or_else(|faults| panic!("{faults}"));
    let n1 = &settings.nodes[&node("n1")];
    assert_eq!((n1.levels.len(), n1.releases.len(), n1.labels.len()), (2, 0, 2));
    let nature = |class| Nature {
        class,
        grade: Grade::Observed,
        has_epochs: true,
        max_in_flight: MaxInFlight { off: None, on: None },
        call: Duration::from_secs(7),
    };
    let bmc = n1.devices[&device("bmc")].spec(nature(DeviceClass::Host));
    assert_eq!(n1.devices[&device("bmc")].settings["host"], "10.9.0.1");
    assert_eq!(n1.devices[&device("bmc")].settings["username"], "picket");
    assert_eq!((bmc.dwell, bmc.call), (Duration::from_secs(5), Duration::from_secs(7)));
    assert_eq!(bmc.trust_after_restart, Some(Duration::from_secs(60)));
    assert_eq!(bmc.identity.uuid.as_deref(), Some("8d3f2f1e64a14c2e9d430f5a0a2b6c41"));
    // A cloud is asked less often, where nobody says how often.
    let cloud = |id: &str| {
        let nature = Nature { grade: Grade::Hypervisor, ..nature(DeviceClass::Host) };
        let node = if id == "other" { "n2" } else { "n1" };
        settings.nodes[&self::node(node)].devices[&device(id)].spec(nature).dwell
    };
    assert_eq!((cloud("bmc"), cloud("other")), (Duration::from_secs(5), Duration::from_secs(2)));
    let a = n1.devices[&device("pdu-a")].spec(nature(DeviceClass::Supply));
    assert!(a.verified && a.identity.is_empty(), "an outlet does not know in which machine it ends");
    let b = n1.devices[&device("pdu-b")].spec(nature(DeviceClass::Supply));
    assert_eq!(b.identity.serial.as_deref(), Some("P2"));
    assert_eq!(n1.devices[&device("pdu-b")].settings["outlet"], "1");
    assert_eq!(settings.nodes[&node("n2")].devices.len(), 1, "the template's BMC is not named by its levels");
}

#[test]
fn a_thousand_nodes_take_ten_lines_and_little_time() {
    let settings = Home::with(&GOOD.replace("r1n[07-08]", "r[1-25]n[01-40]")).load().unwrap();
    assert_eq!(settings.nodes.len(), 1_000);
}

#[test]
fn the_sources_of_a_daemon_are_its_file_and_conf_d_beside_it() {
    let sources = Sources::at(Path::new("/etc/picket/picket.toml"));
    assert_eq!(sources.directory, Path::new("/etc/picket/conf.d"));
    assert!(sources.environment.keys().all(|name| name.starts_with("PICKET__")));
}

#[test]
fn each_label_is_a_group_and_the_settings_name_more() {
    let home = Home::with(
        &format!(
            r#"{GOOD}
[nodes."r1n[41-42]"]
template = "r1"
labels = {{ rack = "r1", role = "db" }}
[nodes."r2n[1-2]"]
template = "r1"
labels = {{ rack = "r2", role = "db" }}
[groups.first]
hosts = "r1n[07,41],r2n1"
[groups.both]
hosts = "r1n[07,41],r2n1"
labels = {{ role = "db" }}
[groups."rack=*"]
"#
        )
        .replace("10.1.0.{number}", "{node}"),
    );
    let groups = home.load().unwrap().groups;
    let members = |name: &str| -> Vec<String> {
        groups.members().members(name).into_iter().flatten().map(ToString::to_string).collect()
    };
    assert_eq!(members("rack=r1"), ["r1n41", "r1n42"]);
    assert_eq!(members("role=db"), ["r1n41", "r1n42", "r2n1", "r2n2"]);
    assert_eq!(members("first"), ["r1n07", "r1n41", "r2n1"]);
    assert_eq!(members("both"), ["r1n41", "r2n1"]);
    assert_eq!(groups.settings().keys().collect::<Vec<_>>(), ["both", "first", "rack=r1", "rack=r2"]);
}

#[test]
fn a_liveness_source_of_a_label_is_that_of_each_of_its_values_unless_one_has_its_own() {
    let source = |program: &str| format!("liveness = {{ kind = \"command\", program = {program:?} }}");
    let home = Home::with(
        &format!(
            r#"{GOOD}
[nodes.a]
template = "r1"
labels = {{ rack = "r1" }}
[nodes.b]
template = "r1"
labels = {{ rack = "r2" }}
[groups."rack=*"]
{}
[groups."rack=r2"]
{}
"#,
            source("/bin/true"),
            source("/bin/false")
        )
        .replace("10.1.0.{number}", "{node}"),
    );
    let groups = home.load().unwrap().groups;
    let program = |name: &str| {
        let source = groups.settings()[name].rules.liveness.clone().unwrap();
        assert_eq!(source.kind, "command");
        source.settings["program"].clone()
    };
    assert_eq!((program("rack=r1"), program("rack=r2")), ("/bin/true".into(), "/bin/false".into()));
}

#[test]
fn the_budget_of_one_rack_takes_the_place_of_that_of_each() {
    let home = Home::with(
        &format!(
            r#"{GOOD}
[nodes."r1n[41-42]"]
template = "r1"
labels = {{ rack = "r1" }}
[nodes."r2n[1-2]"]
template = "r1"
labels = {{ rack = "r2" }}
[budget]
at_once = 3
at_once_percent = 20
per_window = 5
window = "1h"
cool_down = "0s"
[groups."rack=*".budget]
at_once = 1
[groups."rack=r2".budget]
min_not_fenced = 1
"#
        )
        .replace("10.1.0.{number}", "{node}"),
    );
    let budget = home.load().unwrap().budget;
    let hour = std::time::Duration::from_secs(3_600);
    assert_eq!((budget.fleet.at_once, budget.fleet.per_window), (Some(3), Some((5, hour))));
    assert_eq!(budget.fleet.most_at_once(6), Some(1), "the lesser of both");
    assert!(budget.cool_down.is_zero() && budget.queue_expires == hour / 6 && budget.brake_percent == 50);
    assert_eq!(budget.groups["rack=r1"].at_once, Some(1));
    assert_eq!((budget.groups["rack=r2"].at_once, budget.groups["rack=r2"].min_not_fenced), (None, Some(1)));
}

#[test]
fn the_receipts_key_stands_beside_its_store_and_they_live_long_enough() {
    let read = |text: &str| Home::with(&format!("{GOOD}\n{text}")).load().unwrap();
    let usual = read("[store]\npath = \"/srv/a.redb\"");
    assert_eq!(usual.receipts.key_file.as_deref(), Some(Path::new("/srv/a.receipt.pem")));
    assert_eq!((usual.rules.receipt_life.as_secs(), usual.rules.receipt_margin.as_secs()), (60, 5));
    assert_eq!(read("[store]\nkind = \"memory\"").receipts.key_file, None);
    let own = read("[store]\nkind = \"memory\"\n[receipts]\nkey_file = \"/srv/key.pem\"");
    assert_eq!(own.receipts.key_file.as_deref(), Some(Path::new("/srv/key.pem")));
    let bad = "[receipts]\nkey_file = \"key.pem\"\nlife = \"60s\"\n[rules]\nreceipt_life = \"9s\"\nreceipt_margin = \"500ms\"";
    let faults = Home::with(&format!("{GOOD}\n{bad}")).faults(&[]).join("\n");
    for wrong in [
        "receipts.key_file: expected an absolute path",
        "receipts.life: unknown key",
        "rules.receipt_life: 9s is out of range: 10s to 1h",
        "rules.receipt_margin: 500ms is out of range: 1s to 10m",
    ] {
        assert!(faults.contains(wrong), "no {wrong:?} in\n{faults}");
    }
}
