//! A question before harm.

use std::io::{self, IsTerminal};

use crate::console::{Console, Stream};
use crate::fault::Fault;
use crate::style::{Page, Tone};

/// Columns for the answer.
const ANSWER: usize = 10;

/// Asks whether to go on, on the terminal. `yes`: the answer was given on the command line.
///
/// Where there is no terminal nobody can answer, and nothing is sent.
pub async fn ask(console: &mut Console, yes: bool, question: &str) -> Result<(), Fault> {
    if yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() || !console.is_terminal(Stream::Err) {
        return Err(Fault::Usage(format!(
            "{question} Nobody can be asked here, since this is no terminal: say --yes to mean it. Nothing was sent."
        )));
    }
    let page = console.page(Stream::Err);
    // The answer stands behind it, on the same line.
    let page = Page { width: page.width.map(|width| width.saturating_sub(ANSWER)), ..page };
    let asked = page.text(Tone::Plain, &format!("{question} [y/N]"));
    console.write(Stream::Err, &format!("{} ", asked.trim_end()))?;
    let line = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        io::stdin().read_line(&mut line).map(|_| line)
    })
    .await
    .map_err(io::Error::other)??;
    if matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
        Ok(())
    } else {
        Err(Fault::Usage("not confirmed. Nothing was sent.".to_owned()))
    }
}

/// The names for a question: all of a few, else how many and the first and last.
pub fn names(nodes: &[String]) -> String {
    match nodes {
        [one] => one.clone(),
        few if few.len() <= 12 => format!("{} nodes ({})", few.len(), few.join(", ")),
        [first, .., last] => format!("{} nodes ({first} ... {last})", nodes.len()),
        [] => "no node".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_names_are_counted_rather_than_listed() {
        let nodes: Vec<String> = (1..=40).map(|n| format!("n{n:02}")).collect();
        assert_eq!(names(&nodes[..1]), "n01");
        assert_eq!(names(&nodes[..3]), "3 nodes (n01, n02, n03)");
        assert_eq!(names(&nodes), "40 nodes (n01 ... n40)");
    }
}
