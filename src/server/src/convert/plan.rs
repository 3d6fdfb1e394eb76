//! Plans, on the wire.

use picket_core::ids::NodeId;
use picket_core::outcome::Outcome;
use picket_core::time::written;
use picket_engine::{Plan, PlanAction, PlanStep, Planned};
use picket_proto::v1;

use super::time::duration;
use super::{outcome, words};

/// A plan.
pub(crate) fn plan(node: &NodeId, plan: &Plan, outcome: v1::Outcome) -> v1::PlanFenceResponse {
    v1::PlanFenceResponse {
        node: node.to_string(),
        generation: plan.generation.0,
        phase: words::phase(&plan.phase).into(),
        steps: plan.steps.iter().map(step).collect(),
        outcome: Some(outcome),
    }
}

/// How the request would be taken.
pub(crate) fn outcome_of(plan: &Plan, knows_all: bool) -> v1::Outcome {
    match &plan.planned {
        Planned::Opens(words) => outcome::dry_run(words.clone()),
        Planned::Joins(fence) => outcome::dry_run(format!("it would join fence {fence}, which is under way")),
        Planned::ProvenAnew(fence, why) => {
            outcome::dry_run(format!("it would join fence {fence}, and have it proven anew: {why}"))
        }
        Planned::Already { released } => outcome::outcome(
            &Outcome::AlreadyFenced { released: *released },
            "proven off, and read Off just now: nothing would be sent",
        ),
        Planned::Aborts(why) => outcome::outcome(&Outcome::AbortedRecovered, why.clone()),
        Planned::Barred(bar) => outcome::barred(bar, knows_all),
        Planned::Blocked(reason, detail) => outcome::outcome(&Outcome::Blocked(*reason), detail.clone()),
    }
}

fn action(action: PlanAction) -> v1::PlanAction {
    match action {
        PlanAction::LastLook => v1::PlanAction::LastLook,
        PlanAction::Identify => v1::PlanAction::Identify,
        PlanAction::Hold => v1::PlanAction::Hold,
        PlanAction::Off => v1::PlanAction::Off,
        PlanAction::Confirm => v1::PlanAction::Confirm,
        PlanAction::Settle => v1::PlanAction::Settle,
        PlanAction::Release => v1::PlanAction::Release,
        PlanAction::PowerOn => v1::PlanAction::PowerOn,
    }
}

fn step(step: &PlanStep) -> v1::PlanStep {
    v1::PlanStep {
        action: action(step.action).into(),
        level: u32::try_from(step.level).unwrap_or(u32::MAX),
        target: step.target.clone(),
        text: step.text.clone(),
        at_most: step.at_most.map(duration),
        grade: step.grade.map_or(v1::Grade::Unspecified, words::grade).into(),
        obstacles: step.obstacles.clone(),
    }
}

/// A step, on one line.
pub(crate) fn in_words(step: &PlanStep) -> String {
    let name = action(step.action).as_str_name().trim_start_matches("PLAN_ACTION_");
    let target = if step.target.is_empty() { String::new() } else { format!(" {}", step.target) };
    let at_most = step.at_most.map(|time| format!(" (at most {})", written(time))).unwrap_or_default();
    let grade = step.grade.map(|grade| format!(", {}", words::grade_word(grade))).unwrap_or_default();
    let obstacles = match step.obstacles.as_slice() {
        [] => String::new(),
        some => format!("; in the way: {}", some.join("; ")),
    };
    let name = name.to_lowercase().replace('_', " ");
    format!("would {name}{target}{grade}{at_most}: {}{obstacles}", step.text)
}
