//! Other copies of a child, which an evacuation left: no proof of the machine on which it runs speaks for them.

use picket_core::parent::Placement;
use picket_driver::{Call, DriverError};

use super::driver::ParentDriver;
use super::{ParentAnswer, ParentAsk, ParentSeen};
use crate::engine::parents::CopyHost;

impl ParentDriver {
    /// Why a copy of the child may run on a machine that is not proven off, in words.
    pub(super) async fn running_copy(
        &self,
        placement: &Placement,
        call: &Call,
    ) -> Result<Option<String>, DriverError> {
        // Of a server that is back where it came from, the machine's own proof is what is asked for anyway.
        for host in placement.copies.iter().filter(|host| placement.host.as_ref() != Some(host)) {
            if !self.is_off_for_its_copy(host, call).await? {
                return Ok(Some(format!(
                    "a copy of it may run on {host}, from where it was evacuated, and no node of that name is proven off: fence that node, or \
                     let its owner's service start there, which removes the copy; where it is gone for good retire its node, and keep that in \
                     the settings; else look there, and vouch for this node"
                )));
            }
        }
        Ok(None)
    }

    /// Its record alone proves nothing: it may have been switched on since, and its devices be silent. They are read now.
    async fn is_off_for_its_copy(&self, host: &str, call: &Call) -> Result<bool, DriverError> {
        let node = match self.engine()?.host_of_a_copy(host, self.settings.grade) {
            CopyHost::Gone => return Ok(true),
            CopyHost::MayRun => return Ok(false),
            CopyHost::Off(node) => node,
        };
        let look = ParentAsk::Look { child: self.child(), is_held: false };
        match self.ask(call, &node, look, false).await? {
            ParentAnswer::Seen(ParentSeen::Off(off)) => Ok(off.grade() >= self.settings.grade),
            _ => Ok(false),
        }
    }
}
