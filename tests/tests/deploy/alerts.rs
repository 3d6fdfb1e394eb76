//! The alerts before Prometheus' own promtool: their words are right, each is told where what it is for comes to pass, and nothing is told of a
//! fleet that is well.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use picket_tests::Result;
use picket_tests::peers::{parse_yaml, promtool};
use serde_json::{Value, json};

use crate::variants::{alone, one, rendered};

/// When it is asked what is told, a sample a minute after the first ones. Every alert that waits has waited by then.
const ASKED_AT: u32 = 110;
const SAMPLES: &str = "120";

/// What two gateways and a controller tell who are well: all that is still right, up to the last value that is.
const WELL: &[(&str, &str)] = &[
    (r#"up{job="picket",instance="a"}"#, "1"),
    (r#"up{job="picket",instance="b"}"#, "1"),
    (r#"up{job="controller",instance="c"}"#, "1"),
    (r#"picket_leading{job="picket",instance="a"}"#, "1"),
    (r#"picket_leading{job="picket",instance="b"}"#, "0"),
    (r#"picket_standing{job="picket",instance="a"}"#, "1"),
    (r#"picket_standing{job="picket",instance="b"}"#, "1"),
    (r#"picket_breaches_total{job="picket",instance="a"}"#, "3"),
    (r#"picket_nodes_needing_operator{job="picket",instance="a",reason="unproven"}"#, "0"),
    (r#"picket_nodes_orphaned{job="picket",instance="a"}"#, "0"),
    (r#"picket_nodes_unreached{job="picket",instance="a"}"#, "0"),
    (r#"picket_nodes{job="picket",instance="a",phase="power_on_failed"}"#, "0"),
    (r#"picket_nodes{job="picket",instance="a",phase="released"}"#, "2"),
    (r#"picket_nodes_barred{job="picket",instance="a"}"#, "0"),
    (r#"picket_nodes_not_back{job="picket",instance="a"}"#, "0"),
    (r#"picket_braked{job="picket",instance="a"}"#, "0"),
    (r#"picket_devices{job="picket",instance="a",readiness="not_ready"}"#, "0"),
    (r#"picket_devices{job="picket",instance="a",readiness="ready"}"#, "9"),
    (r#"picket_open_effect_overdue_seconds{job="picket",instance="a",kind="off"}"#, "120"),
    (r#"picket_open_effects_unbounded{job="picket",instance="a",kind="off"}"#, "0"),
    (r#"picket_release_oldest_seconds{job="picket",instance="a",stage="requested"}"#, "300"),
    (r#"picket_release_oldest_seconds{job="picket",instance="a",stage="complete"}"#, "90000"),
    (r#"picket_phase_oldest_seconds{job="picket",instance="a",phase="fencing"}"#, "300"),
    (r#"picket_phase_oldest_seconds{job="picket",instance="a",phase="released"}"#, "90000"),
    (r#"picket_audit_failing{job="picket",instance="a"}"#, "0"),
    (r#"picket_audit_lost_total{job="picket",instance="a"}"#, "7"),
    (r#"picket_store_writes_total{job="picket",instance="a",result="ok"}"#, "0+60"),
    (r#"picket_store_writes_total{job="picket",instance="a",result="conflict"}"#, "0+1"),
    (r#"picket_store_writes_total{job="picket",instance="a",result="failed"}"#, "2"),
    (r#"picket_settings_differ{job="picket",instance="b"}"#, "0"),
    (r#"picket_store_away_seconds{job="picket",instance="a"}"#, "30"),
    // Fifteen days after the first sample, which is of 1970.
    (r#"picket_certificate_not_after_seconds{job="picket",instance="a",use="server"}"#, "1296000"),
    (r#"picket_reloads_total{job="picket",instance="a",result="taken"}"#, "0+1"),
    (r#"picket_reloads_total{job="picket",instance="a",result="refused"}"#, "1"),
    (r#"picket_controller_leading{job="controller",instance="c"}"#, "1"),
    (r#"picket_controller_braked{job="controller",instance="c",by="leases"}"#, "0"),
    (r#"picket_controller_braked{job="controller",instance="c",by="conditions"}"#, "0"),
    (r#"picket_controller_policies{job="controller",instance="c",accepted="true"}"#, "4"),
    (r#"picket_controller_policies{job="controller",instance="c",accepted="false"}"#, "0"),
    (r#"picket_controller_watch_breaks_total{job="controller",instance="c",what="nodes"}"#, "0+2"),
    (r#"picket_controller_remediations_stuck{job="controller",instance="c"}"#, "0"),
];

/// Each alert, with what it is for: which of those series tells what then. As promtool writes values: `0+60` grows by 60 a minute.
const TROUBLE: &[(&str, &[(&str, &str)])] = &[
    ("PicketBreach", &[(r#"picket_breaches_total{job="picket",instance="a"}"#, "3x105 4x14")]),
    (
        "PicketNodeNeedsOperator",
        &[(r#"picket_nodes_needing_operator{job="picket",instance="a",reason="unproven"}"#, "1")],
    ),
    ("PicketNodeOrphaned", &[(r#"picket_nodes_orphaned{job="picket",instance="a"}"#, "1")]),
    ("PicketNodeUnreached", &[(r#"picket_nodes_unreached{job="picket",instance="a"}"#, "1")]),
    ("PicketPowerOnFailed", &[(r#"picket_nodes{job="picket",instance="a",phase="power_on_failed"}"#, "1")]),
    ("PicketNodeBarred", &[(r#"picket_nodes_barred{job="picket",instance="a"}"#, "1")]),
    ("PicketNodeNotBack", &[(r#"picket_nodes_not_back{job="picket",instance="a"}"#, "1")]),
    ("PicketBraked", &[(r#"picket_braked{job="picket",instance="a"}"#, "1")]),
    ("PicketDeviceNotReady", &[(r#"picket_devices{job="picket",instance="a",readiness="not_ready"}"#, "1")]),
    (
        "PicketEffectOverdue",
        &[(r#"picket_open_effect_overdue_seconds{job="picket",instance="a",kind="off"}"#, "121")],
    ),
    (
        "PicketEffectUnbounded",
        &[(r#"picket_open_effects_unbounded{job="picket",instance="a",kind="off"}"#, "1")],
    ),
    (
        "PicketReleaseStuck",
        &[(r#"picket_release_oldest_seconds{job="picket",instance="a",stage="requested"}"#, "301")],
    ),
    (
        "PicketFenceSlow",
        &[(r#"picket_phase_oldest_seconds{job="picket",instance="a",phase="fencing"}"#, "301")],
    ),
    ("PicketAuditFailing", &[(r#"picket_audit_failing{job="picket",instance="a"}"#, "1")]),
    ("PicketAuditFailing", &[(r#"picket_audit_lost_total{job="picket",instance="a"}"#, "7x105 8x14")]),
    (
        "PicketStoreFailing",
        &[(r#"picket_store_writes_total{job="picket",instance="a",result="failed"}"#, "2+1")],
    ),
    ("PicketNoLeader", &[(r#"picket_leading{job="picket",instance="a"}"#, "0")]),
    ("PicketTwoLeaders", &[(r#"picket_leading{job="picket",instance="b"}"#, "1")]),
    ("PicketNoSuccessor", &[(r#"picket_standing{job="picket",instance="b"}"#, "0")]),
    ("PicketSettingsDiffer", &[(r#"picket_settings_differ{job="picket",instance="b"}"#, "1")]),
    ("PicketStoreAway", &[(r#"picket_store_away_seconds{job="picket",instance="a"}"#, "31")]),
    ("PicketGone", &[(r#"up{job="picket",instance="a"}"#, "0"), (r#"up{job="picket",instance="b"}"#, "0")]),
    (
        "PicketCertificateExpires",
        &[(r#"picket_certificate_not_after_seconds{job="picket",instance="a",use="server"}"#, "1209600")],
    ),
    (
        "PicketReloadRefused",
        &[(r#"picket_reloads_total{job="picket",instance="a",result="refused"}"#, "1x105 2x14")],
    ),
    ("PicketControllerGone", &[(r#"up{job="controller",instance="c"}"#, "0")]),
    ("PicketControllerLeaderless", &[(r#"picket_controller_leading{job="controller",instance="c"}"#, "0")]),
    (
        "PicketControllerBraked",
        &[(r#"picket_controller_braked{job="controller",instance="c",by="conditions"}"#, "1")],
    ),
    (
        "PicketControllerPolicyRefused",
        &[(r#"picket_controller_policies{job="controller",instance="c",accepted="false"}"#, "1")],
    ),
    (
        "PicketControllerBlind",
        &[(r#"picket_controller_watch_breaks_total{job="controller",instance="c",what="nodes"}"#, "0+4")],
    ),
    (
        "PicketRemediationStuck",
        &[(r#"picket_controller_remediations_stuck{job="controller",instance="c"}"#, "1")],
    ),
];

/// Where somebody without a cluster takes the rules from.
fn plain() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../deploy/prometheus/picket.rules.yaml"].iter().collect()
}

/// What the chart gives to Prometheus' operator, as the file that Prometheus gets from it.
async fn of_the_chart(folder: &Path) -> Result<PathBuf> {
    let objects = rendered(&alone()).await?;
    let file = folder.join("chart.rules.json");
    let spec = &one("PrometheusRule", "picket", &objects)["spec"];
    std::fs::write(&file, spec.to_string()).expect("written");
    Ok(file)
}

/// A case: what is told by then, where these series tell something else than those of a fleet that is well.
fn case(name: &str, told: Option<&str>, changed: &[(&str, &str)]) -> Value {
    let mut all: BTreeMap<&str, &str> = WELL.iter().copied().collect();
    for (series, values) in changed {
        assert!(all.insert(series, values).is_some(), "{series} is not among those that are well");
    }
    let series = all.into_iter().map(|(series, values)| {
        let values = if values.contains('x') { values.to_owned() } else { format!("{values}x{SAMPLES}") };
        json!({ "series": series, "values": values })
    });
    let samples = told.map(|alert| json!({ "labels": format!("{{alertname=\"{alert}\"}}"), "value": 1 }));
    json!({
        "name": name,
        "interval": "1m",
        "input_series": series.collect::<Vec<_>>(),
        "promql_expr_test": [{
            "expr": r#"count by (alertname) (ALERTS{alertstate="firing"})"#,
            "eval_time": format!("{ASKED_AT}m"),
            "exp_samples": samples.into_iter().collect::<Vec<_>>(),
        }],
    })
}

#[tokio::test]
async fn prometheus_takes_the_rules_as_they_lie_there_and_as_the_chart_gives_them() -> Result<()> {
    let folder = tempfile::tempdir().expect("a folder");
    let wrong = folder.path().join("wrong.rules.json");
    let rules = json!([{ "alert": "Wrong", "expr": "max by (a (b) > 0" }]);
    let groups = json!({ "groups": [{ "name": "wrong", "rules": rules }] });
    std::fs::write(&wrong, groups.to_string()).expect("written");
    let right = [plain(), of_the_chart(folder.path()).await?];
    for (file, is_right) in right.iter().map(|file| (file, true)).chain([(&wrong, false)]) {
        let said = promtool(&["check", "rules", &file.display().to_string()]).await?;
        assert_eq!(said.code == 0, is_right, "{}: {}{}", file.display(), said.out, said.err);
    }
    Ok(())
}

#[tokio::test]
async fn each_alert_is_told_where_what_it_is_for_comes_to_pass_and_no_other_one_is() -> Result<()> {
    let folder = tempfile::tempdir().expect("a folder");
    let well = case("well", None, &[]);
    let troubles = TROUBLE.iter().map(|(alert, changed)| case(alert, Some(alert), changed));
    let cases: Vec<Value> = [well].into_iter().chain(troubles).collect();
    for rules in [plain(), of_the_chart(folder.path()).await?] {
        let whole = json!({ "rule_files": [rules], "evaluation_interval": "1m", "tests": cases });
        let file = folder.path().join("cases.json");
        std::fs::write(&file, whole.to_string()).expect("written");
        let said = promtool(&["test", "rules", &file.display().to_string()]).await?;
        assert_eq!(said.code, 0, "{}: {}{}", rules.display(), said.out, said.err);
    }
    // So that no new one is left out.
    let rules = parse_yaml(&std::fs::read_to_string(plain()).expect("read")).await?;
    let groups = rules["groups"].as_array().into_iter().flatten();
    let rules = groups.flat_map(|group| group["rules"].as_array().into_iter().flatten());
    let there: BTreeSet<&str> = rules.filter_map(|rule| rule["alert"].as_str()).collect();
    assert_eq!(there, TROUBLE.iter().map(|(alert, _)| *alert).collect());
    Ok(())
}
