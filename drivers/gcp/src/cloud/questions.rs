//! What is asked of many at once.
//!
//! # Invariants
//!
//! - An instance that is not in a list is asked for alone: only its own answer says that it is not there.
//!   Shown by `one_that_is_not_there_keeps_none_of_the_others_from_its_answer`.

use std::collections::{BTreeSet, HashMap};

use async_trait::async_trait;
use futures::future::join_all;
use picket_driver::{Call, DriverError, Effect, ErrorKind};
use serde::Deserialize;

use super::batch::{Outcome, Question};
use super::lists::{FullList, INSTANCES, OPERATIONS};
use super::rates::Group;
use super::{Cloud, region_of};
use crate::instance::Instance;
use crate::operation::Operation;

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
    type Answer = Instance;
    const GROUP: Group = Group::Reads;
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
                Ok(Ok(FullList { items, stamps, .. })) => {
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
pub(super) struct UnfinishedOperations;

#[async_trait]
impl Question for UnfinishedOperations {
    type Answer = Vec<Operation>;
    const GROUP: Group = Group::Operations;
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

/// How operations go on, by their names: one alone by `zoneOperations.get`, several by `zoneOperations.list`.
pub(super) struct OperationsByName;

#[async_trait]
impl Question for OperationsByName {
    type Answer = Operation;
    const GROUP: Group = Group::Operations;
    /// Their names are longer than numbers.
    const MOST: usize = 50;

    async fn ask(
        cloud: &Cloud,
        zone: &str,
        names: &BTreeSet<String>,
        call: &Call,
    ) -> HashMap<String, Outcome<Operation>> {
        let mut told: HashMap<String, Outcome<Operation>> = HashMap::new();
        if names.len() > 1 {
            let filter = names.iter().map(|name| format!("(name = \"{name}\")")).collect::<Vec<_>>();
            match cloud.list(OPERATIONS, zone, &filter.join(" OR "), call).await {
                // One that cannot be read is asked for alone, as one that is missing.
                Ok(Ok(FullList { items, stamps, .. })) => {
                    let operations = items.iter().filter_map(|item| Operation::deserialize(item).ok());
                    let wanted = operations.filter(|operation| names.contains(&operation.name));
                    told.extend(wanted.map(|one| (one.name.clone(), Ok(Ok((one, stamps))))));
                }
                Ok(Err(failure)) if failure.is_everybody_s() => {
                    told.extend(names.iter().map(|name| (name.clone(), Ok(Err(failure.clone())))));
                }
                Err(error) => told.extend(names.iter().map(|name| (name.clone(), Err(error.clone())))),
                Ok(Err(_)) => {}
            }
        }
        let rest: Vec<&String> = names.iter().filter(|name| !told.contains_key(*name)).collect();
        let alone = async |name: &String| {
            let path = cloud.zonal(zone, &format!("operations/{name}"));
            let place = (region_of(zone), Group::Operations);
            (name.clone(), cloud.ask::<Operation>("zoneOperations.get", place, &path, &[], call).await)
        };
        told.extend(join_all(rest.into_iter().map(alone)).await);
        told
    }
}
