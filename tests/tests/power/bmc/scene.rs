//! One node behind BMCs, a gateway over it, and a receiver of releases that asks the node itself at each request.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use picket_proto::v1::{
    Evidence, Fence, FenceRequest, FenceUpdate, FenceView, GetFenceRequest, GetNodeRequest,
    ListFencesRequest, Node, NodeSelector, Outcome, OutcomeKind, Reason, RetryRequest, UnfenceRequest,
    node_selector,
};
use picket_tests::peers::{Observer, Truth, eventually};
use picket_tests::{Bmc, Daemon, Fleet, Gateway, PeerError, Result, Webhook};
use tokio::time::timeout;

/// The node.
pub const NODE: &str = "n1";
/// Everything that a gateway does in here ends within this.
pub const LONG: Duration = Duration::from_secs(120);
/// More than a dozen heartbeats long.
pub const LISTEN: Duration = Duration::from_millis(1_500);

/// The node's name, as calls want it.
pub fn selector() -> Option<NodeSelector> {
    Some(NodeSelector { by: Some(node_selector::By::Name(NODE.to_owned())) })
}

/// How a scene shall be.
pub struct Plan {
    truth: Truth,
    levels: Vec<Vec<(String, Bmc)>>,
    settings: String,
    variables: Vec<(String, String)>,
    pause_at: Option<String>,
    checked: bool,
}

impl Plan {
    /// A node of which `truth` knows whether it is on, with these BMCs as its only level.
    pub fn over(truth: Truth, bmcs: &[(&str, Bmc)]) -> Self {
        let (settings, variables) = (String::new(), Vec::new());
        Self { truth, levels: Vec::new(), settings, variables, pause_at: None, checked: true }.level(bmcs)
    }

    /// With another level.
    pub fn level(mut self, bmcs: &[(&str, Bmc)]) -> Self {
        self.levels.push(bmcs.iter().map(|(name, bmc)| ((*name).to_owned(), bmc.clone())).collect());
        self
    }

    /// With further lines of TOML.
    pub fn with(mut self, lines: &str) -> Self {
        self.settings += lines;
        self.settings.push('\n');
        self
    }

    /// With a variable of the daemon's environment.
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The daemon stops at this point, the first time, until [`Scene::go_on`].
    pub fn pausing(self, point: &str) -> Self {
        Self { pause_at: Some(point.to_owned()), ..self }
    }

    /// The daemon looks at no device before it is asked to fence.
    pub fn unchecked(self) -> Self {
        Self { checked: false, ..self }.with("[gateway]\ncheck_at_start = false")
    }

    /// Starts the receiver and the gateway; every device was looked at when it returns.
    pub async fn start(self) -> Result<Scene> {
        let webhook = Webhook::with_witness(self.truth).await?;
        let levels: Vec<Vec<(&str, &Bmc)>> = self
            .levels
            .iter()
            .map(|level| level.iter().map(|(name, bmc)| (name.as_str(), bmc)).collect())
            .collect();
        let levels: Vec<&[(&str, &Bmc)]> = levels.iter().map(Vec::as_slice).collect();
        let fleet = Fleet::new().with(&self.settings).node_with_levels(NODE, &levels, &["detach"]).webhook(
            "detach",
            &webhook.url(),
            "settle = \"500ms\"",
        );
        let daemon = if self.pause_at.is_some() { Daemon::Hooked } else { Daemon::Shipped };
        let mut gateway = Gateway::of(daemon, &fleet)?;
        let paused = gateway.directory().join("paused");
        let mut variables = self.variables;
        if let Some(point) = self.pause_at {
            variables.push(("PICKET_PAUSE_AT".to_owned(), point));
            variables.push(("PICKET_PAUSE_FILE".to_owned(), paused.display().to_string()));
        }
        let variables: Vec<(&str, &str)> =
            variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        gateway.begin(&variables).await?;
        if self.checked {
            gateway.checked().await?;
        }
        Ok(Scene { gateway, webhook, paused })
    }
}

