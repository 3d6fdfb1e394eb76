//! `picket resume`: end a pause early.

use picket_proto::v1::ResumeRequest;

use super::pause::{self, PauseAnswers, Scopes};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::session::Session;

/// Its arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    scopes: Scopes,
    /// Why fences may start again
    #[arg(long, required = true, value_name = "TEXT")]
    reason: String,
}

/// Resumes. Of everything it lets the brake go as well.
pub async fn run(args: &Args, session: &mut Session<'_>) -> Result<Exit, Fault> {
    let mut answers: PauseAnswers = Vec::new();
    for scope in args.scopes.resolve(session).await? {
        let request = ResumeRequest { scope: Some(scope.clone()), reason: args.reason.clone() };
        let mut client = session.client.clone();
        let answer = pause::told(session.asked(client.resume(request)).await)?;
        answers.push((scope, answer.map(|_| None)));
    }
    pause::conclude(session, &answers, "resumed")
}
