//! How the service plays its script.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use picket_proto::v1::*;
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Response, Status};

use super::{Script, Step, unknown_node};

pub struct Service {
    pub script: Arc<Mutex<Script>>,
}

pub type Answer<T> = Result<Response<T>, Status>;
pub type Streaming<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

pub fn name_of(node: &Option<NodeSelector>) -> String {
    match node.as_ref().and_then(|selector| selector.by.clone()) {
        Some(node_selector::By::Name(name)) => name,
        other => panic!("the command names nodes by their names, not {other:?}"),
    }
}

/// Counts an open stream until it is dropped.
struct Open(Arc<Mutex<Script>>);

impl Open {
    fn new(script: &Arc<Mutex<Script>>) -> Self {
        let mut held = script.lock();
        held.open.0 += 1;
        held.open.1 = held.open.1.max(held.open.0);
        Self(Arc::clone(script))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.lock().open.0 -= 1;
    }
}

impl Service {
    pub fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock()
    }

    /// Plays the node's next stream.
    pub fn play<T: Send + 'static>(
        &self,
        node: &str,
        wrap: impl Fn(FenceUpdate) -> T + Send + 'static,
    ) -> Answer<Streaming<T>> {
        let steps = self.script().streams.get_mut(node).and_then(VecDeque::pop_front);
        let steps = steps.ok_or_else(|| Status::unavailable("nothing is scripted any more"))?;
        // A refusal is no stream that breaks.
        if let Some(Step::Fail(status)) = steps.first() {
            return Err(status.clone());
        }
        let (say, said) = mpsc::channel(1);
        let open = Open::new(&self.script);
        tokio::spawn(async move {
            let _open = open;
            for step in steps {
                let message = match step {
                    Step::Say(update) => Ok(wrap(update)),
                    Step::Fail(status) => Err(status),
                    Step::Rest(span) => {
                        tokio::time::sleep(span).await;
                        continue;
                    }
                };
                if say.send(message).await.is_err() {
                    return;
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(said))))
    }

    /// Notes a call that is answered with its node.
    pub fn called(&self, node: &Option<NodeSelector>, said: String) -> Result<Node, Status> {
        let name = name_of(node);
        let mut script = self.script();
        script.called.push(format!("{name}: {said}"));
        if let Some(status) = &script.refusal {
            return Err(status.clone());
        }
        script.nodes.iter().find(|node| node.name == name).cloned().ok_or_else(|| unknown_node(&name, ""))
    }

    pub fn select(&self, set: &Option<NodeSet>) -> Result<Vec<Node>, Status> {
        let nodes = self.script().nodes.clone();
        let Some(node_set::Of::Hosts(hosts)) = set.as_ref().and_then(|set| set.of.clone()) else {
            return Ok(nodes);
        };
        // Enough of a host list for scripts: names and commas.
        hosts
            .split(',')
            .map(|name| {
                nodes
                    .iter()
                    .find(|node| node.name == name)
                    .cloned()
                    .ok_or_else(|| unknown_node(name, "r1n01,r1n10"))
            })
            .collect()
    }
}
