//! What is counted. `docs/controller-tells.md` lists the same; a test holds it.

use picket_metrics::{Kind, LEFT_OUT, Metric, Metrics};

macro_rules! metrics {
    ($($id:ident = $name:literal, $kind:expr, [$($label:literal),*], $help:literal;)*) => {
        $(
            #[doc = concat!("`", $name, "`: ", $help)]
            pub static $id: Metric = Metric { name: $name, kind: $kind, help: $help, labels: &[$($label),*] };
        )*
        /// All of them.
        pub static ALL: &[&Metric] = &[$(&$id,)* &LEFT_OUT];
    };
}

metrics! {
    BUILD_INFO = "picket_controller_build_info", Kind::Gauge, ["version"], "Always 1; which version runs";
    LEADING = "picket_controller_leading", Kind::Gauge, [], "1 while this replica leads";
    NODES = "picket_controller_nodes", Kind::Gauge, ["verdict"], "Nodes by what is found of them";
    POLICIES = "picket_controller_policies", Kind::Gauge, ["accepted"], "FencingPolicies that are right, and that are not";
    WISHES = "picket_controller_remediations", Kind::Gauge, ["phase"], "PicketRemediations by how far they are";
    STUCK = "picket_controller_remediations_stuck", Kind::Gauge, [], "PicketRemediations that are deleted and stand for their hold: their Node is not Ready, or the hold cannot be dropped";
    BRAKED = "picket_controller_braked", Kind::Gauge, ["by"], "Zones, policies, and the cluster as a whole, of which nothing is fenced because too many leases stand still, or too many Nodes are unhealthy";
    ASKED = "picket_controller_fences_asked_total", Kind::Counter, [], "Requests for a fence, each time one is decided";
    ENDED = "picket_controller_fences_ended_total", Kind::Counter, ["reason"], "Ends of such requests, by the reason of their Event";
    SEEN = "picket_controller_watch_events_total", Kind::Counter, ["what"], "What watches told: nodes, leases, fencingpolicies, picketremediations";
    SUSPECTED = "picket_controller_suspects", Kind::Gauge, [], "Nodes that failed and want to be read every two seconds; of more than 128 those that failed last wait for their turn";
    LOOKS = "picket_controller_looks_total", Kind::Counter, [], "Rounds of looks at Nodes that are not healthy";
    BROKEN = "picket_controller_watch_breaks_total", Kind::Counter, ["what"], "Watches that broke or could not begin";
    UNTOLD = "picket_controller_untold_total", Kind::Counter, [], "Events, notes and statuses that could not be told";
}

/// All of them, nothing counted yet.
pub fn metrics() -> Metrics {
    let metrics = Metrics::of(ALL);
    metrics.set(&BUILD_INFO, &[env!("CARGO_PKG_VERSION")], 1.0);
    metrics
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_lists_every_metric() {
        let page = include_str!("../../../docs/controller-tells.md");
        for metric in ALL {
            let row = format!("| `{}` |", metric.name);
            assert!(page.contains(&row), "{row} is missing");
        }
    }

    #[test]
    fn alerts_ask_for_metrics_that_there_are() {
        let rules = include_str!("../../../deploy/prometheus/picket.rules.yaml");
        let rules: serde_json::Value = serde_saphyr::from_str(rules).expect("it is YAML");
        let rules = rules["groups"][1]["rules"].as_array().expect("the controller's");
        assert!(rules.len() >= 4);
        for rule in rules {
            let expression = rule["expr"].as_str().expect("a text");
            let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            for name in words.filter(|word| word.starts_with("picket_")) {
                assert!(ALL.iter().any(|metric| metric.name == name), "{expression}: there is no {name}");
            }
            assert!(rule["annotations"]["description"].is_string(), "{expression}");
        }
    }

    #[test]
    fn nothing_of_the_gateway_s_is_exported() {
        let text = metrics().text(|_| {});
        assert!(
            text.contains("picket_controller_fences_asked_total 0") && !text.contains("picket_breaches"),
            "{text}"
        );
    }
}
