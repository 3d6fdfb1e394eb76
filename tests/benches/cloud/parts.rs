//! What is counted.

use std::collections::BTreeMap;

/// Requests by what they ask: how many there were, and how many of these limits refused.
#[derive(Clone, Debug, Default)]
pub struct Counts(pub BTreeMap<String, [u64; 2]>);

impl Counts {
    /// What came since then.
    pub fn since(&self, before: &Self) -> Self {
        let then = |action: &String| before.0.get(action).copied().unwrap_or_default();
        let grown = self.0.iter().map(|(action, now)| {
            let then = then(action);
            (action.clone(), [now[0] - then[0], now[1] - then[1]])
        });
        Self(grown.filter(|(_, [came, _])| *came > 0).collect())
    }

    /// All of them.
    pub fn all(&self) -> u64 {
        self.0.values().map(|[came, _]| came).sum()
    }

    /// Those that limits refused.
    pub fn limited(&self) -> u64 {
        self.0.values().map(|[_, limited]| limited).sum()
    }

    /// For people.
    pub fn words(&self) -> String {
        self.0.iter().map(|(action, [came, _])| format!("{action} {came}")).collect::<Vec<_>>().join(", ")
    }
}
