//! The rows, and what each of them cannot show.

use std::collections::BTreeSet;

use picket_driver::conformance::{Subject, names, run};
use picket_driver_ipmi::crypto::Suite;
use serde_json::json;

use crate::conformance::bmc::{Pyghmi, Theirs};
use crate::conformance::ec2::Ec2Subject;
use crate::conformance::gce::GceSubject;
use crate::conformance::over_https::OverHttps;
use crate::conformance::over_udp::{By, OverUdp};
use crate::conformance::pdu::Outlet;
use crate::conformance::scene::Simulated;
use crate::conformance::sushy::{self, SushySubject};

/// One driver before one peer.
struct Row {
    driver: &'static str,
    peer: &'static str,
    /// What this peer cannot be made to do, or the driver does not have; in the order of the suite.
    left_out: &'static [&'static str],
    /// It knows the volumes of its machines.
    volumes: bool,
}

const ALREADY: &str = "already off as an error is no error";
const NEITHER: &str = "neither On nor Off is Unknown";
const RESTART: &str = "a restart begins an epoch after loss";
const SIGHT: &str = "after a restart no off is sent before a reading";
const LIFE: &str = "nothing is sent in another life than that in which it was identified";
const SILENT_END: &str = "a quiesce that is not answered is none";
const LATE_COPY: &str = "after a quiesce no late copy is executed";
const ON_ALONE: &str = "no session is opened for an on";
const FIRST_COPY: &str = "a question is as old as its first copy";
const DOUBLED: &str = "packets that arrive twice change nothing";
const SLOW_FALL: &str = "an off that takes time is not off before it is";
const LOST_ANSWER: &str = "an answer that is lost leaves the effect unknown";
const REFUSED: &str = "what is refused is not taken";
const REPEAT: &str = "a repeated off that is refused takes nothing back";
const SLOW: &str = "answers that come late are answers, and nothing is asked twice";
const CUT: &str = "an answer that is cut short is never Off, and shuts nobody out";
const REDIRECT: &str = "a redirect to the same place is followed, once";
const CREDENTIALS: &str = "wrong credentials are said, and have no effect";

// Neither of these two tells how many sessions it has.
const IPMI_SIM: Row = Row {
    driver: "ipmi",
    peer: "OpenIPMI's ipmi_sim",
    left_out: &[ALREADY, NEITHER, SILENT_END, ON_ALONE, REPEAT, CUT, REDIRECT],
    volumes: false,
};
const PYGHMI: Row = Row {
    driver: "ipmi",
    peer: "pyghmi's BMC",
    left_out: &[NEITHER, SILENT_END, ON_ALONE, CUT, REDIRECT],
    volumes: false,
};
const FLEET_IPMI: Row =
    Row { driver: "ipmi", peer: "picket-fleet", left_out: &[CUT, REDIRECT], volumes: false };
