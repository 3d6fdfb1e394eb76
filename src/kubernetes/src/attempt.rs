//! One attempt, and a look at what is left: pods, then the taint `out-of-service`, until nothing of the node is attached (K2, K4, K5).

use std::sync::Arc;
use std::time::Duration;

use picket_core::ground::ReleasePermit;
use picket_reach::LastWord;
use picket_release::{Progress, ReleaseError, Subject};
use tokio::time::Instant;

use crate::deleting::Deleted;
use crate::fault::{Fault, Kind};
use crate::object::{Node, Pod};
use crate::release::{OfNode, OutOfService, Read, has_not_booted};
use crate::remains::named;
use crate::taints::{self, FENCED, Mark, OUT_OF_SERVICE};
use crate::{deleting, node, pods, unattached};

/// Between two looks at what is left.
const PACE: Duration = Duration::from_millis(100);
/// One look at what is left takes so long at most, where the API server answers at once.
const POLLED: Duration = Duration::from_millis(1_500);

impl OutOfService {
    /// One attempt, by what was read for it.
    pub(crate) async fn attempted(
        &self,
        permit: &ReleasePermit<'_>,
        until: Instant,
    ) -> Result<Progress, ReleaseError> {
        let of = self.of()?;
        let read = of.read.lock().take();
        let read = read.ok_or_else(|| Fault::refused("nothing was read for it"))?;
        let Read { name, node, .. } = &read;
        let by = node.as_ref().map(|node| self.is_this(of, node, permit, &read)).transpose()?;
        let mark = Mark::of(&of.sought.ours, permit, read.round);
        let check = permit.check();
        let word: LastWord = Arc::new(move || check.may_send());
        let (goes, evicted) = read.losing();
        let lost: Vec<&Pod> = goes.iter().chain(&evicted).copied().collect();
        let unattached = unattached::words(&self.cluster, &lost, until);
        let (goes, evicted) = if self.asked.leaves_pods { Default::default() } else { (goes, evicted) };
        let by_now = read.evicted_by(self.cluster.clock.now());
        if !goes.is_empty() && !by_now.is_empty() {
            return Err(left_to_eviction(&by_now));
        }
        let words = pods::named(&goes);
        let kept = self.asked.keeps_node;
        if !goes.is_empty() && node.as_ref().is_some_and(|node| taints::stands(node, &of.sought.ours)) {
            return Err(ReleaseError::DidNotHappen(format!("{OUT_OF_SERVICE} stands beside {words}")));
        }
        match (node, by) {
            // Nobody is left whom others would delete by a name.
            (Some(node), Some(by)) if goes.is_empty() && evicted.is_empty() => {
                let both = [(FENCED, "NoSchedule"), (OUT_OF_SERVICE, "NoExecute")];
                let setting = taints::setting(node, &both, &mark, kept);
                let (changed, unattached) =
                    tokio::join!(self.change(node, &setting, Some(&word), until), unattached);
                changed?;
                return Ok(Progress::Accepted(format!(
                    "Node {name} (known {by}) is out of service{unattached}"
                )));
            }
            // The first change names the version that was read before the store's last word: who stood still since then ends here.
            (Some(node), _) => {
                let fenced = [(FENCED, "NoSchedule")];
                let setting = taints::setting(node, &fenced, &mark, kept);
                self.change(node, &setting, Some(&word), until).await?;
            }
            (None, _) if goes.is_empty() => {
                return Ok(Progress::Accepted(format!(
                    "Node {name} was deleted: Kubernetes lets go what was attached to it"
                )));
            }
            (None, _) => {}
        }
        if goes.is_empty() {
            return Err(left_to_eviction(&evicted));
        }
        let held = goes.iter().all(|pod| pods::is_held(pod));
        let in_turn = of.refused().in_turn(goes);
        let (deleted, unattached) =
            tokio::join!(deleting::delete(&self.cluster, &in_turn, &word, until), unattached);
        of.refused().note(&deleted.refused);
        if let Some(fault) = deleted.fault() {
            return Err(fault.clone().into());
        }
        let Deleted { sent, refused, why, .. } = deleted;
        let (number, unknown) = (refused.len(), why.as_ref().is_some_and(|why| why.unknown));
        let refused_for = why.map(|why| format!("; {number} refused: {why}")).unwrap_or_default();
        if unknown {
            return Err(ReleaseError::Unknown(format!("{sent} pods deleted{refused_for}{unattached}")));
        }
        if held || sent == 0 {
            return Err(ReleaseError::DidNotHappen(format!("not gone yet: {words}{refused_for}")));
        }
        Ok(Progress::NotThere(format!("{sent} pods deleted: {words}{refused_for}{unattached}")))
    }

