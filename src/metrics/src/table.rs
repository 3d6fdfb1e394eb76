//! The table of all metrics. `cargo xtask pages` makes `docs/reference/metrics.md` from its lines, one a metric; `docs/metrics.md` explains them.

/// What kind of metric it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows, but for restarts. Its name ends with `_total`.
    Counter,
    /// How it is now.
    Gauge,
    /// Seconds, in buckets with these upper bounds.
    Histogram(&'static [Bound]),
}

/// The upper bound of a bucket, in milliseconds.
pub type Bound = u32;

/// One metric.
#[derive(Debug)]
pub struct Metric {
    /// Its name as it is exported.
    pub name: &'static str,
    /// Its kind.
    pub kind: Kind,
    /// What it says.
    pub help: &'static str,
    /// The names of its labels.
    pub labels: &'static [&'static str],
}

/// From a moment to half an hour: the parts of a fence.
const FENCE: &[Bound] =
    &[500, 1_000, 2_000, 5_000, 10_000, 15_000, 20_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000];
/// A call to a device.
const CALL: &[Bound] = &[5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000];
/// A write, or a request.
const SHORT: &[Bound] = &[1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000];

macro_rules! metrics {
    ($($id:ident = $name:literal, $kind:expr, [$($label:literal),*], $help:literal;)*) => {
        $(
            #[doc = concat!("`", $name, "`: ", $help)]
            pub static $id: Metric = Metric { name: $name, kind: $kind, help: $help, labels: &[$($label),*] };
        )*
        /// All of them.
        pub static ALL: &[&Metric] = &[$(&$id),*];
    };
}

