//! A message of a stream, on one line.

use picket_proto::v1::{DeviceReading, FenceUpdate, Power, Wait};

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

/// Whether it tells that a request waits in the queue, and no fence is begun.
pub fn is_queued(update: &FenceUpdate) -> bool {
    update.fence_id.is_empty() && update.wait.is_some()
}

/// What a device read: on in capitals, since it is to be off.
pub fn reads(reading: &DeviceReading) -> String {
    let power = match reading.power() {
        Power::On => "reads ON",
        Power::Off => "reads off",
        Power::Unknown | Power::Unspecified => "answers neither on nor off",
    };
    format!("{} {power}", reading.device)
}

/// What is waited for, and whose it is.
pub fn waits(wait: &Wait) -> String {
    format!("waits for {}", node_text::waited(wait))
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
