//! Credentials, whose loading goes on where whoever asked for them has left: else a source that takes longer than a call would never give any.

use std::time::Duration;

use aws_credential_types::Credentials;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{ProvideCredentials, Result, SharedCredentialsProvider, future};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::unheard;

/// What nobody fetched for so long may have expired.
const FRESH: Duration = Duration::from_secs(60);

/// Those of AWS's standard chain.
#[derive(Debug)]
pub(super) struct Lasting {
    of: SharedCredentialsProvider,
    going: Mutex<Option<JoinHandle<(Result, Instant)>>>,
}

impl Lasting {
    pub(super) fn new(of: SharedCredentialsProvider) -> Self {
        Self { of, going: Mutex::default() }
    }

    async fn loaded(&self) -> Result {
        let mut going = self.going.lock().await;
        loop {
            let task = going.get_or_insert_with(|| {
                let of = self.of.clone();
                tokio::spawn(unheard(async move { (of.provide_credentials().await, Instant::now()) }))
            });
            let ended = task.await;
            *going = None;
            match ended {
                Ok((_, at)) if at.elapsed() > FRESH => {}
                Ok((loaded, _)) => return loaded,
                Err(error) => return Err(CredentialsError::unhandled(error)),
            }
        }
    }
}

impl ProvideCredentials for Lasting {
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
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::time::{sleep, timeout};

    use super::*;

    /// Somewhere far away.
    #[derive(Clone, Debug, Default)]
    struct Slow(Arc<AtomicUsize>);

    impl ProvideCredentials for Slow {
        fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
        where
            Self: 'a,
        {
            future::ProvideCredentials::new(async {
                let number = self.0.fetch_add(1, Ordering::SeqCst);
                sleep(Duration::from_secs(7)).await;
                Ok(Credentials::new(number.to_string(), "secret", None, None, "slow"))
            })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_load_goes_on_when_whoever_asked_has_left_and_what_it_gave_is_used_while_it_is_fresh() {
        let slow = Slow::default();
        let lasting = Lasting::new(SharedCredentialsProvider::new(slow.clone()));
        let ask = async |seconds| {
            let asked = timeout(Duration::from_secs(seconds), lasting.provide_credentials()).await;
            asked.ok().map(|loaded| loaded.expect("credentials").access_key_id().to_owned())
        };
        assert_eq!(ask(5).await, None);
        assert_eq!(ask(5).await, Some("0".to_owned()), "the same load");
        assert_eq!(ask(5).await, None, "each that is given is given once: they are kept elsewhere");
        sleep(FRESH * 2).await;
        assert_eq!(ask(5).await, None, "what lay there is as old as that");
        assert_eq!(ask(5).await, Some("2".to_owned()));
        assert_eq!(slow.0.load(Ordering::SeqCst), 3);
    }
}
