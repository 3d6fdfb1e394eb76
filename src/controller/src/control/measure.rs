//! How many there are of what.

use std::collections::BTreeMap;

use super::Control;
use crate::decider::{BrakeSign, Judgement, SkipReason, Stage, Verdict};
use crate::measured::{BRAKED, NODES, POLICIES};

/// As a metric has it.
pub(super) fn count(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

impl Control {
    pub(super) fn measure(&self, judgement: &Judgement) {
        let mut counts: BTreeMap<&str, f64> = BTreeMap::new();
        for verdict in judgement.verdicts.values() {
            *counts.entry(word(verdict)).or_default() += 1.0;
        }
        self.metrics.clear(&NODES);
        for (word, count) in counts {
            self.metrics.set(&NODES, &[word], count);
        }
        let right = judgement.reports.iter().filter(|report| report.faults.is_empty()).count();
        self.metrics.set(&POLICIES, &["true"], count(right));
        self.metrics.set(&POLICIES, &["false"], count(self.policies.len().saturating_sub(right)));
        for sign in BrakeSign::ALL {
            let braked = judgement.braked.iter().filter(|braked| braked.sign == sign).count();
            self.metrics.set(&BRAKED, &[sign.word()], count(braked));
        }
    }
}

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Fence(_) => Stage::Asking.word(),
        Verdict::Follow(stage) => stage.word(),
        Verdict::Leave(SkipReason::Healthy) => "healthy",
        Verdict::Leave(SkipReason::Nobody(_)) => "no policy",
        Verdict::Leave(SkipReason::Watching { .. } | SkipReason::Heard(_)) => "watched",
        Verdict::Leave(SkipReason::NotLeading) => "due",
        Verdict::Leave(_) => "withheld",
    }
}
