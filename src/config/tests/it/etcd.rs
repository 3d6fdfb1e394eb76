//! A store in etcd, and its election.

use std::path::Path;
use std::time::Duration;

use crate::common::*;
use picket_config::{EtcdSettings, EtcdTls, EtcdUser, SecretSource, StoreSettings};

const SECURE: &str = r#"
[store]
kind = "etcd"
endpoints = ["https://etcd1:2379"]
ca_file = "/etc/picket/etcd-ca.pem"
cert_file = "/etc/picket/etcd.pem"
key_file = "/etc/picket/etcd.key"
"#;

fn etcd(text: &str) -> EtcdSettings {
    let settings = Home::with(&format!("{GOOD}\n{text}")).load().unwrap_or_else(|faults| panic!("{faults}"));
    match settings.store {
        StoreSettings::Etcd(etcd) => *etcd,
        other => panic!("{other:?}"),
    }
}

/// The faults, without their places' lines.
fn faults(text: &str) -> Vec<String> {
    let told = Home::with(&format!("{GOOD}\n{text}")).faults(&[]);
    let lines = GOOD.lines().count() + 1;
    told.into_iter()
        .map(|fault| {
            let (line, rest) = fault.strip_prefix("picket.toml:").unwrap().split_once(": ").unwrap();
            format!("{}: {rest}", line.parse::<usize>().unwrap() - lines)
        })
        .collect()
}

#[test]
fn few_lines_are_enough() {
    let usual = etcd(SECURE);
    let path = |name: &str| Path::new("/etc/picket").join(name);
    assert_eq!(
        usual,
        EtcdSettings {
            endpoints: vec!["https://etcd1:2379".to_owned()],
            tls: EtcdTls { ca: Some(path("etcd-ca.pem")), own: Some((path("etcd.pem"), path("etcd.key"))) },
            user: None,
            prefix: "/picket/".to_owned(),
            members: Default::default(),
            request: Duration::from_secs(2),
            dial: Duration::from_secs(1),
            allow_lease_bug: false,
        }
    );
    let settings = Home::with(&format!("{GOOD}\n{SECURE}")).load().unwrap();
    assert_eq!((settings.election.lease.as_secs(), settings.election.take_over_settings), (5, false));
    assert_eq!(settings.audit.path.as_deref(), Some(Path::new("/var/lib/picket/picket.audit")));
    assert_eq!(
        settings.receipts.key_file.as_deref(),
        Some(Path::new("/var/lib/picket/picket.receipt.pem")),
        "beside where an embedded store would be"
    );
}

#[test]
fn members_stand_on_nodes_or_elsewhere() {
    let with = |members: &str| format!("{SECURE}\n[store.members]\n{members}");
    let good = with("e1 = \"r1n07\"\ne2 = \"\"\n");
    let members = etcd(&good).members;
    assert_eq!(members["e1"].as_ref().map(ToString::to_string), Some("r1n07".to_owned()));
    assert_eq!(members["e2"], None);
    let settings = Home::with(&format!("{GOOD}\n{good}")).load().unwrap();
    assert_eq!((&settings.budget.quorum.members, settings.budget.quorum.needed()), (&members, 2));
    let told = faults(&with("e1 = \"r1n99\"\ne2 = 7\n"));
    assert!(told.iter().any(|fault| fault.contains("e1: there is no node r1n99")), "{told:?}");
    assert!(
        told.iter().any(|fault| fault.contains("expected the name of the node that carries it")),
        "{told:?}"
    );
}

#[test]
fn an_account_has_one_password_somewhere_else() {
    let with = |source: &str| {
        let text = format!(
            "[store]\nkind = \"etcd\"\nendpoints = [\"http://[::1]:2379/\"]\nuser = \"picket\"\n{source}"
        );
        etcd(&text).user.unwrap()
    };
    let of = |password| EtcdUser { name: "picket".to_owned(), password };
    assert_eq!(with("password_file = \"/run/p\""), of(SecretSource::File("/run/p".into())));
    assert_eq!(with("password_env = \"P\""), of(SecretSource::Variable("P".to_owned())));
    assert_eq!(with("password_credential = \"p\""), of(SecretSource::Credential("p".to_owned())));
}

