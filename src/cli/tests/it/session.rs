//! A session of the commands at 80 and 60 columns: each line fits, and no word is broken.
//!
//! `status`, `nodes`, `history` and `help` have goldens of their own; so has the tour of `quickstart`, beside its test with real
//! programs.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::common::gateway::{Gateway, Script, Step};
use crate::common::make::{at, bmc, ended, good_fence, node, outcome, span, troubled};
use crate::common::package::Package;
use crate::common::{golden, picket, see_of};
use crate::{init, storing};
use picket_proto::v1::*;
use tokio::process::Command;
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
    ("fence r1n08 --yes", 0),
    ("drain --reason move", 0),
    ("backup picket.backup", 0),
    ("receipt get r1n07 --out receipt.json", 0),
    ("receipt verify receipt.json", 0),
    ("receipt return receipt.json", 0),
    ("receipt keys", 0),
];

/// The same of those that ask no gateway.
const ALONE: &[(&str, i32)] = &[
    ("version", 0),
    ("init n1 --address 127.0.0.9 --user admin --password-file open --dir etc", 2),
    ("init n1 --dir taken", 2),
    ("pki init taken --server gw1 --client alice", 2),
    ("kubeconfig --role release --role controller", 2),
    ("receipt verify none.json --offline --keys none.json", 2),
    ("quickstart --yes", 2),
];

