//! Nodes of a restored store (S21): nothing is sent to them; what their devices say decides where they
//! stand.
//!
//! # Invariants
//!
//! - A node that reads Off is kept off for an admin. One that reads On although the backup says Fenced
//!   waits for a person. Shown by `a_node_that_reads_off_is_kept_off_for_an_admin_and_nothing_is_sent`,
//!   `on_though_the_backup_says_fenced_it_waits_for_a_person_and_is_not_switched_off`.

use picket_core::event::Event;
use picket_core::ids::DeviceId;
use picket_core::power::Power;
use picket_core::record::{NodeRecord, Phase};
use picket_core::restore;
use picket_core::topology::Topology;

use super::{Fatal, NodeTask};
use crate::parts::PlannedRelease;

impl NodeTask {
    /// A node of which the store has nothing may have been fenced after its backup was taken, whenever the settings bring it.
    pub(super) async fn mark_unknown(&mut self) -> Result<(), Fatal> {
        let is_new = *self.record() == NodeRecord::new(self.plan.id.clone());
        if let Some(mark) = self.office.restored().filter(|_| is_new) {
            self.persist(|| Event::Marked(mark.clone())).await?;
        }
        Ok(())
    }

    /// What the old life may have had under way after its backup was taken enters the ledger, before anything else is done.
    pub(super) async fn adopt(&mut self) -> Result<(), Fatal> {
        // Of a node whose hardware is gone that is done once the settings have another machine: its devices are the ones to wait for.
        let is_due = self.record().restored.as_ref().is_some_and(|mark| !mark.counted);
        if !is_due || self.record().phase == Phase::Retired {
            return Ok(());
        }
        let topology = self.stands_by().clone();
        let releases: Vec<_> = self.plan.releases.iter().map(PlannedRelease::told).collect();
        let receipts = &self.parts.rules;
        let receipts = receipts.receipt_life.saturating_add(receipts.receipt_margin);
        let adopt = || {
            let (topology, releases) = (topology.clone(), releases.clone());
            Event::Adopt { topology, releases, receipts }
        };
        self.persist(adopt).await?;
        Ok(())
    }

    /// The node's levels: those of its fence, else those of the settings.
    pub(super) fn stands_by(&self) -> &Topology {
        self.record().fence.as_ref().map_or(&self.plan.topology, |fence| &fence.topology)
    }

    /// Looks until the devices say where the node stands, and whenever they say otherwise later. Callers are answered: a fence
    /// goes through its own off, whatever a backup says.
    pub(super) async fn restored(&mut self) -> Result<(), Fatal> {
        let here = self.place();
        loop {
            self.close_expired(|_| true).await?;
            self.drop_holds_of_the_gone().await?;
            if self.place() != here {
                return Ok(());
            }
            let began = self.now();
            let devices: Vec<DeviceId> = self.stands_by().devices().map(|spec| spec.id.clone()).collect();
            let Some(looks) = self.watch(&devices).await? else { return Ok(()) };
            // By settings that are gone nothing is stored: a reload was told that the node is at rest.
            if self.steps_aside() {
                return Ok(());
            }
            let seen = restore::seen(self.stands_by(), &looks);
            if self.says_something_new(seen) {
                let (id, topology) = (self.mint_fence(), self.topology_to_fence());
                let read = || Event::Read { id, topology: topology.clone(), looks: looks.clone() };
                self.persist(read).await?;
                self.tell_where_it_stands();
                return Ok(());
            }
            match self.record().phase {
                Phase::Fenced => {
                    self.wait_for(
                        format!("the hold {} to be dropped, or a fence", restore::HOLD),
                        "an admin",
                        None,
                    );
                }
                Phase::NeedsOperator(_) if self.record().restored.is_none() => {
                    self.wait_for("a fence, or a stand-down: it is on since a restore", "an operator", None);
                }
                _ => self.wait_for(
                    "a device that says whether it is on: the store was restored",
                    "its devices",
                    None,
                ),
            }
            if self.pause_between_looks(here, began).await? || self.steps_aside() {
                return Ok(());
            }
        }
    }

    fn says_something_new(&self, seen: Option<Power>) -> bool {
        let record = self.record();
        match seen {
            Some(Power::Off) => record.phase != Phase::Fenced,
            Some(Power::On) => record.restored.is_some() || record.phase == Phase::Fenced,
            _ => false,
        }
    }

    fn tell_where_it_stands(&self) {
        let node = &self.record().node;
        match self.record().phase {
            Phase::Fenced => {
                tracing::warn!(%node, "it is off since a restore: kept off, and not proven, until an admin drops the hold");
            }
            Phase::NeedsOperator(_) => {
                tracing::error!(%node, "the restored store says that it is kept off, and it is on: a person decides");
            }
            _ => tracing::info!(%node, "it is on since a restore, as it was when the backup was taken"),
        }
    }
}
