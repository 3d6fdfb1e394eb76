//! Reading the settings anew: all of them hold from one moment on, or the running ones stay.
//!
//! # Invariants
//!
//! - Everything is read and checked before anything is changed, and what is wrong is told at once. Shown by
//!   `what_is_wrong_or_in_the_way_is_told_and_everything_stays`.
//! - The one step that can refuse, the engine's, comes first. What comes after it cannot fail.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use picket_audit::{GATEWAY, Told};
use picket_config::{Faults, Settings, Sources};
use picket_driver::Context;
use picket_engine::{Change, ChangeError, Changed, Engine, Logins, Unit};
use picket_metrics::{self as metrics, Metrics};
use picket_server::AccessControl;
use serde_json::json;

use crate::build::BuiltParts;
use crate::drivers::Drivers;
use crate::log::Level;
use crate::{access_settings, build, store_choice};

/// What makes a gateway simulated, as a reload names it.
const SIMULATED: &str = "gateway.simulated, which devices of a simulated driver imply";

/// What reads the settings anew.
pub(crate) struct Reloader {
    pub(crate) file: PathBuf,
    /// Without their nodes: those are the engine's.
    pub(crate) running: Settings,
    pub(crate) logins: Logins,
    pub(crate) programs: Arc<Unit>,
    pub(crate) drivers: Arc<Drivers>,
    pub(crate) context: Context,
    pub(crate) engine: Engine,
    pub(crate) access: AccessControl,
    pub(crate) level: Level,
    pub(crate) metrics: Metrics,
}

/// Why the running settings stay.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("the new settings are wrong:\n{0}")]
    Wrong(Faults),
    #[error("this cannot be changed while it runs: {0}: restart picketd, or put back what was")]
    Restart(String),
    #[error(transparent)]
    Engine(#[from] ChangeError),
    #[error("the settings could not be read: {0}")]
    Unread(String),
}

impl Reloader {
    /// Reads and takes the settings. What changed is logged and audited, and so is why nothing did.
    ///
    /// # Errors
    /// In words, why the running settings stay.
    pub(crate) async fn reload(&mut self) -> Result<(), String> {
        tracing::info!(file = %self.file.display(), "reading the settings anew");
        let (result, details, outcome) = match self.take().await {
            Ok(changes) => {
                let words: Vec<String> = changes.iter().map(|(what, how)| format!("{what}: {how}")).collect();
                let said = if words.is_empty() { "nothing changed".to_owned() } else { words.join("; ") };
                tracing::info!(changes = said, "the new settings hold");
                self.engine.note_reload(None);
                self.metrics.set(&metrics::RELOADED, &[], self.now_in_seconds());
                ("taken", json!({ "outcome": "taken", "changes": changes }), Ok(()))
            }
            Err(refused) => {
                let why = refused.to_string();
                self.engine.note_reload(Some(&why));
                tracing::error!(why, "the new settings were refused as a whole: the running ones stay");
                ("refused", json!({ "outcome": "refused", "how": why }), Err(why))
            }
        };
        self.metrics.count(&metrics::RELOADS, &[result]);
        let at = self.context.clock.wall().millis();
        let told =
            Told { at, who: GATEWAY.to_owned(), what: "reload".to_owned(), details, ..Told::default() };
        self.engine.audit().tell(told);
        outcome
    }

    pub(crate) fn now_in_seconds(&self) -> f64 {
        self.context.clock.wall().millis() as f64 / 1_000.0
    }

