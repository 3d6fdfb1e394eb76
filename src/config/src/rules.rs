//! The numbers of the rules. Less than the least is refused by [`Rules::faults`].

use picket_core::rules::Rules;
use picket_core::time::written;

use crate::table::Table;

pub(crate) fn read(mut table: Table<'_>) -> Rules {
    let mut rules = Rules::default();
    if let Some(readings) = table.number("readings") {
        rules.readings = readings;
    }
    let durations = [
        ("dwell", &mut rules.dwell),
        ("longest_cycle", &mut rules.longest_cycle),
        ("trust_dwell", &mut rules.trust_dwell),
        ("device_call", &mut rules.device_call),
        ("level_share", &mut rules.level_share),
        ("silent_share", &mut rules.silent_share),
        ("fence_deadline", &mut rules.fence_deadline),
        ("cloud_poll", &mut rules.cloud_poll),
        ("cloud_level_share", &mut rules.cloud_level_share),
        ("cloud_fence_deadline", &mut rules.cloud_fence_deadline),
        ("on_deadline", &mut rules.on_deadline),
        ("watch", &mut rules.watch),
        ("supply_hold_up", &mut rules.supply_hold_up),
        ("clock_jump", &mut rules.clock_jump),
        ("receipt_life", &mut rules.receipt_life),
        ("receipt_margin", &mut rules.receipt_margin),
        ("check_every", &mut rules.check_every),
        ("history", &mut rules.history),
    ];
    for (key, place) in durations {
        if let Some(duration) = table.duration(key) {
            *place = duration;
        }
    }
    if table.has("silent_share") && rules.silent_share > rules.level_share {
        let (silent, level) = (written(rules.silent_share), written(rules.level_share));
        let message = format!(
            "{silent} is longer than level_share ({level}), which ends a level in any case: give it less, or level_share more"
        );
        table.fault("silent_share", message);
    }
    for fault in rules.faults() {
        table.fault(fault.key, fault.message);
    }
    // Unasked for, it is told where a device wants it.
    if table.has("trust_dwell") {
        for fault in rules.trust_faults() {
            table.fault("trust_dwell", fault.message);
        }
    }
    table.done();
    rules
}
