//! What of a node is in the API still, and what of that is waited for (K5).

use tokio::time::Instant;

use crate::attachments::{self, Attachments};
use crate::fault::Fault;
use crate::object::Node;
use crate::pods::{self, Fate};
use crate::release::OutOfService;

/// So many are named; the rest is counted.
const NAMED: usize = 8;

/// What of a node is in the API still.
#[derive(Default)]
pub(crate) struct Remains {
    /// Pods that an attempt deletes.
    pub(crate) goes: Vec<String>,
    /// Pods that others are about to delete, or that something holds.
    pub(crate) waits: Vec<String>,
    pub(crate) volumes: Vec<String>,
    /// What is no reason to wait.
    pub(crate) ignored: Vec<String>,
}

/// The first of them, and how many more.
pub(crate) fn named(all: &[String]) -> String {
    match all.len().checked_sub(NAMED).filter(|more| *more > 0) {
        None => all.join(", "),
        Some(more) => format!("{} and {more} more", all[..NAMED].join(", ")),
    }
}

impl OutOfService {
    /// What is left of the node, and what of it is no reason to wait.
    pub(crate) async fn left(&self, name: &str, node: &Node, until: Instant) -> Result<Remains, Fault> {
        let (pods, attached) =
            tokio::join!(pods::of(&self.cluster, name, until), attachments::of(&self.cluster, name, until));
        let Attachments { volumes, ignored } = attached?;
        let mut left = Remains { volumes, ignored, ..Remains::default() };
        let now = self.cluster.clock.now();
        for pod in pods? {
            match pods::fate(&pod, node, now) {
                Fate::Stays(why) => left.ignored.push(format!("{} ({why})", pods::words(&pod))),
                // Taint eviction and pod GC delete them.
                _ if self.asked.leaves_pods => left.waits.push(pods::words(&pod)),
                Fate::Goes if !pods::is_held(&pod) => left.goes.push(pods::words(&pod)),
                Fate::Goes | Fate::Evicted => left.waits.push(pods::words(&pod)),
            }
        }
        Ok(left)
    }
}