    /// How far it is.
    pub(crate) async fn observed(&self, subject: &Subject, until: Instant) -> Result<Progress, ReleaseError> {
        let of = self.of()?;
        self.cluster.is_where(subject.met.as_deref()).map_err(Fault::of_a_look)?;
        let finding = self.name(of, &subject.identities, subject.met.as_deref(), until);
        let name = finding.await.map_err(Fault::of_a_look)?;
        // Between two looks at power: what stands may have to go.
        let polled_until = until.min(Instant::now() + POLLED);
        self.cluster.is_meant(until).await.map_err(Fault::of_a_look)?;
        loop {
            let node = match node::read(&self.cluster, &name, until).await {
                Err(fault) if fault.is(Kind::NotFound) && subject.met.is_some() => None,
                read => Some(read.map_err(Fault::of_a_look)?),
            };
            if let Some(node) = &node {
                if let Err(replaced) = self.is_the_same(&of.sought.ours, node, subject) {
                    self.let_be(&of.sought.ours, node, subject.generation, until).await;
                    return Err(replaced);
                }
                if !taints::stands(node, &of.sought.ours) {
                    return Ok(Progress::NotThere(format!("our taint is not on Node {name}")));
                }
            }
            let gone = Node::default();
            let left = self.left(&name, node.as_ref().unwrap_or(&gone), until).await;
            let left = left.map_err(Fault::of_a_look)?;
            if !left.goes.is_empty() {
                return Ok(Progress::NotThere(format!("bound to it meanwhile: {}", named(&left.goes))));
            }
            if left.waits.is_empty() && left.volumes.is_empty() {
                if let Some(node) = &node
                    && !self.free(&of.sought.ours, node, until).await.map_err(Fault::of_a_look)?
                {
                    tokio::time::sleep(PACE).await;
                    continue;
                }
                let ignored = match left.ignored.is_empty() {
                    true => String::new(),
                    false => format!("; no reason to wait: {}", named(&left.ignored)),
                };
                return Ok(Progress::Complete(format!(
                    "no pod and no attachment of Node {name} is left{ignored}"
                )));
            }
            if Instant::now() + PACE >= polled_until {
                let words: Vec<String> = left.volumes.into_iter().chain(left.waits).collect();
                return Ok(Progress::Accepted(format!("left: {}", named(&words))));
            }
            tokio::time::sleep(PACE).await;
        }
    }

    /// Whether it is the machine that was switched off, and nobody else has it out of service: a taint of somebody else's is neither
    /// adopted nor removed (K1, K7).
    fn is_this(
        &self,
        of: &OfNode,
        node: &Node,
        permit: &ReleasePermit<'_>,
        read: &Read,
    ) -> Result<&'static str, ReleaseError> {
        let by = self.known_by(of, node, &read.all, permit.identities())?;
        if let Some(note) = of.sought.ours.note(node) {
            if note.term > permit.term().0 || note.generation > permit.generation().0 {
                let name = &node.metadata.name;
                return Err(Fault::refused(format!("a later leadership has been at Node {name}")).into());
            }
            has_not_booted(&note, (permit.generation(), read.round), node)?;
        }
        match self.foreign(of, node) {
            None => Ok(by),
            Some(why) => Err(ReleaseError::Barred(why)),
        }
    }
}

fn left_to_eviction(pods: &[&Pod]) -> ReleaseError {
    ReleaseError::DidNotHappen(format!("left to taint eviction: {}", pods::named(pods)))
}
