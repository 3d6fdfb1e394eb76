//! Settings that fit the agent as it stands on the disk, also after it was replaced under a gateway that
//! runs.
//!
//! # Invariants
//!
//! - What the device was taken for when it was made (class, grade, whether it proves alone) never changes
//!   under its users. An agent that would be taken for something else now is told, and not believed, until
//!   the settings are read again. Shown by
//!   `an_agent_that_was_replaced_is_asked_what_it_takes_before_it_is_believed`.

use std::sync::Arc;

use parking_lot::Mutex;
use picket_driver::SettingFault;
use serde_json::{Map, Value};

use crate::metadata::Metadata;
use crate::metadata_cache::{MetadataCache, Stamp};
use crate::settings::Settings;

/// The settings of one device, with what they were read from.
#[derive(Debug)]
pub struct CurrentSettings {
    table: Map<String, Value>,
    described: Arc<MetadataCache>,
    /// As it was made.
    pub made: Arc<Settings>,
    /// As it is now, and of which file.
    now: Mutex<(Stamp, Arc<Settings>)>,
}

impl CurrentSettings {
    /// Reads the settings, and what the agent says.
    ///
    /// # Errors
    /// All faults at once.
    pub fn new(
        table: &Map<String, Value>,
        described: &Arc<MetadataCache>,
    ) -> Result<Self, Vec<SettingFault>> {
        let made = Arc::new(Settings::check(table, &|path, program| described.describe(path, program))?);
        let stamp = Stamp::of(&made.path).map_err(|why| vec![SettingFault::new("agent", why)])?;
        let now = Mutex::new((stamp, made.clone()));
        Ok(Self { table: table.clone(), described: described.clone(), made, now })
    }

    /// As it is known now.
    pub fn settings(&self) -> Arc<Settings> {
        self.now.lock().1.clone()
    }

    /// The file, if another one than the known stands there now, or none.
    pub fn replaced(&self) -> bool {
        let known = self.now.lock().0;
        Stamp::of(&self.made.path) != Ok(known)
    }

    /// Asks the agent that stands there now. Waits for it, in nobody's thread.
    ///
    /// # Errors
    /// What of the settings does not fit it any more, for people.
    pub async fn fit(self: Arc<Self>) -> Result<(), String> {
        let (stamp, metadata) =
            self.described.known(&self.made.path, &self.made.program).await.map_err(replaced)?;
        // Secrets are files.
        let fits = tokio::task::spawn_blocking(move || self.becomes(stamp, &metadata));
        fits.await.unwrap_or_else(|_| Err(replaced("checking it failed".to_owned())))
    }

    /// What it is now that its agent says this of itself.
    fn becomes(&self, stamp: Stamp, metadata: &Metadata) -> Result<(), String> {
        let settings = Settings::check(&self.table, &|_, _| Ok(metadata.clone())).map_err(|faults| {
            let words: Vec<String> =
                faults.iter().map(|fault| format!("{}: {}", fault.key, fault.message)).collect();
            replaced(words.join("; "))
        })?;
        let made = &self.made;
        let same = settings.class == made.class
            && settings.grade == made.grade
            && settings.never_alone == made.never_alone
            && settings.endpoint == made.endpoint;
        if !same {
            let told = settings.remarks.join("; ");
            return Err(replaced(format!(
                "its Off is worth something else now, and counts for nothing until the settings are read again (SIGHUP). {told}"
            )));
        }
        *self.now.lock() = (stamp, Arc::new(settings));
        Ok(())
    }
}

fn replaced(why: String) -> String {
    format!("was replaced since the settings were read: {why}")
}
