//! `picket pause`: let no new fence start.

use std::time::Duration;

use picket_proto::v1::{Pause, PauseRequest, PauseScope, pause_scope};
use serde::Serialize;

use crate::console::Stream;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::gateway_error::GatewayError;
use crate::session::Session;
use crate::style::Tone;
use crate::view::node::{self, PauseView};
use crate::view::node_text;
use crate::{duration, hosts};

/// Its arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    scopes: Scopes,
    /// For how long: 1s to 30d; it ends by itself
    #[arg(long = "for", required = true, value_name = "DURATION", value_parser = duration::parse)]
    lasts: Duration,
    /// Why nothing is to start; whoever is blocked by it reads this
    #[arg(long, required = true, value_name = "TEXT")]
    reason: String,
}

/// What is paused, or resumed.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub struct Scopes {
    /// Host lists: r1n07 or r1n[01-40,45], a pause for each node
    #[arg(value_name = "HOSTS")]
    hosts: Vec<String>,
    /// A group: rack=r1, or one that the settings name
    #[arg(long, value_name = "NAME")]
    group: Option<String>,
    /// All nodes
    #[arg(long)]
    everything: bool,
}

impl Scopes {
    /// One scope for each request.
    pub async fn resolve(&self, session: &Session<'_>) -> Result<Vec<PauseScope>, Fault> {
        let of = match (&self.group, self.everything) {
            (Some(name), _) => vec![pause_scope::Of::Group(name.clone())],
            (None, true) => vec![pause_scope::Of::Everything(true)],
            (None, false) => {
                let names = hosts::names(&hosts::resolve(session, &self.hosts).await?);
                names.into_iter().map(pause_scope::Of::Node).collect()
            }
        };
        Ok(of.into_iter().map(|of| PauseScope { of: Some(of) }).collect())
    }
}

/// The document of a command that pauses or resumes.
#[derive(Debug, Serialize)]
pub struct Document {
    results: Vec<ScopeView>,
    exit_code: u8,
}

#[derive(Debug, Serialize)]
struct ScopeView {
    scope: String,
    exit_code: u8,
    /// The pause, where one was made.
    pause: Option<PauseView>,
    error: Option<GatewayError>,
}

/// What each scope's request came to.
pub type PauseAnswers = Vec<(PauseScope, Result<Option<Pause>, GatewayError>)>;

/// Tells it, and says how the command ends.
pub fn conclude(session: &mut Session<'_>, answers: &PauseAnswers, done: &str) -> Result<Exit, Fault> {
    let code = |answer: &Result<Option<Pause>, GatewayError>| {
        answer.as_ref().err().map_or(Exit::Done, GatewayError::exit)
    };
    let exit = Exit::worst(answers.iter().map(|(_, answer)| code(answer)));
    if !session.for_people() {
        let results = answers.iter().map(|(scope, answer)| ScopeView {
            scope: node::scope(Some(scope)),
            exit_code: code(answer).code(),
            pause: answer.as_ref().ok().and_then(Option::as_ref).map(PauseView::from),
            error: answer.as_ref().err().cloned(),
        });
        session.console.document(&Document { results: results.collect(), exit_code: exit.code() })?;
        return Ok(exit);
    }
    let page = session.console.page(Stream::Out);
    for (scope, answer) in answers {
        let (tone, text) = match answer {
            Ok(Some(pause)) => (Tone::Good, format!("{done}: {}", node_text::paused_words(pause))),
            Ok(None) => (Tone::Good, format!("{done}: {}", node::scope(Some(scope)))),
            Err(told) => {
                let told = told.to_string().replace('\n', "; ");
                (Tone::Bad, format!("{} refused: {told}", node::scope(Some(scope))))
            }
        };
        session.console.write(Stream::Out, &page.text(tone, &text))?;
    }
    Ok(exit)
}

/// What the gateway refuses is of that scope; what breaks the way there ends the command.
pub fn told<T>(answer: Result<T, Fault>) -> Result<Result<T, GatewayError>, Fault> {
    match answer {
        Ok(answer) => Ok(Ok(answer)),
        Err(Fault::Gateway(told)) if !told.is_passing() => Ok(Err(*told)),
        Err(fault) => Err(fault),
    }
}

/// Pauses.
pub async fn run(args: &Args, session: &mut Session<'_>) -> Result<Exit, Fault> {
    let mut answers: PauseAnswers = Vec::new();
    for scope in args.scopes.resolve(session).await? {
        let request = PauseRequest {
            scope: Some(scope.clone()),
            reason: args.reason.clone(),
            lasts: Some(duration::to_wire(args.lasts)),
        };
        let mut client = session.client.clone();
        let answer = told(session.asked(client.pause(request)).await)?;
        answers.push((scope, answer.map(|answer| answer.into_inner().pause)));
    }
    conclude(session, &answers, "paused")
}
