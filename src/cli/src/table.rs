//! Tables for people: columns as wide as their widest cell, two spaces between, and no wider than the page.

use crate::style::{Page, Tone, clean, wrap};

/// The last column is wrapped to no fewer columns than this.
const LEAST: usize = 15;

/// The same as long as there is another column to leave out instead.
const GOOD: usize = 24;

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
    spare: &'static [&'static str],
}

impl Table {
    /// An empty one with these columns.
    pub fn new(head: &[&'static str]) -> Self {
        Self { head: head.to_vec(), rows: Vec::new(), spare: &[] }
    }

    /// Columns that a narrow page goes without, the least important first.
    pub fn spare(self, columns: &'static [&'static str]) -> Self {
        Self { spare: columns, ..self }
    }

    /// Adds a row: a cell for each column.
    pub fn row(&mut self, cells: Vec<Cell>) {
        debug_assert_eq!(cells.len(), self.head.len());
        self.rows.push(cells);
    }

    /// All of it, with a line end after each row. On a page that is too narrow the last column is wrapped, then spare columns are left out,
    /// then each row becomes a record of lines with labels.
    pub fn render(&self, page: Page) -> String {
        let head: Vec<Cell> = self.head.iter().map(|title| Cell::new(Tone::Faint, title)).collect();
        let mut shown: Vec<usize> = (0..head.len()).collect();
        let mut spare = self.spare.iter();
        loop {
            let widths: Vec<usize> = shown.iter().map(|column| self.width(&head, *column)).collect();
            let last = widths.last().copied().unwrap_or(0);
            let before: usize = widths.iter().map(|width| width + 2).sum::<usize>().saturating_sub(last + 2);
            let least = if spare.len() > 0 { GOOD } else { LEAST };
            if page.width.is_none_or(|page| before + last.min(least) <= page) {
                let room = page.width.map_or(last, |page| last.min(page.saturating_sub(before)));
                return self.grid(&head, &shown, &widths, room, page);
            }
            match spare.next() {
                Some(title) => shown.retain(|column| self.head.get(*column) != Some(title)),
                None => return self.records(page),
            }
        }
    }

    fn width(&self, head: &[Cell], column: usize) -> usize {
        let titles = head.get(column).into_iter();
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        titles.chain(cells).map(Cell::width).max().unwrap_or(0)
    }

    fn grid(&self, head: &[Cell], shown: &[usize], widths: &[usize], room: usize, page: Page) -> String {
        let mut out = String::new();
        for row in std::iter::once(head).chain(self.rows.iter().map(Vec::as_slice)) {
            let mut at = 0;
            for (index, (cell, width)) in
                shown.iter().filter_map(|column| row.get(*column)).zip(widths).enumerate()
            {
                if index + 1 < shown.len() {
                    out += &page.tone(cell.tone, &cell.text);
                    out += &" ".repeat(width - cell.width() + 2);
                    at += width + 2;
                    continue;
                }
                for (number, line) in wrap(&cell.text, room).iter().enumerate() {
                    if number > 0 {
                        out += &format!("\n{:at$}", "");
                    }
                    out += &page.tone(cell.tone, line);
                }
            }
            out.push('\n');
        }
        out
    }

    /// A row as lines: its first cell, then the others that say something, each with the title of its column.
    fn records(&self, page: Page) -> String {
        let margin = self.head.iter().skip(1).map(|title| title.len()).max().unwrap_or(0) + 4;
        let mut out = String::new();
        for row in &self.rows {
            let mut cells = row.iter().zip(&self.head);
            if let Some((cell, _)) = cells.next() {
                out += &format!("{}\n", page.tone(cell.tone, &cell.text));
            }
            for (cell, title) in cells.filter(|(cell, _)| cell.text != "-") {
                let label = page.tone(Tone::Faint, &format!("  {title:<0$}", margin - 2));
                out += &page.beside(&label, margin, cell.tone, &cell.text);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["NODE", "PHASE", "READ", "FENCE"]).spare(&["READ"]);
        table.row(vec!["r1n01".into(), Cell::new(Tone::Good, "normal"), "4.0 s ago".into(), "".into()]);
        table.row(vec![
            "ä".into(),
            "needs operator".into(),
            "-".into(),
            "one two three four five six".into(),
        ]);
        table
    }

    #[test]
    fn columns_line_up_and_the_last_is_not_padded() {
        assert_eq!(
            table().render(Page::PLAIN),
            "NODE   PHASE           READ       FENCE\n\
             r1n01  normal          4.0 s ago  -\n\
             ä      needs operator  -          one two three four five six\n"
        );
        let coloured = table().render(Page { colours: true, width: None });
        assert!(coloured.contains("\x1b[32mnormal\x1b[0m          4.0"));
    }

    #[test]
    fn a_narrow_page_wraps_the_last_column_then_leaves_columns_out_then_lists_each_row() {
        let on = |width| table().render(Page { colours: false, width: Some(width) });
        assert_eq!(
            on(60),
            "NODE   PHASE           READ       FENCE\n\
             r1n01  normal          4.0 s ago  -\n\
             ä      needs operator  -          one two three four five\n                                  six\n"
        );
        assert_eq!(
            on(45),
            "NODE   PHASE           FENCE\n\
             r1n01  normal          -\n\
             ä      needs operator  one two three four\n                       five six\n"
        );
        assert_eq!(
            on(36),
            "r1n01\n  PHASE  normal\n  READ   4.0 s ago\nä\n  PHASE  needs operator\n  FENCE  one two three four five six\n"
        );
    }
}
