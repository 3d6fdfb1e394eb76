//! The daemon's life: settings, store, election, engine, service; and its orderly end.

use std::process::ExitCode;
use std::sync::Arc;

use picket_audit::{Audit, GATEWAY, Options, Told, Writer};
use picket_config::{AuditSettings, Faults, LogFormat, Settings, Sources};
use picket_driver::{Context, Random};
use picket_engine::clock::SystemClock;
use picket_engine::{Engine, Hooks, Logins, Parts, Receipts, Unit};
use picket_metrics::{self as metrics, Metrics};
use picket_receipt::Keys;
use picket_server::{AccessControl, Addresses, Listeners, SocketFile};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::arguments::Arguments;
use crate::build::BuiltParts;
use crate::drivers::{Drivers, Trial};
use crate::failure::Failure;
use crate::journal::Journal;
use crate::measured::Unanswered;
use crate::notify::Notify;
use crate::observe::Observer;
use crate::reload::Reloader;
use crate::reloads::Reloads;
use crate::store_choice::StoreChoice;
use crate::{access_settings, build, log, needs, print, socket_limit, store_choice};

/// Runs the daemon until SIGTERM or SIGINT. Failures are told on standard error, once.
pub fn main(arguments: &Arguments, hooks: Arc<dyn Hooks>) -> ExitCode {
    main_on_trial(arguments, hooks, Trial::default())
}

/// The same before peers of a test's own.
pub fn main_on_trial(arguments: &Arguments, hooks: Arc<dyn Hooks>, trial: Trial) -> ExitCode {
    match start(arguments, hooks, trial) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            Journal::of_process().error(&format!("picketd: {failure}"));
            ExitCode::from(failure.code())
        }
    }
}

fn random() -> Random {
    Arc::new(|bytes: &mut [u8]| {
        // The kernel gives random bytes from early boot on; a gateway without them could neither mint ids nor log in.
        if let Err(error) = getrandom::fill(bytes) {
            tracing::error!(%error, "no randomness to be had");
            std::process::abort();
        }
    })
}

