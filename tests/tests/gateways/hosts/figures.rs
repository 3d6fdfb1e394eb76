//! Sums over runs, for people.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use crate::hosts::caller::End;
use crate::hosts::run::Report;

/// What many runs came to.
#[derive(Debug, Default)]
pub struct Sums {
    runs: usize,
    wrong: usize,
    met: BTreeMap<String, usize>,
    ends: BTreeMap<String, usize>,
    times: BTreeMap<String, Vec<Duration>>,
    releases: usize,
    refused: usize,
    repeated: usize,
    beats: usize,
    margins: Vec<Duration>,
    violations: usize,
    /// Takeovers that took longer than they may, where nothing else was wrong.
    late: usize,
}

impl Sums {
    pub fn add(&mut self, report: &Report) {
        self.runs += 1;
        self.wrong += usize::from(!report.faults.is_empty());
        for met in &report.met {
            *self.met.entry(met.what.clone()).or_default() += 1;
            if let Some(time) = met.ended_in {
                self.times.entry("SIGTERM to the end of the process".to_owned()).or_default().push(time);
            }
        }
        for (what, end) in &report.ends {
            let how = match end {
                End::Done => "done",
                End::Person(_) => "a person has to look",
            };
            *self.ends.entry(format!("{what}: {how}")).or_default() += 1;
        }
        for takeover in &report.takeovers {
            let how = if takeover.alone { "nothing else wrong" } else { "other misfortunes meanwhile" };
            let name = format!("{} to the next device call, {how}", takeover.what);
            self.times.entry(name).or_default().push(takeover.time);
            self.late += usize::from(takeover.alone && takeover.time > takeover.bound());
        }
        let verdict = &report.verdict;
        self.releases += verdict.releases;
        self.refused += verdict.refused;
        self.repeated += verdict.repeated;
        self.beats += verdict.beats;
        self.violations += verdict.violations.len();
        self.margins.extend(verdict.margin_ms.iter().flatten().map(|millis| Duration::from_millis(*millis)));
    }

    /// All of it, in lines.
    pub fn told(&self) -> String {
        let mut text = format!(
            "{} runs, {} wrong; {} violations of the law; {} releases, {} asked again, {} refused; {} heartbeats seen\n",
            self.runs, self.wrong, self.violations, self.releases, self.repeated, self.refused, self.beats
        );
        let least = self.margins.iter().min().copied().unwrap_or_default();
        let _ = writeln!(text, "least time from the last heartbeat to its release: {} ms", least.as_millis());
        for (what, count) in self.met.iter().chain(&self.ends) {
            let _ = writeln!(text, "{count:6}  {what}");
        }
        let _ = writeln!(
            text,
            "{:6}  takeovers longer than their bound, where nothing else was wrong",
            self.late
        );
        for (what, times) in &self.times {
            let _ = writeln!(text, "{what}: {}", spread(times));
        }
        text
    }
}

/// Least, half, nine tenths, 99 of 100, most.
fn spread(times: &[Duration]) -> String {
    let mut sorted: Vec<u128> = times.iter().map(Duration::as_millis).collect();
    sorted.sort_unstable();
    let at = |percent: usize| sorted[((sorted.len() - 1) * percent).div_ceil(100)];
    format!(
        "{} times; {} ms at least, p50 {}, p90 {}, p99 {}, {} at most",
        sorted.len(),
        at(0),
        at(50),
        at(90),
        at(99),
        at(100)
    )
}
