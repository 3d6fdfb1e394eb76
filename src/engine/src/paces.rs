//! The pauses and the patience of a node: every time, and every number of tries, that no setting gives.
//!
//! They come with the node's plan, so that a model may set each of them to its own ticks. The daemon has
//! the defaults. The numbers of the rules are core's (`rules`).

use std::time::Duration;

/// Pauses between tries of what fails: each is twice as long as the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// After the first failure; longer than zero.
    pub first: Duration,
    /// The longest; at least the first.
    pub longest: Duration,
}

impl Backoff {
    const fn millis(first: u64, longest: u64) -> Self {
        Self { first: Duration::from_millis(first), longest: Duration::from_millis(longest) }
    }

    /// The pause that follows one of `pause`.
    pub fn after(&self, pause: Duration) -> Duration {
        (pause * 2).min(self.longest)
    }

    /// The pause after something failed `before` times already; 0: the first.
    pub fn after_failures(&self, before: u32) -> Duration {
        self.first.saturating_mul(2_u32.saturating_pow(before)).min(self.longest)
    }
}

/// The pauses and the patience of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paces {
    /// Between tries of a step that the store did not take. A store that restarts is back within seconds.
    pub store: Backoff,
    /// A store that does not answer for so long is told, then at twice that, and so on. A healthy one answers within milliseconds.
    pub store_hangs: Duration,
    /// A request waits no longer than this behind a store that does not answer. Callers have about a minute.
    pub store_patience: Duration,
    /// Wait after a step of our own that the rules refused. A defect must not spin.
    pub refused_step: Duration,
    /// Between looks after a store that took longer than readings are fresh. What refuses at once may answer a moment later.
    pub old_readings: Duration,

    /// Between readings of power while volumes are being let go, or while a proof waits for the store. A look serves for as long.
    pub power_watch: Duration,
    /// Looks without an Off in a row after which the evidence begins from zero (S4). One lost answer is no silence.
    pub looks_without_off: u32,
    /// How long a look waits for devices that it must hear, where nothing hurries. Each call, with its turn, ends within that.
    pub longest_look: Duration,
    /// A look for one child serves the others at least so long. Children of one machine ask at the same time (S22).
    pub shared_look: Duration,
    /// Who was found to be told a shared look is told it still so much later.
    pub shared_look_grace: Duration,
    /// How long a look for children waits for host devices besides those that prove. Their readings go on.
    pub child_look: Duration,

    /// Between a breach and the offs after the first one. Whoever switches the node on again and again is not to be raced.
    pub breach: Backoff,
    /// Between tries of a device that failed, where its settings say nothing. A BMC is busy for moments, and restarts for minutes.
    pub device: Backoff,
    /// How often a hold is tried anew that never left this process. It must not keep the off from the device.
    pub unsent_holds: u32,
    /// How often a hold is tried after the releases, and one that somebody undid. A device may refuse it for good.
    pub late_holds: u32,
    /// Between looks whether a pause, or a limit, is over.
    pub bar: Duration,
    /// How long a fence waits at most where nothing has a time.
    pub idle: Duration,
    /// An answer of the liveness source serves for the first off so long. It is asked again after that.
    pub liveness_serves: Duration,
    /// Between questions to a liveness source that is away.
    pub liveness_away: Duration,
    /// How long a sign of life is waited for. A kubelet gives one every ten seconds.
    pub life_sign: Duration,
    /// Between questions whether the node recovered, while a person is waited for and nothing was sent.
    pub liveness_watch: Duration,
    /// The longest pause between offs that are sent while a person is waited for.
    pub longest_off_pause: Duration,

    /// How long the end of a session may take beside the longest life of what was sent in it. A driver that waits that life out may
    /// ask before whether it is over, and each question renews it.
    pub session_close: Duration,
    /// Between tries to end the same session of another process.
    pub session_end: Backoff,
    /// How often that is tried before a person is asked about what nothing else bounds.
    pub session_end_tries: u32,

    /// Between attempts of a release.
    pub release: Backoff,
    /// So many attempts that had something to do before are followed by the next at once. What comes back again and again is not
    /// chased faster.
    pub release_at_once: u32,
    /// What was taken has at least this part of its release's deadline before it is forced: 8 is an eighth. Not 0.
    pub release_force_part: u32,
    /// Confirmations that do not hold until the release, before a person is asked.
    pub failed_proofs: u32,

    /// How long the first announcement of a fence may take. The off goes beside it; a later one has as long as an attempt.
    pub first_announcement: Duration,
    /// Between announcements that were not answered.
    pub announcement: Backoff,
    /// Between tries to keep others from remediating the machine (K8).
    pub exclusion: Backoff,
    /// Between comparisons of whom the far side has with whom the fence met, at least (K1).
    pub comparison: Duration,
    /// The same in watches of power: a fleet that is watched seldom is compared seldom.
    pub comparison_watches: u32,
    /// How long what stands may keep a breach, or the next evidence, from being stored (K3).
    pub withdrawal_at_once: Duration,
    /// Between withdrawals of what stands.
    pub withdrawal: Backoff,
    /// Between tries to take away what a release left on a node that is back.
    pub cleanup: Backoff,
    /// What is left for longer wants a person.
    pub cleanup_patience: Duration,
    /// Between rounds of that. They find what came since, by a hand or by a process that had stood still.
    pub cleanup_round: Duration,
    /// A leader that did not see a fence takes away what is left of it for so long after the node is back.
    pub cleanup_after: Duration,

    /// Between questions whether a release's far side lets the node be switched on (K2).
    pub clearance: Duration,
    /// How often what stands is taken away before a person is asked who sets it up.
    pub clearance_rounds: u32,
    /// How long the first answer is waited for. A far side that is away, and was not seen to bar it, keeps no node off.
    pub clearance_patience: Duration,
    /// How long that answer holds. An on that goes later asks anew (K7).
    pub clearance_serves: Duration,
    /// How long the renewed answer is waited for. Where none comes, what was known holds.
    pub clearance_renewal: Duration,
    /// How often a device that is to say whose it is says nothing before it is believed not to know (S13).
    pub identity_tries: u32,
    /// Between readings while On is waited for. A provider's interface is asked at its own interval.
    pub on_watch: Duration,
    /// An on that was taken and is not seen is sent again after this. A machine shows On within seconds.
    pub on_repeat: Duration,
    /// Between tries to undo a hold.
    pub unhold: Backoff,
    /// How often that is tried with a device that answers, before the power-on goes first.
    pub unhold_tries: u32,

    /// Until a check that another request ended is made up for. Devices are not asked as often as callers ask.
    pub check_again: Duration,
    /// The longest pause between logins that a device refuses, unless checks are rarer. BMCs lock accounts.
    pub refused_login: Duration,
    /// How long the far sides of releases have for a check of the node.
    pub release_check: Duration,
    /// Between looks of the liveness source while a drill has switched the node off.
    pub drill_watch: Duration,
    /// How long it is asked then. A node that stays off says nothing new.
    pub drill_patience: Duration,
}

