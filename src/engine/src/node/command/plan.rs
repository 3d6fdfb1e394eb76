//! The plan of a fence: the way that the request would go, and the steps that would follow.
//!
//! # Invariants
//!
//! - A plan walks the same way as a fence: `way` in `command/admit`, and `decide` of the office. Shown by
//!   `over_random_histories_the_plan_and_the_fence_agree`.

use picket_core::confirm;
use picket_core::device::{DeviceClass, DeviceSpec, Grade, IdentityMatch};
use picket_core::event::Holder;
use picket_core::ids::{DeviceId, ReleaseId};
use picket_core::parent::is_kept_off_for;
use picket_core::record::{Phase, Then};
use picket_core::time::written;
use picket_core::topology::{Level, Topology};
use picket_liveness::Look;

use super::admit::Way;
use crate::error::EngineError;
use crate::node::NodeTask;
use crate::plan::{Plan, PlanAction, PlanStep, Planned};
use crate::request::{Asides, FenceCall};
use crate::units;
use crate::view::{Checked, NodeView};

/// Of a quorum that was set aside for nothing.
const NO_QUORUM: &str = "it does not cost the store its quorum: the override of the quorum is of no use";

fn step(action: PlanAction, target: impl ToString, text: impl Into<String>) -> PlanStep {
    PlanStep {
        action,
        level: 0,
        target: target.to_string(),
        text: text.into(),
        at_most: None,
        grade: None,
        obstacles: Vec::new(),
    }
}

fn last_look(planned: &Planned, heard: Option<&Look>) -> PlanStep {
    let text = "asks again whether a pause, a limit or a sign of life speaks against it, before the hold and before the first off";
    let obstacles = match (planned, heard) {
        (Planned::Aborts(why), _) => vec![why.clone()],
        (Planned::Barred(bar), _) => vec![bar.detail()],
        (Planned::Blocked(_, why), _) => vec![why.clone()],
        (Planned::Opens(_), Some(Look::Away(why))) => {
            vec![format!(
                "whether the node recovered is not known now ({why}): it would wait for that word, with nothing sent"
            )]
        }
        _ => Vec::new(),
    };
    PlanStep { obstacles, ..step(PlanAction::LastLook, "", text) }
}

impl NodeTask {
    /// Plans the fence that the request would open. Devices are read at most, and only where the fence would say that the node
    /// is proven off already; nothing is stored.
    pub(super) async fn planned(
        &mut self,
        call: &FenceCall,
        heard: Option<&Look>,
    ) -> Result<Plan, EngineError> {
        let planned = match self.way(call) {
            Err(EngineError::Blocked { reason, detail }) => Planned::Blocked(reason, detail),
            Err(error) => return Err(error),
            Ok(Way::Open) => {
                self.count_members().await;
                self.would_open(call, heard)
            }
            Ok(Way::Join) => match &self.record().fence {
                Some(fence) => Planned::Joins(fence.id),
                None => return Err(EngineError::Invalid("the node has no fence to join".to_owned())),
            },
            Ok(Way::JoinProven) => self.would_be_already().await,
        };
        let steps = match &planned {
            Planned::Already { .. } => Vec::new(),
            _ => self.steps(call, &planned, heard),
        };
        let record = self.record();
        Ok(Plan { phase: record.phase.clone(), generation: record.generation, steps, planned })
    }

    fn would_open(&self, call: &FenceCall, heard: Option<&Look>) -> Planned {
        let ticket = call.turn.map(|turn| turn.ticket);
        let aside = Asides::which(call.set_aside.as_ref());
        let place = match self.office.decide(&self.plan, aside, ticket.as_ref()) {
            Ok(place) => place,
            Err(bar) => return Planned::Barred(Box::new(bar)),
        };
        // What is no explicit word does not keep the fence from beginning either.
        if let Some(Look::Recovered(words)) = heard {
            return Planned::Aborts(format!("the node recovered: {words}"));
        }
        let told = |is_asked, quorum, of_no_use: &str| match place.words(quorum) {
            Some(bar) => Some(format!("a limit would be set aside: {bar}")),
            None if is_asked => Some(of_no_use.to_owned()),
            None => None,
        };
        let budget = told(aside.budget, false, "no limit bars it: the override of the budget is of no use");
        let quorum = told(aside.quorum, true, NO_QUORUM);
        Planned::Opens(budget.into_iter().chain(quorum).collect::<Vec<_>>().join("; "))
    }

