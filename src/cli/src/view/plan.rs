//! Plans, for scripts and for people.

use picket_proto::v1::{OutcomeKind, PlanAction, PlanFenceResponse, PlanStep};
use serde::Serialize;

use super::outcome::{OutcomeView, sentence};
use super::{filled, seconds, words};
use crate::duration;
use crate::exit::Exit;
use crate::gateway_error::GatewayError;
use crate::style::{Page, Tone};

/// The document of `picket plan`.
#[derive(Debug, Serialize)]
pub struct Plans {
    plans: Vec<PlanView>,
    exit_code: u8,
}

#[derive(Debug, Serialize)]
struct PlanView {
    node: String,
    exit_code: u8,
    phase: Option<String>,
    generation: Option<u64>,
    outcome: Option<OutcomeView>,
    steps: Vec<StepView>,
    error: Option<GatewayError>,
}

#[derive(Debug, Serialize)]
struct StepView {
    action: Option<String>,
    level: u32,
    target: Option<String>,
    text: String,
    at_most_s: Option<f64>,
    grade: Option<String>,
    obstacles: Vec<String>,
}

type Answer = Result<PlanFenceResponse, GatewayError>;

/// The exit code is that of the fence, as far as it can be told: blocked, recovered, or done where it would begin.
pub fn exit(answer: &Answer) -> Exit {
    let plan = match answer {
        Ok(plan) => plan,
        Err(told) => return told.exit(),
    };
    match plan.outcome.as_ref().map(|outcome| outcome.kind()) {
        Some(OutcomeKind::DryRun | OutcomeKind::AlreadyFenced) => Exit::Done,
        Some(OutcomeKind::Blocked) => Exit::Blocked,
        Some(OutcomeKind::AbortedRecovered) => Exit::Recovered,
        _ => Exit::Failed,
    }
}

impl Plans {
    /// Of each node's answer.
    pub fn of(answers: &[(String, Answer)], end: Exit) -> Self {
        let view = |(node, answer): &(String, Answer)| {
            let plan = answer.as_ref().ok();
            PlanView {
                node: node.clone(),
                exit_code: exit(answer).code(),
                phase: plan.and_then(|plan| words::phase(plan.phase)),
                generation: plan.map(|plan| plan.generation),
                outcome: plan.and_then(|plan| plan.outcome.as_ref()).map(OutcomeView::from),
                steps: plan.map(|plan| plan.steps.iter().map(StepView::from).collect()).unwrap_or_default(),
                error: answer.as_ref().err().cloned(),
            }
        };
        Self { plans: answers.iter().map(view).collect(), exit_code: end.code() }
    }
}

impl From<&PlanStep> for StepView {
    fn from(step: &PlanStep) -> Self {
        Self {
            action: words::plan_action(step.action),
            level: step.level,
            target: filled(&step.target),
            text: step.text.clone(),
            at_most_s: seconds(&step.at_most),
            grade: words::grade(step.grade),
            obstacles: step.obstacles.clone(),
        }
    }
}

/// One node's plan: how it would be taken, then step by step what would happen, and what is in the way.
pub fn text(node: &str, answer: &Answer, page: Page) -> String {
    let plan = match answer {
        Ok(plan) => plan,
        Err(told) => {
            let told = format!("refused: {}", told.to_string().replace('\n', "; "));
            return page.of_node(node, Tone::Bad, &told);
        }
    };
    let outcome = plan.outcome.as_ref();
    let tone = outcome.map_or(Tone::Bad, |outcome| words::outcome_tone(outcome.kind));
    let said = outcome.map_or_else(|| "no outcome".to_owned(), sentence);
    let mut out = page.of_node(node, tone, &said);
    let mut level = 0;
    for (number, step) in plan.steps.iter().enumerate() {
        if step.level > 1 && step.level != level {
            let text = format!("      if level {} does not hold:", step.level - 1);
            out += &format!("{}\n", page.tone(Tone::Faint, &text));
        }
        level = step.level;
        out += &page.beside(&format!("  {:>2}  ", number + 1), 6, Tone::Plain, &line(step));
        for obstacle in &step.obstacles {
            out += &page.beside("      ", 6, Tone::Busy, &format!("{}: {obstacle}", label(step, obstacle)));
        }
    }
    out
}

/// What lowers the grade of a proof keeps no fence from its end; a grade that is too low does.
fn label(step: &PlanStep, obstacle: &str) -> &'static str {
    match step.action() {
        PlanAction::Confirm if !obstacle.starts_with("its grade would be ") => "lowers the grade",
        _ => "in the way",
    }
}

fn line(step: &PlanStep) -> String {
    let mut text = words::spoken(words::plan_action(step.action));
    if !step.target.is_empty() {
        text += &format!(" {}", step.target);
    }
    if let Some(grade) = words::grade(step.grade) {
        text += &format!(" (evidence: {grade})");
    }
    text += &format!(": {}", duration::spoken(&step.text));
    if let Some(at_most) = &step.at_most {
        text += &format!(" (at most {})", duration::set(duration::of_wire(at_most)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lowers_the_grade_alone_is_not_in_the_way() {
        let step = |action: PlanAction| PlanStep { action: action.into(), ..PlanStep::default() };
        let learned = "bmc: its identity was learned from the device itself";
        assert_eq!(label(&step(PlanAction::Confirm), learned), "lowers the grade");
        assert_eq!(
            label(&step(PlanAction::Confirm), "its grade would be Learned, which is less"),
            "in the way"
        );
        assert_eq!(label(&step(PlanAction::Identify), "timed out: no answer"), "in the way");
    }
}
