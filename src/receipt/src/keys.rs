//! The key with which a gateway signs, replaced by replacing its file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use zeroize::Zeroizing;

use crate::file::{self, KeyFault, Mark};
use crate::key::{SEED, SigningKey};

/// The gateway's present key.
#[derive(Debug)]
pub struct Keys {
    gateway: String,
    file: Option<PathBuf>,
    present: Mutex<Present>,
}

#[derive(Debug)]
struct Present {
    key: Arc<SigningKey>,
    mark: Option<Mark>,
}

type Random<'r> = &'r dyn Fn(&mut [u8]);

fn seed(random: Random<'_>) -> Zeroizing<[u8; SEED]> {
    let mut seed = Zeroizing::new([0; SEED]);
    random(&mut *seed);
    seed
}

impl Keys {
    /// Those of the gateway of that name, by its key file, which is made where there is none.
    pub fn open(gateway: &str, path: &Path, random: Random<'_>) -> Result<Self, KeyFault> {
        let mark = Mark::of(path);
        if let Some(key) = file::read(path)? {
            return Ok(Self::with(gateway, Some(path), key, mark));
        }
        file::make(path, &seed(random))?;
        let mark = Mark::of(path);
        // As it was written, so that what cannot be read again is seen now.
        let made =
            file::read(path)?.ok_or_else(|| KeyFault::NoKey { path: path.to_owned(), what: "is gone" })?;
        Ok(Self::with(gateway, Some(path), made, mark))
    }

    /// Looks whether [`open`](Self::open) would find the key in `path`, or could make it, and makes nothing.
    pub fn check(path: &Path) -> Result<(), KeyFault> {
        match file::read(path)? {
            Some(_) => Ok(()),
            None => file::could_be_made(path),
        }
    }

    /// A key that ends with this process: for a store that does, too.
    pub fn ephemeral(gateway: &str, random: Random<'_>) -> Self {
        let key = loop {
            // A seed is of the right length: there is one at once.
            if let Some(key) = SigningKey::from_seed(&*seed(random)) {
                break key;
            }
        };
        Self::with(gateway, None, key, None)
    }

    fn with(gateway: &str, path: Option<&Path>, key: SigningKey, mark: Option<Mark>) -> Self {
        let present = Mutex::new(Present { key: Arc::new(key), mark });
        Self { gateway: gateway.to_owned(), file: path.map(Path::to_owned), present }
    }

    /// Whether there is a file that may be replaced.
    pub fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// The gateway's name.
    pub fn gateway(&self) -> &str {
        &self.gateway
    }

    /// The key with which it signs.
    pub fn present(&self) -> Arc<SigningKey> {
        self.present.lock().key.clone()
    }

    /// Reads the file again if it was replaced. True: from now on another key signs. Until the new file is a good one the
    /// old key goes on; each state of the file is told once.
    pub fn reread(&self) -> Result<bool, KeyFault> {
        let Some(path) = &self.file else { return Ok(false) };
        let mark = Mark::of(path);
        // One that is gone is on its way to be replaced, or is missed at the next start.
        if mark.is_none() || self.present.lock().mark == mark {
            return Ok(false);
        }
        let read = file::read(path);
        let mut present = self.present.lock();
        present.mark = mark;
        match read? {
            Some(key) if key.id() != present.key.id() => {
                present.key = Arc::new(key);
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}