    async fn would_be_already(&mut self) -> Planned {
        let looks = self.glance().await;
        let now = self.now();
        let proven = match &self.ground {
            Some(held) => held.ground.examine(&looks, now).map_err(|fault| fault.to_string()),
            None => Err("this leadership has not proven it yet".to_owned()),
        };
        // A plan acts on nothing that it reads: whoever watches the node does.
        self.lingering.hear_next(looks);
        let Some(fence) = &self.record().fence else {
            return Planned::Opens(String::new());
        };
        match proven {
            Ok(()) => Planned::Already { released: self.record().phase == Phase::Released },
            Err(why) => Planned::ProvenAnew(fence.id, why),
        }
    }

    /// What would follow, level by level, then release by release.
    fn steps(&self, call: &FenceCall, planned: &Planned, heard: Option<&Look>) -> Vec<PlanStep> {
        let joined = match planned {
            Planned::Joins(_) | Planned::ProvenAnew(..) => self.record().fence.as_ref(),
            _ => None,
        };
        let own = self.topology_to_fence();
        let topology: &Topology = joined.map_or(&own, |fence| &fence.topology);
        let planned_by_name = || {
            let found = self
                .plan
                .releases
                .iter()
                .find(|release| release.quarantine().is_some_and(|cluster| cluster.by_name_alone()));
            found.map(|release| &release.id)
        };
        let by_name = joined.map_or_else(planned_by_name, |fence| self.by_name(fence));
        let mut steps = vec![last_look(planned, heard)];
        for (index, level) in topology.levels().iter().enumerate() {
            let of_level = self.level(level, call, by_name);
            steps.extend(of_level.into_iter().map(|step| PlanStep { level: index + 1, ..step }));
        }
        for release in &self.plan.releases {
            let (settle, deadline) = (release.releaser.settle(), release.releaser.deadline());
            if !settle.is_zero() {
                let text = format!("waits until {} have passed since the first Off", written(settle));
                steps.push(PlanStep { at_most: Some(settle), ..step(PlanAction::Settle, &release.id, text) });
            }
            let text = match release.releaser.in_parts() {
                None => "lets the volumes go, and waits until that is seen complete".to_owned(),
                Some(parts) => format!(
                    "lets the volumes go that {} finds attached ({}), each for itself, and waits until all are seen to be free; \
                     what is attached is read before the off, after the proof, and once more at the end",
                    parts.device(),
                    parts.choice()
                ),
            };
            let mut step =
                PlanStep { at_most: Some(deadline), ..step(PlanAction::Release, &release.id, text) };
            if release.releaser.max_in_flight().is_none() {
                let why = "nothing bounds how late an attempt may take effect: where its end is not seen, a person decides before an on";
                step.obstacles.push(why.to_owned());
            }
            steps.push(step);
        }
        steps.extend(self.power_on(&call.holder));
        steps
    }

    /// What the device shares with others, and whom what goes wrong there may reach too.
    fn shared(&self, id: &DeviceId) -> String {
        let Some(unit) = self.plan.units.get(id) else { return String::new() };
        let others = unit.others(&self.plan.id);
        match others.is_empty() {
            true => String::new(),
            false => format!("; at {} it takes turns with {}", unit.name(), units::named(&others)),
        }
    }

    /// What the last check found out about the device that is no fault, and may matter.
    fn remarked(&self, id: &DeviceId) -> String {
        let checked = self.live.devices.get(id).and_then(|live| live.checked.as_ref());
        let known = |checked: &Checked| [&checked.obstacles[..], &checked.remarks].concat().join("; ");
        let remarks = checked.map(known).unwrap_or_default();
        if remarks.is_empty() { remarks } else { format!(" (known of it: {remarks})") }
    }

