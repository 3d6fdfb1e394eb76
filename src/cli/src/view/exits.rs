//! What to do next about what stops a fence, and the commands for it.

use picket_proto::exits::{Exit, KEPT_FOR, Way, ways};
use picket_proto::v1::{
    DeviceProblemKind, EffectKind, FenceUpdate, Node, OpenEffect, Outcome, OutcomeKind, Phase, Reason,
    Release, ReleaseStage,
};

use super::restored;

/// How the name begins under which a machine holds the one on which it runs.
const CHILD: &str = "child:";

/// The ways out for a node as it stands, with the names of what is in the way; each with the word that begins its line. None where
/// nobody is needed.
pub fn of_node(node: &Node) -> Vec<(&'static str, String)> {
    let kind = match node.phase() {
        _ if node.orphaned => OutcomeKind::NeedsOperator,
        Phase::NeedsOperator => OutcomeKind::NeedsOperator,
        Phase::PowerOnFailed => OutcomeKind::PowerOnFailed,
        _ => return Vec::new(),
    };
    let all = ways(kind, node.reason());
    let is_barred = node.holds.iter().any(|hold| hold.holder.starts_with(CHILD))
        && all.iter().flat_map(|way| way.exits).any(|exit| matches!(exit, Exit::StandDown | Exit::Retire));
    let before = is_barred.then_some(&KEPT_FOR);
    let lines = all.iter().chain(before).filter_map(|way| Some(line(way, &of_way(way, node)?)));
    labelled(lines)
}

/// The ways out of an outcome. What they are about (a device, a release where the last message does not tell it) stands in the node's
/// status.
pub fn of_outcome(node: &str, outcome: &Outcome, last: Option<&FenceUpdate>) -> Vec<(&'static str, String)> {
    let whose = outcome.limit.as_ref().map_or("", |limit| &limit.whose);
    let all = ways(outcome.kind(), outcome.reason()).iter();
    // A gateway that says whether an off was sent says which releases are open, too.
    let open = last.filter(|update| update.off_sent.is_some()).map(|update| &update.open_releases);
    let lines = all.map(|way| {
        let of = |exit: &Exit| {
            let typed = spoken(*exit, node, &scope(whose));
            match open.filter(|_| *exit == Exit::Abandon && outcome.reason() != Reason::UnboundedEffect) {
                Some(open) => {
                    let names = not_over(open, way.exits.contains(&Exit::StandDown));
                    names.into_iter().map(|name| (*exit, typed.replace("RELEASE", name))).collect()
                }
                None => vec![(*exit, typed)],
            }
        };
        line(way, &way.exits.iter().flat_map(of).collect::<Vec<_>>())
    });
    labelled(lines)
}

fn labelled(lines: impl Iterator<Item = String>) -> Vec<(&'static str, String)> {
    std::iter::once("next").chain(std::iter::repeat("or")).zip(lines).collect()
}

fn line(way: &Way, commands: &[(Exit, String)]) -> String {
    let mut text = way.when.to_owned();
    if !commands.is_empty() {
        let typed: Vec<&str> = commands.iter().map(|(_, command)| command.as_str()).collect();
        text += &format!(": {}", typed.join(", then "));
    }
    let mut roles = commands.iter().map(|(exit, _)| exit.role());
    match roles.find(|role| !["controller", "operator"].contains(role)) {
        Some(role) => format!("{text} (role {role})"),
        None => text,
    }
}

/// The commands of a way, with what is in the way by its name. `None`: the way is none for this node.
fn of_way(way: &Way, node: &Node) -> Option<Vec<(Exit, String)>> {
    let mut commands = Vec::new();
    for &exit in way.exits {
        let typed = spoken(exit, &node.name, "");
        match exit {
            Exit::Abandon => {
                let names = in_the_way(way, node);
                let only = way.exits.len() == 1 || node.reason() == Reason::UnboundedEffect;
                if names.is_empty() && only {
                    return None;
                }
                commands.extend(names.iter().map(|name| (exit, typed.replace("RELEASE", name))));
            }
            Exit::AcceptIdentity => {
                let other = node.devices.iter().find(|device| {
                    let is_mismatch = |kind| kind == DeviceProblemKind::IdentityMismatch;
                    device.problems.iter().any(|problem| is_mismatch(problem.kind()))
                });
                commands.push((exit, typed.replace("DEVICE", other.map_or("DEVICE", |device| &device.id))));
            }
            Exit::EndChildsHold => {
                let children = node.holds.iter().filter_map(|hold| hold.holder.strip_prefix(CHILD));
                commands.extend(children.map(|child| (exit, typed.replace("CHILD", child))));
            }
            Exit::DropRestored if node.holds.iter().all(|hold| hold.holder != restored::HOLDER) => {}
            exit => commands.push((exit, typed)),
        }
    }
    Some(commands)
}

/// The releases that are given up before the rest of the way.
fn in_the_way<'a>(way: &Way, node: &'a Node) -> Vec<&'a str> {
    if node.reason() == Reason::UnboundedEffect {
        let is_attempt = |open: &&OpenEffect| open.life.is_none() && open.kind() == EffectKind::Release;
        return node.open_effects.iter().filter(is_attempt).map(|open| open.target.as_str()).collect();
    }
    not_over(&node.releases, way.exits.contains(&Exit::StandDown) || node.orphaned)
}

/// The names of those releases that are not over; `begun`: only of what was begun, as what never was is in nobody's way.
fn not_over(releases: &[Release], begun: bool) -> Vec<&str> {
    let is_over = |one: &Release| matches!(one.stage(), ReleaseStage::Complete | ReleaseStage::Abandoned);
    let is_begun = |one: &Release| one.attempts > 0 || one.unfinished;
    let names: Vec<&Release> =
        releases.iter().filter(|one| !is_over(one) && (!begun || is_begun(one))).collect();
    // A release is given up with its parts.
    let with_whole = |part: &Release| names.iter().any(|whole| whole.name == part.part_of);
    names.iter().filter(|one| !with_whole(one)).map(|one| one.name.as_str()).collect()
}

/// The command as it is typed; what is not known here stays in capitals.
fn spoken(exit: Exit, node: &str, scope: &str) -> String {
    let command = exit.command().replace("NODE", node).replace("GRADE", "claimed").replace("SCOPE", scope);
    match command.strip_suffix("REASON") {
        Some(command) => format!("{command}..."),
        None => format!("{command} --reason ..."),
    }
}

/// What a resume ends that a pause of `whose` began.
fn scope(whose: &str) -> String {
    match whose.split_once(' ') {
        Some(("group", name)) => format!("--group {name}"),
        Some(("node", name)) => name.to_owned(),
        _ => "--everything".to_owned(),
    }
}
