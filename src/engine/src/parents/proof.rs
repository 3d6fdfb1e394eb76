//! Whether what its parent proves speaks for a child: of the child itself, and of copies of it that an evacuation left.

use picket_core::parent::{NotThere, ParentOff, Placement};
use picket_core::power::{Power, Reading};
use picket_driver::{Call, DriverError};

use super::copies::{Copies, Looker, Looks};
use super::driver::ParentDriver;

impl ParentDriver {
    pub(super) fn looker<'l>(&'l self, call: &'l Call) -> Result<Looker<'l>, DriverError> {
        let settings = &self.settings;
        let (engine, cloud) = (Some(self.engine()?), self.places.cloud());
        Ok(Looker { engine, child: &settings.child, cloud, least: settings.grade, call })
    }

    /// Whether a copy of the child may run on a machine that is not proven off.
    pub(super) async fn copies(
        &self,
        placement: &Placement,
        seen: Looks,
        call: &Call,
    ) -> Result<Copies, DriverError> {
        // Of a server that is back where it came from, the machine's own proof is what is asked for anyway.
        let hosts = placement.copies.iter().filter(|host| placement.host.as_ref() != Some(host));
        Ok(self.copy_hosts.judge(hosts.cloned().collect(), seen, &self.looker(call)?).await)
    }

    /// `seen`: the machines of known copies, which were looked at beside the parent.
    pub(super) async fn by_proof(
        &self,
        call: &Call,
        off: &ParentOff,
        seen: Looks,
    ) -> Result<Reading, DriverError> {
        let epoch = self.seen().proof(off.proof());
        let (placement, meant) = self.whereabouts(call).await?;
        let parent = off.node();
        let mut asked_at = off.asked_at();
        let (power, said) = match off.speaks_for(&placement, meant.as_ref().ok()) {
            Ok(()) => match self.copies(&placement, seen, call).await? {
                Copies::Off(read_at) => {
                    // The reading is as old as the oldest answer that it stands on.
                    asked_at = read_at.map_or(asked_at, |at| asked_at.min(at));
                    (Power::Off, format!("runs on {parent}, which is proven off ({:?})", off.grade()))
                }
                Copies::MayRun(why) => (Power::Unknown, why),
            },
            Err(why @ NotThere::Elsewhere(_)) => (Power::On, why.to_string()),
            Err(why) => (Power::Unknown, why.to_string()),
        };
        Ok(self.reading(power, asked_at, call, epoch, said))
    }
}