metrics! {
    BUILD_INFO = "picket_build_info", Kind::Gauge, ["version"], "Always 1; which version runs";
    START_TIME = "picket_start_time_seconds", Kind::Gauge, [], "When the process began, in seconds since 1970";

    FENCES_OPENED = "picket_fences_opened_total", Kind::Counter, ["cause"], "Fences that were opened, by a caller or by a breach";
    FENCE_OUTCOMES = "picket_fence_outcomes_total", Kind::Counter, ["cause", "outcome"], "Outcomes that fences came to; one that was tried again comes to several";
    FENCE_PART = "picket_fence_part_seconds", Kind::Histogram(FENCE), ["part"], "From the intent to the off sent, the first Off seen, the proof and the last release; from the unfence until the node is back";
    BREACHES = "picket_breaches_total", Kind::Counter, [], "Fenced nodes that were found on although nobody unfenced them";
    UNPROVEN = "picket_unproven_total", Kind::Counter, [], "Confirmations that did not hold until the releases, so that the evidence began from zero";

    NODES = "picket_nodes", Kind::Gauge, ["phase"], "Nodes by the phase in which they stand";
    NEEDS_OPERATOR = "picket_nodes_needing_operator", Kind::Gauge, ["reason"], "Nodes that wait for a person, by reason";
    ORPHANED = "picket_nodes_orphaned", Kind::Gauge, [], "Nodes that are not back and that the settings do not know any more, or know elsewhere";
    UNREACHED = "picket_nodes_unreached", Kind::Gauge, [], "Nodes being fenced of which no device took an off in a whole round of levels; they are asked until the fence's deadline";
    NOT_BACK = "picket_nodes_not_back", Kind::Gauge, [], "Nodes brought back, and not seen to be back for a quarter of an hour: what their fence left still keeps new work away";
    BARRED = "picket_nodes_barred", Kind::Gauge, [], "Nodes whose release, or way back, somebody else's keeps: their out-of-service taint on a Node is theirs to take away";
    HOLDS = "picket_holds", Kind::Gauge, [], "Named reasons that keep nodes off";
    OLDEST_FENCE = "picket_phase_oldest_seconds", Kind::Gauge, ["phase"], "How long the fence of the oldest node in that phase has been open";
    TROUBLE = "picket_node_trouble", Kind::Gauge, ["node", "trouble"], "1 for each node in trouble, by name; at most 200 of them";
    TROUBLE_UNTOLD = "picket_node_trouble_untold", Kind::Gauge, [], "Troubles of nodes beyond those 200";

    BUDGETED = "picket_fences_under_way", Kind::Gauge, [], "Fences that count against the budget: begun, and neither released nor waiting for a person";
    WAITING = "picket_fences_waiting", Kind::Gauge, [], "Requests for a fence that wait for their turn";
    PAUSES = "picket_pauses", Kind::Gauge, [], "Pauses that stand";
    BRAKED = "picket_braked", Kind::Gauge, [], "1 while the brake holds: so much of the fleet is asked for or kept off that no new fence begins";

    DEVICES = "picket_devices", Kind::Gauge, ["readiness"], "Devices by whether they could be used now, as their last check and the readings since say";
    DEVICE_CALLS = "picket_device_calls_total", Kind::Counter, ["driver", "verb", "result"], "Calls to devices; the result is ok, the kind of the error, or unheard where nobody waited any more";
    DEVICE_CALL = "picket_device_call_seconds", Kind::Histogram(CALL), ["driver", "verb"], "How long calls to devices took";

    EFFECTS = "picket_open_effects", Kind::Gauge, ["kind"], "Commands, attempts and receipts whose end is not known";
    EFFECT_OVERDUE = "picket_open_effect_overdue_seconds", Kind::Gauge, ["kind"], "By how much the oldest open effect of a node on its way back (unfencing) has outlived its longest life; 0: none has";
    EFFECTS_UNBOUNDED = "picket_open_effects_unbounded", Kind::Gauge, ["kind"], "Open effects that nothing bounds";

    RELEASES = "picket_releases", Kind::Gauge, ["stage"], "Releases of open fences, and their parts, by how far they are";
    RELEASE_OLDEST = "picket_release_oldest_seconds", Kind::Gauge, ["stage"], "How long ago the node of the oldest release in that stage was proven off";
    RELEASE_ATTEMPTS = "picket_release_attempts_total", Kind::Counter, ["release", "result"], "Attempts to let volumes go, by the release's name in the settings";

    SIMULATED = "picket_simulated", Kind::Gauge, [], "1 where the gateway is simulated: it switches no real machine";
    LEADING = "picket_leading", Kind::Gauge, [], "1 while this gateway leads";
    TERM = "picket_term", Kind::Gauge, [], "The term in which it leads; 0 while it does not";

    PERMIT = "picket_permit_seconds", Kind::Gauge, [], "How long a leader may still send unless its lease is renewed; 0 once that is over, and not told where no lease bounds it";
    FOLLOWING = "picket_following", Kind::Gauge, [], "1 while another gateway leads and this one tells what is stored";
    STANDING = "picket_standing", Kind::Gauge, [], "1 while this gateway leads or stands for election; 0 while something keeps it from that";
    GATEWAYS = "picket_gateways", Kind::Gauge, ["part"], "Gateways that share the store, this one included, as it sees them: leads, stands_by or aside";
    SETTINGS_DIFFER = "picket_settings_differ", Kind::Gauge, [], "1 while the nodes, devices, rules or roles of this gateway are not those by which the fleet was led last";
    SHOWN_AGE = "picket_shown_age_seconds", Kind::Gauge, [], "How long ago what this gateway tells of nodes was read from the store; 0 while it leads, not told before it was read";
    STORE_AWAY = "picket_store_away_seconds", Kind::Gauge, [], "For how long the store was not heard of, could not be read, or has not answered a write; 0: it is there";

    STORE_WRITES = "picket_store_writes_total", Kind::Counter, ["result"], "Writes to the store; the result is ok or why not";
    STORE_WRITE = "picket_store_write_seconds", Kind::Histogram(SHORT), [], "How long writes to the store took";

    AUDIT_WRITTEN = "picket_audit_written_total", Kind::Counter, [], "Entries of this process that are in the audit";
    AUDIT_LOST = "picket_audit_lost_total", Kind::Counter, [], "Entries for which there was no room";
    AUDIT_FAILING = "picket_audit_failing", Kind::Gauge, [], "1 while the audit cannot be written";

    REQUESTS = "picket_requests_total", Kind::Counter, ["call", "code"], "Requests of callers, by the gRPC code of their first answer";
    REQUEST = "picket_request_seconds", Kind::Histogram(SHORT), ["call"], "From a request to the first of its answer";
    DENIALS = "picket_denials_total", Kind::Counter, ["call", "reason"], "Requests that were refused for lack of a role, of a certificate or of room";
    STREAMS = "picket_streams_open", Kind::Gauge, [], "Streams that are open";
    CALLS = "picket_calls_open", Kind::Gauge, [], "Calls that are being answered";

    CERTIFICATE = "picket_certificate_not_after_seconds", Kind::Gauge, ["use"], "When a certificate of the gateway ends, in seconds since 1970";
    RELOADS = "picket_reloads_total", Kind::Counter, ["result"], "Reloads of the settings: taken, or refused";
    RELOADED = "picket_settings_loaded_timestamp_seconds", Kind::Gauge, [], "When the settings that hold were read, in seconds since 1970";
    LEFT_OUT = "picket_metrics_left_out_total", Kind::Counter, [], "What was not counted because its metric had too many sets of labels";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_and_labels_follow_prometheus_conventions() {
        let names: BTreeSet<&str> = ALL.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), ALL.len());
        for metric in ALL {
            let plain = |name: &str| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
            assert!(metric.name.starts_with("picket_") && plain(metric.name), "{}", metric.name);
            assert_eq!(metric.name.ends_with("_total"), metric.kind == Kind::Counter, "{}", metric.name);
            let is_histogram = matches!(metric.kind, Kind::Histogram(_));
            assert!(!is_histogram || metric.name.ends_with("_seconds"), "{}", metric.name);
            assert!(!metric.help.ends_with('.') && !metric.help.is_empty(), "{}", metric.name);
            for label in metric.labels {
                assert!(plain(label) && !["le", "fence", "caller", "who"].contains(label), "{}", metric.name);
            }
        }
    }
}
