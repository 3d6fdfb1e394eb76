//! What lets volumes go is taken away: the node may be on (K3).
//!
//! # Invariants
//!
//! - It is withdrawn from the Node that the record met, before any list is asked. Shown by
//!   `whom_the_record_met_waits_for_no_list`.
//! - The withdrawal changes the Node in any case, and each pod on it that could be deleted. A late request
//!   then names a version that is no more (S8). Shown by
//!   `whom_the_record_met_is_withdrawn_from_though_nothing_stands_there`,
//!   `a_taint_that_was_on_its_way_is_refused_once_the_node_is_back`.

use futures::future::join_all;
use picket_release::Whose;
use tokio::time::Instant;

use crate::fault::Fault;
use crate::release::OutOfService;
use crate::{deleting, taints};

impl OutOfService {
    /// From every Node on which it may stand, or may be about to: one that fails keeps it on no other. What is on its way and goes by what was
    /// read before of that Node, or of its pods, is refused from then on (S8).
    pub(crate) async fn withdrawn(&self, whose: &Whose, until: Instant) -> Result<(), Fault> {
        let of = self.of()?;
        // Where it does not stand it is not there, and that says nothing.
        self.cluster.is_where(whose.met.as_deref())?;
        self.cluster.is_meant(until).await?;
        let sought = &of.sought;
        let from = async |name: String| {
            taints::remove(&self.cluster, &name, &sought.ours, until).await?;
            match self.asked.leaves_pods {
                true => Ok(()),
                false => deleting::outdate(&self.cluster, &name, &sought.ours, until).await,
            }
        };
        // Whom the record has is told by no list: of what is on its way to that one nothing stands there yet.
        let met = sought.met(whose.met.as_deref());
        let first = async {
            match met.clone() {
                Some(name) => from(name).await,
                None => Ok(()),
            }
        };
        let others = async {
            let mut names = sought.letting_go(&self.cluster, &whose.identities, until).await?;
            names.retain(|name| met.as_ref() != Some(name));
            join_all(names.into_iter().map(from)).await.into_iter().collect()
        };
        let (first, others): (_, Result<(), Fault>) = tokio::join!(first, others);
        first.and(others)
    }
}
