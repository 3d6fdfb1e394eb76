//! The liveness source `kubernetes`: what the API says of a Node, just before anything is done to it (S15, K9).

use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use picket_core::cluster_node::{Belongs, ClusterNode};
use picket_core::device::Identity;
use picket_core::ids::NodeId;
use picket_liveness::{Ask, Asking, Look, SettingFault, Sign, Source};
use picket_reach::Settings;
use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::cluster::Cluster;
use crate::fault::{Fault, Kind};
use crate::finding::{FindBy, Sought};
use crate::note::Ours;
use crate::object::{Condition, Node};
use crate::settings::Login;
use crate::stores::Stores;
use crate::{belonging, node};

/// A cluster that is asked whether its Nodes recovered.
#[derive(Debug)]
pub struct Alive {
    cluster: Arc<Cluster>,
    /// Conditions that a Node has which recovered, each with its status.
    wanted: Arc<[Condition]>,
    find_by: FindBy,
}

#[derive(Debug)]
struct OfNode {
    cluster: Arc<Cluster>,
    wanted: Arc<[Condition]>,
    sought: Sought,
    /// What the last answer saw of the Node's life.
    sign: Mutex<Option<Sign>>,
}

impl Alive {
    /// Makes a source of its table; all faults at once. Asks nobody.
    ///
    /// Keys besides those of every source: `kubeconfig`, `context`, `login_program`, `login_env` and `cluster_uid` as of a release of this kind, and `conditions` (what a
    /// Node that recovered says; `["Ready=True"]`): name here what fences are asked for, else a Node that is ready, and was fenced for
    /// another reason, is taken for recovered; `find_by` (`name`, or `provider_id`: what its devices say is not asked for it).
    ///
    /// # Errors
    /// What is wrong in the table, and what would be right.
    pub fn source(settings: &Map<String, Value>) -> Result<Source, Vec<SettingFault>> {
        Source::made_by(settings, |settings| {
            let login = Login::read(settings);
            let wanted = conditions(settings);
            let find_by = FindBy::of_word(settings.word("find_by", &FindBy::WORDS[..2]));
            let cluster = Arc::new(login.cluster());
            Some(Arc::new(Self { cluster, wanted: wanted.into(), find_by }))
        })
    }
}

