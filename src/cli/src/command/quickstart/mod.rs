//! `picket quickstart`: a gateway before simulated machines in one terminal, and a tour: fence, proof,
//! release, unfence.
//!
//! # Invariants
//!
//! - Nothing real is switched: the machines are those of `picket-fleet`, on the loopback, and the gateway's
//!   settings say `simulated = true` (S1). Shown by
//!   `settings_are_toml_whatever_the_folder_is_called_and_say_that_they_are_simulated`.
//! - What was started ends with the command, by process id, and by the kernel where the command is killed.
//!   Shown by `a_kill_ends_both_programs`.
//! - The folder is made here and nowhere else, so that all of it may be removed. Shown by
//!   `a_folder_that_is_there_is_not_taken`.

mod demo_programs;
mod tour;

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::console::{Console, Stream};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::global::{Format, Global};
use crate::private_folder::PrivateFolder;
use crate::programs;
use demo_programs::DemoPrograms;
use tour::Guide;

/// Its arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The folder to make for settings, store, audit and logs; it must not be there [default: a new one in the temporary folder]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Leave the folder there at the end
    #[arg(long)]
    keep: bool,
}

/// Starts both programs, shows the tour, and ends them.
pub async fn run(args: &Args, global: &Global, console: &mut Console) -> Result<Exit, Fault> {
    if global.output != Format::Table {
        return Err(Fault::Usage(
            "quickstart shows what people see, and has no document: leave -o out".to_owned(),
        ));
    }
    let asks = !global.yes;
    if asks && !(io::stdin().is_terminal() && console.is_terminal(Stream::Out)) {
        return Err(Fault::Usage(
            "quickstart waits for Enter between its steps, and this is no terminal: say --yes to see it without a stop"
                .to_owned(),
        ));
    }
    let (gateway, fleet) = (programs::find("picketd")?, programs::find("picket-fleet")?);
    // From here on each of these signals ends the tour in order; before, nothing was there to be ended.
    let mut signals = Signals::listen().map_err(failed("listen to signals"))?;
    let mut folder = PrivateFolder::make("quickstart", args.dir.as_deref())?;
    if args.keep {
        folder.keep();
    }
    let mut demo = DemoPrograms::of(folder.path().to_owned());
    let mut guide = Guide { console, asks };
    let done = tokio::select! {
        biased;
        () = signals.any() => Ok(Exit::Interrupted),
        done = show(&mut demo, &mut guide, &gateway, &fleet) => done,
    };
    // Whatever became of the tour: nothing that it started outlives it.
    demo.end().await;
    match &done {
        Err(_) => folder.keep(),
        Ok(Exit::Interrupted) => guide.say("\nInterrupted: both programs were ended.")?,
        Ok(_) => {}
    }
    guide.say(&farewell(&folder))?;
    done
}

/// What becomes of the folder.
fn farewell(folder: &PrivateFolder) -> String {
    let path = folder.path().display();
    match folder.is_kept() {
        true => format!(
            "{path} stays: the settings picket.toml and fleet.toml, the store picket.redb, the audit picket.audit, and two logs. It is \
             thrown away by: rm -r {path}"
        ),
        false => format!("{path} is removed; --keep leaves it."),
    }
}

async fn show(
    demo: &mut DemoPrograms,
    guide: &mut Guide<'_>,
    gateway: &std::path::Path,
    fleet: &std::path::Path,
) -> Result<Exit, Fault> {
    guide.welcome(demo.directory())?;
    demo.start(gateway, fleet).await?;
    let ended = guide.steps(demo).await?;
    if ended == Exit::Done {
        guide.more(demo).await?;
    }
    Ok(ended)
}

fn failed(what: &'static str) -> impl Fn(io::Error) -> Fault {
    move |error| Fault::Failed(format!("cannot {what}: {error}"))
}

/// What ends the command from outside.
struct Signals([Signal; 3]);

impl Signals {
    fn listen() -> io::Result<Self> {
        let of = |kind: fn() -> SignalKind| signal(kind());
        Ok(Self([of(SignalKind::interrupt)?, of(SignalKind::terminate)?, of(SignalKind::hangup)?]))
    }

    async fn any(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}
