//! Tables for people: columns as wide as their widest cell, two spaces between.

use crate::style::{Paint, Tone, clean};

/// One cell.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    /// Text in a tone; control characters are taken out.
    pub fn new(tone: Tone, text: &str) -> Self {
        let text = clean(text).into_owned();
        Self { text: if text.is_empty() { "-".to_owned() } else { text }, tone }
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Cell::new(Tone::Plain, text)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Cell::new(Tone::Plain, &text)
    }
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// An empty one with these columns.
    pub fn new(head: &[&'static str]) -> Self {
        Self { head: head.to_vec(), rows: Vec::new() }
    }

    /// Adds a row: a cell for each column.
    pub fn row(&mut self, cells: Vec<Cell>) {
        debug_assert_eq!(cells.len(), self.head.len());
        self.rows.push(cells);
    }

    /// All of it, with a line end after each row.
    pub fn render(&self, paint: Paint) -> String {
        let head: Vec<Cell> = self.head.iter().map(|title| Cell::new(Tone::Faint, title)).collect();
        let widths: Vec<usize> = (0..head.len())
            .map(|column| {
                std::iter::once(&head).chain(&self.rows).map(|row| row[column].width()).max().unwrap_or(0)
            })
            .collect();
        let mut out = String::new();
        for row in std::iter::once(&head).chain(&self.rows) {
            for (index, (cell, width)) in row.iter().zip(&widths).enumerate() {
                out += &paint.tone(cell.tone, &cell.text);
                if index + 1 < row.len() {
                    out += &" ".repeat(width - cell.width() + 2);
                }
            }
            out.push('\n');
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_the_last_is_not_padded() {
        let mut table = Table::new(&["NODE", "PHASE", "FENCE"]);
        table.row(vec!["r1n01".into(), Cell::new(Tone::Good, "normal"), "".into()]);
        table.row(vec!["ä".into(), "needs operator".into(), "x".into()]);
        let plain = table.render(Paint { colours: false });
        assert_eq!(
            plain,
            "NODE   PHASE           FENCE\nr1n01  normal          -\nä      needs operator  x\n"
        );
        assert!(table.render(Paint { colours: true }).contains("\x1b[32mnormal\x1b[0m          -"));
    }
}
