//! A message of a stream, on one line.

use std::time::Duration;

use picket_proto::v1::{FenceUpdate, Wait};

use super::{node_text, words};
use crate::duration;
use crate::style::clean;

/// A line for a pipe or a log: when, which node, where it stands, what happened, and with `waits` what is waited for.
pub fn line(update: &FenceUpdate, waits: bool) -> String {
    let at = update.time.as_ref().map(duration::stamp).unwrap_or_default();
    let mut text = format!("{at} {} {}", clean(&update.node), what(update));
    let wait = wait(update);
    if waits && !wait.is_empty() {
        text += &format!("; waits for {wait}");
    }
    text
}

/// Whether its proof is one of a simulation.
pub fn is_simulated(update: &FenceUpdate) -> bool {
    update.evidence.as_ref().is_some_and(|evidence| evidence.simulated)
}

/// The line without its time, node and wait: two messages with the same one tell of nothing that happened.
pub fn what(update: &FenceUpdate) -> String {
    let mut text = words::spoken(words::phase(update.phase));
    if is_simulated(update) {
        text += " (simulated)";
    }
    if update.level > 1 {
        text += &format!(" (level {})", update.level);
    }
    if !update.text.is_empty() {
        text += &format!(": {}", clean(&words::happened(&update.text)));
    }
    text
}

/// What is waited for; empty: nothing.
pub fn wait(update: &FenceUpdate) -> String {
    update.wait.as_ref().map(node_text::wait).unwrap_or_default()
}

/// What is waited for, with the time that is left: `since` after the message was sent.
pub fn live_wait(update: &FenceUpdate, wait: &Wait, since: Duration) -> String {
    let mut text = format!("waits for {}", wait.what);
    if !wait.whose.is_empty() {
        text += &format!(" ({})", wait.whose);
    }
    if let (Some(until), Some(time)) = (&wait.until, &update.time) {
        let left = duration::between(time, until).saturating_sub(since);
        text += &format!(", {} left", duration::whole(left));
    }
    clean(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use picket_proto::v1::{Evidence, Phase};

    use super::*;

    #[test]
    fn a_proof_of_a_simulation_is_told_as_one() {
        let told = |simulated| FenceUpdate {
            phase: Phase::Fenced.into(),
            text: "confirmed off, observed".to_owned(),
            evidence: Some(Evidence { simulated, ..Evidence::default() }),
            ..FenceUpdate::default()
        };
        assert_eq!(what(&told(true)), "fenced (simulated): confirmed off, observed");
        assert_eq!(what(&told(false)), "fenced: confirmed off, observed");
    }
}
