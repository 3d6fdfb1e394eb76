//! What became of the last reload, for whoever tries again after it.

use super::Office;

impl Office {
    /// Settings were refused as a whole (why), or taken (`None`).
    pub(crate) fn note_reload(&self, refused: Option<&str>) {
        let at = self.clock.wall();
        let told = refused.map(|why| {
            format!("the settings of before are in force: those that were read at {at} were refused: {why}")
        });
        *self.refused_settings.lock() = told;
    }

    /// That other settings than those of now were wanted, in words.
    pub(crate) fn refused_settings(&self) -> Option<String> {
        self.refused_settings.lock().clone()
    }
}
