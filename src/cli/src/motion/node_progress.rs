//! What is known of one node while it is followed.

use std::collections::BTreeMap;

use picket_proto::v1::{DeviceReading, FenceUpdate, Phase};
use tokio::time::Instant;

use super::{FollowEnd, FollowedNode, Motion};

/// What is known of one node while it is followed.
#[derive(Debug)]
pub struct NodeProgress {
    /// The node.
    pub node: String,
    /// What was asked for.
    pub motion: Motion,
    /// When it was asked for; not yet while others have their turn.
    pub started: Option<Instant>,
    /// The newest message, and when it arrived.
    pub latest: Option<(FenceUpdate, Instant)>,
    /// What each device read last, by its name: a message has only what is new.
    pub readings: BTreeMap<String, DeviceReading>,
    /// Why the connection is broken at the moment.
    pub broken: Option<String>,
    /// How it ended.
    pub followed: Option<FollowedNode>,
}

impl NodeProgress {
    /// One that is not asked for yet.
    pub fn new((node, motion): (String, Motion)) -> Self {
        Self {
            node,
            motion,
            started: None,
            latest: None,
            readings: BTreeMap::new(),
            broken: None,
            followed: None,
        }
    }

    /// Takes a message in. What proves stays known until the node is back in Fencing, or the fence is another one.
    pub fn take(&mut self, mut update: FenceUpdate) {
        if let Some((before, _)) = self.latest.take()
            && before.fence_id == update.fence_id
            && update.phase != i32::from(Phase::Fencing)
        {
            update.evidence = update.evidence.or(before.evidence);
            if update.releases.is_empty() {
                update.releases = before.releases;
            }
        }
        self.readings.extend(update.readings.iter().map(|reading| (reading.device.clone(), reading.clone())));
        self.broken = None;
        self.latest = Some((update, Instant::now()));
    }

    /// It has its end.
    pub fn end(&mut self, end: FollowEnd) {
        self.followed = Some(FollowedNode {
            node: self.node.clone(),
            motion: self.motion.clone(),
            latest: self.latest.as_ref().map(|(update, _)| update.clone()),
            readings: self.readings.clone(),
            end,
            took: self.started.map(|started| started.elapsed()).unwrap_or_default(),
        });
    }
}
