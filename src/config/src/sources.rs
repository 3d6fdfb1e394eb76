//! Where settings come from: one file, the files of a directory over it in the order of their names, and over those the
//! variables of the environment. What comes later wins, key by key; a list is replaced as a whole.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::entry::Entry;
use crate::fault::{Fault, Place};
use crate::layer::{Layer, PREFIX};

/// What is read.
#[derive(Clone, Debug)]
pub struct Sources {
    /// The file, which must be there.
    pub file: PathBuf,
    /// The directory of which `*.toml` is read; it need not be there.
    pub directory: PathBuf,
    /// The variables; only those that begin with `PICKET__` count.
    pub environment: BTreeMap<String, String>,
}

impl Sources {
    /// `file`, `conf.d` beside it, and this process's environment.
    pub fn at(file: &Path) -> Self {
        let environment = std::env::vars_os()
            .map(|(name, text)| (name.to_string_lossy().into_owned(), text.to_string_lossy().into_owned()));
        Self {
            file: file.to_owned(),
            directory: file.with_file_name("conf.d"),
            environment: environment.filter(|(name, _)| name.starts_with(PREFIX)).collect(),
        }
    }

    /// Everything, merged. Where a file cannot be read, nothing is checked: what is missing would be told as faults.
    pub(crate) fn merge(&self) -> Result<Entry, Vec<Fault>> {
        let mut faults = Vec::new();
        let mut builder = config::Config::builder();
        for file in std::iter::once(self.file.clone()).chain(self.files(&mut faults)) {
            if let Some(text) = read(&file, &mut faults) {
                builder = builder.add_source(Layer::file(&file, &text, &mut faults));
            }
        }
        builder = builder.add_source(Layer::environment(&self.environment, &mut faults));
        let place = Place::file(self.file.display().to_string());
        match builder.build() {
            Ok(merged) if faults.is_empty() => return Ok(Entry::of(merged.cache, &place)),
            Ok(_) => {}
            Err(error) => faults.push(place.fault(error.to_string())),
        }
        Err(faults)
    }

    fn files(&self, faults: &mut Vec<Fault>) -> Vec<PathBuf> {
        let listed =
            fs::read_dir(&self.directory).and_then(|entries| entries.collect::<io::Result<Vec<_>>>());
        let mut files: Vec<PathBuf> = match listed {
            // Also an empty directory that others may write to: a file that they put there counts at the next reload.
            Ok(entries) => match picket_permissions::check(&self.directory) {
                Ok(()) => entries.into_iter().map(|entry| entry.path()).collect(),
                Err(fault) => {
                    faults.push(Place::file(self.directory.display().to_string()).fault(fault.to_string()));
                    Vec::new()
                }
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                let place = Place::file(self.directory.display().to_string());
                faults.push(place.fault(format!("cannot be listed: {error}")));
                Vec::new()
            }
        };
        let hidden =
            |path: &Path| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        files.retain(|path| path.extension().is_some_and(|extension| extension == "toml") && !hidden(path));
        files.sort();
        files
    }
}

/// The text of a file that nobody else may change: who writes the settings says who is switched off.
fn read(file: &Path, faults: &mut Vec<Fault>) -> Option<String> {
    let place = Place::file(file.display().to_string());
    if let Err(fault) = picket_permissions::check_if_there(file) {
        faults.push(place.fault(fault.to_string()));
        return None;
    }
    let text = match fs::read(file) {
        Ok(bytes) => {
            String::from_utf8(bytes).map_err(|error| format!("is not UTF-8: {}", error.utf8_error()))
        }
        Err(error) => Err(format!("cannot be read: {error}")),
    };
    text.map_err(|why| faults.push(place.fault(why))).ok()
}
