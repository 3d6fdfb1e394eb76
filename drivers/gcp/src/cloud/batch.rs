//! What is asked of many instances of a zone at once: whatever comes within a few milliseconds goes in one request.
//!
//! **Invariant.** Who is not in a list is asked for alone: that it is not there its own answer says. **Invariant.** That nothing is under
//! way only a list says that is whole, and that says what it is.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use picket_driver::{Call, DriverError, Effect, ErrorKind};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout_at};

use super::rates::Group;
use super::words::Failure;
use super::{Cloud, Stamps, region_of};
use crate::instance::Instance;
use crate::operation::Operation;

/// The most that one page has (`maxResults`).
const PAGE: &str = "500";
/// More pages than this are no list.
const PAGES: usize = 1_000;
/// What a list says that has nothing on a page.
const NOTHING_HERE: &str = "NO_RESULTS_ON_PAGE";
/// Who comes within this goes along.
const GATHER: Duration = Duration::from_millis(5);
/// While more come, it is waited for them, but no longer than this.
const LONGEST_GATHER: Duration = Duration::from_millis(25);

/// What came of one instance, and when.
pub(super) type Outcome<S> = Result<Result<(S, Stamps), Failure>, DriverError>;

/// What is asked.
#[async_trait]
pub(super) trait Question: Send + Sync + 'static {
    /// What comes of it, for each instance.
    type Said: Clone + Send + 'static;

    /// The most that one request is for.
    const MOST: usize;

    /// Asks of all of these.
    async fn ask(
        cloud: &Cloud,
        zone: &str,
        ids: &BTreeSet<String>,
        call: &Call,
    ) -> HashMap<String, Outcome<Self::Said>>;
}

struct Item<S> {
    id: String,
    call: Call,
    tell: oneshot::Sender<Outcome<S>>,
}

struct Waiting<S> {
    items: VecDeque<Item<S>>,
    gathers: bool,
}

/// One question's queue in one zone.
pub(super) struct Batch<Q: Question> {
    zone: String,
    waiting: Mutex<Waiting<Q::Said>>,
}

impl<Q: Question> Batch<Q> {
    pub(super) fn new(zone: &str) -> Self {
        let waiting = Mutex::new(Waiting { items: VecDeque::new(), gathers: false });
        Self { zone: zone.to_owned(), waiting }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting<Q::Said>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks of one, with whoever else asks now.
    pub(super) async fn ask(self: &Arc<Self>, cloud: &Arc<Cloud>, id: &str, call: &Call) -> Outcome<Q::Said> {
        let (tell, told) = oneshot::channel();
        let begins = {
            let mut waiting = self.lock();
            waiting.items.push_back(Item { id: id.to_owned(), call: call.clone(), tell });
            !std::mem::replace(&mut waiting.gathers, true)
        };
        if begins {
            tokio::spawn(self.clone().gather(cloud.clone()));
        }
        match timeout_at(call.deadline(), told).await {
            Ok(Ok(outcome)) => outcome,
            _ => Err(DriverError::new(ErrorKind::TimedOut, Effect::DidNotHappen, "no answer in time")),
        }
    }

    /// One for all who wait: takes them together.
    async fn gather(self: Arc<Self>, cloud: Arc<Cloud>) {
        let (mut seen, mut waited) = (0, Duration::ZERO);
        while waited < LONGEST_GATHER {
            sleep(GATHER).await;
            waited += GATHER;
            let now = self.lock().items.len();
            if now == std::mem::replace(&mut seen, now) {
                break;
            }
        }
        let items: Vec<Item<Q::Said>> = {
            let mut waiting = self.lock();
            waiting.gathers = false;
            waiting.items.drain(..).filter(|item| !item.tell.is_closed()).collect()
        };
        let mut part: Vec<Item<Q::Said>> = Vec::new();
        let mut ids: BTreeSet<String> = BTreeSet::new();
        for item in items {
            if ids.len() == Q::MOST && !ids.contains(&item.id) {
                let full = std::mem::take(&mut part);
                tokio::spawn(self.clone().resolve(cloud.clone(), full, std::mem::take(&mut ids)));
            }
            ids.insert(item.id.clone());
            part.push(item);
        }
        if !part.is_empty() {
            tokio::spawn(self.clone().resolve(cloud, part, ids));
        }
    }

    async fn resolve(self: Arc<Self>, cloud: Arc<Cloud>, items: Vec<Item<Q::Said>>, ids: BTreeSet<String>) {
        // As one of a fence where there is one, and for as long as the last of those waits.
        let call = items.iter().max_by_key(|item| (!item.call.may_only_read(), item.call.deadline()));
        let Some(call) = call.map(|item| item.call.clone()) else { return };
        let told = Q::ask(&cloud, &self.zone, &ids, &call).await;
        for item in items {
            let outcome = told.get(&item.id).cloned();
            let none = || Ok(Err(Failure::senseless("list", 200, "it does not say what was asked for")));
            let _ = item.tell.send(outcome.unwrap_or_else(none));
        }
    }
}

/// Which list: how Google calls it, whose limits count, what its path ends with, and what its answer says that it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    method: &'static str,
    group: Group,
    what: &'static str,
    kind: &'static str,
}

