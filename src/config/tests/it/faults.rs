//! What is said of settings that are wrong: all of it at once, where, and what would be right.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use crate::common::*;
use proptest::prelude::*;
use proptest::test_runner::{FailurePersistence, FileFailurePersistence};

#[test]
fn all_faults_of_the_gateway_are_told_at_once() {
    let home = Home::with(&format!(
        r#"{GOOD}
[gateway]
node = "r1n09"
colour = "red"
[listen]
unix = "picket.sock"
tcp = "0.0.0.0:7070"
[store]
kind = "embeded"
path = "picket.redb"
[log]
format = "yaml"
level = 3
[rules]
readings = 1
dwell = "100ms"
watch = 10
[tls]
cert = "x"
"#
    ));
    says(
        &home.faults(&[]),
        &[
            "picket.toml:17: gateway.node ~ there is no node r1n09 in these settings; did you mean \"r1n07\" or \"r1n08\"?",
            "picket.toml:18: gateway.colour: unknown key ~ Known here: check_at_start, kubernetes_node, name, node, simulated",
            "picket.toml:20: listen.unix ~ expected an absolute path",
            "picket.toml:21: listen.tcp ~ without TLS only the loopback is served: use \"127.0.0.1:7070\"",
            "picket.toml:23: store.kind ~ expected embedded or memory or etcd, found \"embeded\"; did you mean \"embedded\"?",
            "picket.toml:24: store.path ~ expected an absolute path",
            "picket.toml:26: log.format ~ expected text or json",
            "picket.toml:27: log.level ~ expected a text that is not empty, found a whole number",
            "picket.toml:29: rules.readings ~ 1 reading proves nothing: at least 2",
            "picket.toml:30: rules.dwell ~ out of range",
            "picket.toml:31: rules.watch ~ expected a whole number with its unit",
            "picket.toml:32: tls: unknown key ~ Known here",
        ],
    );
}

#[test]
fn all_faults_of_the_fleet_are_told_at_once() {
    let home = Home::with(
        r#"
[templates.r1]
levels = [["bmc"], [], ["bcm", "bmc"]]
releases = ["detatch", "detach", "detach"]
relases = []
[templates.r1.devices.bmc]
driver = "ipmi"
readings = 1
call = "1ms"
trust_after_restart = "5s"
host = "{nod}"
identity = { uuid = "00000000-0000-0000-0000-000000000000", name = "x" }
[templates.r1.devices."b m c"]
driver = "ipmi"
[templates.r1.devices.pdu]
outlet = 3
[nodes."r1n[01-03]"]
template = "r1"
[nodes."r1n[03-04"]
template = "r1"
[nodes.r1n02]
template = "r2"
[nodes.r1n05]
[nodes.r1n06.devices.a]
driver = "ipmi"
[nodes.r1n06.devices.b]
driver = "ipmi"
[releases.detach]
url = "https://storage.example"
"#,
    );
    says(
        &home.faults(&[]),
        &[
            "picket.toml:3: templates.r1.levels ~ level 2 has no device: no device proves nothing",
            "picket.toml:3: templates.r1.levels ~ level 3 names the device \"bcm\", which is not defined; did you mean \"bmc\"?",
            "picket.toml:3: templates.r1.levels ~ the device \"bmc\" stands in the levels twice",
            "picket.toml:4: templates.r1.releases ~ there is no release \"detatch\": define it as [releases.detatch]; did you mean \"detach\"?",
            "picket.toml:4: templates.r1.releases ~ the release \"detach\" stands here twice",
            "picket.toml:5: templates.r1.relases: unknown key ~ did you mean \"releases\"?",
            "picket.toml:8: templates.r1.devices.bmc.readings ~ at least 2",
            "picket.toml:9: templates.r1.devices.bmc.call ~ out of range",
            "picket.toml:10: templates.r1.devices.bmc.trust_after_restart ~ out of range",
            "picket.toml:11: templates.r1.devices.bmc.host ~ {nod} stands for nothing: there are {node}, {number}, {index} and {provider_id}",
            "picket.toml:12: templates.r1.devices.bmc.identity.uuid ~ a UUID of this machine's own",
            "picket.toml:12: templates.r1.devices.bmc.identity.name: unknown key ~ Known here: serial, uuid",
            "picket.toml:13: templates.r1.devices.\"b m c\" ~ is not valid",
            "picket.toml:15: templates.r1.devices.pdu ~ stands in no level",
            "picket.toml:15: templates.r1.devices.pdu.driver ~ is missing",
            "picket.toml:19: nodes.\"r1n[03-04\" ~ host list, column 10: the bracket opened in column 4 is not closed",
            "picket.toml:22: nodes.r1n02.template ~ there is no template \"r2\": define it as [templates.r2]; did you mean \"r1\"?",
            "picket.toml:23: nodes.r1n05 ~ has no device: no device proves nothing",
            "picket.toml:24: nodes.r1n06.levels ~ it has several devices",
            "picket.toml:28: releases.detach.kind ~ is missing",
        ],
    );
}

