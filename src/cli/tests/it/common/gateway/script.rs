//! What a scripted gateway says, and what it was asked.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use picket_proto::v1::*;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

/// What one stream does, step by step.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "scripts are short, and read better without boxes")]
pub enum Step {
    /// Says this.
    Say(FenceUpdate),
    /// Is silent for so long.
    Rest(Duration),
    /// Ends like this.
    Fail(Status),
}

/// What one watch does, step by step.
pub type Watched = Result<WatchNodesResponse, Status>;

/// What the gateway says, and what it was asked.
#[derive(Debug, Default)]
pub struct Script {
    /// The nodes that there are.
    pub nodes: Vec<Node>,
    /// For each node the streams of its fences, unfences and so on, in the order in which they are opened.
    pub streams: BTreeMap<String, VecDeque<Vec<Step>>>,
    /// Watches, in the order in which they are opened.
    pub watches: VecDeque<Vec<Watched>>,
    /// History, newest first.
    pub fences: Vec<Fence>,
    /// What every request to abandon a release is answered.
    pub abandon: Option<Status>,
    /// Plans, by their nodes.
    pub plans: Vec<PlanFenceResponse>,
    /// Pauses and their ends that were asked for: scope, reason, seconds.
    pub paused: Vec<(Option<PauseScope>, String, Option<i64>)>,
    /// Fences that were asked for.
    pub fenced: Vec<FenceRequest>,
    /// Unfences that were asked for.
    pub unfenced: Vec<UnfenceRequest>,
    /// Retries that were asked for.
    pub retried: Vec<RetryRequest>,
    /// Stand-downs that were asked for.
    pub stood_down: Vec<StandDownRequest>,
    /// Releases that were given up.
    pub abandoned: Vec<AbandonReleaseRequest>,
    /// Attestations that were asked for.
    pub attested: Vec<AttestRequest>,
    /// Drills that were asked for, and what they found.
    pub drilled: Vec<DrillRequest>,
    /// What every call that is answered with a node is answered instead.
    pub refusal: Option<Status>,
    /// What every list of nodes is answered instead.
    pub unlisted: Option<Status>,
    /// Holds, dropped holds, retirements and accepted identities that were asked for, in words.
    pub called: Vec<String>,
    /// The pieces of a backup.
    pub backup: Vec<BackupResponse>,
    /// What every request for a receipt gets.
    pub receipt: Option<Receipt>,
    /// The keys of receipts.
    pub keys: Vec<ReceiptKey>,
    /// What devices are found to be.
    pub checked: Vec<CheckDevicesResponse>,
    /// Watches that were asked for.
    pub watched: Vec<WatchNodesRequest>,
    /// Nodes that were listed.
    pub listed: Vec<ListNodesRequest>,
    /// Who answers lists of nodes.
    pub served: Option<Served>,
    /// What it says of the gateways.
    pub gateways: ListGatewaysResponse,
    /// Streams open now, and the most there were at once.
    pub open: (usize, usize),
}

/// Not found, as a gateway says it.
pub fn unknown_node(name: &str, near: &str) -> Status {
    let text = format!("there is no node {name:?}");
    let mut details = ErrorDetails::new();
    details
        .set_error_info(
            ErrorReason::NodeNotFound.word(),
            picket_proto::DOMAIN,
            [("near".to_owned(), near.to_owned())],
        )
        .set_resource_info("node", name, "", text.clone());
    Status::with_error_details(Code::NotFound, text, details)
}