#[test]
fn what_is_not_safe_wants_to_be_asked_for() {
    let open = "[store]\nkind = \"etcd\"\nendpoints = [\"http://etcd1:2379\"]\nallow_plaintext = true\nallow_anonymous = true";
    assert_eq!(etcd(open).endpoints, ["http://etcd1:2379"]);
    let loopback = "[store]\nkind = \"etcd\"\nendpoints = [\"http://127.0.0.1:2379\", \"http://localhost:2380\"]\nallow_anonymous = true";
    assert_eq!(etcd(loopback).endpoints.len(), 2);
    says(
        &faults("[store]\nkind = \"etcd\"\nendpoints = [\"http://etcd1:2379\"]"),
        &["3: store.endpoints ~ allow_plaintext = true", "1: store.user ~ allow_anonymous = true"],
    );
    says(
        &faults(
            "[store]\nkind = \"etcd\"\nendpoints = [\"http://etcd1:2379\"]\nallow_plaintext = true\nuser = \"p\"\npassword_file = \"/p\"",
        ),
        &["3: store.endpoints ~ a password would go over the network in the clear"],
    );
}

#[test]
fn all_faults_are_told_at_once() {
    let told = faults(
        r#"[store]
kind = "etcd"
path = "/var/lib/picket/picket.redb"
endpoints = ["https://etcd1:2379", "https://etcd1:2379/", "etcd2:2379", "https://etcd3", "https://a b:1", "ftp://etcd4:2379", "http://127.0.0.1:0"]
cert_file = "etcd.pem"
password_file = "/p"
password_env = "P"
prefix = "picket"
request = "1ms"
dial = "1h"
[election]
lease = "2500ms"
advertise = ["g1:7070", "https://g1:7070"]
take_over = true
"#,
    );
    says(
        &told,
        &[
            "3: store.path ~ has no path, but a prefix",
            "4: store.endpoints ~ https://etcd1:2379 stands here twice",
            "4: store.endpoints ~ found \"etcd2:2379\"",
            "4: store.endpoints ~ found \"https://etcd3\"",
            "4: store.endpoints ~ found \"https://a b:1\"",
            "4: store.endpoints ~ found \"ftp://etcd4:2379\"",
            "4: store.endpoints ~ found \"http://127.0.0.1:0\"",
            "1: store.ca_file ~ is missing",
            "5: store.cert_file ~ expected an absolute path",
            "1: store.key_file ~ is missing",
            "6: store.password_file ~ is a password of nobody",
            "7: store.password_env ~ a password has one source",
            "1: store.user ~ is missing",
            "8: store.prefix ~ the last a '/'",
            "9: store.request ~ expected 200ms to 30s",
            "10: store.dial ~ expected 100ms to 30s",
            "12: election.lease ~ expected whole seconds, 3s to 1m",
            "13: election.advertise ~ found \"g1:7070\"",
            "14: election.take_over: unknown key ~ take_over_settings",
        ],
    );
}

#[test]
fn an_election_is_of_a_shared_store_alone() {
    says(&faults("[election]\nlease = \"5s\""), &["1: election ~ set kind = \"etcd\" in [store]"]);
    says(
        &faults("[store]\nendpoints = [\"https://etcd1:2379\"]"),
        &["2: store.endpoints: unknown key ~ Known here"],
    );
}

#[test]
fn the_example_s_etcd_holds() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/picket.example.toml");
    let text = std::fs::read_to_string(path).unwrap();
    let block = |header: &str| -> String {
        let lines = text.lines().skip_while(|line| *line != header);
        lines
            .take_while(|line| !line.is_empty())
            .map(|line| line.strip_prefix('#').unwrap().to_owned() + "\n")
            .collect()
    };
    let (store, election) = (block("#[store]"), block("#[election]"));
    let shown = etcd(&format!("{store}{election}"));
    assert_eq!(shown.endpoints.len(), 3);
    assert_eq!(
        EtcdSettings {
            endpoints: vec!["https://etcd1:2379".to_owned()],
            members: Default::default(),
            ..shown
        },
        etcd(SECURE),
        "its defaults"
    );
}