const INSTANCES: List =
    List { method: "instances.list", group: Group::Reads, what: "instances", kind: "compute#instanceList" };
const OPERATIONS: List = List {
    method: "zoneOperations.list",
    group: Group::Operations,
    what: "operations",
    kind: "compute#operationList",
};

/// A page of a list. What is in it is read one by one.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    items: Vec<Value>,
    #[serde(default)]
    next_page_token: Option<String>,
    #[serde(default)]
    warning: Option<Warning>,
    #[serde(default)]
    unreachables: Vec<Value>,
}

#[derive(Default, Deserialize)]
struct Warning {
    #[serde(default)]
    code: String,
}

impl Page {
    /// Why it is not all that there is.
    fn partial(&self) -> Option<String> {
        let code = self.warning.as_ref().map(|warning| warning.code.as_str());
        match code.filter(|code| *code != NOTHING_HERE) {
            Some(code) => Some(format!("it is not whole: {code:?}")),
            None if !self.unreachables.is_empty() => Some("it is not whole: not all was reached".to_owned()),
            None => None,
        }
    }
}

/// A list of all pages.
pub(super) struct Listed {
    pub(super) items: Vec<Value>,
    /// Why something may be missing in it.
    pub(super) partial: Option<String>,
    /// When the first page was asked for and the last one answered.
    pub(super) stamps: Stamps,
}

impl Cloud {
    /// All pages of a list in a zone.
    pub(super) async fn list(
        &self,
        list: List,
        zone: &str,
        filter: &str,
        call: &Call,
    ) -> Result<Result<Listed, Failure>, DriverError> {
        let List { method, group, what, kind } = list;
        let mut all: Option<Listed> = None;
        let mut page: Option<String> = None;
        for _ in 0..PAGES {
            let mut query = vec![("filter", filter), ("maxResults", PAGE)];
            query.extend(page.as_deref().map(|token| ("pageToken", token)));
            let path = self.zonal(zone, what);
            let asked = self.ask::<Page>(method, (region_of(zone), group), &path, &query, call).await?;
            let (told, stamps) = match asked {
                Ok(told) => told,
                Err(failure) => return Ok(Err(failure)),
            };
            if told.kind != kind {
                let why = format!("expected a {kind}, found {:?}", told.kind);
                return Ok(Err(Failure::senseless(method, 200, &why)));
            }
            let partial = told.partial();
            page = told.next_page_token.filter(|token| !token.is_empty());
            let so_far = all.get_or_insert(Listed { items: Vec::new(), partial: None, stamps });
            so_far.items.extend(told.items);
            so_far.partial = so_far.partial.take().or(partial);
            so_far.stamps.answered_at = stamps.answered_at;
            if page.is_none() {
                break;
            }
        }
        let whole = all.filter(|_| page.is_none());
        Ok(whole.ok_or_else(|| Failure::senseless(method, 200, "it has no end")))
    }

    /// Operations of a zone, all of them; one that cannot be read is something that is under way.
    pub(super) async fn operations(
        &self,
        zone: &str,
        filter: &str,
        call: &Call,
    ) -> Result<Result<(Vec<Operation>, Stamps), Failure>, DriverError> {
        let Listed { items, partial, stamps } = match self.list(OPERATIONS, zone, filter, call).await? {
            Ok(listed) => listed,
            Err(failure) => return Ok(Err(failure)),
        };
        if let Some(why) = partial {
            return Ok(Err(Failure::senseless(OPERATIONS.method, 200, &why)));
        }
        let read =
            |item: Value| Operation::deserialize(&item).unwrap_or_else(|_| Operation::unreadable(&item));
        Ok(Ok((items.into_iter().map(read).collect(), stamps)))
    }
}

