//! Settings by which a node could never be confirmed off: what, where, and what would be right.

use crate::common::*;

#[test]
fn a_level_without_time_for_the_long_window_is_a_fault() {
    let home = Home::with(
        r#"
[rules]
level_share = "10s"
[nodes.n1.devices.bmc]
driver = "ipmi"
[nodes.n2.devices.bmc]
driver = "ipmi"
longest_cycle = "12s"
[nodes.n3.devices.bmc]
driver = "ipmi"
longest_cycle = "5s"
"#,
    );
    says(
        &home.faults(&[]),
        &[
            "picket.toml:3: rules.level_share ~ has no room for a longest cycle of 15s",
            "picket.toml:8: nodes.n2.devices.bmc.longest_cycle ~ has no room for a longest cycle of 12s",
        ],
    );
}

#[test]
fn a_restart_that_is_trusted_for_longer_than_a_level_lasts_is_a_fault() {
    let home = Home::with(
        r#"
[rules]
trust_dwell = "4m"
[nodes.n1.devices.bmc]
driver = "ipmi"
trust_after_restart = "5m"
[nodes.n2.devices.bmc]
driver = "ipmi"
trust_after_restart = true
[nodes.n3.devices.bmc]
driver = "ipmi"
trust_after_restart = "2m"
[nodes.n4.devices.bmc]
driver = "ipmi"
"#,
    );
    says(
        &home.faults(&[]),
        &[
            "picket.toml:3: rules.trust_dwell ~ a level's share of 3m has no room for an Off of 4m",
            "picket.toml:6: nodes.n1.devices.bmc.trust_after_restart ~ a level's share of 3m has no room for an Off of 5m",
            "picket.toml:9: nodes.n2.devices.bmc.trust_after_restart ~ a level's share of 3m has no room for an Off of 4m",
        ],
    );
}

#[test]
fn a_deadline_without_time_for_the_long_window_is_a_fault() {
    let home = Home::with(
        r#"
[rules]
fence_deadline = "10s"
[nodes.n1.devices.bmc]
driver = "ipmi"
"#,
    );
    says(
        &home.faults(&[]),
        &[
            "picket.toml:3: rules.fence_deadline ~ a fence's deadline of 10s has no room for a longest cycle of 15s",
        ],
    );
}

#[test]
fn more_readings_than_a_level_has_time_for_are_a_fault() {
    let home = Home::with(
        r#"
[nodes.n1.devices.bmc]
driver = "ipmi"
readings = 400
[nodes.n2.devices.bmc]
driver = "ipmi"
readings = 4
dwell = "60s"
longest_cycle = "60s"
"#,
    );
    says(
        &home.faults(&[]),
        &[
            "picket.toml:4: nodes.n1.devices.bmc.readings ~ 400 readings that are 1s apart",
            "picket.toml:9: nodes.n2.devices.bmc.longest_cycle ~ has no room for a longest cycle of 1m and three dwells of 1m",
        ],
    );
}
