//! What is done with the store while no gateway is asked: backup, restore, the mark of a store that was
//! moved (S21), and a person's word that these are the fleet's settings from now on.
//!
//! # Invariants
//!
//! - No file is overwritten.
//! - A store is marked as moved only once its backup is on the disk, and only if nothing changed in
//!   between. The embedded store holds one lock over both. In etcd the mark's transaction compares it.
//!   Shown by `a_store_is_left_only_as_the_backup_saw_it_and_nobody_leads_over_it_then`.
//! - A backup is restored into a new store alone. Shown by
//!   `it_is_restored_where_there_is_no_store_and_was_none`.

#[cfg(feature = "etcd")]
mod etcd;
#[cfg(not(feature = "etcd"))]
#[path = "without_etcd.rs"]
mod etcd;

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use picket_config::{Settings, Sources, StoreSettings};
use picket_core::ids::{FenceId, Incarnation};
use picket_core::restore::HOLD;
use picket_core::store::{Content, Store};
use picket_driver::Context;
use picket_store::EmbeddedStore;
use picket_store::backup::{self, BackupError, Lines, RestoreOptions};

use crate::arguments::Task;
use crate::failure::Failure;
use crate::{build, store_choice};

/// Does it, and says what was done.
pub(crate) fn run(task: &Task, config: &Path, context: &Context) -> Result<(), Failure> {
    match task {
        Task::Backup { to, moved_to } => {
            let moved_to = moved_to.as_deref();
            match store_of(config)? {
                StoreSettings::Memory => Err(in_memory(config)),
                StoreSettings::Embedded { path } => runtime()?.block_on(take(&path, to, moved_to, context)),
                StoreSettings::Etcd(settings) => {
                    runtime()?.block_on(etcd::take(&settings, to, moved_to, context))
                }
            }
        }
        Task::Restore { from } => restore(config, from, context),
        Task::Unseal => unseal(config, context),
        Task::AcceptSettings => accept(config, context),
        Task::Reload => crate::reloads::ask(),
        Task::Probe { json } => crate::probe::run(config, *json, context),
    }
}

/// Which store these settings name. Nothing else of them matters here: also wrong ones have a store.
fn store_of(config: &Path) -> Result<StoreSettings, Failure> {
    let (settings, _told) = Settings::read(&Sources::at(config)).map_err(Failure::Settings)?;
    Ok(settings.store)
}

fn unseal(config: &Path, context: &Context) -> Result<(), Failure> {
    let (place, to) = match store_of(config)? {
        StoreSettings::Memory => return Err(in_memory(config)),
        StoreSettings::Embedded { path } => {
            let to = EmbeddedStore::unseal(&path)?.to;
            (path.display().to_string(), to)
        }
        StoreSettings::Etcd(settings) => {
            let to = runtime()?.block_on(etcd::unseal(&settings, context))?;
            (etcd::place(&settings), to)
        }
    };
    println!("{place}: no longer marked as moved to {to}. Never let a gateway run on both");
    Ok(())
}

/// The settings must be right: by them the fleet is led from now on.
fn accept(config: &Path, context: &Context) -> Result<(), Failure> {
    let (settings, told) = Settings::read(&Sources::at(config)).map_err(Failure::Settings)?;
    let drivers = crate::drivers::Drivers::default();
    let nodes = build::all(&settings, told, context, &drivers).map_err(Failure::Settings)?.nodes;
    let StoreSettings::Etcd(there) = &settings.store else {
        return Err(Failure::Refused(format!(
            "{}: its gateway shares its store with no other one, and leads by whatever settings it has: nothing is to be \
             accepted",
            config.display()
        )));
    };
    let digest = store_choice::digest(&settings, &nodes);
    let said = runtime()?.block_on(etcd::accept(there, &digest, context))?;
    println!("{}: {said}", config.display());
    Ok(())
}

fn in_memory(config: &Path) -> Failure {
    Failure::Refused(format!(
        "{}: the store is in memory, and ends with its gateway: there is nothing to take, and nowhere to restore to",
        config.display()
    ))
}

fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::Start)
}