/// What they are: alone by `instances.get`, many by `instances.list`.
pub(super) struct Instances;

async fn one(cloud: &Cloud, zone: &str, id: &str, call: &Call) -> Outcome<Instance> {
    let path = cloud.zonal(zone, &format!("instances/{id}"));
    let told =
        cloud.ask::<Instance>("instances.get", (region_of(zone), Group::Reads), &path, &[], call).await?;
    match told {
        Ok((instance, _)) if instance.id != id => {
            let detail = format!("asked for {id}, Compute Engine shows {:?}", instance.id);
            Err(DriverError::new(ErrorKind::IdentityMismatch, Effect::DidNotHappen, detail))
        }
        told => Ok(told),
    }
}

#[async_trait]
impl Question for Instances {
    type Said = Instance;
    /// It names them: its address must not become too long.
    const MOST: usize = 100;

    async fn ask(
        cloud: &Cloud,
        zone: &str,
        ids: &BTreeSet<String>,
        call: &Call,
    ) -> HashMap<String, Outcome<Instance>> {
        let mut told: HashMap<String, Outcome<Instance>> = HashMap::new();
        let mut parts = vec![ids.iter().collect::<Vec<_>>()];
        while let Some(part) = parts.pop() {
            if part.len() < 2 {
                continue;
            }
            let filter = part.iter().map(|id| format!("(id = {id})")).collect::<Vec<_>>().join(" OR ");
            match cloud.list(INSTANCES, zone, &filter, call).await {
                // One that cannot be read is asked for alone, as one that is missing.
                Ok(Ok(Listed { items, stamps, .. })) => {
                    let instances = items.iter().filter_map(|item| Instance::deserialize(item).ok());
                    let wanted = instances.filter(|instance| ids.contains(&instance.id));
                    told.extend(wanted.map(|instance| (instance.id.clone(), Ok(Ok((instance, stamps))))));
                }
                // It is the same for all of them.
                Ok(Err(failure)) if failure.is_everybody_s() => {
                    told.extend(part.into_iter().map(|id| (id.clone(), Ok(Err(failure.clone())))));
                }
                Err(error) => told.extend(part.into_iter().map(|id| (id.clone(), Err(error.clone())))),
                // Who may not list may look at one, and of a list without sense none of its parts has more.
                Ok(Err(failure)) if failure.kind == ErrorKind::Forbidden || failure.status == 200 => {}
                // They may be too many, or one of them bad.
                Ok(Err(_)) => {
                    let (one, other) = part.split_at(part.len() / 2);
                    parts.extend([one.to_vec(), other.to_vec()]);
                }
            }
        }
        let rest: Vec<&String> = ids.iter().filter(|id| !told.contains_key(*id)).collect();
        let rest = join_all(
            rest.into_iter().map(|id| async move { (id.clone(), one(cloud, zone, id, call).await) }),
        )
        .await;
        told.extend(rest);
        told
    }
}

/// What is under way at them, by one `zoneOperations.list` for all.
pub(super) struct Unfinished;

#[async_trait]
impl Question for Unfinished {
    type Said = Vec<Operation>;
    /// It names none.
    const MOST: usize = usize::MAX;

    async fn ask(
        cloud: &Cloud,
        zone: &str,
        ids: &BTreeSet<String>,
        call: &Call,
    ) -> HashMap<String, Outcome<Vec<Operation>>> {
        let listed = cloud.operations(zone, "status != \"DONE\"", call).await;
        let of_one = |id: &String| match &listed {
            Ok(Ok((operations, stamps))) => {
                let its = |operation: &&Operation| !operation.is_done() && operation.may_be_of(id, None);
                Ok(Ok((operations.iter().filter(its).cloned().collect(), *stamps)))
            }
            Ok(Err(failure)) => Ok(Err(failure.clone())),
            Err(error) => Err(error.clone()),
        };
        ids.iter().map(|id| (id.clone(), of_one(id))).collect()
    }
}
