//! The handle with which every room counts.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::table::{ALL, Bound, Kind, LEFT_OUT, Metric, TROUBLE, TROUBLE_UNTOLD};

/// So many sets of labels a metric has at most.
pub const MOST: usize = 2_000;
/// So many nodes in trouble are named.
const NAMED: usize = 200;

type Labels = Vec<(&'static str, String)>;

enum Of {
    Counters(Family<Labels, Counter>),
    Gauges(Family<Labels, Gauge<f64, AtomicU64>>),
    Histograms(Family<Labels, Histogram, Buckets>),
}

#[derive(Clone, Copy)]
struct Buckets(&'static [Bound]);

impl prometheus_client::metrics::family::MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().map(|bound| f64::from(*bound) / 1_000.0))
    }
}

/// All metrics of a process. Cheap to clone; all clones count the same.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Registry,
    families: BTreeMap<&'static str, Of>,
    /// The sets of labels of each metric; and held while gauges are told anew, so that no reader sees half of them.
    known: Mutex<BTreeMap<&'static str, std::collections::HashSet<Labels>>>,
    reading: Mutex<()>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Default for Metrics {
    /// All metrics of the gateway's table, nothing counted yet.
    fn default() -> Self {
        Self::of(ALL)
    }
}

impl Metrics {
    /// All metrics of a table, nothing counted yet. What has too many sets of labels is counted where [`LEFT_OUT`] is one of them.
    pub fn of(all: &'static [&'static Metric]) -> Self {
        let mut registry = Registry::default();
        let mut families = BTreeMap::new();
        for metric in all {
            // The encoder puts the ending of counters back,.
            let name = metric.name.strip_suffix("_total").unwrap_or(metric.name);
            let of = match metric.kind {
                Kind::Counter => {
                    let family = Family::default();
                    registry.register(name, metric.help, family.clone());
                    Of::Counters(family)
                }
                Kind::Gauge => {
                    let family = Family::default();
                    registry.register(name, metric.help, family.clone());
                    Of::Gauges(family)
                }
                Kind::Histogram(bounds) => {
                    let family = Family::new_with_constructor(Buckets(bounds));
                    registry.register(name, metric.help, family.clone());
                    Of::Histograms(family)
                }
            };
            families.insert(metric.name, of);
        }
        let inner = Inner { registry, families, known: Mutex::default(), reading: Mutex::default() };
        let metrics = Self(Arc::new(inner));
        for metric in all.iter().filter(|metric| metric.kind == Kind::Counter && metric.labels.is_empty()) {
            metrics.add(metric, &[], 0);
        }
        metrics
    }

    /// The labels of a sample; `None`: there are too many of that metric already.
    fn labels(&self, metric: &'static Metric, values: &[&str]) -> Option<Labels> {
        debug_assert_eq!(metric.labels.len(), values.len(), "{}", metric.name);
        let labels: Labels =
            metric.labels.iter().zip(values).map(|(name, value)| (*name, (*value).to_owned())).collect();
        let mut known = self.0.known.lock();
        let sets = known.entry(metric.name).or_default();
        if !sets.contains(&labels) {
            if sets.len() >= MOST {
                drop(known);
                if !std::ptr::eq(metric, &LEFT_OUT) {
                    self.count(&LEFT_OUT, &[]);
                }
                return None;
            }
            sets.insert(labels.clone());
        }
        Some(labels)
    }

    /// Counts one more. The values stand in the order of the metric's labels.
    pub fn count(&self, metric: &'static Metric, values: &[&str]) {
        self.add(metric, values, 1);
    }

    /// Counts so many more.
    pub fn add(&self, metric: &'static Metric, values: &[&str], more: u64) {
        if let (Some(Of::Counters(family)), Some(labels)) =
            (self.0.families.get(metric.name), self.labels(metric, values))
        {
            family.get_or_create(&labels).inc_by(more);
        }
    }

    /// A count that somebody else keeps stands at `now`.
    pub fn stands_at(&self, metric: &'static Metric, now: u64) {
        if let (Some(Of::Counters(family)), Some(labels)) =
            (self.0.families.get(metric.name), self.labels(metric, &[]))
        {
            let counter = family.get_or_create(&labels);
            counter.inc_by(now.saturating_sub(counter.get()));
        }
    }

    /// It is so now.
    pub fn set(&self, metric: &'static Metric, values: &[&str], now: f64) {
        if let (Some(Of::Gauges(family)), Some(labels)) =
            (self.0.families.get(metric.name), self.labels(metric, values))
        {
            family.get_or_create(&labels).set(now);
        }
    }

    /// It took so long.
    pub fn took(&self, metric: &'static Metric, values: &[&str], time: Duration) {
        if let (Some(Of::Histograms(family)), Some(labels)) =
            (self.0.families.get(metric.name), self.labels(metric, values))
        {
            family.get_or_create(&labels).observe(time.as_secs_f64());
        }
    }

    /// Forgets what a gauge said: what is not said again is not exported any more.
    pub fn clear(&self, metric: &'static Metric) {
        if let Some(Of::Gauges(family)) = self.0.families.get(metric.name) {
            family.clear();
            self.0.known.lock().remove(metric.name);
        }
    }

    /// These nodes are in trouble, each with its trouble: the first 200 by name, of all others how many there are.
    pub fn troubled<'a>(&self, troubles: impl IntoIterator<Item = (&'a str, &'a str)>) {
        self.clear(&TROUBLE);
        let mut troubles = troubles.into_iter();
        for (node, trouble) in troubles.by_ref().take(NAMED) {
            self.set(&TROUBLE, &[node, trouble], 1.0);
        }
        self.set(&TROUBLE_UNTOLD, &[], troubles.count() as f64);
    }

    /// Everything, in OpenMetrics' text form, which Prometheus reads. `tell` tells before how things are now; of several
    /// readers one after the other does.
    pub fn text(&self, tell: impl FnOnce(&Self)) -> String {
        let _reading = self.0.reading.lock();
        tell(self);
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.0.registry);
        // A metric without labels has none, rather than an empty set of them; no text within it has these signs.
        text.replace("{} ", " ")
    }

    /// The content type of [`Metrics::text`].
    pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{DENIALS, FENCE_PART, NODES};

    #[test]
    fn what_is_counted_stands_in_the_text_by_the_name_in_the_table() {
        let metrics = Metrics::default();
        metrics.count(&DENIALS, &["Fence", "ROLE_MISSING"]);
        metrics.took(&FENCE_PART, &["confirmed"], Duration::from_millis(1_500));
        let text = metrics.text(|metrics| metrics.set(&NODES, &["normal"], 3.0));
        for line in [
            "# TYPE picket_denials counter",
            "picket_denials_total{call=\"Fence\",reason=\"ROLE_MISSING\"} 1",
            "picket_fence_part_seconds_bucket{le=\"2.0\",part=\"confirmed\"} 1",
            "picket_nodes{phase=\"normal\"} 3.0",
            "picket_breaches_total 0",
            "# EOF",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        metrics.clear(&NODES);
        assert!(!metrics.text(|_| {}).contains("picket_nodes{"));
    }

    #[test]
    fn a_metric_has_no_more_sets_of_labels_than_it_may() {
        let metrics = Metrics::default();
        for number in 0..MOST + 7 {
            metrics.count(&DENIALS, &[&format!("c{number}"), "LIMIT"]);
        }
        let text = metrics.text(|_| {});
        assert_eq!(text.lines().filter(|line| line.starts_with("picket_denials_total{")).count(), MOST);
        assert!(text.contains("picket_metrics_left_out_total 7"), "{text}");
    }

    #[test]
    fn of_many_nodes_in_trouble_some_are_named_and_all_others_counted() {
        let metrics = Metrics::default();
        let names: Vec<String> = (0..NAMED + 5).map(|number| format!("n{number}")).collect();
        let text =
            metrics.text(|metrics| metrics.troubled(names.iter().map(|name| (name.as_str(), "breach"))));
        let named = text.lines().filter(|line| line.starts_with("picket_node_trouble{")).count();
        assert_eq!(named, 200);
        assert!(text.contains("picket_node_trouble_untold 5"), "{text}");
        // Whoever is well again is named no more.
        let text = metrics.text(|metrics| metrics.troubled([("n7", "barred")]));
        let named: Vec<&str> = text.lines().filter(|line| line.starts_with("picket_node_trouble{")).collect();
        assert_eq!(named, ["picket_node_trouble{node=\"n7\",trouble=\"barred\"} 1.0"]);
        assert!(text.contains("picket_node_trouble_untold 0"), "{text}");
    }

    #[test]
    fn a_count_that_others_keep_only_grows() {
        let metrics = Metrics::default();
        metrics.stands_at(&crate::table::AUDIT_LOST, 5);
        metrics.stands_at(&crate::table::AUDIT_LOST, 3);
        assert!(metrics.text(|_| {}).contains("picket_audit_lost_total 5"));
    }
}