#[test]
fn all_faults_of_the_groups_are_told_at_once() {
    let home = Home::with(&format!(
        r#"{GOOD}
[nodes.r1n41]
template = "r1"
labels = {{ rack = "r1", "a=b" = "x", role = "*" }}
[groups.empty]
[groups.none]
hosts = "r1n[07-08]"
labels = {{ rack = "r1" }}
[groups.far]
hosts = "r1n[08-09]"
labels = {{ rack = "r9" }}
[groups."rack=r2"]
[groups."rac=*"]
[groups."rack=r1"]
hosts = "r1n07"
colour = "red"
[groups."a b"]
hosts = "r1n07"
"#
    ));
    says(
        &home.faults(&[]),
        &[
            "picket.toml:18: nodes.r1n41.labels.\"a=b\" ~ a label's key has no =",
            "picket.toml:18: nodes.r1n41.labels.role ~ stands for every value of a label",
            "picket.toml:19: groups.empty ~ does not say which nodes are in it: name them by hosts",
            "picket.toml:20: groups.none ~ no node is in this group: none fits rack=r1 and r1n[07-08]",
            "picket.toml:24: groups.far.hosts ~ there is no node r1n09 in these settings; did you mean",
            "picket.toml:25: groups.far.labels.rack ~ no node has the label rack = \"r9\"; did you mean \"r1\"?",
            "picket.toml:26: groups.\"rack=r2\" ~ no node has the label rack = \"r2\"; did you mean \"rack=r1\"?",
            "picket.toml:27: groups.\"rac=*\" ~ no node has the label rac; did you mean \"rack\"?",
            "picket.toml:29: groups.\"rack=r1\".hosts ~ the label says which nodes are in this group",
            "picket.toml:30: groups.\"rack=r1\".colour: unknown key ~ ",
            "picket.toml:31: groups.\"a b\" ~ is no name of a group",
        ],
    );
}

#[test]
fn all_faults_of_the_budget_are_told_at_once() {
    let home = Home::with(&format!(
        r#"{GOOD}
[nodes.r1n41]
template = "r1"
labels = {{ rack = "r1" }}
[budget]
at_once = 0
at_once_percent = 101
per_window = 3
min_not_fenced = 3
cool_down = "31d"
brake_least = 0
brake_percnt = 50
queue_expires = "2d"
[groups."rack=*".budget]
window = "1h"
[groups."rack=r1".budget]
[groups.some.budget]
at_once = "2"
min_not_fenced = 2
[groups.some]
hosts = "r1n[07-08]"
"#
    ));
    says(
        &home.faults(&[]),
        &[
            "picket.toml:20: budget.at_once ~ 0 is out of range: 1 to 100000",
            "picket.toml:21: budget.at_once_percent ~ 101 is out of range: 1 to 100",
            "picket.toml:22: budget.per_window ~ within which time? Add window = \"1h\"",
            "picket.toml:23: budget.min_not_fenced ~ of 3 nodes 3 are to be left, so none of them could ever be fenced: at most 2",
            "picket.toml:24: budget.cool_down ~ 31d is out of range: 0s to 30d",
            "picket.toml:25: budget.brake_least ~ 0 is out of range",
            "picket.toml:26: budget.brake_percnt: unknown key; did you mean \"brake_percent\" ~ or \"brake_least\"?",
            "picket.toml:27: budget.queue_expires ~ 2d is out of range: 1s to 1d",
            "picket.toml:29: groups.\"rack=*\".budget.window ~ how many fences within it?",
            "picket.toml:28: groups.\"rack=*\".budget ~ sets no limit",
            "picket.toml:30: groups.\"rack=r1\".budget ~ sets no limit: give it at_once = 1",
            "picket.toml:32: groups.some.budget.at_once ~ expected a whole number, found a text",
            "picket.toml:34: groups.some.budget ~ min_not_fenced: some: of 2 nodes 2 are to be left",
        ],
    );
}

#[test]
fn a_node_that_is_set_up_twice_is_a_fault() {
    let home = Home::with(&format!("{GOOD}\n[nodes.r1n08]\ntemplate = \"r1\"\n"));
    says(&home.faults(&[]), &["picket.toml:16: nodes.r1n08 ~ the node r1n08 is set up twice, first at"]);
}

