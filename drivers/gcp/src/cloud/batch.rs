//! What is asked of many instances of a zone at once: whatever comes within a few milliseconds goes in one request.
//!
//! **Invariant.** Who is not in a list is asked for alone: that it is not there its own answer says.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use picket_driver::{Call, DriverError, Effect, ErrorKind};
use serde::Deserialize;
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

/// A page of a list.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<T> {
    #[serde(default = "Vec::new")]
    items: Vec<T>,
    #[serde(default)]
    next_page_token: Option<String>,
}

impl Cloud {
    /// All pages of a list in a zone, and when the first of them was asked for and the last one answered.
    pub(super) async fn list<T: serde::de::DeserializeOwned>(
        &self,
        method: &'static str,
        (zone, group): (&str, Group),
        what: &str,
        filter: &str,
        call: &Call,
    ) -> Result<Result<(Vec<T>, Stamps), Failure>, DriverError> {
        let (mut all, mut stamps, mut page): (Vec<T>, Option<Stamps>, Option<String>) =
            (Vec::new(), None, None);
        for _ in 0..PAGES {
            let mut query = vec![("filter", filter), ("maxResults", PAGE)];
            query.extend(page.as_deref().map(|token| ("pageToken", token)));
            let path = self.zonal(zone, what);
            let asked = self.ask::<Page<T>>(method, (region_of(zone), group), &path, &query, call).await?;
            let (told, now) = match asked {
                Ok(told) => told,
                Err(failure) => return Ok(Err(failure)),
            };
            all.extend(told.items);
            let asked_at = stamps.map_or(now.asked_at, |first| first.asked_at);
            let so_far = Stamps { asked_at, ..now };
            stamps = Some(so_far);
            page = told.next_page_token.filter(|token| !token.is_empty());
            if page.is_none() {
                return Ok(Ok((all, so_far)));
            }
        }
        Ok(Err(Failure::senseless(method, 200, "it has no end")))
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
        if ids.len() > 1 {
            let filter = ids.iter().map(|id| format!("(id = {id})")).collect::<Vec<_>>().join(" OR ");
            let listed = cloud
                .list::<Instance>("instances.list", (zone, Group::Lists), "instances", &filter, call)
                .await;
            match listed {
                Ok(Ok((instances, stamps))) => {
                    let wanted = instances.into_iter().filter(|instance| ids.contains(&instance.id));
                    told.extend(wanted.map(|instance| (instance.id.clone(), Ok(Ok((instance, stamps))))));
                }
                // It is the same for all of them.
                Ok(Err(failure)) => {
                    return ids.iter().map(|id| (id.clone(), Ok(Err(failure.clone())))).collect();
                }
                Err(error) => return ids.iter().map(|id| (id.clone(), Err(error.clone()))).collect(),
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
        let (of, filter) = ((zone, Group::Operations), "status != \"DONE\"");
        let listed = cloud.list::<Operation>("zoneOperations.list", of, "operations", filter, call).await;
        let of_one = |id: &String| match &listed {
            Ok(Ok((operations, stamps))) => {
                let its = |operation: &&Operation| {
                    operation.target_id.as_deref() == Some(id) && !operation.is_done()
                };
                Ok(Ok((operations.iter().filter(its).cloned().collect(), *stamps)))
            }
            Ok(Err(failure)) => Ok(Err(failure.clone())),
            Err(error) => Err(error.clone()),
        };
        ids.iter().map(|id| (id.clone(), of_one(id))).collect()
    }
}