fn start(arguments: &Arguments, hooks: Arc<dyn Hooks>, trial: Trial) -> Result<(), Failure> {
    if arguments.print_schema {
        return print::schema();
    }
    if arguments.print_settings {
        let context = Context { clock: Arc::new(SystemClock), random: random() };
        return print::settings(&arguments.config, arguments.output, &context, trial);
    }
    if let Some(task) = &arguments.task {
        return crate::backup::run(
            task,
            &arguments.config,
            &Context { clock: Arc::new(SystemClock), random: random() },
        );
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Failure::Start)?;
    // Before anything else: until a process takes this signal it dies of it, and whoever wants a reload does not know how
    // far the start is. One that comes meanwhile is a reload after the start.
    let hangup = {
        let _inside = runtime.enter();
        signal(SignalKind::hangup()).map_err(Failure::Start)?
    };
    let (settings, told) = Settings::read(&Sources::at(&arguments.config)).map_err(Failure::Settings)?;
    let context = Context { clock: Arc::new(SystemClock), random: random() };
    let drivers = Arc::new(Drivers::before(trial));
    let built = build::all(&settings, told, &context, &drivers);
    if arguments.check {
        let built = built.as_ref().map(|built| (built.nodes.len(), built.remarks.clone()));
        let built = built.map_err(Faults::clone);
        return needs::check(&arguments.config, &settings, built, &runtime, &context);
    }
    let built = built.map_err(Failure::Settings)?;
    let BuiltParts { nodes, tls, limits, simulated, own, remarks } = built;
    limits.take();
    let level = log::start(settings.log.format == LogFormat::Json, settings.log.level.word());
    for remark in remarks {
        tracing::warn!("{remark}");
    }
    let devices = nodes.iter().map(|node| node.drivers.len()).sum();
    if let Some(lacking) = socket_limit::make(devices, settings.limits.connections) {
        tracing::error!("{lacking}");
    }
    let metrics = Metrics::default();
    let StoreChoice { store, election, unanswered } = store_choice::open(&settings, &context, &metrics)?;
    let (audit, writer) = audit(&settings, &context)?;
    let keys = keys(&settings, &context)?;
    let fleet = store_choice::digest(&settings, &nodes);
    let logins = Logins::new(settings.limits.logins as usize);
    let programs = Arc::new(Unit::of_programs(settings.limits.agents as usize));
    let engine = Engine::new(Parts {
        clock: context.clock.clone(),
        random: context.random.clone(),
        election,
        store,
        hooks,
        audit,
        receipts: Arc::new(Receipts::new(keys)),
        metrics: metrics.clone(),
        rules: settings.rules.clone(),
        budget: settings.budget.clone(),
        roles: settings.roles.clone(),
        own: Arc::new(own),
        twins: Arc::default(),
        parents: drivers.parents.clone(),
        simulated: simulated.is_some(),
        check_at_start: settings.gateway.check_at_start,
        logins: logins.clone(),
        programs: programs.clone(),
        nodes,
    });
    let ended = runtime.block_on(async {
        let stop = CancellationToken::new();
        let listeners = addresses(&settings).bind_with(tls).await?;
        let rules = access_settings::rules(&settings, engine.audit().clone(), &metrics);
        engine.set_fleet(&fleet).await;
        let access = AccessControl::new(rules, &engine, &listeners, stop.clone());
        let reloader = Reloader {
            file: arguments.config.clone(),
            running: settings.without_nodes(),
            logins,
            programs,
            drivers,
            context: context.clone(),
            engine: engine.clone(),
            access,
            level,
            metrics,
        };
        live(reloader, listeners, engine, unanswered, stop, hangup).await
    });
    // What is still being read from a device ends with the process; nothing that was sent is left unaccounted for.
    runtime.shutdown_background();
    // What was told is written, also of how it ended.
    drop(writer);
    ended
}

/// The audit of these settings, and its writer; none with a store in memory, unless a path is given.
fn audit(settings: &Settings, context: &Context) -> Result<(Audit, Option<Writer>), Failure> {
    let AuditSettings { path, rotate, keep, most, fsync } = &settings.audit;
    let Some(directory) = path.clone() else {
        tracing::warn!("nothing is audited: the store is in memory, and [audit] path is not set");
        return Ok((Audit::none(), None));
    };
    let clock = context.clock.clone();
    let options = Options { directory, rotate: *rotate, keep: *keep, most: *most, fsync: *fsync };
    let (audit, writer) = Audit::open(options, Arc::new(move || clock.wall().millis()))?;
    let details =
        serde_json::json!({ "gateway": settings.gateway.name, "version": env!("CARGO_PKG_VERSION") });
    let at = context.clock.wall().millis();
    audit.tell(Told { at, who: GATEWAY.to_owned(), what: "start".to_owned(), details, ..Told::default() });
    Ok((audit, Some(writer)))
}

/// The key with which receipts are signed. The store is ours already: no other process makes one at the same moment.
fn keys(settings: &Settings, context: &Context) -> Result<Keys, Failure> {
    let random = |bytes: &mut [u8]| (context.random)(bytes);
    let gateway = &settings.gateway.name;
    let Some(file) = &settings.receipts.key_file else {
        let keys = Keys::ephemeral(gateway, &random);
        let key = keys.present().id().to_string();
        tracing::warn!(
            key,
            "receipts are signed with a key that ends with this process: [receipts] key_file is not set"
        );
        return Ok(keys);
    };
    let keys = Keys::open(gateway, file, &random)?;
    tracing::info!(key = %keys.present().id(), file = %file.display(), "receipts are signed with this key");
    Ok(keys)
}