#[test]
fn two_nodes_with_one_identity_are_a_fault() {
    let uuid = "00112233-4455-6677-8899-aabbccddeeff";
    let home = Home::with(&format!(
        "{GOOD}\n[nodes.a]\ntemplate = \"r1\"\nidentity.uuid = \"{uuid}\"\n[nodes.b]\ntemplate = \"r1\"\nidentity.uuid = \"{uuid}\"\n\
         [nodes.\"c[1-2]\"]\ntemplate = \"r1\"\nidentity.serial = \"SN1\"\n"
    ).replace("10.1.0.{number}", "{node}"));
    let faults = home.faults(&[]);
    assert!(faults.iter().any(|fault| fault.contains("b: it has the same uuid as a")), "{faults:?}");
    assert!(faults.iter().any(|fault| fault.contains("2 nodes cannot have one identity")), "{faults:?}");
}

#[test]
fn secrets_do_not_stand_in_the_settings_and_are_not_repeated() {
    let home = Home::with(&GOOD.replace(
        "password_file = \"/etc/picket/bmc.password\"",
        "password = \"HIDDEN\"\nkg = \"HIDDEN\"\nnested = { api_token = \"HIDDEN\" }\nreadings = \"HIDDEN\"",
    ).replace("kind = \"webhook\"", "kind = \"webhook\"\ntoken = \"HIDDEN\""));
    let faults = home.faults(&[]);
    says(
        &faults,
        &[
            "picket.toml:9: templates.r1.devices.bmc.password ~ name that by password_file",
            "picket.toml:10: templates.r1.devices.bmc.kg ~ kg_file",
            "picket.toml:11: templates.r1.devices.bmc.nested.api_token ~ api_token_file",
            "picket.toml:12: templates.r1.devices.bmc.readings ~ expected a whole number, found a text",
            "picket.toml:17: releases.detach.token ~ token_file",
        ],
    );
    assert!(!faults.concat().contains("HIDDEN"));
}

#[test]
fn a_file_that_cannot_be_read_is_named_and_nothing_else_is_said() {
    let home = Home::with("[gateway\nname = 1\n[rules]\ndwell = \n");
    let faults = home.faults(&[]);
    assert!(faults[0].starts_with("picket.toml:1: is no TOML"), "{faults:?}");
    assert!(faults.iter().any(|fault| fault.starts_with("picket.toml:4: is no TOML")), "{faults:?}");

    let home = Home(tempfile::tempdir().unwrap());
    let faults = home.faults(&[]);
    assert!(
        faults.len() == 1 && faults[0].starts_with("picket.toml: cannot be read: No such file"),
        "{faults:?}"
    );

    let home = Home::with(GOOD);
    fs::set_permissions(home.0.path().join("picket.toml"), Permissions::from_mode(0o666)).unwrap();
    says(
        &home.faults(&[]),
        &["picket.toml: ~ everybody may change it (mode 666): run chmod o-w picket.toml"],
    );

    let home = Home::with("");
    fs::write(home.0.path().join("picket.toml"), b"name = \"\xff\"").unwrap();
    says(&home.faults(&[]), &["picket.toml: ~ is not UTF-8"]);
}

#[test]
fn a_directory_that_somebody_else_may_write_gives_no_settings() {
    let home = Home::with(GOOD);
    home.file("conf.d/admin.toml", "[roles.mine]\nrole = \"admin\"\nuids = [4711]\n");
    assert!(home.load().is_ok());
    let mode = |name: &str, mode| {
        fs::set_permissions(home.0.path().join(name), Permissions::from_mode(mode)).unwrap();
    };
    mode("conf.d", 0o777);
    let told = "everybody may change it (mode 777): run chmod o-w conf.d";
    says(&home.faults(&[]), &[&format!("conf.d: ~ {told}")]);
    // An empty one as well: the next file is read at the next reload.
    fs::remove_file(home.0.path().join("conf.d/admin.toml")).unwrap();
    says(&home.faults(&[]), &[&format!("conf.d: ~ {told}")]);
    mode("conf.d", 0o755);
    mode("", 0o777);
    let faults = home.faults(&[]);
    let found = faults.iter().all(|fault| fault.contains("(mode 777), which leads to it: run chmod o-w "));
    assert!(
        found && faults.len() == 2 && faults[1].starts_with("picket.toml: everybody may change "),
        "{faults:?}"
    );
    mode("", 0o700);
    assert!(home.load().is_ok());
}

