//! Lists of what is in a zone, all pages of them.
//!
//! # Invariants
//!
//! - Only a whole list that says what it is says that nothing is under way (S1). Shown by
//!   `only_a_whole_list_of_operations_says_that_nothing_is_under_way`.

use picket_driver::{Call, DriverError};
use serde::Deserialize;
use serde_json::Value;

use super::rates::Group;
use super::words::Failure;
use super::{Cloud, Stamps, region_of};
use crate::operation::Operation;

/// The most that one page has (`maxResults`).
const PAGE: &str = "500";
/// More pages than this are no list.
const PAGES: usize = 1_000;
/// What a list says that has nothing on a page.
const NOTHING_HERE: &str = "NO_RESULTS_ON_PAGE";

/// Which list: how Google calls it, whose limits count, what its path ends with, and what its answer says that it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    method: &'static str,
    group: Group,
    what: &'static str,
    kind: &'static str,
}

pub(super) const INSTANCES: List =
    List { method: "instances.list", group: Group::Reads, what: "instances", kind: "compute#instanceList" };
pub(super) const OPERATIONS: List = List {
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
pub(super) struct FullList {
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
    ) -> Result<Result<FullList, Failure>, DriverError> {
        let List { method, group, what, kind } = list;
        let mut all: Option<FullList> = None;
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
            let so_far = all.get_or_insert(FullList { items: Vec::new(), partial: None, stamps });
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
        let FullList { items, partial, stamps } = match self.list(OPERATIONS, zone, filter, call).await? {
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