impl Default for Paces {
    fn default() -> Self {
        let (ms, s) = (Duration::from_millis, Duration::from_secs);
        Self {
            store: Backoff::millis(250, 5_000),
            store_hangs: s(2),
            store_patience: s(30),
            refused_step: s(1),
            old_readings: s(1),

            power_watch: s(2),
            looks_without_off: 3,
            longest_look: s(3_600),
            shared_look: ms(250),
            shared_look_grace: ms(100),
            child_look: ms(100),

            breach: Backoff::millis(1_000, 64_000),
            device: Backoff::millis(250, 2_000),
            unsent_holds: 3,
            late_holds: 5,
            bar: s(1),
            idle: s(1),
            liveness_serves: ms(500),
            liveness_away: s(1),
            life_sign: s(30),
            liveness_watch: s(30),
            longest_off_pause: s(300),

            session_close: s(90),
            session_end: Backoff::millis(1_000, 30_000),
            session_end_tries: 3,

            release: Backoff::millis(1_000, 30_000),
            release_at_once: 2,
            release_force_part: 8,
            failed_proofs: 5,

            first_announcement: s(1),
            announcement: Backoff::millis(500, 10_000),
            exclusion: Backoff::millis(500, 30_000),
            comparison: s(10),
            comparison_watches: 3,
            withdrawal_at_once: ms(1_500),
            withdrawal: Backoff::millis(500, 5_000),
            cleanup: Backoff::millis(2_000, 60_000),
            cleanup_patience: s(15 * 60),
            cleanup_round: s(10 * 60),
            cleanup_after: s(24 * 60 * 60),

            clearance: s(2),
            clearance_rounds: 3,
            clearance_patience: s(15),
            clearance_serves: s(5),
            clearance_renewal: s(3),
            identity_tries: 10,
            on_watch: ms(500),
            on_repeat: s(15),
            unhold: Backoff::millis(500, 10_000),
            unhold_tries: 5,

            check_again: s(1),
            refused_login: s(3_600),
            release_check: s(5),
            drill_watch: s(1),
            drill_patience: s(600),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backoff_doubles_up_to_its_longest() {
        let backoff = Backoff::millis(250, 2_000);
        let millis = |pause: Duration| pause.as_millis();
        let mut pauses = vec![backoff.first];
        (0..5).for_each(|at| pauses.push(backoff.after(pauses[at])));
        let expected = [250, 500, 1_000, 2_000, 2_000, 2_000];
        assert_eq!(pauses.iter().copied().map(millis).collect::<Vec<_>>(), expected);
        let failures = [0, 1, 2, 3, 40, u32::MAX];
        assert_eq!(failures.map(|before| millis(backoff.after_failures(before))), expected);
    }
}