#[test]
fn without_nodes_nothing_could_be_fenced() {
    says(&Home::with("").faults(&[]), &["picket.toml: nodes ~ there is no node, so nothing could be fenced"]);
    let wrong = Home::with(
        "nodes = 3\nrules = []\nreleases = \"x\"\n[templates]\nr1 = true\n[templates.r2]\nlevels = [\"bmc\"]\n",
    );
    let faults = wrong.faults(&[]);
    for want in [
        "nodes: expected a table, found a whole number",
        "rules: expected a table, found a list",
        "releases: expected a table",
        "templates.r1: expected a table",
        "templates.r2.levels: expected a list of lists of texts",
    ] {
        assert!(faults.iter().any(|fault| fault.contains(want)), "{want} in {faults:?}");
    }
}

#[test]
fn of_a_groups_liveness_source_it_is_told_what_is_missing_and_that_a_node_has_one() {
    let wrong = Home::with(&format!(
        r#"{GOOD}
[groups.one]
hosts = "r1n07"
liveness = {{ url = "https://n1.example/" }}
[groups.both]
hosts = "r1n[07-08]"
liveness = {{ kind = "command", password = "hunter2", program = "/bin/true" }}
"#
    ));
    let faults = wrong.faults(&[]);
    for want in [
        "groups.one.liveness.kind: is missing: the kind of liveness source, for example \"command\"",
        "r1n07 is in one and in both, whose liveness source is at",
        "groups.both.liveness.password",
    ] {
        assert!(faults.iter().any(|fault| fault.contains(want)), "{want} in {faults:#?}");
    }
    assert!(!faults.iter().any(|fault| fault.contains("hunter2")), "{faults:#?}");
}

fn beside_this_file() -> Option<Box<dyn FailurePersistence>> {
    Some(Box::new(FileFailurePersistence::WithSource("regressions")))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: beside_this_file(), ..ProptestConfig::with_cases(128) })]
    /// Settings with any line put in anywhere load, or are refused with a place.
    #[test]
    fn no_text_breaks_it(at in 0..15_usize, line in "\\PC{0,30}|[a-z]{1,9} = (\"[a-z{}]{0,5}\"|[0-9]{1,3}|\\[\\]|\\{\\}|true)|\\[[a-z.\"]{1,12}\\]") {
        let mut lines: Vec<&str> = GOOD.lines().collect();
        lines.insert(at, &line);
        let home = Home::with(&lines.join("\n"));
        if let Err(faults) = home.load() {
            prop_assert!(!faults.is_empty());
            for fault in faults.all() {
                prop_assert!(fault.place.file.ends_with("picket.toml") && !fault.message.is_empty(), "{}", fault);
            }
        }
    }
}

#[test]
fn one_template_serves_a_whole_cluster_by_provider_ids() {
    let home = |nodes: &str| {
        Home::with(&format!(
            "{GOOD}\n[templates.cloud.devices.vm]\ndriver = \"sim\"\nmachine = \"{{provider_id}}\"\n{nodes}"
        ))
    };
    let settings = home(
        "[nodes.w1]\ntemplate = \"cloud\"\nprovider_id = \"openstack:///1f\"\n\
         [nodes.w2]\ntemplate = \"cloud\"\nprovider_id = \"openstack:///2f\"\n",
    )
    .load()
    .unwrap();
    for (name, id) in [("w1", "openstack:///1f"), ("w2", "openstack:///2f")] {
        let node = &settings.nodes[&node(name)];
        assert_eq!(node.provider_id.as_deref(), Some(id));
        assert_eq!(node.devices[&device("vm")].settings["machine"], id);
    }
    says(
        &home(
            "[nodes.w1]\ntemplate = \"cloud\"\nprovider_id = \"openstack:///1f\"\n\
             [nodes.w2]\ntemplate = \"cloud\"\nprovider_id = \"openstack:///1f\"\n\
             [nodes.w3]\ntemplate = \"cloud\"\n\
             [nodes.\"v[1-2]\"]\ntemplate = \"r1\"\nprovider_id = \"openstack:///3f\"\n\
             [nodes.w4]\ntemplate = \"r1\"\nprovider_id = \"i-1\"\n",
        )
        .faults(&[]),
        &[
            "picket.toml:18: templates.cloud.devices.vm.machine ~ {provider_id}: the table of the node w3 has no provider_id",
            "picket.toml:22: nodes.w2.provider_id ~ it has the same provider_id as w1",
            "picket.toml:29: nodes.\"v[1-2]\".provider_id ~ 2 nodes cannot have one provider id",
            "picket.toml:32: nodes.w4.provider_id ~ expected a node's spec.providerID",
        ],
    );
}
