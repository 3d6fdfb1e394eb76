//! A drill: a fence like any other, of a node of which nothing is wrong, by the level that nobody knows to
//! work.
//!
//! # Invariants
//!
//! - A drill begins in Normal, of a machine that reads On. Shown by
//!   `a_machine_that_nobody_sees_on_is_not_drilled`.
//! - A node with releases is not drilled by supplies whose wiring nobody knows. Shown by
//!   `nothing_is_let_go_on_the_word_of_outlets_of_which_nobody_knows_what_they_feed`.

use std::collections::{BTreeMap, BTreeSet};

use std::sync::Arc;

use picket_core::confirm::HAS_POWER;
use picket_core::device::DeviceClass;
use picket_core::device::DeviceSpec;
use picket_core::event::Event;
use picket_core::ground;
use picket_core::ids::DeviceId;
use picket_core::power::Power;
use picket_core::record::Cause;
use picket_core::topology::Topology;

use futures::future::OptionFuture;
use picket_driver::ErrorKind;

use super::{Command, refusal, store_failure};
use crate::error::EngineError;
use crate::node::looking::on;
use crate::node::witness::{self, Drilled};
use crate::node::{Fatal, NodeTask};
use crate::plan::Plan;
use crate::request::{Admission, FenceCall};

impl Command {
    /// Whether it is a drill, which looks at the host devices before anything else, where the node may be drilled.
    pub(in crate::node) fn is_drill(&self) -> bool {
        match self {
            Command::As(_, command) => command.is_drill(),
            command => matches!(command, Command::Drill(..)),
        }
    }
}

impl NodeTask {
    /// Admits it as any fence; a repetition is answered wherever the node stands.
    pub(super) async fn drill(&mut self, call: FenceCall) -> Result<Result<Admission, EngineError>, Fatal> {
        let asked_before = match self.bound(call.key.as_ref()).await {
            Ok(Ok(entry)) => match entry.and_then(|entry| entry.fence) {
                Some(fence) => match self.kept(fence).await {
                    // What ended before its off does not bind the key: it is decided again, from the beginning.
                    Ok(kept) => !kept.is_some_and(|fence| fence.sent_nothing()),
                    Err(error) => return refusal(store_failure(error)),
                },
                None => false,
            },
            Ok(Err(error)) => return Ok(Err(error)),
            Err(failure) => return refusal(failure),
        };
        if !asked_before {
            // Before any device is asked; the step that opens the drill refuses it as well.
            if let Err(error) = self.plan.may_be_drilled(self.record()) {
                return Ok(Err(error));
            }
            if let Some(error) = self.is_lit().await? {
                return Ok(Err(error));
            }
        }
        self.drilling = true;
        let admitted = self.admit(call).await;
        self.drilling = false;
        admitted
    }

    /// What a drill would do, as far as it can be said without asking whether the machine runs. Nobody is asked whether the
    /// node recovered: a drill is of one that is alive.
    pub(super) async fn planned_drill(&mut self, call: &FenceCall) -> Result<Plan, EngineError> {
        self.plan.may_be_drilled(self.record())?;
        self.drilling = true;
        let planned = self.planned(call, None).await;
        self.drilling = false;
        planned
    }

    /// Looks which host devices read On before anything is cut: what is dark already can show nothing, and a drill would
    /// switch it on.
    async fn is_lit(&mut self) -> Result<Option<EngineError>, Fatal> {
        let hosts = self.hosts();
        let source = self.source_of_witness();
        let heard = OptionFuture::from(source.as_deref().map(witness::look));
        let (looks, heard) = tokio::join!(self.look_at(&hosts), heard);
        let looks = looks?;
        let lit: BTreeSet<DeviceId> = on(&looks).cloned().collect();
        if !lit.is_empty() {
            self.drilled = Some(Box::new(Drilled::of(lit, heard.as_ref())));
            return Ok(None);
        }
        let is_off = |look: &&ground::Look| look.reading.as_ref().is_some_and(|one| one.power == Power::Off);
        let dark = looks.iter().find(is_off).map(|look| (&look.device, ErrorKind::Refused, "it reads Off"));
        let unseen =
            looks.first().map(|look| (&look.device, ErrorKind::TimedOut, "it does not say that it is on"));
        Ok(dark.or(unseen).map(|(device, kind, said)| EngineError::Device {
            device: device.clone(),
            kind,
            detail: format!("{said}: a drill is of a machine that is seen to run"),
        }))
    }

