//! `picket-fleet`: simulated BMCs from a settings file, until it is told to stop.

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use picket_core::time::Clock;
use picket_driver_sim::SimClock;
use picket_fleet::{Arguments, BmcOptions, Fleet, Settings, room_for};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep_until};

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let mut said = error.to_string();
            let mut source = error.source();
            while let Some(cause) = source {
                said += &format!(": {cause}");
                source = cause.source();
            }
            eprintln!("picket-fleet: {said}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let path = &arguments.settings;
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let settings =
        Settings::parse(&text).map_err(|error| format!("{} is not right:\n{error}", path.display()))?;
    let redfish = settings.bmcs.iter().filter(|bmc| bmc.redfish.is_some()).count();
    if arguments.check {
        println!("right: {} machines, {redfish} of them with Redfish", settings.bmcs.len());
        return Ok(());
    }
    // Whoever speaks Redfish listens, and has a connection or two as a rule; further ones wait where there is no room.
    room_for(settings.bmcs.len() + 3 * redfish)?;
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(rehearse(&settings))
}

async fn rehearse(settings: &Settings) -> Result<(), Box<dyn Error>> {
    let (mut interrupted, mut ended) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut asked = signal(SignalKind::user_defined1())?;
    let clock: Arc<dyn Clock> = Arc::new(SimClock::new());
    let begin = Instant::now();
    let fleet = Fleet::start(&settings.bmcs, &clock).await?;
    if let Some(path) = &settings.ca_file {
        std::fs::write(path, fleet.authority()).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    for (name, fault) in &settings.faults {
        if let Some(bmc) = fleet.bmc(name) {
            bmc.fault(fault.clone());
        }
    }
    for options in &settings.bmcs {
        tell_place(&fleet, options);
    }
    println!("ready: {} machines", fleet.bmcs().len());
    let mut events = settings.events.iter().peekable();
    loop {
        let next = events.peek().map(|event| begin + event.at);
        tokio::select! {
            biased;
            _ = interrupted.recv() => return Ok(()),
            _ = ended.recv() => return Ok(()),
            _ = asked.recv() => tell(&fleet),
            () = sleep_until(next.unwrap_or(begin)), if next.is_some() => {
                let Some(event) = events.next() else { continue };
                for bmc in event.nodes.iter().filter_map(|name| fleet.bmc(name)) {
                    event.what.happen_to(bmc);
                }
                println!("{:?}: {:?} to {} machines", event.at, event.what, event.nodes.len());
            }
        }
    }
}

/// Where a BMC answers, if its settings left the port to the system: nobody else can know.
fn tell_place(fleet: &Fleet, options: &BmcOptions) {
    let Some(bmc) = fleet.bmc(&options.name) else { return };
    if options.ipmi.port() == 0 {
        println!("{} ipmi {}", bmc.name(), bmc.address());
    }
    let asked = options.redfish.as_ref().filter(|place| place.address.port() == 0);
    if let (Some(_), Some(address)) = (asked, bmc.redfish_address()) {
        println!("{} redfish {address}", bmc.name());
    }
}

/// What is truly so, whatever any BMC says.
fn tell(fleet: &Fleet) {
    for bmc in fleet.bmcs() {
        println!("{} {}", bmc.name(), if bmc.is_on() { "on" } else { "off" });
    }
}
