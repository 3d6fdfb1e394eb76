//! Who may what.

use super::*;

fn node(name: &str) -> NodeId {
    NodeId::new(name).expect("a good name")
}

fn labels(rack: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("rack".to_owned(), rack.to_owned())])
}

fn grant(role: Role, caller: &str) -> Grant {
    let callers = vec![Pattern::new(caller).expect("a good pattern")];
    let name = format!("{role} {caller}");
    Grant { name, role, callers, uids: vec![], gids: vec![], nodes: Scope::default(), holders: vec![] }
}

fn certified(name: &str) -> Person {
    Person { name: name.to_owned(), proof: Proof::Certificate }
}

fn process(uid: u32, gids: &[u32]) -> Person {
    Person { name: format!("uid:{uid}"), proof: Proof::Kernel { uid, gids: gids.into(), shown: None } }
}

#[test]
fn what_is_granted_to_nobody_is_refused() {
    let roles = Roles::new(vec![grant(Role::Viewer, "v")]);
    for person in [certified("x"), process(0, &[0]), certified("")] {
        let caller = roles.of(person);
        assert!(Role::WORDS.iter().all(|(_, role)| !caller.has(*role)), "{caller:?}");
    }
    let viewer = roles.of(certified("v"));
    assert!(viewer.may(Role::Viewer, &node("n1"), &labels("r1")) && !viewer.has(Role::Controller));
}

#[test]
fn a_group_is_by_label_and_by_list_and_both_must_fit() {
    let list = ("n[1-2]".to_owned(), BTreeSet::from([node("n1"), node("n2")]));
    let both = Scope { labels: labels("r1"), hosts: Some(list) };
    let caller = Roles::new(vec![Grant { nodes: both, ..grant(Role::Controller, "c") }]).of(certified("c"));
    let may = |name: &str, rack: &str| caller.may(Role::Controller, &node(name), &labels(rack));
    assert!(may("n1", "r1") && !may("n1", "r2") && !may("n3", "r1"));
    assert!(!caller.may(Role::Controller, &node("n1"), &BTreeMap::new()));
    assert!(!caller.has_everywhere(Role::Viewer));
    assert_eq!(caller.groups(Role::Viewer), ["rack=r1 and n[1-2]"]);
}

/// A login name is for people: a stranger's may be any word, also one that the settings grant something to.
#[test]
fn nothing_is_granted_by_how_somebody_is_shown() {
    let roles = Roles::new(vec![grant(Role::Admin, "alice"), grant(Role::Viewer, "uid:0")]);
    let proof = Proof::Kernel { uid: 0, gids: [0].into(), shown: Some("alice".into()) };
    let person = Person { name: "uid:0".to_owned(), proof };
    assert_eq!(person.shown(), Some("alice"));
    assert!(person.is_same(&process(0, &[0])) && !person.is_same(&process(0, &[0, 1])));
    let caller = roles.of(person);
    assert_eq!((caller.roles(), caller.name.as_str()), (vec!["viewer"], "uid:0"));
    assert!(!caller.may_act_for("alice", &node("n1"), &labels("r1")));
}

/// What the version before stored has no name for people, and what has none is stored as that version did.
#[test]
fn a_person_that_was_stored_before_names_were_shown_is_read() {
    let before = r#"{"name":"uid:7","proof":{"kernel":{"uid":7,"gids":[7,70]}}}"#;
    let read: Person = serde_json::from_str(before).expect("a person");
    assert_eq!(read, process(7, &[7, 70]));
    assert_eq!(serde_json::to_string(&read).expect("JSON"), before);
}

#[test]
fn processes_are_known_by_user_and_group_and_a_certificate_never_is() {
    let by_number = Grant { callers: vec![], uids: vec![7], gids: vec![70], ..grant(Role::Operator, "x") };
    let roles = Roles::new(vec![by_number, grant(Role::Viewer, "uid:9")]);
    assert!(roles.of(process(7, &[1])).has(Role::Operator));
    assert!(roles.of(process(8, &[1, 70])).has(Role::Operator));
    assert!(roles.of(process(9, &[1])).has(Role::Viewer));
    assert!(!roles.of(process(8, &[1, 7])).has(Role::Viewer));
    assert!(!roles.of(certified("7")).has(Role::Viewer));
}

#[test]
fn a_holder_is_oneself_or_listed_and_any_to_an_admin() {
    let listed = vec![Pattern::new("db-*").expect("a good pattern")];
    let nodes = Scope { labels: labels("r1"), hosts: None };
    let roles = Roles::new(vec![
        Grant { holders: listed, nodes, ..grant(Role::Controller, "c") },
        grant(Role::Operator, "c"),
        grant(Role::Admin, "a"),
    ]);
    let caller = roles.of(certified("c"));
    let may = |holder: &str, rack: &str| caller.may_act_for(holder, &node("n1"), &labels(rack));
    assert!(may("c", "r2") && may("db-1", "r1"));
    assert!(!may("db-1", "r2"), "that list is of another group's role");
    assert!(!may("x", "r1"));
    assert!(roles.of(certified("a")).may_act_for("x", &node("n1"), &labels("r1")));
}

#[test]
fn without_roles_this_machine_is_admin_and_nobody_attests() {
    let roles = Roles::of_this_machine();
    let address = Person { name: "tcp:127.0.0.1".to_owned(), proof: Proof::Address };
    for person in [process(1000, &[1000]), address] {
        let caller = roles.of(person);
        assert!(caller.has_everywhere(Role::Admin) && !caller.has(Role::Attest), "{caller:?}");
    }
    assert!(!roles.of(certified("anybody")).has(Role::Viewer));
}

#[test]
fn an_address_vouches_for_nothing() {
    let roles = Roles::new(vec![grant(Role::Attest, "tcp:127.0.0.1"), grant(Role::Viewer, "tcp:*")]);
    let caller = roles.of(Person { name: "tcp:127.0.0.1".to_owned(), proof: Proof::Address });
    assert_eq!(caller.roles(), ["viewer"]);
}

#[test]
fn a_process_that_reaches_the_loopback_counts_as_one_caller() {
    for name in ["tcp:127.0.0.1", "tcp:127.9.9.9", "tcp:::1", "tcp:::ffff:127.0.0.2"] {
        assert_eq!(counts_as(name), LOOPBACK, "{name}");
    }
    for name in ["tcp:192.0.2.7", "uid:1000", "spiffe://lab/ns/db", "127.0.0.1"] {
        assert_eq!(counts_as(name), name);
    }
}
