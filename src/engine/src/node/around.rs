//! What a fence needs besides the node's devices, as its check finds it: the far sides of its releases, and its liveness source.

use futures::future::join_all;
use picket_core::device::Identity;
use picket_core::ids::DeviceId;
use picket_core::record::Phase;
use picket_liveness::Look;

use super::NodeTask;

/// What they said at the last check.
#[derive(Debug, Default)]
pub(super) struct Around {
    /// What is wrong, and keeps no fence from its end.
    pub(super) said: Vec<String>,
    /// Why the liveness source is away: a program's fence waits for its word (K9).
    away: Option<String>,
    /// The node's machine, as releases know it.
    pub(super) machines: Vec<(Identity, String)>,
}

impl NodeTask {
    /// It is told at the node's first host device: it is that one's machine which releases let go.
    pub(super) fn tells_of_around(&self, device: &DeviceId) -> bool {
        self.plan.topology.hosts().next().is_some_and(|spec| spec.id == *device)
    }

    /// What of it keeps a program's fence from its end.
    pub(super) fn bars_programs(&self, device: &DeviceId) -> Option<String> {
        let why = self.around.away.as_ref().filter(|_| self.tells_of_around(device))?;
        Some(format!(
            "its liveness source is away ({why}): a program's fence waits for its word, and a person's does not"
        ))
    }

    /// Asks all of them once. The source of a node that is kept off has nothing to say.
    pub(super) fn look_around(&self) -> impl Future<Output = Around> + use<> {
        let is_normal = self.record().phase == Phase::Normal;
        let source = self.plan.liveness.clone().filter(|_| is_normal);
        let identities = self.record().identities(&self.plan.topology);
        let is_orphan = self.orphan.is_some();
        let releases = self.plan.releases.iter().filter(|_| !is_orphan);
        let all: Vec<_> = releases.filter_map(|plan| Some((plan.id.clone(), plan.quarantine()?))).collect();
        let time = self.plan.paces.release_check;
        async move {
            let asked = all.iter().map(async |(id, cluster)| {
                let until = tokio::time::Instant::now() + time;
                let said = tokio::time::timeout_at(until, cluster.check(&identities, until));
                let machine = tokio::time::timeout_at(until, cluster.machine(until));
                let (said, machine) = tokio::join!(said, machine);
                let said = said.unwrap_or_else(|_| vec![format!("no answer within {time:?}")]);
                let said: Vec<String> =
                    said.into_iter().map(|words| format!("release {id}: {words}")).collect();
                (said, machine.unwrap_or_default())
            });
            let look = async {
                match &source {
                    Some(source) => source.check().await,
                    None => None,
                }
            };
            let (asked, look) = tokio::join!(join_all(asked), look);
            let (said, machines): (Vec<_>, Vec<_>) = asked.into_iter().unzip();
            let machines = machines.into_iter().flatten().collect();
            let mut around = Around { said: said.concat(), away: None, machines };
            match look {
                Some(Look::Away(why)) => around.away = Some(why),
                Some(Look::Unanswered(why)) => around.said.push(format!("its liveness source: {why}")),
                Some(Look::Recovered(_) | Look::NotRecovered(_)) | None => {}
            }
            around
        }
    }
}
