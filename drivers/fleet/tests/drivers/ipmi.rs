//! The driver `ipmi` before boards of a fleet.

use serde_json::json;

use crate::scene::Over;
use crate::table::{Ends, Row, Since, row, walk};

/// The hold of a board that has all of it.
const WHOLE: &str = "watchdog timer stopped, restore policy always-off, power button locked";

pub fn rows() -> Vec<Row> {
    use Ends::{Lied, Off, OffOnce, On, Unproven};
    let span = json!({ "least": "300ms", "most": "600ms" });
    let late = json!({ "verb": "off", "after": "500ms", "answered": true, "times": 1 });
    let twice = json!({ "verb": "off", "after": "500ms", "times": 1 });
    let other = json!({ "uuid": "0f1e2d3c4b5a69788796a5b4c3d2e1f0", "serial": "another" });
    vec![
        row(json!({ "off_takes": span }), Off),
        row(json!({ "on_takes": span }), Off),
        row(json!("off_ignored"), On("chassis status 0x01")),
        row(json!("off_lied"), Lied),
        row(json!("off_refused"), On("completion code 0xFF")),
        row(json!("off_forbidden"), On("insufficient privilege (0xD4)")),
        row(json!("on_refused"), Off).waiting("chassis control, on: completion code 0xFF"),
        row(json!({ "on_dropped": { "times": 1 } }), Off),
        row(json!("says_off"), Off),
        row(json!("says_on"), Unproven("chassis status 0x01")),
        row(json!("says_nothing"), Unproven("completion code 0xCE")),
        row(json!("says_nonsense"), Unproven("chassis status of 2 bytes")),
        row(json!("says_transition"), Off),
        row(json!("already_is_error"), Off),
        row(json!("already_is_refused"), OffOnce("completion code 0xFF")),
        row(json!("already_is_unsaid"), Off),
        row(json!("silent"), On("did not answer")).in_vain(),
        row(json!({ "slow": "300ms" }), Off),
        row(json!({ "loss": { "percent": 10 } }), Off).leaving_sessions(),
        row(json!({ "request_lost": { "times": 2 } }), Off),
        row(json!({ "answer_lost": { "times": 2 } }), Off).leaving_sessions(),
        row(json!("doubled"), Off).leaving_sessions(),
        row(json!({ "reordered": { "percent": 30, "by": "100ms" } }), Off).leaving_sessions(),
        row(json!({ "late": late }), Off),
        row(json!({ "twice": twice }), Off),
        row(json!("sessions_full"), On("all session slots of the BMC are taken")).in_vain(),
        row(json!("wrong_password"), On("has another password for user \"admin\"")),
        row(json!({ "busy": { "times": 2 } }), Off),
        row(json!("starting"), On("did not answer the login in time")).in_vain(),
        row(json!({ "late_off": "1500ms" }), Off),
        row(json!({ "late_end": "1500ms" }), Off),
        row(json!("hold_unsupported"), Off).holds(""),
        row(json!("holds_by_watchdog"), Off).holds("watchdog timer stopped"),
        row(json!("hold_ignored"), Off).holds(""),
        row(json!("drops_questions"), Off).holds("").in_vain(),
        // A session is with one BMC: who it is was asked before.
        row(json!({ "says_identity": other }), Off).since(Since::FirstReading),
        row(json!("wrong_sums"), Off).remarked("sums them up wrongly"),
        row(json!("keys_by_open_session"), Off).remarked("opensesspriv"),
        row(json!("rakp_refused"), On("status 0x12, illegal or unrecognized parameter")),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn boards_over_ipmi() {
    walk(Over::Ipmi, WHOLE, rows()).await;
}
