//! The kind `command`: a program of the operator's says whether a node recovered.
//!
//! It is told on its standard input, in one line of JSON, which node is meant, and says it by its exit code: 0, the node
//! recovered; 1, it did not; anything else is no answer.

use std::collections::BTreeMap;

use picket_answers::liveness::Look;
use picket_core::ids::NodeId;
use picket_reach::excerpt;
use picket_reach::process;
use picket_reach::program::Program;
use serde_json::json;
use tokio::time::Instant;

/// A program, for one node.
#[derive(Debug)]
pub(crate) struct Command {
    program: Program,
    input: Vec<u8>,
}

impl Command {
    pub(crate) fn of(program: &Program, node: &NodeId, labels: &BTreeMap<String, String>) -> Self {
        let mut input =
            json!({ "ask": "liveness", "node": node.as_str(), "labels": labels }).to_string().into_bytes();
        input.push(b'\n');
        Self { program: program.with_args(|arg| arg.replace("{node}", node.as_str())), input }
    }

    pub(crate) async fn ask(&self, end: Instant) -> Look {
        let shown = self.program.shown();
        let ran = match process::run(self.program.command(), &self.input, end, || Ok(())).await {
            Ok(ran) => ran,
            Err(error) => return Look::Unanswered(format!("{shown} {error}")),
        };
        let words = match (excerpt(&ran.stdout.bytes), excerpt(&ran.stderr.bytes)) {
            (out, _) if !out.is_empty() => format!(": {out}"),
            (_, err) if !err.is_empty() => format!(": {err}"),
            _ => String::new(),
        };
        match ran.status.map(|status| (status, status.code())) {
            None => Look::Unanswered(format!("{shown} did not end in time and was killed{words}")),
            Some((_, Some(0))) => Look::Recovered(format!("{shown} says that it recovered{words}")),
            Some((_, Some(1))) => Look::NotRecovered(format!("{shown} says that it did not{words}")),
            Some((status, _)) => {
                Look::Unanswered(format!("{shown} ended with {status}, which is no answer{words}"))
            }
        }
    }
}