fn conditions(settings: &mut Settings<'_>) -> Vec<Condition> {
    let written = settings.texts("conditions");
    if written.is_empty() {
        return vec![Condition { r#type: "Ready".to_owned(), status: "True".to_owned() }];
    }
    let mut read = Vec::new();
    for one in written {
        match one.split_once('=') {
            Some((name, status)) if !name.is_empty() && ["True", "False", "Unknown"].contains(&status) => {
                read.push(Condition { r#type: name.to_owned(), status: status.to_owned() });
            }
            _ => settings.fault(
                "conditions",
                format!("expected a condition and its status, for example \"Ready=True\"; found {one:?}"),
            ),
        }
    }
    read
}

#[cfg(test)]
impl Alive {
    /// Of the Nodes of that cluster which are ready.
    pub(crate) fn in_cluster(cluster: Arc<Cluster>) -> Self {
        let ready = Condition { r#type: "Ready".to_owned(), status: "True".to_owned() };
        Self { cluster, wanted: [ready].into(), find_by: FindBy::Name }
    }
}

impl OfNode {}

impl Asking for Alive {
    fn of(&self, node: &NodeId, provider_id: Option<&str>) -> Result<Box<dyn Ask>, SettingFault> {
        if self.find_by == FindBy::ProviderId && provider_id.is_none() {
            let message = "\"provider_id\" needs that of the node, whose table has none".to_owned();
            return Err(SettingFault { key: "find_by".to_owned(), message });
        }
        let (cluster, wanted) = (self.cluster.clone(), self.wanted.clone());
        let provider_id = provider_id.map(str::to_owned);
        // It looks, and leaves nothing there.
        let ours = Ours { owner: String::new(), node: node.to_string(), stores: Stores::default() };
        let sought = Sought { by: self.find_by, ours, provider_id };
        Ok(Box::new(OfNode { cluster, wanted, sought, sign: Mutex::default() }))
    }
}

#[async_trait]
impl Ask for OfNode {
    async fn ask(&self, end: Instant) -> Look {
        let read = async {
            let name = self.sought.name(&self.cluster, &[], None, end).await?;
            let node = node::read(&self.cluster, &name, end).await?;
            // Its name may have been found a moment ago.
            match self.sought.is(&node, &[]) {
                true => Ok(node),
                false => Err(Fault::away(format!("Node {name} is another one by now"))),
            }
        };
        *self.sign.lock() = None;
        let (meant, node) = tokio::join!(self.cluster.is_meant(end), read);
        match meant.and(node) {
            Ok(node) => {
                let look = judged(&node, &self.wanted);
                let boot = Some(node.status.node_info.boot_id).filter(|boot| !boot.is_empty());
                // Conditions stay as they are for most of a minute after a kubelet's end: its lease says that it lives.
                let beat = match look {
                    Look::Recovered(_) => node::lease(&self.cluster, &node.metadata.name, end).await,
                    _ => None,
                };
                *self.sign.lock() = boot.map(|boot| Sign { boot, beat });
                look
            }
            Err(fault) if fault.is(Kind::Away) => Look::Away(fault.to_string()),
            Err(fault) => Look::Unanswered(fault.to_string()),
        }
    }

    async fn has(&self, node: &ClusterNode, identities: &[Identity], end: Instant) -> Option<Belongs> {
        Some(belonging::belongs(&self.sought, &self.cluster, node, identities, end).await)
    }

    fn remarks(&self) -> Vec<String> {
        self.cluster.remark().into_iter().collect()
    }

    fn sign(&self) -> Option<Sign> {
        self.sign.lock().clone()
    }

    fn late(&self, words: String) -> Look {
        Look::Away(words)
    }
}

/// All of them, as they are wanted: what is not said is not so.
fn judged(node: &Node, wanted: &[Condition]) -> Look {
    let name = &node.metadata.name;
    let status = |of: &Condition| {
        let said = node.status.conditions.iter().find(|one| one.r#type == of.r#type);
        said.map_or("not told", |one| one.status.as_str())
    };
    let words: Vec<String> = wanted.iter().map(|one| format!("{} is {}", one.r#type, status(one))).collect();
    let words = format!("Node {name}: {}", words.join(", "));
    match wanted.iter().all(|one| status(one) == one.status) {
        true => Look::Recovered(words),
        false => Look::NotRecovered(words),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(conditions: Value) -> Node {
        serde_json::from_value(json!({"metadata": {"name": "n1"}, "status": {"conditions": conditions}}))
            .expect("a Node")
    }

    fn wanted(all: &[&str]) -> Vec<Condition> {
        let table = json!({ "conditions": all });
        conditions(&mut Settings::new(table.as_object().expect("a table")))
    }

    #[test]
    fn recovered_is_what_says_all_that_is_wanted() {
        let ready = node(json!([{"type": "Ready", "status": "True"}, {"type": "Sick", "status": "True"}]));
        assert_eq!(judged(&ready, &wanted(&[])), Look::Recovered("Node n1: Ready is True".to_owned()));
        let both = wanted(&["Ready=True", "Sick=False"]);
        assert!(matches!(judged(&ready, &both), Look::NotRecovered(words) if words.contains("Sick is True")));
        for silent in [json!([]), json!([{"type": "Ready", "status": "Unknown"}])] {
            assert!(matches!(judged(&node(silent), &wanted(&[])), Look::NotRecovered(_)));
        }
    }

    #[test]
    fn what_is_wrong_in_the_table_is_told_at_once() {
        let table = json!({"conditions": ["Ready", "=True", "Ready=Yes"], "timeout": "1h", "colour": "red"});
        let faults = Alive::source(table.as_object().expect("a table")).expect_err("wrong");
        let keys: Vec<&str> = faults.iter().map(|fault| fault.key.as_str()).collect();
        assert_eq!(keys, ["timeout", "cluster_uid", "conditions", "conditions", "conditions", "colour"]);
    }
}
