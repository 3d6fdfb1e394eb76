//! What is done with the store while no gateway runs: backup, restore, and the mark of a store that was moved (S21).
//!
//! **Invariants.** No file is overwritten. A store is marked as moved only once its backup is on the disk, under the one lock
//! under which it was taken: nothing changed in between. A backup is restored into a new store alone.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use picket_config::{Settings, Sources, StoreSettings};
use picket_core::ids::{FenceId, Incarnation};
use picket_core::restore::HOLD;
use picket_core::store::Store;
use picket_driver::Context;
use picket_store::EmbeddedStore;
use picket_store::backup::{self, Lines, Rebirth};

use crate::arguments::Task;
use crate::failure::Failure;

/// Does it, and says what was done.
pub(crate) fn run(task: &Task, config: &Path, context: &Context) -> Result<(), Failure> {
    match task {
        Task::Backup { to, moved_to } => {
            runtime()?.block_on(take(&embedded(config)?, to, moved_to.as_deref(), context))
        }
        Task::Restore { from } => restore(config, from, context),
        Task::Unseal => {
            let path = embedded(config)?;
            let sealed = EmbeddedStore::unseal(&path)?;
            println!(
                "{}: no longer marked as moved to {}. Never let a gateway run on both",
                path.display(),
                sealed.to
            );
            Ok(())
        }
    }
}

/// Where the store of these settings is. Nothing else of the settings matters here: also wrong ones have a store.
fn embedded(config: &Path) -> Result<PathBuf, Failure> {
    let (settings, _told) = Settings::read(&Sources::at(config)).map_err(Failure::Settings)?;
    match settings.store {
        StoreSettings::Embedded { path } => Ok(path),
        StoreSettings::Memory => Err(in_memory(config)),
        StoreSettings::Etcd(_) => Err(Failure::Refused(format!(
            "{}: the store is in etcd, and its gateways take its backup: picket backup FILE",
            config.display()
        ))),
    }
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
    let content = store.dump().await?;
    let lines = Lines::new(content, context.clock.wall(), concat!("picketd ", env!("CARGO_PKG_VERSION")));
    let header = lines.header().clone();
    write(to, lines)?;
    println!(
        "{}: {} nodes and {} fences of the store's life {}; restore it with picketd restore --from",
        to.display(),
        header.nodes,
        header.fences,
        header.incarnation
    );
    if let Some(there) = moved_to {
        store.seal(there.to_owned()).await?;
        println!("{}: marked as moved to {there}; no gateway opens it any more", path.display());
    }
    Ok(())
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
    let (settings, _told) = Settings::read(&Sources::at(config)).map_err(Failure::Settings)?;
    let refused = |error| Failure::Backup(from.to_owned(), error);
    let file = File::open(from).map_err(|error| refused(error.into()))?;
    let backup = backup::read(BufReader::new(file)).map_err(refused)?;
    let header = backup.header.clone();
    let incarnation = mint(context);
    let mut mint_fence = || FenceId::mint(context.clock.wall(), random(context));
    let at = context.clock.wall();
    let content = backup::reborn(backup, Rebirth { at, incarnation, mint: &mut mint_fence });
    let place = match &settings.store {
        StoreSettings::Memory => return Err(in_memory(config)),
        StoreSettings::Embedded { path } => {
            EmbeddedStore::restore(path, &content)?;
            path.display().to_string()
        }
        StoreSettings::Etcd(etcd) => into_etcd(etcd, &content, context)?,
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

/// Says where it is now.
#[cfg(feature = "etcd")]
fn into_etcd(
    etcd: &picket_config::EtcdSettings,
    content: &picket_core::store::Content,
    context: &Context,
) -> Result<String, Failure> {
    let there = picket_etcd::Etcd::new(etcd.clone(), context.clock.clone(), context.random.clone());
    runtime()?.block_on(there.store().fill(content))?;
    Ok(format!("{} in etcd", etcd.prefix))
}

#[cfg(not(feature = "etcd"))]
fn into_etcd(
    _: &picket_config::EtcdSettings,
    _: &picket_core::store::Content,
    _: &Context,
) -> Result<String, Failure> {
    Err(Failure::Refused("this picketd was built without etcd: use one that has it".to_owned()))
}

fn random(context: &Context) -> [u8; 10] {
    let mut bytes = [0; 10];
    (context.random)(&mut bytes);
    bytes
}

fn mint(context: &Context) -> Incarnation {
    Incarnation::mint(context.clock.wall(), random(context))
}