/// A running gateway over one node.
pub struct Scene {
    /// The gateway.
    pub gateway: Gateway,
    /// Who lets volumes go.
    pub webhook: Webhook,
    paused: PathBuf,
}

/// What a stream told, from its beginning to its outcome.
#[derive(Debug)]
pub struct Told {
    /// In order.
    pub updates: Vec<FenceUpdate>,
    /// How long it took.
    pub took: Duration,
}

/// Reads a stream of updates to its end.
macro_rules! follow {
    ($self:expr, $what:literal, $call:expr) => {{
        let began = SystemTime::now();
        let follow = async {
            let mut stream = $call.await.map_err(PeerError::call($what))?.into_inner();
            let mut updates: Vec<FenceUpdate> = Vec::new();
            while let Some(message) = stream.message().await.map_err(PeerError::call($what))? {
                updates.extend(message.update);
            }
            Ok(Told { updates, took: began.elapsed().unwrap_or_default() })
        };
        timeout(LONG, follow).await.map_err(|_| PeerError::TimedOut {
            what: format!("the end of {}", $what),
            within: LONG,
            seen: $self.gateway.log(),
        })?
    }};
}

impl Scene {
    /// Fences the node, and follows that to its outcome.
    pub async fn fence(&self) -> Result<Told> {
        self.fence_as(FenceRequest::default()).await
    }

    /// Fences the node with further wishes.
    pub async fn fence_as(&self, wishes: FenceRequest) -> Result<Told> {
        let mut client = self.gateway.client().await?;
        let request = FenceRequest { node: selector(), reason: "a test".to_owned(), ..wishes };
        follow!(self, "Fence", client.fence(request))
    }

    /// Drops our own hold, and follows that to its outcome.
    pub async fn unfence(&self) -> Result<Told> {
        let mut client = self.gateway.client().await?;
        let request =
            UnfenceRequest { node: selector(), reason: "a test".to_owned(), ..UnfenceRequest::default() };
        follow!(self, "Unfence", client.unfence(request))
    }

    /// Tries again what waits for a person.
    pub async fn retry(&self) -> Result<Told> {
        let mut client = self.gateway.client().await?;
        let request =
            RetryRequest { node: selector(), reason: "a test".to_owned(), ..RetryRequest::default() };
        follow!(self, "Retry", client.retry(request))
    }

    /// Fences, and tries again as long as its levels are spent: where their share is short a busy machine may need more than one.
    pub async fn fence_until_fenced(&self) -> Result<Told> {
        self.until_fenced(self.fence().await?).await
    }

    /// Tries again what waits for a person, and once more as long as its levels are spent.
    pub async fn retry_until_fenced(&self) -> Result<Told> {
        self.until_fenced(self.retry().await?).await
    }

    async fn until_fenced(&self, mut told: Told) -> Result<Told> {
        for _ in 0..10 {
            if told.outcome().reason() != Reason::LevelsSpent {
                break;
            }
            told = self.retry().await?;
        }
        Ok(told)
    }

    /// The node as the gateway has it.
    pub async fn node(&self) -> Result<Node> {
        let mut client = self.gateway.client().await?;
        let request = GetNodeRequest { node: selector(), fresh: false };
        let answer = client.get_node(request).await.map_err(PeerError::call("GetNode"))?;
        Ok(answer.into_inner().node.unwrap_or_default())
    }

    /// All fences of the node, newest first, with everything that is kept of them.
    pub async fn fences(&self) -> Result<Vec<Fence>> {
        let mut client = self.gateway.client().await?;
        let list =
            client.list_fences(ListFencesRequest::default()).await.map_err(PeerError::call("ListFences"))?;
        let mut fences = Vec::new();
        for fence in list.into_inner().fences {
            let request = GetFenceRequest { fence_id: fence.id, view: FenceView::Full.into() };
            let answer = client.get_fence(request).await.map_err(PeerError::call("GetFence"))?;
            fences.extend(answer.into_inner().fence);
        }
        Ok(fences)
    }

