//! On which node this gateway stands, where only the far side of a release tells it (S17, K13): that one is found there by another name.
//!
//! **Invariant.** Until it is told this gateway does not stand for election: it could shoot itself.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use picket_core::device::{Identity, IdentityMatch};
use picket_core::record::NodeRecord;
use picket_release::{Machine, Releaser};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::parts::NodePlan;

/// How long one answer is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two questions.
const AGAIN: Duration = Duration::from_secs(5);

/// The machine under this gateway, as its name at the far side of a release tells it.
#[derive(Debug, Default)]
pub struct Own(Option<Asked>);

#[derive(Debug)]
struct Asked {
    name: String,
    of: Arc<dyn Releaser>,
    /// Why it is not told yet.
    told: watch::Sender<Result<Machine, String>>,
}

impl Own {
    /// It has that name at the far side of that release.
    pub fn named(name: String, of: Arc<dyn Releaser>) -> Self {
        let told = watch::Sender::new(Err("nobody was asked yet".to_owned()));
        Self(Some(Asked { name, of, told }))
    }

    /// Whether anybody is to be asked: else the settings say it.
    pub fn is_asked(&self) -> bool {
        self.0.is_some()
    }

    /// Why it is not known; `None`: it is, or the settings say it.
    pub(crate) fn unknown(&self) -> Option<String> {
        let asked = self.0.as_ref()?;
        let why = asked.told.borrow().as_ref().err().cloned()?;
        Some(format!("it does not know yet which of its nodes is {}, on which it stands: {why}", asked.name))
    }

    /// Whether that node is it: by what its cloud calls it, or by what its devices say, or are expected to.
    pub(crate) fn is(&self, plan: &NodePlan, record: &NodeRecord) -> bool {
        let Some(asked) = &self.0 else { return false };
        let told = asked.told.borrow();
        let Ok(own) = &*told else { return false };
        // What a cloud calls it is no other's; a UUID may be.
        if let (Some(own), Some(planned)) = (&own.provider_id, &plan.provider_id) {
            return own == planned;
        }
        let is_own = |known: &Identity| known.compare(&own.identity) == IdentityMatch::Match;
        record.identities(&plan.topology).iter().any(is_own)
    }

    /// Whether what a device says of itself is what the machine under this gateway says.
    pub(crate) fn says(&self, said: &Identity) -> bool {
        let told = self.0.as_ref().map(|asked| asked.told.borrow());
        let own = told.as_ref().and_then(|told| told.as_ref().ok());
        own.is_some_and(|own| own.identity.compare(said) == IdentityMatch::Match)
    }

    /// Asks until it is told.
    pub(crate) async fn learn(&self) -> Infallible {
        if let Some(Asked { name, of, told }) = &self.0 {
            loop {
                let until = Instant::now() + PATIENCE;
                let answer = tokio::time::timeout_at(until, of.machine_named(name, until)).await;
                let answer = answer.unwrap_or_else(|_| Err(format!("no answer within {PATIENCE:?}")));
                let is_told = answer.is_ok();
                let is_news = *told.borrow() != answer;
                if let Some(why) = answer.as_ref().err().filter(|_| is_news) {
                    tracing::warn!(
                        name,
                        why,
                        "where this gateway stands is not told: it does not stand for election"
                    );
                }
                told.send_modify(|told| *told = answer);
                if is_told {
                    break;
                }
                tokio::time::sleep(AGAIN).await;
            }
        }
        std::future::pending().await
    }
}
