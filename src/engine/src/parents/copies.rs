//! Other copies of a node, which an evacuation left: no proof of the machine on which it runs speaks for
//! them.
//!
//! # Invariants
//!
//! - What is told of a copy's machine is read from its devices, and a reading that stands on it is no
//!   younger than that answer. Shown by `a_record_alone_shows_no_copy_off_to_a_server_s_own_device`,
//!   `it_is_proven_once_the_machine_of_the_copy_is_off`.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;

use futures::future::{Either, join_all, select};
use parking_lot::Mutex;
use picket_core::device::Grade;
use picket_core::ids::NodeId;
use picket_core::time::BootTime;
use picket_driver::Call;

use super::asks::{ParentAnswer, ParentAsk, ParentSeen};
use super::nodes::{CopyHost, Nodes};

/// What is known of all copies of a node.
#[derive(Debug)]
pub(crate) enum Copies {
    /// Each is off, or there is none. The machines were read at this moment or later; `None`: none had to be.
    Off(Option<BootTime>),
    /// One may run: in words, where, and what to do.
    MayRun(String),
}

/// What a look at one of the machines came to.
#[derive(Clone, Copy, Debug)]
enum Host {
    Gone,
    /// Proven off, and read Off by questions that were asked at this moment or later.
    Off(BootTime),
    MayRun,
}

/// What looks at the machines of a node's copies came to, by the names that their owner has for them.
#[derive(Debug, Default)]
pub(crate) struct Looks(BTreeMap<String, Host>);

/// Who looks at the machines of a node's copies.
#[derive(Debug)]
pub(crate) struct Looker<'l> {
    /// `None`: no engine runs, and no machine is known to be off.
    pub(crate) engine: Option<Arc<dyn Nodes>>,
    /// Whose copies they are.
    pub(crate) child: &'l NodeId,
    /// The cloud whose names the machines have.
    pub(crate) cloud: Option<String>,
    /// The least grade of a machine's own evidence.
    pub(crate) least: Grade,
    pub(crate) call: &'l Call,
}

impl Looker<'_> {
    /// All of them beside each other: looks one after the other would be too old for a permit where BMCs are slow (S4).
    async fn look(&self, hosts: impl IntoIterator<Item = String>) -> Looks {
        let looks = hosts.into_iter().map(async |host| {
            let found = self.look_at(&host).await;
            (host, found)
        });
        Looks(join_all(looks).await.into_iter().collect())
    }

    /// Its record alone proves nothing: it may have been switched on since, and its devices be silent. They are read now.
    async fn look_at(&self, host: &str) -> Host {
        let Some(engine) = &self.engine else { return Host::MayRun };
        let node = match engine.host_of_a_copy(host, self.cloud.as_deref(), self.least) {
            CopyHost::Gone => return Host::Gone,
            CopyHost::MayRun => return Host::MayRun,
            CopyHost::Off(node) => node,
        };
        // The child's own task waits for this answer, and would give none.
        if node == *self.child {
            return Host::MayRun;
        }
        let ask = ParentAsk::Look { child: self.child.clone(), is_held: false };
        match tokio::time::timeout_at(self.call.deadline(), engine.of_parent(&node, ask)).await {
            Ok(Ok(ParentAnswer::Seen(ParentSeen::Off(off)))) if off.grade() >= self.least => {
                Host::Off(off.asked_at())
            }
            _ => Host::MayRun,
        }
    }
}

/// The machines on which copies of a node were when their owner told that last.
#[derive(Debug, Default)]
pub(crate) struct CopyHosts(Mutex<BTreeSet<String>>);

impl CopyHosts {
    /// What `own`, which is asked of the node itself, comes to, and what looks at the known machines beside it came to.
    pub(crate) async fn beside<T, E>(
        &self,
        own: impl Future<Output = Result<T, E>>,
        is_off: impl FnOnce(&T) -> bool,
        looker: &Looker<'_>,
    ) -> Result<(T, Looks), E> {
        match select(pin!(own), pin!(self.look_at_known(looker))).await {
            Either::Left((own, looks)) => {
                let own = own?;
                // An On that shows a breach waits for no slow machine of a copy: nothing but an Off stands on those.
                let seen = if is_off(&own) { looks.await } else { Looks::default() };
                Ok((own, seen))
            }
            Either::Right((seen, own)) => Ok((own.await?, seen)),
        }
    }

    async fn look_at_known(&self, looker: &Looker<'_>) -> Looks {
        let known = self.0.lock().clone();
        looker.look(known).await
    }

    /// Nobody asks for copies of a node that is not off.
    pub(crate) fn forget(&self) {
        self.0.lock().clear();
    }

    /// Whether a copy may run on one of `hosts`, as their owner tells now. `seen`: those that were looked at beside that question.
    pub(crate) async fn judge(&self, hosts: BTreeSet<String>, seen: Looks, looker: &Looker<'_>) -> Copies {
        self.0.lock().clone_from(&hosts);
        let new = hosts.iter().filter(|host| !seen.0.contains_key(*host)).cloned();
        let Looks(mut all) = looker.look(new).await;
        all.extend(seen.0.into_iter().filter(|(host, _)| hosts.contains(host)));
        let may_run: Vec<&str> = all
            .iter()
            .filter(|(_, found)| matches!(found, Host::MayRun))
            .map(|(host, _)| host.as_str())
            .collect();
        if !may_run.is_empty() {
            return Copies::MayRun(in_words(&may_run, looker.least));
        }
        let read = all.values().filter_map(|found| match found {
            Host::Off(at) => Some(*at),
            Host::Gone | Host::MayRun => None,
        });
        Copies::Off(read.min())
    }
}

fn in_words(hosts: &[&str], least: Grade) -> String {
    format!(
        "a copy of it may run on {}, where an evacuation left it, and no node of that name is proven off with the grade {least:?} and reads \
         off now: fence that node, or, where it was evacuated from there, let its owner's service start there, which removes the copy; where it is gone for good retire its \
         node, and keep that in the settings; else look there, and vouch for this node",
        hosts.join(", ")
    )
}