/// The Unix socket is for the gateway's user and group: who may write to it may fence.
pub(crate) fn addresses(settings: &Settings) -> Addresses {
    let unix = settings.listen.unix.clone().map(|path| SocketFile { path, mode: 0o660 });
    Addresses { unix, tcp: settings.listen.tcp }
}

/// Serves and works until a signal ends it; reads the settings anew at each SIGHUP.
async fn live(
    mut reloader: Reloader,
    listeners: Listeners,
    engine: Engine,
    unanswered: Unanswered,
    stop: CancellationToken,
    mut hangup: Signal,
) -> Result<(), Failure> {
    let settings = &reloader.running;
    let (access, hurry) = (reloader.access.clone(), CancellationToken::new());
    let mut terminate = signal(SignalKind::terminate()).map_err(Failure::Start)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Failure::Start)?;
    let (notify, mut reloads) = (Notify::of_environment(), Reloads::of_process());
    tracing::info!(gateway = %settings.gateway.name, version = env!("CARGO_PKG_VERSION"), "starting");
    access_settings::tell(settings, &listeners, listeners.are_guarded());
    let telling = match settings.metrics.listen {
        Some(address) => Some(
            picket_metrics::http::bind(address).await.map_err(|error| Failure::Metrics(address, error))?,
        ),
        None => None,
    };
    let observer = Arc::new(Observer {
        metrics: reloader.metrics.clone(),
        engine: engine.clone(),
        access: access.clone(),
        unanswered,
    });
    observer.metrics.set(&metrics::BUILD_INFO, &[env!("CARGO_PKG_VERSION")], 1.0);
    observer.metrics.set(&metrics::START_TIME, &[], reloader.now_in_seconds());
    observer.metrics.set(&metrics::RELOADED, &[], reloader.now_in_seconds());
    let serving = picket_server::serve_with(access, engine.clone(), listeners, stop.clone());
    let working = engine.run_until(stop.clone(), hurry.clone());
    let besides = async {
        let telling = async {
            match telling {
                Some(listener) => picket_metrics::http::serve(listener, observer).await,
                None => std::future::pending().await,
            }
        };
        tokio::join!(telling, notify.keep_alive())
    };
    let reloading = async {
        engine.until_serving().await;
        notify.ready("serving");
        // Signals that come meanwhile make one more reload together: the last settings hold.
        while hangup.recv().await.is_some() {
            notify.reloading();
            reloads.begin();
            let outcome = reloader.reload().await;
            reloads.end(&outcome);
            let result = if outcome.is_ok() { "taken" } else { "refused" };
            notify.ready(&format!("serving; the last reload was {result}"));
        }
        std::future::pending::<()>().await;
    };
    tokio::pin!(serving, working, besides, reloading);
    let ended = tokio::select! {
        biased;
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
        ended = &mut working => return ended.map_err(Failure::from),
        ended = &mut serving => ended.map_err(Failure::from),
        _ = &mut besides => Ok(()),
        () = &mut reloading => Ok(()),
    };
    tracing::info!("stopping");
    notify.stopping();
    stop.cancel();
    let (served, worked) = {
        let ending = async { tokio::join!(serving_end(&ended, serving), working) };
        tokio::pin!(ending);
        loop {
            tokio::select! {
                biased;
                done = &mut ending => break done,
                _ = terminate.recv() => hurry.cancel(),
                _ = interrupt.recv() => hurry.cancel(),
                _ = &mut besides => {}
            }
        }
    };
    let at = engine.clock().wall().millis();
    engine.audit().tell(Told { at, who: GATEWAY.to_owned(), what: "stop".to_owned(), ..Told::default() });
    ended.and(served).and(worked.map_err(Failure::from))
}

/// Waits for the service's end, unless it has ended already.
async fn serving_end<F>(ended: &Result<(), Failure>, serving: F) -> Result<(), Failure>
where
    F: Future<Output = Result<(), picket_server::ServeError>>,
{
    match ended {
        Ok(()) => serving.await.map_err(Failure::from),
        Err(_) => Ok(()),
    }
}
