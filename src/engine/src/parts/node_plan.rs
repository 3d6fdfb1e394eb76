//! One node of the settings.

use std::collections::BTreeMap;
use std::sync::Arc;

use picket_core::device::DeviceClass;
use picket_core::ids::{DeviceId, ReleaseId};
use picket_core::machine;
use picket_core::record::NodeRecord;
use picket_core::topology::Topology;
use picket_driver::PowerDriver;
use picket_liveness::Liveness;
use picket_release::{Quarantine, Releaser};

use crate::error::EngineError;
use crate::spec::NodeSpec;
use crate::units::Unit;

/// One release of a node, in its order.
#[derive(Clone, Debug)]
pub struct PlannedRelease {
    /// Its name in the settings.
    pub id: ReleaseId,
    /// How it is done.
    pub releaser: Arc<dyn Releaser>,
}

impl PlannedRelease {
    /// The cluster that it lets go in; `None`: it is in none.
    pub fn quarantine(&self) -> Option<Arc<dyn Quarantine>> {
        self.releaser.clone().quarantine()
    }

    /// What a fence's record is told of it.
    pub(crate) fn told(&self) -> picket_core::event::PlannedRelease {
        let quarantine = self.quarantine();
        picket_core::event::PlannedRelease {
            id: self.id.clone(),
            max_in_flight: self.releaser.max_in_flight(),
            lingers: quarantine.as_ref().map(|one| one.lingers()),
            by_name: quarantine.is_some_and(|one| one.by_name_alone()),
        }
    }
}

/// One node of the settings: what they say of it, and the means by which it is worked. It reads as its [`NodeSpec`].
#[derive(Clone, Debug)]
pub struct NodePlan {
    /// What the settings say of it.
    pub spec: Arc<NodeSpec>,
    /// Its devices' drivers.
    pub drivers: BTreeMap<DeviceId, Arc<dyn PowerDriver>>,
    /// What its devices share with those of other nodes, or whose limits they keep: each with its unit.
    pub units: BTreeMap<DeviceId, Arc<Unit>>,
    /// Its releases, in order.
    pub releases: Vec<PlannedRelease>,
    /// What says whether it recovered (S15); `None`: nobody is asked.
    pub liveness: Option<Arc<dyn Liveness>>,
    /// Two plans of a node with the same mark were made of the same settings. Empty where nothing is ever reloaded.
    pub mark: String,
}

impl std::ops::Deref for NodePlan {
    type Target = NodeSpec;

    fn deref(&self) -> &NodeSpec {
        &self.spec
    }
}

impl NodePlan {
    /// A node of which the settings say that, and none of whose devices can be asked.
    pub fn of(spec: NodeSpec) -> Self {
        Self {
            spec: Arc::new(spec),
            drivers: BTreeMap::new(),
            units: BTreeMap::new(),
            releases: Vec::new(),
            liveness: None,
            mark: String::new(),
        }
    }

    /// The levels as they stand now: with the wiring that drills have verified, and the epochs that drivers know of.
    pub fn levels_now(&self, record: &NodeRecord) -> Topology {
        let verified = |id: &DeviceId| {
            let now = self.wiring(id);
            now.is_some() && record.wired.get(id) == now.as_ref()
        };
        let has_epochs = |id: &DeviceId| self.drivers.get(id).map(|driver| driver.has_epochs());
        self.topology.clone().with_verified(verified).with_epochs(has_epochs)
    }

    /// Whether the node may be drilled, as its record says that it stands: the settings allow it, and the rules do.
    ///
    /// # Errors
    /// Why not; nothing was asked of any device.
    pub fn may_be_drilled(&self, record: &NodeRecord) -> Result<(), EngineError> {
        if !self.drills {
            return Err(EngineError::NotAllowed(self.no_drills()));
        }
        self.comes_back("a drill")?;
        let levels = self.levels_now(record);
        Ok(machine::may_be_drilled(&record.phase, &levels, !self.releases.is_empty())?)
    }

    /// Whether its devices can bring it back once they switched it off; `what` wants that.
    ///
    /// # Errors
    /// Which of them cannot, and why.
    pub fn comes_back(&self, what: &str) -> Result<(), EngineError> {
        let finals = self.drivers.iter().find_map(|(id, driver)| Some((id, driver.off_is_final()?)));
        let Some((device, why)) = finals else { return Ok(()) };
        let refused =
            format!("{what} brings the node back, and {} would not come back ({device}: {why})", self.id);
        Err(EngineError::NotAllowed(format!("{refused}: fence it to stay off, and retire it then")))
    }

    fn no_drills(&self) -> String {
        let groups: Vec<&str> = self.groups.iter().map(String::as_str).collect();
        let of = match groups.is_empty() {
            true => "it is in no group".to_owned(),
            false => format!("its groups are {}", groups.join(", ")),
        };
        format!(
            "the settings allow no drill of {}: `drills = true` in the rules of one of its groups would, and false in none ({of})",
            self.id
        )
    }

    /// Whether what that device is asked runs as a program beside us.
    pub(crate) fn runs_programs(&self, id: &DeviceId) -> bool {
        self.drivers.get(id).is_some_and(|driver| driver.runs_programs())
    }

    /// What a drill of that outlet verifies: where it is, and which machine it feeds, as its host devices tell. With another
    /// address, or another machine under the node's name, it is other wiring. Drills of earlier versions stored "feeds": a silent BMC was enough
    /// for them, and they verify nothing any more.
    pub fn wiring(&self, id: &DeviceId) -> Option<String> {
        let endpoint = |id: &DeviceId| Some(self.drivers.get(id)?.traits().endpoint.clone());
        let hosts = self.topology.devices().filter(|spec| spec.class == DeviceClass::Host);
        let hosts = hosts.map(|spec| {
            format!("{} {} {}", spec.id, endpoint(&spec.id).unwrap_or_default(), spec.identity.words())
        });
        let fed: Vec<String> = hosts.collect();
        Some(format!("{} was seen to feed {}", endpoint(id)?, fed.join(", ")))
    }
}
