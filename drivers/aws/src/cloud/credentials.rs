//! Credentials, whose loading goes on where whoever asked for them has left: else a source that takes longer than a call would never give any.

use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{ProvideCredentials, Result, SharedCredentialsProvider, future};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::unheard;

/// How long whoever gives them may take. A call is shorter, and ends without them; who asks next has them.
pub(super) const WITHIN: Duration = Duration::from_secs(60);
/// What nobody fetched for so long is not used, nor what ends so soon.
const FRESH: Duration = Duration::from_secs(60);

/// Those of AWS's standard chain.
#[derive(Debug)]
pub(super) struct BackgroundCredentials {
    of: SharedCredentialsProvider,
    going: Mutex<Option<JoinHandle<(Result, Instant)>>>,
}

impl BackgroundCredentials {
    pub(super) fn new(of: SharedCredentialsProvider) -> Self {
        Self { of, going: Mutex::default() }
    }

    async fn loaded(&self) -> Result {
        let mut going = self.going.lock().await;
        loop {
            let lay_there = going.as_ref().is_some_and(JoinHandle::is_finished);
            let ended = going.get_or_insert_with(|| tokio::spawn(unheard(load(self.of.clone())))).await;
            *going = None;
            match ended {
                // Whoever asked for it left: what it came to then says little of now.
                Ok((loaded, at)) if lay_there && !is_good(&loaded, at) => {}
                Ok((loaded, _)) => return loaded,
                Err(_) => return Err(CredentialsError::unhandled("what loads them ended")),
            }
        }
    }
}

async fn load(of: SharedCredentialsProvider) -> (Result, Instant) {
    let loaded = timeout(WITHIN, of.provide_credentials()).await;
    (loaded.unwrap_or_else(|_elapsed| Err(CredentialsError::provider_timed_out(WITHIN))), Instant::now())
}

fn is_good(loaded: &Result, at: Instant) -> bool {
    let lasts = |end: SystemTime| end > SystemTime::now() + FRESH;
    at.elapsed() <= FRESH && loaded.as_ref().is_ok_and(|loaded| loaded.expiry().is_none_or(lasts))
}

impl ProvideCredentials for BackgroundCredentials {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        future::ProvideCredentials::new(self.loaded())
    }

    fn fallback_on_interrupt(&self) -> Option<Credentials> {
        self.of.fallback_on_interrupt()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use tokio::time::sleep;

    use super::*;

    /// Somewhere far away, which has taken so many seconds each time; the fifth time it fails, and what it gives the seventh time ends soon.
    #[derive(Clone, Debug, Default)]
    struct Slow(Arc<AtomicU64>);

    impl ProvideCredentials for Slow {
        fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
        where
            Self: 'a,
        {
            future::ProvideCredentials::new(async {
                let number = self.0.fetch_add(1, Ordering::SeqCst) + 1;
                sleep(Duration::from_secs(7)).await;
                let ends = (number == 7).then(|| SystemTime::now() + Duration::from_secs(30));
                match number {
                    5 => Err(CredentialsError::not_loaded("far away")),
                    8 => std::future::pending().await,
                    _ => Ok(Credentials::new(number.to_string(), "secret", None, ends, "slow")),
                }
            })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_load_goes_on_when_whoever_asked_has_left_and_what_it_gave_is_used_while_it_is_good() {
        let slow = Slow::default();
        let lasting = BackgroundCredentials::new(SharedCredentialsProvider::new(slow.clone()));
        let ask = async |seconds| {
            let asked = timeout(Duration::from_secs(seconds), lasting.provide_credentials()).await;
            asked.ok().map(|loaded| loaded.map(|given| given.access_key_id().to_owned()))
        };
        let given = |number: u64| Some(number.to_string());
        let good = |asked: Option<std::result::Result<String, CredentialsError>>| {
            asked.map(|asked| asked.expect("credentials"))
        };
        assert_eq!(good(ask(5).await), None);
        assert_eq!(good(ask(5).await), given(1), "the same load");
        assert_eq!(good(ask(5).await), None, "what is given is given once: it is kept elsewhere");
        sleep(FRESH / 2).await;
        assert_eq!(good(ask(5).await), given(2), "it lay there");
        assert_eq!(good(ask(5).await), None);
        sleep(FRESH * 2).await;
        assert_eq!(good(ask(10).await), given(4), "the third lay there for too long");
        assert_eq!(good(ask(5).await), None);
        sleep(FRESH / 2).await;
        assert_eq!(good(ask(10).await), given(6), "that the fifth failed says nothing of now");
        assert_eq!(good(ask(5).await), None);
        sleep(FRESH / 2).await;
        let hangs = ask(100).await.expect("in time").expect_err("the seventh ended soon, the eighth hangs");
        assert!(matches!(hangs, CredentialsError::ProviderTimedOut(_)), "{hangs:?}");
        assert_eq!(good(ask(10).await), given(9));
    }
}