/// What makes files, in this order, and what is shown of it where all is right: it is read, and pasted.
const MADE: &[(&str, i32)] = &[
    ("init n1 --address 127.0.0.9 --user admin --password-file secret --dir etc --dry-run", 0),
    ("init n1 --address 127.0.0.9 --user admin --password-file secret --dir etc", 0),
    ("pki init tls --server gw1.example.org --client alice@example.org", 0),
    ("kubeconfig --role release --role machines", 0),
    (
        "kubeconfig --role release --server https://10.0.0.1:6443 --ca ca.crt --token-file secret --out kubeconfig",
        0,
    ),
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
    let fenced: Vec<Step> = good_fence("r1n08").into_iter().map(Step::Say).collect();
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
    let body = serde_json::json!({
        "id": "01990000-0000-7000-8000-0000000000bb", "node": "r1n07", "systemUuid": "", "incarnation": "01990000-0000-7000-8000-0000000000aa",
        "fenceId": "01990000-0000-7000-8000-000000000007", "generation": "7", "grade": "GRADE_OBSERVED", "offAt": "2026-11-21T09:10:20.000Z",
        "issuedAt": "2026-11-21T09:10:21.000Z", "expiresAt": "2026-11-21T09:20:21.000Z", "audience": "", "simulated": false,
    });
    let receipt = Receipt {
        body: body.to_string().into_bytes(),
        algorithm: SignatureAlgorithm::Ed25519.into(),
        key_id: "5a0c6b1f2e3d4c5b".to_owned(),
        signature: vec![7; 64],
    };
    let key = |gateway: &str, signs| ReceiptKey {
        key_id: "5a0c6b1f2e3d4c5b".to_owned(),
        algorithm: SignatureAlgorithm::Ed25519.into(),
        public_key: vec![7; 32],
        gateway: gateway.to_owned(),
        since: at(1, 0),
        signs,
    };
    let told = |event| Ok(WatchNodesResponse { revision: "life/3".to_owned(), event: Some(event) });
    Script {
        nodes: vec![troubled("r1n07"), node("r1n08")],
        streams: [("r1n07".to_owned(), streams.into()), ("r1n08".to_owned(), [fenced].into())].into(),
        receipt: Some(receipt),
        keys: vec![key("gw1.rack1.example.org", true), key("gw2.rack1.example.org", false)],
        backup: storing::pieces(Some(8)),
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

/// What is typed and shown, in a folder of its own.
async fn typed(
    out: &mut String,
    (line, code): (&str, i32),
    mut command: Command,
    folder: &Path,
    columns: u16,
) {
    command.current_dir(folder);
    let (got, shown) = see_of(command, columns).await;
    assert_eq!(got, code, "{line}: {shown}");
    *out += &format!("$ picket {line}\n{}\n\n", shown.trim_end());
}

/// What is no two times the same: the moment at which a change was heard, folders, and what was built.
fn steady(line: &str) -> String {
    match line.split_once("Z r1n07 ") {
        Some((_, rest)) => format!("NOW r1n07 {rest}"),
        None => match line.split_once(": ") {
            Some((label @ ("commit" | "features" | "target"), _)) => format!("{label}: ..."),
            _ => line.to_owned(),
        },
    }
}

async fn session(columns: u16) -> String {
    let (gateway, home) = (Gateway::start(script()).await, tempfile::tempdir().expect("a folder"));
    let mut out = String::new();
    for (line, code) in TYPED {
        let mut command = picket(line);
        command.args(["--endpoint", &gateway.endpoint()]);
        typed(&mut out, (line, *code), command, home.path(), columns).await;
    }
    out.lines().map(steady).collect::<Vec<_>>().join("\n")
}

async fn alone(columns: u16) -> String {
    let package = Package::of_one_length().with("picketd", "exit 0\n");
    std::fs::create_dir(package.at("taken")).expect("made");
    std::fs::write(package.at("taken/picket.toml"), "").expect("written");
    std::fs::write(package.at("taken/ca.pem"), "").expect("written");
    put(&package, "open", "secret12", 0o644);
    of_package(&package, ALONE, columns).await
}

async fn made(columns: u16) -> String {
    let package = Package::of_one_length().with("picketd", init::FINE);
    put(&package, "secret", "secret12", 0o600);
    put(&package, "ca.crt", "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n", 0o644);
    of_package(&package, MADE, columns).await
}

fn put(package: &Package, name: &str, text: &str, mode: u32) {
    std::fs::write(package.at(name), text).expect("written");
    std::fs::set_permissions(package.at(name), std::fs::Permissions::from_mode(mode)).expect("ours");
}

async fn of_package(package: &Package, lines: &[(&str, i32)], columns: u16) -> String {
    let mut out = String::new();
    for (line, code) in lines {
        let command = package.picket(&line.split(' ').collect::<Vec<_>>());
        typed(&mut out, (line, *code), command, package.path(), columns).await;
    }
    let folder = package.path().display().to_string();
    out.replace(&folder, "/tmp/package-FOLDER").lines().map(steady).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn each_command_fits_the_terminal_and_breaks_no_word() {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<BTreeSet<String>>();
    // A terminal that is too narrow for a line fails in there.
    let (wide, usual, narrow) = (session(300).await, session(80).await, session(60).await);
    let (alone_wide, alone_usual, alone_narrow) = (alone(300).await, alone(80).await, alone(60).await);
    golden("session_80.txt", &usual);
    golden("session_60.txt", &narrow);
    golden("session_alone_80.txt", &alone_usual);
    golden("session_alone_60.txt", &alone_narrow);
    let (made_wide, made_usual, made_narrow) = (made(300).await, made(80).await, made(60).await);
    golden("session_made_80.txt", &made_usual);
    golden("session_made_60.txt", &made_narrow);
    // What ends a line of a command that goes on is no word.
    let [made_usual, made_narrow] = [made_usual, made_narrow].map(|shown| shown.replace(" \\\n", "\n"));
    for (shown, wide) in [
        (usual, &wide),
        (narrow, &wide),
        (alone_usual, &alone_wide),
        (alone_narrow, &alone_wide),
        (made_usual, &made_wide),
        (made_narrow, &made_wide),
    ] {
        let broken: Vec<String> = words(&shown).difference(&words(wide)).cloned().collect();
        assert_eq!(broken, Vec::<String>::new(), "{shown}");
    }
}
