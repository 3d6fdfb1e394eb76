//! The driver `redfish` before boards of a fleet.

use serde_json::{Value, json};

use crate::scene::Over;
use crate::table::{Believes, Ends, Row, Since, row, walk};

/// The hold of a board that follows the standard.
const STANDARD: &str = "restore policy always-off";

/// Faults of the machine, of the network, and of any board.
fn general() -> Vec<Row> {
    use Ends::{Lied, Off, OffOnce, On, Unproven};
    let span = json!({ "least": "300ms", "most": "600ms" });
    let late = json!({ "verb": "off", "after": "500ms", "answered": true, "times": 1 });
    let twice = json!({ "verb": "off", "after": "500ms", "times": 1 });
    let other = json!({ "uuid": "0f1e2d3c4b5a69788796a5b4c3d2e1f0", "serial": "another" });
    vec![
        row(json!({ "off_takes": span }), Off),
        row(json!({ "on_takes": span }), Off),
        row(json!("off_ignored"), On("On")),
        row(json!("off_lied"), Lied),
        row(json!("off_refused"), On("ForceOff: HTTP 500 (The request failed.)")),
        row(json!("off_forbidden"), On("forbidden: ")),
        row(json!("on_refused"), Off).waiting("On: HTTP 500"),
        row(json!({ "on_dropped": { "times": 1 } }), Off),
        row(json!("says_off"), Off),
        row(json!("says_on"), Unproven("On")),
        row(json!("says_nothing"), Unproven("null")),
        row(json!("says_nonsense"), Unproven("Dreaming")),
        row(json!("says_transition"), Off),
        row(json!("already_is_error"), Off),
        row(json!("already_is_refused"), OffOnce("ForceOff: HTTP 500")),
        row(json!("already_is_unsaid"), Off),
        row(json!("silent"), On("timed out: ")).in_vain(),
        row(json!({ "slow": "300ms" }), Off),
        row(json!({ "loss": { "percent": 10 } }), Off),
        row(json!({ "request_lost": { "times": 1 } }), Off).in_vain().holds(""),
        row(json!({ "answer_lost": { "times": 1 } }), Off).in_vain().holds(""),
        row(json!({ "late": late }), Off),
        row(json!({ "twice": twice }), Off),
        row(json!("sessions_full"), On("all sessions of the service are taken")).in_vain(),
        row(json!("wrong_password"), On("refuses user \"admin\"")),
        row(json!({ "busy": { "times": 1 } }), Off),
        row(json!("starting"), On("HTTP 503 (The service is starting.)")).in_vain(),
        row(json!({ "late_off": "1500ms" }), Off),
        row(json!({ "late_end": "1500ms" }), Off),
        row(json!("hold_unsupported"), Off).holds(""),
        row(json!("holds_by_watchdog"), Off).holds(""),
        row(json!("hold_ignored"), Off).holds(""),
        row(json!("drops_questions"), Off).holds(""),
        row(json!({ "says_identity": other }), On("identity mismatch: ")).since(Since::FirstReading),
    ]
}

/// Boards that do what no specification says.
fn odd() -> Vec<Row> {
    use Ends::{Off, On};
    let or_basic = || json!({ "authentication": "session_or_basic" });
    let login = |says: &str| json!({ "login_says": says });
    let takes = |version: &str| json!({ "takes_version": version });
    vec![
        row(json!("names_no_system"), On("names no computer system; it may be starting")),
        row(json!("cuts_answers"), On("ended the connection before its answer was whole")).in_vain(),
        row(json!("redirects"), Off),
        row(login("slashless"), Off),
        row(login("beside"), Off).in_vain().waiting("may be open for"),
        row(login("id"), Off),
        row(login("token"), Off).in_vain().waiting("may be open for"),
        row(login("place"), On("made a session and does not say its token")),
        row(login("place"), Off).with(or_basic()),
        row(json!("logins_refused"), On("refuses user \"admin\"")),
        row(json!("logins_refused"), Off).with(or_basic()),
        row(json!("hides_links"), Off),
        row(json!("root_refused"), Off),
        row(json!("cuts_refusals"), Off).since(Since::LossOfSessions),
        row(json!("packs_answers"), Off).remarked("gzip"),
        row(takes("strong"), Off).remarked("ETag"),
        row(takes("quoted_once"), Off).remarked("ETag"),
        row(takes("none"), Off).remarked("ETag"),
        row(takes("any"), Off).remarked("ETag"),
        row(json!("holds_as_ilo"), Off).holds("auto power-on remain-off"),
        row(json!("holds_as_idrac"), Off).holds(""),
        row(json!("old_tls"), On("alert protocol_version")),
        row(json!("old_ciphers"), On("alert handshake_failure")),
    ]
}

/// Certificates that no authority made.
fn certificates() -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, why) in
        [("own_certificate", "CaUsedAsEndEntity"), ("own_certificate_v1", "UnsupportedCertVersion")]
    {
        let row = |ends| row(Value::from(name), ends);
        rows.extend([
            row(Ends::Off).believing(Believes::Itself),
            row(Ends::Off).believing(Believes::Digest),
            row(Ends::On(why)),
        ]);
    }
    rows
}

pub fn rows() -> Vec<Row> {
    [general(), odd(), certificates()].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn machines_networks_and_any_board_over_redfish() {
    walk(Over::Redfish, STANDARD, general()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_boards_over_redfish() {
    walk(Over::Redfish, STANDARD, odd()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_that_no_authority_made_over_redfish() {
    walk(Over::Redfish, STANDARD, certificates()).await;
}
