//! That a gateway is simulated, in words: whoever reads any answer of it must not take a rehearsal for a real machine (S1).

use picket_proto::v1::Node;

use crate::style::{Page, Tone};

/// Beside evidence.
pub const EVIDENCE: &str = "simulated: no real machine is off";
/// Beside a receipt.
pub const RECEIPT: &str =
    "simulated: it is of a gateway that switches no real machine, and no machine is dark by it";
/// Beside how a node stands.
pub const NODE: &str = "this gateway switches no real machine, and what it says is true of no real one";

/// A line for all that a gateway says; empty where it is real.
pub fn line(is: bool, page: Page) -> String {
    if is { page.text(Tone::Bad, &format!("simulated: {NODE}")) } else { String::new() }
}

/// The same of its nodes.
pub fn line_of(nodes: &[Node], page: Page) -> String {
    line(nodes.iter().any(|node| node.simulated), page)
}