    async fn take(&mut self) -> Result<BTreeMap<&'static str, String>, Refused> {
        let (file, drivers, context) = (self.file.clone(), self.drivers.clone(), self.context.clone());
        // Thousands of nodes are not checked on a thread on which others wait.
        let read = tokio::task::spawn_blocking(move || {
            let (settings, told) = Settings::read(&Sources::at(&file))?;
            let built = build::all(&settings, told, &context, &drivers)?;
            Ok((settings, built))
        });
        let (settings, BuiltParts { nodes, limits, simulated, own, .. }) =
            read.await.map_err(|error| Refused::Unread(error.to_string()))?.map_err(Refused::Wrong)?;
        let fixed = self.fixed(&settings, simulated.is_some(), own.is_asked());
        if !fixed.is_empty() {
            return Err(Refused::Restart(fixed.join(", ")));
        }
        let fleet = store_choice::digest(&settings, &nodes);
        let (rules, budget, roles) =
            (settings.rules.clone(), settings.budget.clone(), settings.roles.clone());
        let changed = self.engine.change(Change { nodes, rules, budget, roles }).await?;
        limits.take();
        self.engine.set_fleet(&fleet).await;
        let mut changes = of_the_fleet(&changed);
        let told = |table: &str, otherwise: &str| {
            by_key(&self.running, &settings, table).unwrap_or_else(|| otherwise.to_owned())
        };
        if changed.budget {
            changes.insert("budget", told("budget", "that of groups, or of another number of nodes"));
        }
        if changed.rules {
            changes.insert("rules", told("rules", "others from now on"));
        }
        self.take_the_rest(&settings, &mut changes);
        self.running = settings.without_nodes();
        Ok(changes)
    }

    /// What differs and holds for as long as the process runs.
    fn fixed(&self, new: &Settings, simulated: bool, asks_where_it_stands: bool) -> Vec<&'static str> {
        let old = &self.running;
        let tls = |settings: &Settings| {
            let files = |tls: &picket_config::ListenTls| {
                (tls.cert_file.clone(), tls.key_file.clone(), tls.client_ca_file.clone())
            };
            settings.listen.tls.as_ref().map(files)
        };
        let differs = [
            ("gateway.name", old.gateway.name != new.gateway.name),
            // It is said at the start, and stands in what was told since (S1).
            (SIMULATED, self.engine.is_simulated() != simulated),
            ("find_by", self.engine.asks_where_it_stands() != asks_where_it_stands),
            ("[store]", old.store != new.store),
            ("[election]", old.election != new.election),
            ("[audit]", old.audit != new.audit),
            ("listen.unix", old.listen.unix != new.listen.unix),
            ("listen.tcp", old.listen.tcp != new.listen.tcp),
            ("[listen.tls]", tls(old) != tls(new)),
            ("receipts.key_file", old.receipts.key_file != new.receipts.key_file),
            ("metrics.listen", old.metrics.listen != new.metrics.listen),
            ("limits.connections", old.limits.connections != new.limits.connections),
            ("log.format", old.log.format != new.log.format),
        ];
        differs.iter().filter(|(_, differs)| *differs).map(|(key, _)| *key).collect()
    }

    fn take_the_rest(&mut self, new: &Settings, changes: &mut BTreeMap<&'static str, String>) {
        let old = &self.running;
        if old.roles != new.roles {
            let keys = by_key(old, new, "roles").unwrap_or_else(|| "others from now on".to_owned());
            changes.insert("roles", format!("{keys}; streams of callers are ended, and they come again"));
        }
        if old.limits != new.limits {
            changes.insert(
                "limits",
                by_key(old, new, "limits").unwrap_or_else(|| "others from now on".to_owned()),
            );
        }
        self.access.change(access_settings::limits(new), new.roles.clone());
        self.logins.change(new.limits.logins as usize);
        self.programs.change_programs(new.limits.agents as usize);
        if old.log.level != new.log.level {
            changes.insert("log.level", format!("{} to {}", old.log.level.word(), new.log.level.word()));
            self.level.change(new.log.level.word());
        }
        let groups = |settings: &Settings| settings.groups.members().clone();
        let moved = (groups(old) != groups(new)).then(|| "their nodes changed".to_owned());
        let told: Vec<String> = by_key(old, new, "groups").into_iter().chain(moved).collect();
        if !told.is_empty() {
            changes.insert("groups", told.join("; "));
        }
        if self.access.read_certificates_again() {
            changes.insert("certificates", "replaced: new connections use the new ones".to_owned());
        }
    }
}

fn of_the_fleet(changed: &Changed) -> BTreeMap<&'static str, String> {
    let nodes = [
        ("nodes added", &changed.added),
        ("nodes removed", &changed.removed),
        ("nodes changed", &changed.changed),
        ("nodes that change once they are back, or wait for a person", &changed.later),
    ];
    let mut changes = BTreeMap::new();
    for (what, nodes) in nodes.into_iter().filter(|(_, nodes)| !nodes.is_empty()) {
        let names: Vec<&str> = nodes.iter().map(|node| node.as_str()).collect();
        changes.insert(what, names.join(", "));
    }
    changes
}

/// The keys of a table that are others now. `None`: it was written as before.
fn by_key(old: &Settings, new: &Settings, table: &str) -> Option<String> {
    let changes = old.written.changes(&new.written, table);
    let words: Vec<String> = changes.iter().map(ToString::to_string).collect();
    (!words.is_empty()).then(|| words.join(", "))
}