// TCP delivers once, and no later than its connection lives.
const FLEET_REDFISH: Row = Row {
    driver: "redfish",
    peer: "picket-fleet, in sessions",
    left_out: &[RESTART, SIGHT, LIFE, LATE_COPY, CUT, REDIRECT, DOUBLED],
    volumes: false,
};
const FLEET_BASIC: Row = Row {
    driver: "redfish",
    peer: "picket-fleet, without sessions",
    left_out: &[RESTART, SIGHT, LIFE, SILENT_END, LATE_COPY, ON_ALONE, CUT, REDIRECT, DOUBLED],
    volumes: false,
};
const FLEET_TASKS: Row = Row {
    driver: "redfish",
    peer: "picket-fleet, with tasks and LastResetTime",
    left_out: &[LATE_COPY, CUT, REDIRECT, DOUBLED],
    volumes: false,
};
// It has no sessions, and goes wrong in few ways.
const SUSHY: Row = Row {
    driver: "redfish",
    peer: "sushy-emulator",
    left_out: &[
        ALREADY,
        SLOW_FALL,
        RESTART,
        SIGHT,
        LIFE,
        SILENT_END,
        LATE_COPY,
        ON_ALONE,
        FIRST_COPY,
        LOST_ANSWER,
        REFUSED,
        REPEAT,
        SLOW,
        CUT,
        REDIRECT,
        DOUBLED,
    ],
    volumes: false,
};
// An agent has no sessions, and no word of its own for wrong credentials.
const FENCE_IPMILAN: Row = Row {
    driver: "agent",
    peer: "fence_ipmilan before OpenIPMI's ipmi_sim",
    left_out: &[
        ALREADY,
        NEITHER,
        RESTART,
        SIGHT,
        LIFE,
        SILENT_END,
        LATE_COPY,
        ON_ALONE,
        FIRST_COPY,
        REPEAT,
        SLOW,
        CUT,
        REDIRECT,
        DOUBLED,
        CREDENTIALS,
    ],
    volumes: false,
};
// It falls at once, or not at all.
const FENCE_EATON_SNMP: Row = Row {
    driver: "agent",
    peer: "fence_eaton_snmp before net-snmp's snmpd",
    left_out: &[
        ALREADY,
        SLOW_FALL,
        NEITHER,
        RESTART,
        SIGHT,
        LIFE,
        SILENT_END,
        LATE_COPY,
        ON_ALONE,
        FIRST_COPY,
        REPEAT,
        SLOW,
        CUT,
        REDIRECT,
        DOUBLED,
        CREDENTIALS,
    ],
    volumes: false,
};
const FENCE_REDFISH: Row = Row {
    driver: "agent",
    peer: "fence_redfish before sushy-emulator",
    left_out: &[
        ALREADY,
        SLOW_FALL,
        NEITHER,
        RESTART,
        SIGHT,
        LIFE,
        SILENT_END,
        LATE_COPY,
        ON_ALONE,
        FIRST_COPY,
        LOST_ANSWER,
        REFUSED,
        REPEAT,
        SLOW,
        CUT,
        REDIRECT,
        DOUBLED,
        CREDENTIALS,
    ],
    volumes: false,
};
// It has no sessions; TCP delivers once; what is stopped may be stopped again; and of a question the driver sends one copy.
const MOTO: Row = Row {
    driver: "aws",
    peer: "moto",
    left_out: &[
        ALREADY, RESTART, SIGHT, LIFE, SILENT_END, LATE_COPY, ON_ALONE, FIRST_COPY, REPEAT, SLOW, REDIRECT,
        DOUBLED,
    ],
    volumes: true,
};
// The same; and a numeric id is one instance's for ever.
const COMPUTE_ENGINE: Row = Row {
    driver: "gcp",
    peer: "a Compute Engine made from Google's discovery document",
    left_out: &[
        ALREADY, RESTART, SIGHT, LIFE, SILENT_END, LATE_COPY, ON_ALONE, FIRST_COPY, REPEAT, SLOW, REDIRECT,
        DOUBLED,
    ],
    volumes: true,
};

// Each request has a connection of its own, a server one id for good, and nothing is like a session. It is run where there is a cloud
// already: tests/openstack/conforming.
const NOVA: Row = Row {
    driver: "openstack",
    peer: "a real Nova",
    left_out: &[
        RESTART, SIGHT, LIFE, SILENT_END, LATE_COPY, ON_ALONE, FIRST_COPY, REPEAT, SLOW, CUT, REDIRECT,
        DOUBLED,
    ],
    volumes: true,
};

/// All of them. The driver sim is held to the suite where its worlds are, in paused time.
const ROWS: [&Row; 13] = [
    &IPMI_SIM,
    &PYGHMI,
    &FLEET_IPMI,
    &FLEET_REDFISH,
    &FLEET_BASIC,
    &FLEET_TASKS,
    &SUSHY,
    &FENCE_IPMILAN,
    &FENCE_EATON_SNMP,
    &FENCE_REDFISH,
    &MOTO,
    &COMPUTE_ENGINE,
    &NOVA,
];

/// The drivers that know the volumes of their machines, besides the driver sim.
const OF_VOLUMES: [&str; 3] = ["aws", "gcp", "openstack"];

