//! Sources of the settings: one a group, asked for each of its nodes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use picket_core::ids::NodeId;
use picket_reach::program::Program;
use picket_reach::{SettingFault, Settings};
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep, timeout_at};

use crate::command::Command;
use crate::http::{Http, Probe};
use crate::look::{Liveness, Look};
use crate::pace::Pace;

/// The kinds that there are.
pub const KINDS: [&str; 2] = ["command", "http"];

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
                let message =
                    format!("there is no kind of liveness source {other:?}; known are {}", KINDS.join(", "));
                return Err(vec![SettingFault { key: "kind".to_owned(), message }]);
            }
        };
        settings.finish(kind.map(|kind| Self { pace, kind }))
    }

    /// The source for one node.
    pub fn of(
        &self,
        node: &NodeId,
        labels: &BTreeMap<String, String>,
    ) -> Result<Arc<dyn Liveness>, SettingFault> {
        let one = match &self.kind {
            Kind::Command(program) => One::Command(Command::of(program, node, labels)),
            Kind::Http(probe) => {
                One::Http(probe.of(node).map_err(|message| SettingFault { key: "url".to_owned(), message })?)
            }
        };
        Ok(Arc::new(OfNode { pace: self.pace, one }))
    }
}

#[derive(Debug)]
enum One {
    Command(Command),
    Http(Http),
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

    async fn look(&self) -> Look {
        let end = Instant::now() + self.pace.timeout;
        let mut said = 0;
        let look = timeout_at(end, async {
            loop {
                let look = match &self.one {
                    One::Command(command) => command.ask(end).await,
                    One::Http(http) => http.ask(end).await,
                };
                let Look::Recovered(words) = look else { return look };
                said += 1;
                if said >= self.pace.consecutive {
                    return Look::Recovered(words);
                }
                sleep(self.pace.interval).await;
            }
        });
        let look = look
            .await
            .unwrap_or_else(|_| Look::Unanswered(format!("no answer within {:?}", self.pace.timeout)));
        match look {
            Look::Unanswered(why) if said > 0 => {
                let wanted = self.pace.consecutive;
                Look::Unanswered(format!(
                    "{why}, after it said {said} of {wanted} times that the node recovered"
                ))
            }
            look => look,
        }
    }
}

#[cfg(test)]
mod tests;