async fn take(path: &Path, to: &Path, moved_to: Option<&str>, context: &Context) -> Result<(), Failure> {
    // Opening would make one where there is none.
    if !path.exists() {
        return Err(Failure::Refused(format!("there is no store at {}", path.display())));
    }
    let store = EmbeddedStore::open(path, mint(context))?;
    let lines = lines(store.dump().await?, context);
    keep(to, lines)?;
    if let Some(there) = moved_to {
        store.seal(there.to_owned()).await?;
        tell_sealed(&path.display().to_string(), there);
    }
    Ok(())
}

fn tell_sealed(place: &str, there: &str) {
    println!("{place}: marked as moved to {there}; no gateway opens it any more");
}

/// Writes the backup, and says what it is.
fn keep(to: &Path, lines: Lines) -> Result<(), Failure> {
    let header = lines.header().clone();
    write(to, lines)?;
    println!(
        "{}: {} nodes and {} fences of the store's life {}; restore it with picketd restore --from",
        to.display(),
        header.nodes,
        header.fences,
        header.incarnation
    );
    Ok(())
}

fn lines(content: Content, context: &Context) -> Lines {
    Lines::new(content, context.clock.wall(), concat!("picketd ", env!("CARGO_PKG_VERSION")))
}

/// Writes a new file, for its owner alone; what is not whole is taken away again.
fn write(to: &Path, lines: Lines) -> Result<(), Failure> {
    let cannot = |error: io::Error| Failure::Refused(format!("cannot write {}: {error}", to.display()));
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to);
    let file = file.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Failure::Refused(format!(
            "{} is there already, and no backup is overwritten: name another file",
            to.display()
        )),
        _ => cannot(error),
    })?;
    let mut file = BufWriter::new(file);
    let all = || -> Result<(), Failure> {
        for line in lines {
            file.write_all(&line?).map_err(cannot)?;
        }
        file.flush().and_then(|()| file.get_ref().sync_all()).map_err(cannot)?;
        let directory = to.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(directory.unwrap_or(Path::new("."))).and_then(|it| it.sync_all()).map_err(cannot)
    };
    let written = all();
    if written.is_err() {
        let _ = std::fs::remove_file(to);
    }
    written
}

fn restore(config: &Path, from: &Path, context: &Context) -> Result<(), Failure> {
    let store = store_of(config)?;
    let refused = |error| Failure::Backup(from.to_owned(), error);
    // All that it says of fences and holds is believed from here on.
    picket_permissions::check_if_there(from)
        .map_err(|fault| refused(BackupError::Open(std::io::Error::other(fault.to_string()))))?;
    let file = File::open(from).map_err(|error| refused(BackupError::Open(error)))?;
    let backup = backup::read(BufReader::new(file)).map_err(refused)?;
    let header = backup.header.clone();
    let incarnation = mint(context);
    let mut mint_fence = || FenceId::mint(context.clock.wall(), random(context));
    let at = context.clock.wall();
    let content = backup::restored_content(backup, RestoreOptions { at, incarnation, mint: &mut mint_fence });
    let place = match &store {
        StoreSettings::Memory => return Err(in_memory(config)),
        StoreSettings::Embedded { path } => {
            EmbeddedStore::restore(path, &content)?;
            path.display().to_string()
        }
        StoreSettings::Etcd(settings) => {
            runtime()?.block_on(etcd::fill(settings, &content, context))?;
            etcd::place(settings)
        }
    };
    println!(
        "{}: restored from the backup of {}, with {} nodes and {} fences. It begins the life {incarnation}: receipts of the \
         one before are void, and terms and generations go on beyond it.\nBefore you start picketd: see that no other \
         gateway runs on the old store.\nAfterwards: what reads Off is kept off, unproven, until an admin drops the hold: \
         picket unhold NODE --holder {HOLD}. What was kept off and is on wants a person: picket status.",
        place, header.taken_at, header.nodes, header.fences,
    );
    Ok(())
}

fn random(context: &Context) -> [u8; 10] {
    let mut bytes = [0; 10];
    (context.random)(&mut bytes);
    bytes
}

fn mint(context: &Context) -> Incarnation {
    Incarnation::mint(context.clock.wall(), random(context))
}
