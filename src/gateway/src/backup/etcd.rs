//! The tasks of a store in etcd. Its gateways may run, but for a move and a restore.

use std::path::Path;

use picket_config::EtcdSettings;
use picket_core::store::Content;
use picket_driver::Context;
use picket_etcd::{AcceptedSettings, Etcd};

use super::{keep, lines, tell_sealed};
use crate::failure::Failure;

/// Where it is, for people.
pub(super) fn place(settings: &EtcdSettings) -> String {
    format!("{} in etcd", settings.prefix)
}

fn there(settings: &EtcdSettings, context: &Context) -> Etcd {
    Etcd::new(settings.clone(), context.clock.clone(), context.random.clone())
}

pub(super) async fn take(
    settings: &EtcdSettings,
    to: &Path,
    moved_to: Option<&str>,
    context: &Context,
) -> Result<(), Failure> {
    let store = there(settings, context).store();
    let snapshot = store.snapshot().await?;
    if let (Some(leader), Some(_)) = (&snapshot.leader, moved_to) {
        return Err(Failure::Later(format!(
            "{leader} leads over the store under {}: stop every picketd of the fleet before the store is left (a leader that \
             was killed counts until its lease is over, some seconds)",
            place(settings)
        )));
    }
    keep(to, lines(snapshot.content.clone(), context))?;
    if let Some(there) = moved_to {
        store.seal(there, &snapshot).await?;
        tell_sealed(&place(settings), there);
    }
    Ok(())
}

pub(super) async fn fill(
    settings: &EtcdSettings,
    content: &Content,
    context: &Context,
) -> Result<(), Failure> {
    Ok(there(settings, context).store().fill(content).await?)
}

pub(super) async fn unseal(settings: &EtcdSettings, context: &Context) -> Result<String, Failure> {
    let to = there(settings, context).store().unseal().await?;
    to.ok_or_else(|| {
        let place = place(settings);
        Failure::Later(format!("the store under {place} was not moved: there is no mark to take away"))
    })
}

/// What was done, in words.
pub(super) async fn accept(
    settings: &EtcdSettings,
    digest: &str,
    context: &Context,
) -> Result<String, Failure> {
    let (short, place) = (picket_etcd::short(digest), place(settings));
    Ok(match there(settings, context).accept_settings(digest).await? {
        AcceptedSettings::Now(before) => format!(
            "the fleet of {place} is led by these settings ({short}) from now on, no more by {}: gateways that have them \
             stand for election, others do not",
            picket_etcd::short(&before)
        ),
        AcceptedSettings::Already => {
            format!("the fleet of {place} is led by these settings ({short}) already: nothing was done")
        }
        AcceptedSettings::NobodyLedYet => {
            format!(
                "nobody has led the fleet of {place} yet: whoever does first, does by its own settings. Nothing was done"
            )
        }
    })
}