/// What no peer of a driver shows, and why that is so.
const SHOWN_NOWHERE: [(&str, &str, &str); 59] = [
    ("ipmi", CUT, "a datagram arrives as a whole, or not at all"),
    ("ipmi", REDIRECT, "IPMI has no paths"),
    ("redfish", LATE_COPY, "TCP delivers once, and no later than its connection lives"),
    ("redfish", DOUBLED, "the same"),
    ("redfish", CUT, "drivers/redfish shows it with a service of its own"),
    ("redfish", REDIRECT, "drivers/redfish shows it with a service of its own"),
    (
        "agent",
        ALREADY,
        "drivers/agent shows it with an agent of its own: they say it with a word, and no error",
    ),
    ("agent", NEITHER, "drivers/agent shows it with an agent of its own"),
    ("agent", RESTART, "agents have no epochs"),
    ("agent", SIGHT, "agents have no epochs"),
    ("agent", LIFE, "the same"),
    ("agent", SILENT_END, "agents have no sessions"),
    ("agent", LATE_COPY, "agents have no sessions"),
    ("agent", ON_ALONE, "agents have no sessions"),
    (
        "agent",
        FIRST_COPY,
        "what one run of an agent asks again is its own affair: a reading is as old as its run",
    ),
    ("agent", DOUBLED, "the same"),
    ("agent", CREDENTIALS, "agents have one word for everything that goes wrong"),
    ("agent", REPEAT, "the same: no refusal is told as the device's own"),
    ("agent", SLOW, "a run of an agent asks in its own time"),
    ("agent", CUT, "an agent answers by its exit status, and of that there is no half"),
    ("agent", REDIRECT, "what an agent follows is its own affair"),
    ("aws", ALREADY, "EC2 says it with a state, and no error; of what was terminated drivers/aws shows it"),
    ("aws", RESTART, "an instance's life is its id: there is no session that could be lost"),
    ("aws", SIGHT, "the same"),
    ("aws", LIFE, "the same"),
    ("aws", SILENT_END, "EC2 has no sessions"),
    (
        "aws",
        LATE_COPY,
        "TCP delivers once; what comes late AWS refuses by its signature, which drivers/aws shows",
    ),
    ("aws", ON_ALONE, "EC2 has no sessions; that an on wants a reading before it drivers/aws shows"),
    ("aws", FIRST_COPY, "the driver sends one copy of a question"),
    ("aws", REPEAT, "EC2 takes a stop of what is stopped"),
    ("aws", SLOW, "moto's answers cannot be delayed"),
    ("aws", DOUBLED, "TCP delivers once"),
    ("aws", CUT, "it is shown of volumes"),
    ("aws", REDIRECT, "no cloud is known that redirects"),
    ("gcp", ALREADY, "Compute Engine takes a stop of what is stopped"),
    ("gcp", RESTART, "an instance's life is its numeric id: there is no session that could be lost"),
    ("gcp", SIGHT, "the same"),
    ("gcp", LIFE, "the same"),
    ("gcp", SILENT_END, "Compute Engine has no sessions"),
    (
        "gcp",
        LATE_COPY,
        "TCP delivers once; what comes late is refused by its token, which drivers/gcp and tests/gcp show",
    ),
    ("gcp", ON_ALONE, "tests/gcp shows it: an on goes with no token that is newer than the store's word"),
    ("gcp", FIRST_COPY, "the driver sends one copy of a question"),
    ("gcp", REPEAT, "Compute Engine takes a stop of what is stopped"),
    ("gcp", SLOW, "the peer's answers cannot be delayed"),
    ("gcp", DOUBLED, "TCP delivers once"),
    ("gcp", CUT, "it is shown of volumes"),
    ("gcp", REDIRECT, "the same"),
    ("openstack", RESTART, "a cloud has one epoch: the server's id"),
    ("openstack", SIGHT, "the same"),
    ("openstack", LIFE, "the same"),
    ("openstack", SILENT_END, "a cloud has no sessions"),
    ("openstack", LATE_COPY, "tests/openstack shows what bounds them: a token that has ended"),
    (
        "openstack",
        ON_ALONE,
        "tests/openstack shows it: an on goes with no token that is newer than the store's word",
    ),
    ("openstack", FIRST_COPY, "TCP delivers once, or its connection breaks"),
    ("openstack", REPEAT, "Nova has a word for it, 409, which is read as what it says"),
    ("openstack", SLOW, "the cloud answers in its own time"),
    ("openstack", DOUBLED, "TCP delivers once, or its connection breaks"),
    ("openstack", CUT, "it is shown of volumes"),
    ("openstack", REDIRECT, "the same"),
];

