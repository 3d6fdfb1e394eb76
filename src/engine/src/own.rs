//! On which node this gateway stands, where only the far side of a release tells it (S17, K13): that node
//! has another name there.
//!
//! # Invariants
//!
//! - Until it is told, this gateway does not stand for election: it could shoot itself. Shown by
//!   `who_is_told_that_it_stands_on_a_node_does_not_shoot_it`, `nor_one_that_says_so_only_in_its_fence`.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use picket_core::device::{Identity, IdentityMatch};
use picket_core::ids::NodeId;
use picket_core::record::NodeRecord;
use picket_release::{Machine, Quarantine};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::parts::node_plan::NodePlan;
use crate::twins::Twins;

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
    of: Arc<dyn Quarantine>,
    /// Why it is not told yet.
    told: watch::Sender<Result<Machine, String>>,
    /// Nodes of which nothing was known until a device said in their fences that it controls this machine.
    found: Mutex<BTreeSet<NodeId>>,
}

impl Asked {
    fn found(&self) -> MutexGuard<'_, BTreeSet<NodeId>> {
        self.found.lock()
    }
}

impl Own {
    /// It has that name at the far side of that release.
    pub fn named(name: String, of: Arc<dyn Quarantine>) -> Self {
        let told = watch::Sender::new(Err("nobody was asked yet".to_owned()));
        Self(Some(Asked { name, of, told, found: Mutex::default() }))
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
    pub(crate) fn is(&self, plan: &NodePlan, record: &NodeRecord, twins: &Twins) -> bool {
        let Some(asked) = &self.0 else { return false };
        let identities = record.identities(&plan.topology);
        let told = asked.told.borrow();
        let Ok(own) = &*told else { return identities.is_empty() && asked.found().contains(&plan.id) };
        // What is known of the node may say nothing of what was found out: a serial number, of devices that say a UUID alone.
        let says_nothing = |known: &Identity| known.compare(&own.identity) == IdentityMatch::Unknown;
        if asked.found().contains(&plan.id) && identities.iter().all(says_nothing) {
            return true;
        }
        let differs = match (&own.provider_id, &plan.provider_id) {
            (Some(own), Some(planned)) if own == planned => return true,
            (own, planned) => own.is_some() && planned.is_some(),
        };
        // What a cloud calls it is no other's; a UUID that another node has too says nothing against that.
        let is_own = |known: &Identity| {
            let says_so = known.compare(&own.identity) == IdentityMatch::Match;
            says_so && !(differs && twins.is_claimed_beside(&plan.id, known))
        };
        identities.iter().any(is_own)
    }

    /// Whether what a device of that node says of itself is what the machine under this gateway says, and its cloud calls it nothing else.
    pub(crate) fn may_be(&self, plan: &NodePlan, said: &Identity) -> bool {
        let told = self.0.as_ref().map(|asked| asked.told.borrow());
        let own = told.as_ref().and_then(|told| told.as_ref().ok()).and_then(|own| own.provider_id.as_ref());
        let is_another = own.zip(plan.provider_id.as_ref()).is_some_and(|(own, planned)| own != planned);
        self.says(said) && !is_another
    }

    /// A device of that node said in its fence that it controls the machine under this gateway.
    pub(crate) fn found(&self, node: &NodeId) {
        if let Some(asked) = &self.0 {
            asked.found().insert(node.clone());
        }
    }

    /// Whether what a device says of itself is what the machine under this gateway says.
    pub(crate) fn says(&self, said: &Identity) -> bool {
        let told = self.0.as_ref().map(|asked| asked.told.borrow());
        let own = told.as_ref().and_then(|told| told.as_ref().ok());
        own.is_some_and(|own| own.identity.compare(said) == IdentityMatch::Match)
    }

    /// Asks until it is told.
    pub(crate) async fn learn(&self) -> Infallible {
        if let Some(Asked { name, of, told, .. }) = &self.0 {
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

#[cfg(test)]
mod tests {
    use picket_core::device::{DeviceClass, DeviceSpec, Grade, MaxInFlight};
    use picket_core::ground::ReleasePermit;
    use picket_core::ids::DeviceId;
    use picket_core::order::ReleaseOrder;
    use picket_core::topology::{Level, Topology};
    use picket_release::{Pace, Progress, ReleaseError, Releaser, Subject, Whose};

    use super::*;
    use crate::spec::NodeSpec;

    /// It is asked nothing here.
    #[derive(Debug)]
    struct Cluster;

    #[async_trait::async_trait]
    impl Releaser for Cluster {
        fn max_in_flight(&self) -> Option<Duration> {
            None
        }

        fn pace(&self) -> Pace {
            Pace::default()
        }

        async fn attempt(
            &self,
            _: &ReleaseOrder,
            _: &ReleasePermit<'_>,
            _: Instant,
        ) -> Result<Progress, ReleaseError> {
            Err(ReleaseError::Unknown("not asked".to_owned()))
        }

        async fn observe(&self, _: &Subject, _: Instant) -> Result<Progress, ReleaseError> {
            Err(ReleaseError::Unknown("not asked".to_owned()))
        }
    }

    #[async_trait::async_trait]
    impl Quarantine for Cluster {
        fn lingers(&self) -> Duration {
            Duration::ZERO
        }

        async fn withdraw(&self, _: &Whose, _: Instant) -> Result<(), ReleaseError> {
            Ok(())
        }
    }

    fn uuid(digit: char) -> Identity {
        Identity { uuid: Identity::usable_uuid(&digit.to_string().repeat(32)), serial: None }
    }

    fn plan(provider_id: &str, identity: Identity) -> NodePlan {
        let bmc = DeviceSpec {
            id: DeviceId::new("bmc").expect("a good name"),
            class: DeviceClass::Host,
            grade: Grade::Observed,
            has_epochs: true,
            longest_cycle: Duration::from_secs(15),
            call: Duration::from_secs(5),
            dwell: Duration::from_secs(1),
            readings: 2,
            max_in_flight: MaxInFlight { off: None, on: None },
            trust_after_restart: None,
            verified: false,
            identity,
        };
        let id = NodeId::new("n1").expect("a good name");
        let topology = Topology::new(vec![Level { devices: vec![bmc] }]).expect("a good topology");
        let provider_id = Some(provider_id.to_owned());
        NodePlan::of(NodeSpec { provider_id, ..NodeSpec::new(id, topology) })
    }

    /// The BMC addresses of two nodes are swapped: what a device says is shot, whatever a cloud calls its node.
    #[test]
    fn it_stands_on_what_a_cloud_calls_so_and_on_what_a_device_says_unless_another_says_it_too() {
        let machine = Machine { provider_id: Some("metal://2".to_owned()), identity: uuid('2') };
        let own = Own::named("worker-2".to_owned(), Arc::new(Cluster));
        let record = NodeRecord::new(NodeId::new("n1").expect("a good name"));
        let twins = Twins::default();
        let is = |provider: &str, digit| own.is(&plan(provider, uuid(digit)), &record, &twins);
        assert!(!is("metal://2", '2'), "it is not told yet");
        let asked = own.0.as_ref().expect("asked");
        asked.told.send_modify(|told| *told = Ok(machine));
        assert!(is("metal://2", '1'));
        assert!(!is("metal://1", '1'));
        assert!(is("metal://1", '2'));
        twins.expects(
            &NodeId::new("n2").expect("a good name"),
            &DeviceId::new("bmc").expect("one"),
            uuid('2'),
        );
        assert!(!is("metal://1", '2'), "boards that say the same");
        assert!(is("metal://2", '2'));
        own.found(&record.node);
        assert!(!is("metal://1", '1'), "it is known by now");
        assert!(own.is(&plan("metal://1", Identity::default()), &record, &twins));
        assert!(own.may_be(&plan("metal://2", Identity::default()), &uuid('2')));
        assert!(!own.may_be(&plan("metal://1", Identity::default()), &uuid('2')), "a wrong address");
    }
}
