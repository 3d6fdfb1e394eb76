//! The login that a program printed, for as long as it is good.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::plugin::{Credential, Plugin};
use crate::{FaultLocation, Wrong};

/// How long before its end another one is asked for.
const AHEAD: Duration = Duration::from_secs(60);
/// How soon the program is run again after it failed, or after what it printed was refused at once.
const AGAIN: Duration = Duration::from_secs(5);

/// Shared by all whom the settings log in alike: of many that ask at once one runs the program. Its debug print says nothing (S18).
#[derive(Clone)]
pub(crate) struct CachedLogin {
    state: Arc<Mutex<State>>,
    again: Duration,
}

#[derive(Default)]
struct State {
    /// Whose it is: a kubeconfig may be replaced.
    of: Option<Plugin>,
    good: Option<ValidLogin>,
    failed: Option<(Instant, Wrong)>,
    number: u64,
    /// The program runs for another one while this one is good.
    renews: bool,
}

impl State {
    /// What the program came to, and until then that one was `good`.
    fn heard(
        &mut self,
        ran: Result<Credential, Wrong>,
        good: Option<ValidLogin>,
        again: Duration,
    ) -> Result<ValidLogin, Wrong> {
        match ran {
            Ok(credential) => {
                self.number += 1;
                let since = SystemTime::now();
                let renewed = renewed(since, credential.end);
                let credential = Arc::new(credential);
                let made = ValidLogin { credential, number: self.number, since, renewed, refused: false };
                (self.good, self.failed) = (Some(made.clone()), None);
                Ok(made)
            }
            Err(wrong) => {
                self.failed = Some((Instant::now() + again, wrong.clone()));
                // Until its end the one before is as good as it was.
                good.ok_or(wrong)
            }
        }
    }
}

/// A login that is good by this machine's clock.
#[derive(Clone)]
pub(crate) struct ValidLogin {
    pub(crate) credential: Arc<Credential>,
    /// Each has another one.
    pub(crate) number: u64,
    since: SystemTime,
    renewed: SystemTime,
    /// The API server did not believe it.
    refused: bool,
}

impl Default for CachedLogin {
    fn default() -> Self {
        Self { state: Arc::default(), again: AGAIN }
    }
}

impl std::fmt::Debug for CachedLogin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Kept(..)")
    }
}

impl CachedLogin {
    /// The one that is good, or another one. While one is good nobody waits for the program: what is asked may be urgent (K3).
    ///
    /// # Errors
    /// The program has none to give, now or a moment ago.
    pub(crate) async fn current(&self, plugin: &Plugin) -> Result<ValidLogin, Wrong> {
        let mut state = self.state.clone().lock_owned().await;
        if state.of.as_ref() != Some(plugin) {
            *state = State { of: Some(plugin.clone()), number: state.number, ..State::default() };
        }
        let now = SystemTime::now();
        let good = state.good.clone().filter(|good| good.since <= now && now < good.credential.end);
        if let Some(good) = good.as_ref().filter(|good| now < good.renewed) {
            return Ok(good.clone());
        }
        if let Some((_, wrong)) = state.failed.as_ref().filter(|(until, _)| Instant::now() < *until) {
            return good.ok_or_else(|| wrong.clone());
        }
        if let Some(good) = good.as_ref().filter(|good| !good.refused) {
            if !std::mem::replace(&mut state.renews, true) {
                tokio::spawn(self.clone().renew(plugin.clone()));
            }
            return Ok(good.clone());
        }
        let (plugin, again) = (plugin.clone(), self.again);
        // Whoever asks may have less time than the program: then the next one has what it prints.
        let ran = tokio::spawn(async move {
            let ran = plugin.run().await;
            state.heard(ran, good, again)
        });
        ran.await
            .unwrap_or_else(|lost| Err(Wrong::at(FaultLocation::Program, format!("login_program: {lost}"))))
    }

    async fn renew(self, plugin: Plugin) {
        let ran = plugin.run().await;
        let mut state = self.state.lock().await;
        if state.of.as_ref() == Some(&plugin) {
            state.renews = false;
            let _ = state.heard(ran, None, self.again);
        }
    }

    /// The API server does not believe that one (any more).
    pub(crate) async fn refused(&self, number: u64) {
        let mut state = self.state.lock().await;
        if let Some(good) = state.good.as_mut().filter(|good| good.number == number) {
            // Whom it does not know at all it will not know by another one either.
            good.renewed = good.renewed.min(good.since + self.again);
            good.refused = true;
        }
    }

    #[cfg(test)]
    pub(crate) async fn is_to_be_renewed(&self) {
        let mut state = self.state.lock().await;
        state.good.as_mut().expect("it printed one").renewed = SystemTime::UNIX_EPOCH;
    }

    #[cfg(test)]
    pub(crate) fn hasty() -> Self {
        Self { again: Duration::ZERO, ..Self::default() }
    }
}

/// When another one is asked for: the clocks of the two sides may differ, and the program may fail at first.
fn renewed(since: SystemTime, end: SystemTime) -> SystemTime {
    let life = end.duration_since(since).unwrap_or_default();
    end - AHEAD.min(life / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_one_is_asked_for_a_minute_before_the_end_or_at_half_of_a_short_life() {
        let since = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        for (life, left) in [(3_600, 60), (120, 60), (60, 30), (0, 0)] {
            let end = since + Duration::from_secs(life);
            assert_eq!(renewed(since, end), end - Duration::from_secs(left), "{life}");
        }
    }
}
