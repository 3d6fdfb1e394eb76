//! Calls that are answered at once, node by node: how they are made and told.

use std::future::Future;

use picket_proto::v1::Node;
use tonic::{Response, Status};

use crate::console::Stream;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::gateway_error::GatewayError;
use crate::session::Session;
use crate::style::Tone;
use crate::view::node_text;
use crate::view::result::{ResultView, Results};

/// What the gateway answered for each node: the node as it is now, or what it refused.
pub type NodeAnswers = Vec<(String, Result<Node, GatewayError>)>;

/// One node; what the gateway refuses is of that node, what breaks the way there ends the command.
pub async fn one<T>(
    session: &Session<'_>,
    call: impl Future<Output = Result<Response<T>, Status>>,
    node: fn(T) -> Option<Node>,
) -> Result<Result<Node, GatewayError>, Fault> {
    match session.asked(call).await {
        Ok(answer) => node(answer.into_inner())
            .map(Ok)
            .ok_or(Fault::Nonsense("it did what was asked and says nothing of the node")),
        Err(Fault::Gateway(told)) if !told.is_passing() => Ok(Err(*told)),
        Err(fault) => Err(fault),
    }
}

/// Tells all of them; `done` says what was done, before where the node stands now.
pub fn tell(session: &mut Session<'_>, answers: &NodeAnswers, done: &str) -> Result<Exit, Fault> {
    let exit = Exit::worst(
        answers.iter().map(|(_, answer)| answer.as_ref().err().map_or(Exit::Done, GatewayError::exit)),
    );
    if !session.for_people() {
        let results = answers.iter().map(|(node, answer)| ResultView::of_call(node, answer)).collect();
        session.console.document(&Results::of_calls(results, exit))?;
        return Ok(exit);
    }
    let page = session.console.page(Stream::Out);
    for (node, answer) in answers {
        let (tone, text) = match answer {
            Ok(now) if node_text::phase(now) == done => (Tone::Good, done.to_owned()),
            Ok(now) => (Tone::Good, format!("{done}; the node is {}", node_text::phase(now))),
            Err(told) => (Tone::Bad, format!("refused: {}", told.to_string().replace('\n', "; "))),
        };
        session.console.write(Stream::Out, &page.of_node(node, tone, &text))?;
    }
    Ok(exit)
}
