//! Which command runs, and with what.

use crate::args::{Cli, Command, VERSION};
use crate::command::{
    abandon, accept_identity, attest, backup, check, completions, drain, drill, fence, gateways, help,
    history, hold, init, kubeconfig, nodes, pause, pki, plan, quickstart, receipt, resume, retire, retry,
    stand_down, status, unfence, watch,
};
use crate::console::{Console, Stream};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::session::Session;

/// Runs the command that was given.
pub async fn run(cli: Cli, console: &mut Console) -> Result<Exit, Fault> {
    match &cli.command {
        // These need no gateway.
        Command::Completions(args) => return completions::run(args, console),
        Command::Help(args) => {
            let words: Vec<_> = std::env::args_os().collect();
            let mut root = Cli::definition(&words, console.page(Stream::Out));
            return help::run(args, &mut root, console);
        }
        Command::Version => {
            console.write(Stream::Out, &format!("picket {}\n", *VERSION))?;
            return Ok(Exit::Done);
        }
        Command::Kubeconfig(args) => return kubeconfig::run(args, cli.global.output, console),
        Command::Pki(args) => return pki::run(args, cli.global.output, console),
        // Neither do those that bring programs of their own.
        Command::Init(args) => return init::run(args, &cli.global, console).await,
        Command::Quickstart(args) => return quickstart::run(args, &cli.global, console).await,
        _ => {}
    }
    // Neither does what is read from files alone.
    if let Command::History(args) = &cli.command
        && let Some(done) = history::alone(args, &cli.global, console)
    {
        return done;
    }
    if let Command::Receipt(args) = &cli.command
        && let Some(done) = receipt::alone(args, &cli.global, console)
    {
        return done;
    }
    let mut session = Session::open(cli.global, console).await?;
    match &cli.command {
        Command::Fence(args) => fence::run(args, &mut session).await,
        Command::Unfence(args) => unfence::run(args, &mut session).await,
        Command::Status(args) => status::run(args, &mut session).await,
        Command::Nodes(args) => nodes::run(args, &mut session).await,
        Command::Gateways(args) => gateways::run(args, &mut session).await,
        Command::Watch(args) => watch::run(args, &mut session).await,
        Command::History(args) => history::run(args, &mut session).await,
        Command::Plan(args) => plan::run(args, &mut session).await,
        Command::Pause(args) => pause::run(args, &mut session).await,
        Command::Resume(args) => resume::run(args, &mut session).await,
        Command::Retry(args) => retry::run(args, &mut session).await,
        Command::Abandon(args) => abandon::run(args, &mut session).await,
        Command::StandDown(args) => stand_down::run(args, &mut session).await,
        Command::Attest(args) => attest::run(args, &mut session).await,
        Command::Retire(args) => retire::run(args, &mut session).await,
        Command::Hold(args) => hold::run(args, &mut session).await,
        Command::Unhold(args) => hold::run_unhold(args, &mut session).await,
        Command::Check(args) => check::run(args, &mut session).await,
        Command::Drill(args) => drill::run(args, &mut session).await,
        Command::AcceptIdentity(args) => accept_identity::run(args, &mut session).await,
        Command::Drain(args) => drain::run(args, &mut session).await,
        Command::Backup(args) => backup::run(args, &mut session).await,
        Command::Receipt(args) => receipt::run(args, &mut session).await,
        Command::Completions(_)
        | Command::Help(_)
        | Command::Version
        | Command::Init(_)
        | Command::Kubeconfig(_)
        | Command::Pki(_)
        | Command::Quickstart(_) => Ok(Exit::Done),
    }
}