/// Each driver that the gateway has stands in the table, and is shown every check by some peer, or it is said why not.
#[test]
fn no_driver_and_no_check_is_forgotten() {
    let gateway = include_str!("../../../../src/gateway/src/drivers.rs");
    let kinds = gateway.lines().filter_map(|line| line.trim().strip_prefix("Box::new(picket_driver_"));
    let has: BTreeSet<&str> = kinds.filter_map(|kind| Some(kind.split_once("::")?.0)).collect();
    let shown: BTreeSet<&str> = ROWS.iter().map(|row| row.driver).chain(["sim"]).collect();
    assert_eq!(has, shown, "a driver of the gateway's is not held to the suite");

    let volumes: BTreeSet<&str> = ROWS.iter().filter(|row| row.volumes).map(|row| row.driver).collect();
    assert_eq!(volumes, BTreeSet::from(OF_VOLUMES), "a cloud's volumes are not held to the suite");

    let mut nowhere = BTreeSet::new();
    for driver in ROWS.iter().map(|row| row.driver) {
        let of = |name: &&str| {
            ROWS.iter().filter(|row| row.driver == driver).all(|row| row.left_out.contains(name))
        };
        nowhere.extend(names().filter(of).map(|name| (driver, name)));
    }
    let said: BTreeSet<(&str, &str)> =
        SHOWN_NOWHERE.iter().map(|(driver, name, _)| (*driver, *name)).collect();
    assert_eq!(nowhere, said, "what no peer shows is said, with the reason");
}

async fn conforms(row: Row, subject: impl Subject) {
    let report = run(&subject).await;
    let report = report.unwrap_or_else(|failure| panic!("{} before {}: {failure}", row.driver, row.peer));
    assert_eq!(report.left_out, row.left_out, "{} before {}", row.driver, row.peer);
    assert_eq!(report.has_volumes, row.volumes, "{} before {}", row.driver, row.peer);
}

#[tokio::test(flavor = "multi_thread")]
async fn ipmi_before_ipmi_sim() {
    conforms(IPMI_SIM, OverUdp::new(Theirs::start().await, By::Ipmi(&[3])).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ipmi_before_pyghmi() {
    conforms(PYGHMI, OverUdp::new(Pyghmi::start().await, By::Ipmi(&[17])).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ipmi_before_picket_fleet() {
    let peer = Simulated::start("n1", &[Suite::Sha1, Suite::Sha256], false).await;
    conforms(FLEET_IPMI, OverUdp::new(peer, By::Ipmi(&[17, 3])).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redfish_before_picket_fleet_in_sessions() {
    let peer = Simulated::start("n1-redfish", &[Suite::Sha256], false).await;
    conforms(FLEET_REDFISH, OverHttps::new(peer, json!({ "last_reset_time": false })).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redfish_before_picket_fleet_without_sessions() {
    let peer = Simulated::start("n1-redfish", &[Suite::Sha256], false).await;
    conforms(
        FLEET_BASIC,
        OverHttps::new(peer, json!({ "authentication": "basic", "last_reset_time": false })).await,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redfish_before_picket_fleet_with_tasks_and_restarts_that_it_tells() {
    let peer = Simulated::start("n1-redfish", &[Suite::Sha256], true).await;
    conforms(FLEET_TASKS, OverHttps::new(peer, json!({ "last_reset_time": true })).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redfish_before_sushy() {
    conforms(SUSHY, SushySubject::start(sushy::By::Redfish).await.expect("sushy-emulator")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn agent_by_fence_ipmilan_before_ipmi_sim() {
    conforms(FENCE_IPMILAN, OverUdp::new(Theirs::start().await, By::FenceIpmilan).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn agent_by_fence_eaton_snmp_before_snmpd() {
    conforms(FENCE_EATON_SNMP, OverUdp::new(Outlet::start().await, By::FenceEatonSnmp).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn agent_by_fence_redfish_before_sushy() {
    conforms(FENCE_REDFISH, SushySubject::start(sushy::By::FenceRedfish).await.expect("sushy-emulator"))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn aws_before_moto() {
    conforms(MOTO, Ec2Subject::start().await.expect("moto")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gcp_before_a_compute_engine() {
    conforms(COMPUTE_ENGINE, GceSubject::start().await.expect("the Compute Engine of the tests")).await;
}
