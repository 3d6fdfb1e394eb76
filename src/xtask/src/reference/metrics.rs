//! The reference of the metrics, from the lines of their table.

use super::{cell, made_of};
use crate::failure::Failure;

/// The table.
pub const SOURCE: &str = "src/metrics/src/table.rs";

pub fn page(source: &str) -> Result<String, Failure> {
    let mut text = made_of(SOURCE);
    text += "# Metrics\n\n[Metrics and health](../metrics.md) says what the labels mean, and how they are told.\n\n\
        | metric | kind | labels | what it says |\n| --- | --- | --- | --- |\n";
    for line in source.lines().filter(|line| line.contains(" = \"picket_")) {
        text += &row(line.trim())
            .ok_or_else(|| Failure::new(format!("{SOURCE}: no metric is read from: {line}")))?;
    }
    Ok(text)
}

/// `ID = "name", Kind::Gauge, ["label"], "help";`
fn row(line: &str) -> Option<String> {
    let (_, rest) = line.split_once(" = \"")?;
    let (name, rest) = rest.split_once("\", Kind::")?;
    let (kind, rest) = rest.split_once(", [")?;
    let (labels, help) = rest.split_once("], \"")?;
    let help = help.strip_suffix("\";")?;
    let kind = kind.split('(').next()?.to_lowercase();
    let labels: Vec<String> =
        labels.split(", ").filter(|label| !label.is_empty()).map(|label| label.replace('"', "`")).collect();
    let labels = if labels.is_empty() { "–".to_owned() } else { labels.join(", ") };
    Some(format!("| `{name}` | {kind} | {labels} | {} |\n", cell(help)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_table_is_a_row() {
        let source = "    A = \"picket_a_total\", Kind::Counter, [\"x\", \"y\"], \"What | it says\";\n    \
            B = \"picket_b_seconds\", Kind::Histogram(CALL), [], \"More\";\n";
        let page = page(source).expect("rows");
        assert!(page.contains("| `picket_a_total` | counter | `x`, `y` | What \\| it says |\n"), "{page}");
        assert!(page.contains("| `picket_b_seconds` | histogram | – | More |\n"), "{page}");
        assert!(super::page("C = \"picket_c\", Kind::Gauge, [],").is_err());
    }
}
