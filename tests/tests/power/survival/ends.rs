//! How a fence and its unfence ended, as far as it must be the same whatever died in between; and what must never be.

use std::collections::BTreeSet;
use std::time::Duration;

use picket_proto::v1::{
    Fence, FenceCause, FenceView, GetFenceRequest, GetNodeRequest, Grade, ListFencesRequest, NodeSelector,
    OutcomeKind, Phase, ReleaseStage, node_selector,
};
use picket_tests::{PeerError, Result};

use crate::survival::scene::{POLICY, Scene};

/// The end of one fence.
#[derive(Debug, PartialEq, Eq)]
pub struct FenceEnd {
    /// Asked for, or found on.
    pub cause: FenceCause,
    /// How it is told.
    pub outcome: OutcomeKind,
    /// Whether everything was let go.
    pub released: bool,
    /// How good the proof was.
    pub grade: Grade,
    /// How far each release came.
    pub releases: Vec<ReleaseStage>,
    /// The node is back.
    pub over: bool,
}

/// The end of it all.
#[derive(Debug, PartialEq, Eq)]
pub struct End {
    /// Where the node stands.
    pub phase: Phase,
    /// Whether it is on, in truth.
    pub on: bool,
    /// The BMC's restore policy.
    pub policy: i64,
    /// Effects that are still open.
    pub open: Vec<String>,
    /// Its fences, newest first.
    pub fences: Vec<FenceEnd>,
    /// How many different keys the receiver was given.
    pub keys: usize,
}

impl End {
    /// How a fence and its unfence end.
    pub fn right() -> Self {
        let fence = FenceEnd {
            cause: FenceCause::Asked,
            outcome: OutcomeKind::Fenced,
            released: true,
            grade: Grade::Learned,
            releases: vec![ReleaseStage::Complete],
            over: true,
        };
        Self {
            phase: Phase::Normal,
            on: true,
            policy: POLICY,
            open: Vec::new(),
            fences: vec![fence],
            keys: 1,
        }
    }
}

/// The fences of the scene's node, newest first, with everything.
pub async fn fences(scene: &Scene) -> Result<Vec<Fence>> {
    let mut client = scene.gateway.client().await?;
    let listed = client.list_fences(ListFencesRequest::default()).await;
    let mut whole = Vec::new();
    for fence in listed.map_err(PeerError::call("ListFences"))?.into_inner().fences {
        let request = GetFenceRequest { fence_id: fence.id, view: FenceView::Full.into() };
        let answer = client.get_fence(request).await.map_err(PeerError::call("GetFence"))?;
        whole.extend(answer.into_inner().fence);
    }
    Ok(whole)
}

/// The end as it is now.
pub async fn end(scene: &Scene) -> Result<End> {
    let node = NodeSelector { by: Some(node_selector::By::Name("n1".to_owned())) };
    let request = GetNodeRequest { node: Some(node), ..GetNodeRequest::default() };
    let answer = scene.gateway.client().await?.get_node(request).await;
    let node = answer.map_err(PeerError::call("GetNode"))?.into_inner().node.unwrap_or_default();
    let fences = fences(scene).await?;
    let keys: BTreeSet<String> =
        scene.webhook.releases().iter().map(|hook| hook.headers["idempotency-key"].clone()).collect();
    Ok(End {
        phase: node.phase(),
        on: scene.bmc.is_on()?,
        policy: scene.bmc.hold()?.get("policy"),
        open: node.open_effects.iter().map(|open| format!("{:?} {}", open.kind(), open.target)).collect(),
        fences: fences.iter().map(fence_end).collect(),
        keys: keys.len(),
    })
}

fn fence_end(fence: &Fence) -> FenceEnd {
    let outcome = fence.outcome.clone().unwrap_or_default();
    FenceEnd {
        cause: fence.cause(),
        outcome: outcome.kind(),
        released: outcome.released,
        grade: fence.evidence.as_ref().map(|evidence| evidence.grade()).unwrap_or_default(),
        releases: fence.releases.iter().map(|release| release.stage()).collect(),
        over: fence.ended_at.is_some(),
    }
}

/// What must never be, in one fence and unfence, whatever died.
pub fn never(scene: &Scene) -> Vec<String> {
    let mut faults = Vec::new();
    for hook in scene.webhook.releases() {
        let since = hook.body["evidence"]["off_since"].as_str().unwrap_or_default();
        if hook.on != Some(false) {
            faults.push(format!("a release was asked for while the node is on: {:?}", hook.body));
        }
        if since.is_empty() {
            faults.push(format!("a release without evidence: {:?}", hook.body));
        }
    }
    let commands = scene.bmc.commands();
    let first_on = commands.iter().position(|command| command.what == "on");
    let ons = commands.iter().filter(|command| command.what == "on").count();
    let offs = commands.len() - ons;
    if first_on.is_some_and(|on| commands[on..].iter().any(|command| command.what == "off")) {
        faults.push(format!("an off after the on: {commands:?}"));
    }
    // A successor's own off, and the one that seals its long window.
    let breaks = scene.deaths.len() + scene.stops;
    if offs > 1 + 2 * breaks || ons > 1 + breaks {
        faults.push(format!("{offs} offs and {ons} ons for {breaks} breaks"));
    }
    let Some(on) = first_on.map(|on| commands[on].at) else { return faults };
    for death in &scene.deaths {
        for open in death.open.iter().filter(|open| open.kind.bars_on()) {
            // The successor counts from when it read the record, which was after the death.
            let over = death.at + open.life.unwrap_or(Duration::MAX / 4) - Duration::from_millis(50);
            if on > death.at && on < over {
                faults.push(format!("an on while {open:?} of a dead gateway was open"));
            }
        }
    }
    faults
}

/// Whether what is kept of the node's only fence tells the whole story, in order.
pub async fn history(scene: &Scene) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    let fences = fences(scene).await?;
    let [fence] = &fences[..] else { return Ok(vec![format!("{} fences are kept", fences.len())]) };
    let times: Vec<_> =
        fence.moments.iter().filter_map(|moment| moment.at).map(|at| (at.seconds, at.nanos)).collect();
    if !times.is_sorted() || times.len() != fence.moments.len() {
        faults.push(format!("moments out of order: {times:?}"));
    }
    let mut phases: Vec<Phase> = fence.moments.iter().map(|moment| moment.phase()).collect();
    phases.dedup();
    // A successor proves it anew, at once or when somebody asks: back to Fencing, and through Fenced again.
    let told = phases.windows(2).all(|pair| {
        matches!(
            (pair[0], pair[1]),
            (Phase::Fencing, Phase::Fenced)
                | (Phase::Fenced, Phase::Fencing | Phase::Released)
                | (Phase::Released, Phase::Fencing | Phase::Unfencing)
                | (Phase::Unfencing, Phase::Normal)
        )
    });
    if !told || phases.first() != Some(&Phase::Fencing) || phases.last() != Some(&Phase::Normal) {
        faults.push(format!("not the whole story: {phases:?}"));
    }
    for arguments in [&["history", "n1"][..], &["history", "--fence", &fence.id]] {
        let said = scene.gateway.picket(arguments).await?;
        if said.code != 0 || !said.out.contains("fenced") {
            faults.push(format!("picket {}: {said:?}", arguments.join(" ")));
        }
    }
    Ok(faults)
}