    /// What the drill that ends here has shown of the wiring: the host was on, went dark with the outlets of a level, and is
    /// back with them. And of the identities that devices were the only ones to say.
    pub(in crate::node) async fn conclude_drill(&mut self) -> Result<(), Fatal> {
        let drilled = self.drilled.take().unwrap_or_default();
        let Some(fence) = self.record().fence.as_ref().filter(|fence| fence.cause == Cause::Drill) else {
            return Ok(());
        };
        let evidence = fence.evidence.clone();
        let level = evidence.as_ref().and_then(|evidence| evidence.level.checked_sub(1));
        let Some((evidence, level)) = evidence.zip(level.and_then(|level| fence.topology.level(level)))
        else {
            return Ok(());
        };
        let names = level.devices.iter().map(|spec| spec.id.to_string()).collect::<Vec<_>>().join(", ");
        let mut findings = vec![format!("off by {names}, and back")];
        findings.extend(evidence.lowered_by.clone());
        let by_supplies = level.devices.iter().all(|spec| spec.class == DeviceClass::Supply);
        let has_supplies = self.plan.topology.devices().any(|spec| spec.class == DeviceClass::Supply);
        let mut verified = BTreeMap::new();
        if by_supplies && drilled.lit.is_empty() {
            findings.push(format!(
                "{names}: not verified, since no host device was seen on before they were cut"
            ));
        } else if by_supplies && evidence.lowered_by.iter().any(|why| why.ends_with(HAS_POWER)) {
            findings.push(format!("{names}: not verified, since the machine has power from elsewhere"));
        } else if by_supplies && drilled.cut.iter().any(|id| level.devices.iter().all(|spec| spec.id != *id))
        {
            findings.push(format!("{names}: not verified, since other devices were switched off as well"));
        } else if let (true, Err(why)) = (by_supplies, self.saw_it_fall(&drilled)) {
            findings.push(format!("{names}: not verified, since {why}"));
        } else if by_supplies {
            let wired =
                level.devices.iter().filter_map(|spec| Some((spec.id.clone(), self.plan.wiring(&spec.id)?)));
            verified.extend(wired);
            findings.push(format!(
                "{names}: the host went dark with them and came back: their wiring is verified"
            ));
        } else if has_supplies {
            findings.push("the supplies did not prove it: their wiring is not verified".to_owned());
        }
        let (identities, of_identities) = self.witnesses(fence, &drilled);
        findings.extend(of_identities);
        tracing::info!(?findings, "the drill is over");
        self.persist(|| Event::Drilled {
            verified: verified.clone(),
            identities: identities.clone(),
            findings: findings.clone(),
        })
        .await?;
        identities.keys().for_each(|device| self.compare_anew(device));
        Ok(())
    }

    /// The levels by which the node is fenced, with what drills have verified of their wiring. A drill is by the outlets, unless a witness can say
    /// whose machine the host devices control, which is not known: until it is no outlet is verified by them.
    pub(in crate::node) fn topology_to_fence(&self) -> Topology {
        let topology = self.paced(self.plan.levels_now(self.record()));
        if self.drilling && self.source_of_witness().is_none() { topology.supplies_first() } else { topology }
    }

    /// What a slow PDU is asked for must come round before it is too old: its dwell is longer than that of the settings then.
    fn paced(&self, topology: Topology) -> Topology {
        if self.plan.units.is_empty() {
            return topology;
        }
        topology.with_dwells(|level, spec| {
            let most = self.parts.rules.share_of(level) / 10;
            let Some(unit) = self.plan.units.get(&spec.id) else { return spec.dwell };
            let here = |other: &&DeviceSpec| {
                self.plan.units.get(&other.id).is_some_and(|theirs| Arc::ptr_eq(theirs, unit))
            };
            spec.dwell.max(unit.least_dwell(level.devices.iter().filter(here).count()).min(most))
        })
    }
}
