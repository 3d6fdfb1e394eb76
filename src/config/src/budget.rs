//! `[budget]` and `[groups.NAME.budget]`: how much may be fenced (S14).

use std::time::Duration;

use picket_core::budget::{Budget, Limits};
use picket_core::time::written;

use crate::groups::Grouping;
use crate::table::Table;

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(86_400);

/// A number within a range; a fault if it is not.
fn within(table: &mut Table<'_>, key: &'static str, least: u32, most: u32) -> Option<u32> {
    let number = table.number(key)?;
    if (least..=most).contains(&number) {
        return Some(number);
    }
    table.fault(key, format!("{number} is out of range: {least} to {most}"));
    None
}

fn lasting(table: &mut Table<'_>, key: &'static str, least: Duration, most: Duration) -> Option<Duration> {
    let duration = table.duration(key)?;
    if (least..=most).contains(&duration) {
        return Some(duration);
    }
    let (found, least, most) = (written(duration), written(least), written(most));
    table.fault(key, format!("{found} is out of range: {least} to {most}"));
    None
}

/// The limits of a group. Its table is read to its end.
pub(crate) fn limits(mut table: Table<'_>) -> Limits {
    let limits = common(&mut table);
    if !["at_once", "at_once_percent", "per_window", "min_not_fenced"].iter().any(|key| table.has(key)) {
        let right = "give it at_once = 1, at_once_percent = 10, per_window = 5 with window = \"1h\", or min_not_fenced = 2";
        table.log().push(table.place.fault(format!("sets no limit: {right}")));
    }
    table.done();
    limits
}

fn common(table: &mut Table<'_>) -> Limits {
    let at_once = within(table, "at_once", 1, 100_000);
    let at_once_percent = within(table, "at_once_percent", 1, 100);
    let number = within(table, "per_window", 1, 100_000);
    let window = lasting(table, "window", SECOND, DAY * 30);
    match (table.has("per_window"), table.has("window")) {
        (true, false) => {
            table.fault("per_window", "within which time? Add window = \"1h\"");
        }
        (false, true) => {
            table.fault("window", "how many fences within it? Add per_window = 5, or remove it");
        }
        _ => {}
    }
    let min_not_fenced = within(table, "min_not_fenced", 0, 100_000);
    Limits { at_once, at_once_percent, per_window: number.zip(window), min_not_fenced }
}

pub(crate) fn read(mut table: Table<'_>, groups: &Grouping, nodes: usize) -> Budget {
    let mut budget = Budget { fleet: common(&mut table), ..Budget::default() };
    if let Some(least) = budget.fleet.min_not_fenced
        && let Some(message) = keeps_all(least, nodes)
    {
        table.fault("min_not_fenced", message);
    }
    let durations = [
        ("cool_down", Duration::ZERO, DAY * 30, &mut budget.cool_down),
        ("queue_expires", SECOND, DAY, &mut budget.queue_expires),
    ];
    for (key, least, most, place) in durations {
        if let Some(duration) = lasting(&mut table, key, least, most) {
            *place = duration;
        }
    }
    let numbers = [
        ("brake_percent", 1, 100, &mut budget.brake_percent),
        ("brake_least", 1, 100_000, &mut budget.brake_least),
        ("queue_most", 0, 10_000, &mut budget.queue_most),
    ];
    for (key, least, most, place) in numbers {
        if let Some(number) = within(&mut table, key, least, most) {
            *place = number;
        }
    }
    for (name, group) in groups.settings() {
        let Some(limits) = &group.rules.budget else { continue };
        let members = groups.members().members(name).map_or(0, |members| members.len());
        if let Some(message) = limits.min_not_fenced.and_then(|least| keeps_all(least, members)) {
            table.log().push(group.fault("budget", format!("min_not_fenced: {name}: {message}")));
        }
        budget.groups.insert(name.clone(), limits.clone());
    }
    table.done();
    budget
}

/// A group that must keep all that it has could never be fenced. Of none, something else is wrong.
fn keeps_all(least: u32, nodes: usize) -> Option<String> {
    let all = nodes > 0 && usize::try_from(least).unwrap_or(usize::MAX) >= nodes;
    all.then(|| {
        format!(
            "of {nodes} nodes {least} are to be left, so none of them could ever be fenced: at most {}",
            nodes - 1
        )
    })
}
