//! A session of the commands at 80 and 60 columns: each line fits, and no word is broken.

use std::collections::BTreeSet;

use crate::common::gateway::{Gateway, Script, Step};
use crate::common::make::{bmc, ended, node, outcome, span, troubled};
use crate::common::{golden, see};
use picket_proto::v1::*;
use tonic::Status;

/// What is typed, and how it ends.
const TYPED: &[(&str, i32)] = &[
    ("plan r1n07", 3),
    ("check", 1),
    ("gateways", 0),
    ("watch", 7),
    ("unfence r1n07", 3),
    ("retry r1n07 --yes", 4),
    ("stand-down r1n07 --reason alive --yes", 8),
    ("drill r1n07 --reason spring --yes", 1),
    ("attest r1n07 --reason unplugged --yes", 0),
    ("hold r1n07 --reason disks", 0),
    ("unhold r1n07 --reason done", 0),
    ("abandon r1n07 detach --reason known --yes", 0),
    ("retire r1n07 --reason burned --yes", 0),
    ("accept-identity r1n07 bmc --reason board --yes", 0),
    ("pause --group rack=r1 --reason switches --for 1h", 0),
    ("resume --everything --reason done", 0),
    ("status r1n99", 6),
    ("history --fence 99", 6),
];

const LONG: &str = "the fleet may have 1 of its 8 nodes fenced at once, and has r1n02, which alice fences since nine o'clock";

fn script() -> Script {
    let end = |phase, kind, reason| vec![Step::Say(ended("r1n07", 12, phase, outcome(kind, reason, LONG)))];
    let let_go =
        Outcome { released: true, ..outcome(OutcomeKind::Fenced, Reason::Unspecified, "attested by alice") };
    let streams = [
        end(Phase::Released, OutcomeKind::StillHeld, Reason::Unspecified),
        end(Phase::NeedsOperator, OutcomeKind::NeedsOperator, Reason::BmcRestarted),
        end(Phase::Normal, OutcomeKind::Superseded, Reason::Unspecified),
        end(Phase::Normal, OutcomeKind::Unspecified, Reason::Unspecified),
        vec![Step::Say(ended("r1n07", 12, Phase::Released, let_go))],
    ];
    let lacks = DeviceProblem {
        kind: DeviceProblemKind::Authentication.into(),
        text: "192.0.2.7:623 refuses the password of admin: correct it in /etc/picket/bmc.password"
            .to_owned(),
    };
    let device = Device { readiness: Readiness::NotReady.into(), problems: vec![lacks.clone()], ..bmc() };
    let checked = ["r1n08", "r1n07"].map(|node| CheckDevicesResponse {
        node: node.to_owned(),
        device: Some(device.clone()),
        took: span(1, 200),
        left: 0,
    });
    let step = PlanStep {
        action: PlanAction::Off.into(),
        level: 1,
        target: "bmc".to_owned(),
        text: "switches the node off, hard, and with it whatever else runs there".to_owned(),
        at_most: span(60, 0),
        obstacles: vec![lacks.text],
        ..Default::default()
    };
    let gateway = |name: &str, leads, aside: &str| picket_proto::v1::Gateway {
        name: name.to_owned(),
        endpoints: vec![format!("https://{name}.rack1.example.org:7070")],
        version: "0.1.0".to_owned(),
        leads,
        aside: aside.to_owned(),
        settings: "5a0c6b1f2e3d4c5b6a79".to_owned(),
    };
    let told = |event| Ok(WatchNodesResponse { revision: "life/3".to_owned(), event: Some(event) });
    Script {
        nodes: vec![troubled("r1n07"), node("r1n08")],
        streams: [("r1n07".to_owned(), streams.into())].into(),
        watches: [vec![
            told(watch_nodes_response::Event::Node(troubled("r1n07"))),
            Err(Status::permission_denied("that was all")),
        ]]
        .into(),
        plans: vec![PlanFenceResponse {
            node: "r1n07".to_owned(),
            outcome: Some(outcome(OutcomeKind::Blocked, Reason::Budget, LONG)),
            steps: vec![step],
            ..Default::default()
        }],
        checked: checked.into(),
        gateways: ListGatewaysResponse {
            gateways: vec![
                gateway("g1", true, ""),
                gateway(
                    "g3",
                    false,
                    "it stands on r1n07, which is fencing, and may not lead until that has ended",
                ),
            ],
            answered_by: "g1".to_owned(),
            term: 7,
            ..Default::default()
        },
        ..Default::default()
    }
}

async fn session(columns: u16) -> String {
    let gateway = Gateway::start(script()).await;
    let mut out = String::new();
    for (typed, code) in TYPED {
        let (got, shown) = see(&gateway, typed, columns).await;
        assert_eq!(got, *code, "{typed}: {shown}");
        out += &format!("$ picket {typed}\n{}\n\n", shown.trim_end());
    }
    // The moment at which a change was heard is no two times the same.
    let steady = |line: &str| match line.split_once("Z r1n07 ") {
        Some((_, rest)) => format!("NOW r1n07 {rest}"),
        None => line.to_owned(),
    };
    out.lines().map(steady).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn each_command_fits_the_terminal_and_breaks_no_word() {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<BTreeSet<String>>();
    // A terminal that is too narrow for a line fails in there.
    let (wide, usual, narrow) = (session(300).await, session(80).await, session(60).await);
    golden("session_80.txt", &usual);
    golden("session_60.txt", &narrow);
    for shown in [usual, narrow] {
        let broken: Vec<String> = words(&shown).difference(&words(&wide)).cloned().collect();
        assert_eq!(broken, Vec::<String>::new(), "{shown}");
    }
}
