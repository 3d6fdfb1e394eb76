//! What the migrations of a server tell of the copies that its evacuations left.
//!
//! # Invariants
//!
//! - A copy is over only where Nova says so itself: no later move of the server ends one (S1). Shown by
//!   `an_evacuation_that_is_done_and_not_completed_left_a_copy`,
//!   `an_evacuation_that_failed_clears_nothing`.

use crate::copies::NOT_TOLD;
use crate::placement::Migration;

/// The evacuations that left a copy of the server: their migrations are `done` once the server runs elsewhere, and `completed` only when
/// nova-compute of the host from which it went has removed what it finds there (docs/openstack-copies.md).
fn done(migrations: &[Migration]) -> impl Iterator<Item = &Migration> {
    migrations.iter().filter(|migration| migration.is_a("evacuation") && migration.status == "done")
}

/// The evacuations that may have started the guest at a destination which is not the server's `host`, and are not known to have ended
/// well. A later move ends no such guest: it says only where Nova's own one is.
fn started<'m>(migrations: &'m [Migration], host: Option<&'m str>) -> impl Iterator<Item = &'m Migration> {
    const ENDED: [&str; 3] = ["completed", "done", "cancelled"];
    let started = |one: &&Migration| one.is_a("evacuation") && !ENDED.contains(&one.status.as_str());
    let elsewhere = move |one: &&Migration| one.dest_compute.is_some() && one.dest_compute.as_deref() != host;
    migrations.iter().filter(started).filter(elsewhere)
}

pub(crate) fn have_evacuation(migrations: &[Migration]) -> bool {
    migrations.iter().any(|migration| migration.is_a("evacuation"))
}

/// Whether no evacuation among them has left, or may yet leave, a copy.
pub(crate) fn have_cleared(migrations: &[Migration]) -> bool {
    let is_over = |one: &Migration| match one.status.as_str() {
        "completed" | "cancelled" => true,
        // Its guest outlives whatever comes later. The server may yet leave that destination, where it is there now.
        "failed" | "error" => one.dest_compute.is_none(),
        _ => false,
    };
    migrations.iter().all(|migration| !migration.is_a("evacuation") || is_over(migration))
}

fn each_once<'a>(hosts: impl Iterator<Item = Option<&'a str>>) -> Vec<&'a str> {
    let mut hosts: Vec<&str> = hosts.map(|host| host.unwrap_or(NOT_TOLD)).collect();
    hosts.sort_unstable();
    hosts.dedup();
    hosts
}

/// The hypervisors on which a copy of the server may be, which Nova has at `host`.
pub(crate) fn copies(migrations: &[Migration], host: Option<&str>) -> Vec<String> {
    let sources = done(migrations).map(|one| one.source_node.as_deref().or(one.source_compute.as_deref()));
    let destinations = started(migrations, host);
    let destinations = destinations.map(|one| one.dest_node.as_deref().or(one.dest_compute.as_deref()));
    each_once(sources.chain(destinations)).into_iter().map(str::to_owned).collect()
}

/// The same in words, by the hosts of their compute services.
pub(crate) fn left_behind(migrations: &[Migration], host: Option<&str>) -> Option<String> {
    let mut told = Vec::new();
    let hosts = each_once(done(migrations).map(|migration| migration.source_compute.as_deref()));
    if !hosts.is_empty() {
        told.push(format!(
            "it was evacuated, and the copy of it on {} may still be there: nova-compute removes it there when it starts, before it starts \
             any guest; let nothing else start guests on that host before that",
            hosts.join(", ")
        ));
    }
    let hosts = each_once(started(migrations, host).map(|migration| migration.dest_compute.as_deref()));
    if !hosts.is_empty() {
        told.push(format!(
            "an evacuation of it to {} is not known to have ended well, and its guest may run there: Nova does not end that one; look there",
            hosts.join(", ")
        ));
    }
    (!told.is_empty()).then(|| told.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_evacuation_that_is_done_and_not_completed_left_a_copy() {
        for (status, left) in [("done", true), ("completed", false), ("failed", false), ("accepted", false)] {
            let told =
                left_behind(&[Migration::evacuation("completed"), Migration::evacuation(status)], None);
            assert_eq!(told.is_some(), left, "{status}: {told:?}");
            assert_eq!(
                copies(&[Migration::evacuation(status)], None).concat() == "compute-7.example",
                left,
                "{status}"
            );
            assert!(told.is_none_or(|told| told.contains("the copy of it on compute-7 may still be there")));
        }
        let moved =
            Migration { migration_type: Some("live-migration".to_owned()), ..Migration::evacuation("done") };
        assert_eq!(left_behind(&[moved], None), None);
        let twice = [Migration::evacuation("done"), Migration::evacuation("done")];
        assert_eq!(left_behind(&twice, None).map(|told| told.matches("compute-7").count()), Some(1));
        let nowhere = Migration { source_compute: None, ..Migration::evacuation("done") };
        assert!(left_behind(&[nowhere], None).is_some_and(|told| told.contains("a host that is not told")));
    }

    /// It may have started the guest, which no later move ends.
    #[test]
    fn an_evacuation_that_is_not_known_to_have_ended_well_left_a_copy_at_its_destination() {
        for (status, at, left) in [
            ("failed", "compute-9", true),
            ("error", "compute-9", true),
            ("pre-migrating", "compute-9", true),
            ("completed", "compute-9", false),
            ("cancelled", "compute-9", false),
            ("failed", "compute-8", false),
        ] {
            let broken = Migration {
                dest_node: Some("compute-8.example".to_owned()),
                dest_compute: Some("compute-8".to_owned()),
                ..Migration::evacuation(status)
            };
            let all = [broken, Migration::evacuation("completed")];
            let told = left_behind(&all, Some(at));
            assert_eq!(copies(&all, Some(at)).concat() == "compute-8.example", left, "{status} {at}");
            assert_eq!(
                told.is_some_and(|told| told.contains("to compute-8 is not known to have ended well")),
                left
            );
        }
    }
}
