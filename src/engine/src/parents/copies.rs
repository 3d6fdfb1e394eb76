//! Other copies of a child, which an evacuation left: no proof of the machine on which it runs speaks for them.

use picket_core::parent::Placement;
use picket_core::time::BootTime;
use picket_driver::{Call, DriverError};

use super::driver::ParentDriver;
use super::{ParentAnswer, ParentAsk, ParentSeen};
use crate::engine::parents::CopyHost;

/// What is known of all copies of a child.
#[derive(Debug)]
pub(super) enum Copies {
    /// Each is off, or there is none. The machines were read at this moment or later; `None`: none had to be.
    Off(Option<BootTime>),
    /// One may run: in words, where, and what to do.
    MayRun(String),
}

/// What a look at one of the machines came to.
enum Host {
    Gone,
    /// Proven off, and read Off by questions that were asked at this moment or later.
    Off(BootTime),
    MayRun,
}

impl ParentDriver {
    /// Whether a copy of the child may run on a machine that is not proven off.
    pub(super) async fn copies(&self, placement: &Placement, call: &Call) -> Result<Copies, DriverError> {
        let mut read_at = None;
        // Of a server that is back where it came from, the machine's own proof is what is asked for anyway.
        for host in placement.copies.iter().filter(|host| placement.host.as_ref() != Some(host)) {
            match self.read_for_its_copy(host, call).await? {
                Host::Gone => {}
                Host::Off(at) => read_at = Some(read_at.map_or(at, |before: BootTime| before.min(at))),
                Host::MayRun => {
                    return Ok(Copies::MayRun(format!(
                        "a copy of it may run on {host}, from where it was evacuated, and no node of that name is proven off: fence that \
                         node, or let its owner's service start there, which removes the copy; where it is gone for good retire its node, \
                         and keep that in the settings; else look there, and vouch for this node"
                    )));
                }
            }
        }
        Ok(Copies::Off(read_at))
    }

    /// Its record alone proves nothing: it may have been switched on since, and its devices be silent. They are read now.
    async fn read_for_its_copy(&self, host: &str, call: &Call) -> Result<Host, DriverError> {
        let node = match self.engine()?.host_of_a_copy(host, self.settings.grade) {
            CopyHost::Gone => return Ok(Host::Gone),
            CopyHost::MayRun => return Ok(Host::MayRun),
            CopyHost::Off(node) => node,
        };
        let look = ParentAsk::Look { child: self.child(), is_held: false };
        match self.ask(call, &node, look, false).await? {
            ParentAnswer::Seen(ParentSeen::Off(off)) if off.grade() >= self.settings.grade => {
                Ok(Host::Off(off.asked_at()))
            }
            _ => Ok(Host::MayRun),
        }
    }
}
