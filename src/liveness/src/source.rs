//! Sources of the settings: one a group, asked for each of its nodes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use picket_answers::liveness::Look;
use picket_core::cluster_node::{Belongs, ClusterNode};
use picket_core::device::Identity;
use picket_core::ids::NodeId;
use picket_reach::program::Program;
use picket_reach::{SettingFault, Settings, unmade};
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep, timeout_at};

use crate::command::Command;
use crate::http::{Http, Probe};
use crate::look::{Liveness, Sign};
use crate::pace::Pace;

/// The kinds that are read here; the gateway reads `kubernetes`, where its build has it.
pub const KINDS: [&str; 2] = ["command", "http"];

/// What is asked about each node of a group: a kind that is made elsewhere.
pub trait Asking: Send + Sync + std::fmt::Debug {
    /// For one node, by its name, or by what its cloud is told by.
    ///
    /// # Errors
    /// The key of the source's table that does not go with that node, and why.
    fn of(&self, node: &NodeId, provider_id: Option<&str>) -> Result<Box<dyn Ask>, SettingFault>;
}

/// What is asked about one node.
#[async_trait]
pub trait Ask: Send + Sync + std::fmt::Debug {
    /// One question. May be dropped at any moment; ends before `end`.
    async fn ask(&self, end: Instant) -> Look;

    /// What is wrong with its settings, and is no fault of them; each a sentence for people. Asks nobody.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// What the last answer saw of the node's life; `None`: nothing.
    fn sign(&self) -> Option<Sign> {
        None
    }

    /// Whether that Node of Kubernetes is the one of which it asks. `None`: it knows no such Nodes. Ends before `end`.
    async fn has(&self, node: &ClusterNode, identities: &[Identity], end: Instant) -> Option<Belongs> {
        let _ = (node, identities, end);
        None
    }

    /// What it is taken for that nothing was answered in time.
    fn late(&self, words: String) -> Look {
        Look::Unanswered(words)
    }
}

/// A source for the nodes of a group.
#[derive(Clone, Debug)]
pub struct Source {
    pace: Pace,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Command(Program),
    Http(Probe),
    Other(Arc<dyn Asking>),
}

impl Source {
    /// Reads a source of a kind; all faults of its table at once. Reads what the settings name (a token, a CA), but asks
    /// nobody.
    ///
    /// All kinds have the keys `timeout` (of a whole look, default `2s`, at most `5s`), `consecutive` (how often in a row it
    /// must say that the node recovered, default 2) and `interval` (from one answer to the next question, default `250ms`).
    pub fn read(kind: &str, settings: &Map<String, Value>) -> Result<Self, Vec<SettingFault>> {
        let mut settings = Settings::new(settings);
        let pace = Pace::read(&mut settings);
        let kind = match kind {
            "command" => Program::read(&mut settings, "\"/usr/local/sbin/is-node-alive\"").map(Kind::Command),
            "http" => Probe::read(&mut settings).map(Kind::Http),
            other => {
                let message = unmade("kind of liveness source", other, &KINDS, &[]);
                return Err(vec![SettingFault { key: "kind".to_owned(), message }]);
            }
        };
        settings.finish(kind.map(|kind| Self { pace, kind }))
    }

    /// The same for a kind that is made elsewhere: `make` reads what is its own.
    pub fn made_by(
        settings: &Map<String, Value>,
        make: impl FnOnce(&mut Settings<'_>) -> Option<Arc<dyn Asking>>,
    ) -> Result<Self, Vec<SettingFault>> {
        let mut settings = Settings::new(settings);
        let pace = Pace::read(&mut settings);
        let kind = make(&mut settings).map(Kind::Other);
        settings.finish(kind.map(|kind| Self { pace, kind }))
    }

    /// The source for one node.
    pub fn of(
        &self,
        node: &NodeId,
        provider_id: Option<&str>,
        labels: &BTreeMap<String, String>,
    ) -> Result<Arc<dyn Liveness>, SettingFault> {
        let one = match &self.kind {
            Kind::Command(program) => One::Command(Command::of(program, node, labels)),
            Kind::Http(probe) => {
                One::Http(probe.of(node).map_err(|message| SettingFault { key: "url".to_owned(), message })?)
            }
            Kind::Other(asking) => One::Other(asking.of(node, provider_id)?),
        };
        Ok(Arc::new(OfNode { pace: self.pace, one }))
    }
}

#[derive(Debug)]
enum One {
    Command(Command),
    Http(Http),
    Other(Box<dyn Ask>),
}

#[derive(Debug)]
struct OfNode {
    pace: Pace,
    one: One,
}

#[async_trait]
impl Liveness for OfNode {
    fn patience(&self) -> Duration {
        self.pace.timeout
    }

    fn late(&self) -> Look {
        let words = format!("no answer within {:?}", self.pace.timeout);
        match &self.one {
            One::Other(other) => other.late(words),
            One::Command(_) | One::Http(_) => Look::Unanswered(words),
        }
    }

    async fn check(&self) -> Option<Look> {
        let One::Other(other) = &self.one else { return None };
        let end = Instant::now() + self.pace.timeout;
        Some(timeout_at(end, other.ask(end)).await.unwrap_or_else(|_| self.late()))
    }

    fn remarks(&self) -> Vec<String> {
        match &self.one {
            One::Other(other) => other.remarks(),
            One::Command(_) | One::Http(_) => Vec::new(),
        }
    }

    fn sign(&self) -> Option<Sign> {
        match &self.one {
            One::Other(other) => other.sign(),
            One::Command(_) | One::Http(_) => None,
        }
    }

    async fn look(&self) -> Look {
        let end = Instant::now() + self.pace.timeout;
        let mut said = 0;
        let look = timeout_at(end, async {
            loop {
                let look = match &self.one {
                    One::Command(command) => command.ask(end).await,
                    One::Http(http) => http.ask(end).await,
                    One::Other(other) => other.ask(end).await,
                };
                let Look::Recovered(words) = look else { return look };
                said += 1;
                if said >= self.pace.consecutive {
                    return Look::Recovered(words);
                }
                sleep(self.pace.interval).await;
            }
        });
        let look = look.await.unwrap_or_else(|_| self.late());
        let before = |why: String| match said {
            0 => why,
            _ => {
                let wanted = self.pace.consecutive;
                format!("{why}, after it said {said} of {wanted} times that the node recovered")
            }
        };
        match look {
            Look::Unanswered(why) => Look::Unanswered(before(why)),
            Look::Away(why) => Look::Away(before(why)),
            look => look,
        }
    }

    async fn has(&self, node: &ClusterNode, identities: &[Identity]) -> Option<Belongs> {
        let One::Other(other) = &self.one else { return None };
        let end = Instant::now() + self.pace.timeout;
        let late = |_| Some(Belongs::Untold(format!("no answer within {:?}", self.pace.timeout)));
        timeout_at(end, other.has(node, identities, end)).await.unwrap_or_else(late)
    }
}

#[cfg(test)]
mod tests;