    /// The steps of a level. What each of its devices showed last is what may be in the way.
    fn level(&self, level: &Level, asked: &FenceCall, by_name: Option<&ReleaseId>) -> Vec<PlanStep> {
        let (least, holder) = (asked.min_grade.unwrap_or(Grade::Claimed), &asked.holder);
        let rules = &self.parts.rules;
        let mut steps = Vec::new();
        let (mut grade, mut lowered) = (Grade::Observed, Vec::new());
        for spec in &level.devices {
            let compared = self.compared(spec);
            let (own, why) = spec.best_grade(compared);
            grade = grade.min(own);
            lowered.extend(why);
            let call =
                |action, text: &str| PlanStep { at_most: Some(spec.call), ..step(action, &spec.id, text) };
            let mut identify = call(PlanAction::Identify, "compares its identity with the node's");
            identify.obstacles = self.in_the_way(spec, compared);
            if spec.class == DeviceClass::Parent {
                let text = self.blast();
                identify.obstacles.extend(self.out_of_reach(holder));
                steps.push(PlanStep { obstacles: identify.obstacles, ..call(PlanAction::Off, &text) });
            } else if spec.class != DeviceClass::Supply {
                steps.push(identify);
                steps.push(call(
                    PlanAction::Hold,
                    "tells it to keep the node off, after what was found is stored",
                ));
                let text = format!(
                    "switches the node off, hard{}{}",
                    self.shared(&spec.id),
                    self.remarked(&spec.id)
                );
                steps.push(call(PlanAction::Off, &text));
            } else {
                let text = format!("switches the outlet off{}", self.shared(&spec.id));
                let off = call(PlanAction::Off, &text);
                steps.push(PlanStep { obstacles: identify.obstacles, ..off });
            }
        }
        let names: Vec<&str> = level.devices.iter().map(|spec| spec.id.as_str()).collect();
        let open = self.record().fence.as_ref().filter(|fence| fence.ended_at.is_none());
        let deadline = open.map(|fence| fence.deadline).or(asked.deadline);
        let text = format!(
            "reads until Off is proven by {}; without any answer its turn ends after {}, and each level is tried again until the fence \
             ends, after {}",
            names.join(" and "),
            written(rules.silent_share_of(level)),
            written(deadline.unwrap_or_else(|| rules.deadline_of(&self.plan.topology)))
        );
        if let Some(release) = by_name {
            grade = grade.lowered();
            lowered.push(confirm::by_name(release));
        }
        let mut obstacles = lowered;
        if grade < least {
            obstacles.push(format!(
                "its grade would be {grade:?}, which is less than the least that is asked for, {least:?}"
            ));
        }
        let at_most = Some(rules.share_of(level));
        steps.push(PlanStep {
            at_most,
            grade: Some(grade),
            obstacles,
            ..step(PlanAction::Confirm, "", text)
        });
        steps
    }

    /// What fencing the parent comes to: whom it takes away besides.
    fn blast(&self) -> String {
        let Some(parent) = self.office.parent(&self.plan.id) else {
            return "fences the machine on which the node runs, which is not known yet, and all that runs there".to_owned();
        };
        let others = self.office.children(&parent).into_iter().filter(|child| *child != self.plan.id);
        let others: Vec<String> = others.map(|child| child.to_string()).collect();
        let others = match others.as_slice() {
            [] => "nothing else of the settings runs there".to_owned(),
            others => format!("takes away too {}", others.join(", ")),
        };
        format!("fences {parent}, on which the node was last seen to run, and holds it; {others}")
    }

    /// Why the machine on which the node runs would not be fenced for this caller (S22).
    fn out_of_reach(&self, holder: &Holder) -> Option<String> {
        let (engine, parent) = (self.parts.parents.engine()?, self.office.parent(&self.plan.id)?);
        let is_kept_off = |view: NodeView| is_kept_off_for(&view.stored.record, &self.plan.id);
        if engine.node(&parent).is_ok_and(is_kept_off) {
            return None;
        }
        let parent = engine.plan_of(&parent)?;
        let standing = self.office.standing(&self.plan.id);
        let askers = standing.into_iter().flat_map(|node| node.askers);
        let askers: Vec<_> = askers.chain([holder.person()]).collect();
        self.office.may_for_child(&self.plan.id, &askers, &parent).err()
    }

    /// What comparing its identity says, as far as it was asked; else what can be said without asking.
    pub(super) fn compared(&self, spec: &DeviceSpec) -> IdentityMatch {
        let seen = self.live.devices.get(&spec.id).and_then(|live| live.identity_match);
        seen.unwrap_or_else(|| {
            let expected = self.expected_identity(&spec.id);
            expected.compare(&expected.identity)
        })
    }

    fn in_the_way(&self, spec: &DeviceSpec, compared: IdentityMatch) -> Vec<String> {
        let live = self.live.devices.get(&spec.id);
        let fault = live.and_then(|live| live.fault.as_ref()).map(|(fault, at)| format!("{fault} (at {at})"));
        let mismatch = (compared == IdentityMatch::Mismatch).then(|| {
            let said =
                live.and_then(|live| live.identity.as_ref()).map(|said| said.words()).unwrap_or_default();
            let expected = self.expected_identity(&spec.id).identity.words();
            format!(
                "it says that it controls another machine, {said}, and not {expected}: no off would be sent"
            )
        });
        let unasked = live.is_none().then(|| "it was not asked yet: check the node's devices".to_owned());
        mismatch.into_iter().chain(fault).chain(unasked).collect()
    }

    fn power_on(&self, holder: &Holder) -> Option<PlanStep> {
        let others: Vec<&str> =
            self.record().holds.keys().map(String::as_str).filter(|name| *name != holder.name).collect();
        let mut step = step(
            PlanAction::PowerOn,
            "",
            "drops the caller's hold once all is released, and powers on again",
        );
        step.at_most = Some(self.parts.rules.on_deadline);
        if !others.is_empty() {
            step.obstacles.push(format!("still held by {}: it stays off", others.join(", ")));
        }
        (holder.then == Then::PowerOn).then_some(step)
    }
}
