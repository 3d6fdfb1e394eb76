//! The rows, and what each of them cannot show.

use std::collections::BTreeSet;

use picket_driver::conformance::{Subject, names, run};
use picket_driver_ipmi::crypto::Suite;
use serde_json::json;

use crate::conformance::bmc::{Pyghmi, Theirs};
use crate::conformance::ec2::Ec2Subject;
use crate::conformance::gce::GceSubject;
use crate::conformance::nowhere::{
    ALREADY, CREDENTIALS, CUT, DOUBLED, FIRST_COPY, LATE_COPY, LEFT, LIFE, LOST_ANSWER, NEITHER, ON_ALONE,
    REDIRECT, REFUSED, REPEAT, RESTART, SHOWN_NOWHERE, SIGHT, SILENT_END, SLOW, SLOW_FALL,
};
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

// Neither of these two tells how many sessions it has.
const IPMI_SIM: Row = Row {
    driver: "ipmi",
    peer: "OpenIPMI's ipmi_sim",
    left_out: &[ALREADY, NEITHER, SILENT_END, ON_ALONE, REPEAT, CUT, REDIRECT, LEFT],
    volumes: false,
};
const PYGHMI: Row = Row {
    driver: "ipmi",
    peer: "pyghmi's BMC",
    left_out: &[NEITHER, SILENT_END, ON_ALONE, CUT, REDIRECT, LEFT],
    volumes: false,
};
const FLEET_IPMI: Row =
    Row { driver: "ipmi", peer: "picket-fleet", left_out: &[CUT, REDIRECT], volumes: false };
// TCP delivers once, and no later than its connection lives.
const FLEET_REDFISH: Row = Row {
    driver: "redfish",
    peer: "picket-fleet, in sessions",
    left_out: &[RESTART, SIGHT, LIFE, LATE_COPY, DOUBLED],
    volumes: false,
};
const FLEET_BASIC: Row = Row {
    driver: "redfish",
    peer: "picket-fleet, without sessions",
    left_out: &[RESTART, SIGHT, LIFE, SILENT_END, LATE_COPY, ON_ALONE, LEFT, DOUBLED],
    volumes: false,
};
const FLEET_TASKS: Row = Row {
    driver: "redfish",
    peer: "picket-fleet, with tasks and LastResetTime",
    left_out: &[LATE_COPY, DOUBLED],
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
        LEFT,
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
        LEFT,
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
        LEFT,
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
        LEFT,
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
        ALREADY, RESTART, SIGHT, LIFE, SILENT_END, LATE_COPY, ON_ALONE, FIRST_COPY, REPEAT, SLOW, CUT,
        REDIRECT, LEFT, DOUBLED,
    ],
    volumes: true,
};
// The same; and a numeric id is one instance's for ever.
const COMPUTE_ENGINE: Row = Row {
    driver: "gcp",
    peer: "a Compute Engine made from Google's discovery document",
    left_out: &[
        ALREADY, RESTART, SIGHT, LIFE, SILENT_END, LATE_COPY, ON_ALONE, FIRST_COPY, REPEAT, SLOW, CUT,
        REDIRECT, LEFT, DOUBLED,
    ],
    volumes: true,
};

// Each request has a connection of its own, a server one id for good, and nothing is like a session. It is run where there is a cloud
// already: tests/openstack/conforming.
const NOVA: Row = Row {
    driver: "openstack",
    peer: "a real Nova",
    left_out: &[
        RESTART, SIGHT, LIFE, SILENT_END, LATE_COPY, ON_ALONE, FIRST_COPY, REPEAT, SLOW, CUT, REDIRECT, LEFT,
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