    /// Waits until the node as the gateway has it is so.
    pub async fn until(&self, what: &str, within: Duration, so: impl Fn(&Node) -> bool) -> Result<Node> {
        let deadline = tokio::time::Instant::now() + within;
        loop {
            let node = self.node().await?;
            if so(&node) {
                return Ok(node);
            }
            if tokio::time::Instant::now() >= deadline {
                let seen = format!("{node:#?}\n{}", self.gateway.log());
                return Err(PeerError::TimedOut { what: what.to_owned(), within, seen });
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until the daemon stops at its point.
    pub async fn until_paused(&self) -> Result<()> {
        eventually("the daemon comes to its point", LONG, || self.paused.exists()).await
    }

    /// Lets it go on.
    pub fn go_on(&self) -> Result<()> {
        std::fs::remove_file(&self.paused).map_err(PeerError::io("let the daemon go on"))
    }

    /// There were so many requests for release, and the node was off in truth at each.
    pub fn released_while_off(&self, times: usize) {
        let on: Vec<Option<bool>> = self.webhook.releases().iter().map(|hook| hook.on).collect();
        assert_eq!(on, vec![Some(false); times], "whether it was on at each request for release");
    }

    /// Waits a while longer, and nothing was ever asked to be let go.
    pub async fn never_released(&self) {
        tokio::time::sleep(LISTEN).await;
        let hooks = self.webhook.hooks();
        assert!(hooks.is_empty(), "nothing may be released, and was: {hooks:?}");
    }
}

impl Told {
    /// How it ended.
    pub fn outcome(&self) -> &Outcome {
        let last = self.updates.last().and_then(|update| update.outcome.as_ref());
        last.unwrap_or_else(|| panic!("it ended without an outcome: {self:#?}"))
    }

    /// Proven off, with everything released.
    pub fn is_fenced(&self) -> &Self {
        let outcome = self.outcome();
        assert!(outcome.kind() == OutcomeKind::Fenced && outcome.released, "{self:#?}");
        self
    }

    /// A person must decide, for this reason.
    pub fn needs_operator(&self, reason: Reason) -> &Self {
        let outcome = self.outcome();
        assert_eq!((outcome.kind(), outcome.reason()), (OutcomeKind::NeedsOperator, reason), "{self:#?}");
        assert!(
            self.updates.iter().all(|update| update.evidence.is_none()),
            "it was never proven: {self:#?}"
        );
        self
    }

    /// Seen on again.
    pub fn is_back(&self) -> &Self {
        assert_eq!(self.outcome().kind(), OutcomeKind::Unfenced, "{self:#?}");
        self
    }

    /// Why the node is held to be off.
    pub fn evidence(&self) -> &Evidence {
        let evidence = self.updates.iter().rev().find_map(|update| update.evidence.as_ref());
        evidence.unwrap_or_else(|| panic!("there is no evidence: {self:#?}"))
    }

    /// Why Off had to hold for the long window, of the only device; empty: it had not to.
    pub fn long_window(&self) -> &str {
        match &self.evidence().devices[..] {
            [device] => &device.long_window,
            devices => panic!("not one device: {devices:#?}"),
        }
    }

    /// When it was confirmed.
    pub fn confirmed_at(&self) -> SystemTime {
        let at = self.evidence().confirmed_at.unwrap_or_else(|| panic!("never: {self:#?}"));
        at.try_into().unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// Nothing was written by the machine after the confirmation, and nothing is.
    pub async fn dead_since(&self, observer: &Observer) {
        tokio::time::sleep(LISTEN).await;
        let after = observer.after(self.confirmed_at());
        assert_eq!(after, [], "heartbeats after the confirmation at {:?}", self.confirmed_at());
        if let Some(last) = observer.last() {
            let before = self.confirmed_at().duration_since(last.written).unwrap_or_default();
            println!("the last heartbeat, {}, was written {before:?} before the confirmation", last.count);
        }
    }

    /// What was told, in words, for a test's output.
    pub fn tell(&self, what: &str) {
        println!("{what}: {:?} after {:?}", self.outcome().kind(), self.took);
        for update in &self.updates {
            println!("  {:?} {}", update.phase(), update.text);
        }
    }
}
