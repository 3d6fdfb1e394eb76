//! How text looks where it goes: colours, the width of lines, and what may not reach a terminal.

use std::borrow::Cow;

/// What a piece of text means to whoever skims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Nothing in particular.
    #[default]
    Plain,
    /// As it should be.
    Good,
    /// Under way, or worth a look.
    Busy,
    /// Off and proven so.
    Dark,
    /// Wants somebody.
    Bad,
    /// Less important.
    Faint,
}

/// What text goes to.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// Whether there are colours.
    pub colours: bool,
    /// Columns of the terminal. `None`: a pipe or a file, whose lines may be of any length.
    pub width: Option<usize>,
}

/// Text beside a label is not squeezed into fewer columns than this: it goes below the label.
const LEAST_ROOM: usize = 24;

impl Page {
    /// A pipe, or a file.
    #[cfg(test)]
    pub const PLAIN: Page = Page { colours: false, width: None };

    /// The same without a margin.
    pub fn wide(self) -> Page {
        Page { width: None, ..self }
    }

    /// The text in its tone.
    pub fn tone(self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Plain => return text.to_owned(),
            Tone::Good => "32",
            Tone::Busy => "33",
            Tone::Dark => "36",
            Tone::Bad => "1;31",
            Tone::Faint => "2",
        };
        if self.colours { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Text beside a label of `margin` columns, with the lines that follow below its first word. `label` has that many
    /// columns already, whatever its colours. Ends with a line end.
    pub fn beside(self, label: &str, margin: usize, tone: Tone, text: &str) -> String {
        let text = clean(text);
        let room = self.width.map(|width| width.saturating_sub(margin));
        let longest = text.split(' ').map(|word| word.chars().count()).max().unwrap_or(0);
        let (indent, mut lines) = match (room, self.width) {
            (Some(room), Some(width))
                if margin > 4 && (longest > room || room < LEAST_ROOM && text.chars().count() > room) =>
            {
                let mut lines = vec![String::new()];
                lines.extend(wrap(&text, width.saturating_sub(4)));
                (4, lines)
            }
            (Some(room), _) => (margin, wrap(&text, room)),
            (None, _) => (margin, vec![text.into_owned()]),
        };
        let rest = lines.split_off(lines.len().min(1));
        let first = lines.pop().unwrap_or_default();
        let mut out = format!("{label}{}", if first.is_empty() { first } else { self.tone(tone, &first) });
        out.truncate(out.trim_end_matches(' ').len());
        out.push('\n');
        for line in rest {
            out += &format!("{:indent$}{}\n", "", self.tone(tone, &line));
        }
        out
    }

    /// Text beside the name of a node.
    pub fn of_node(self, node: &str, tone: Tone, text: &str) -> String {
        let node = clean(node);
        self.beside(&format!("{node}  "), node.chars().count() + 2, tone, text)
    }

    /// A line of a shell, from column `margin` on. One that is too wide goes on behind a backslash, so that it can be pasted all the same: at a
    /// space that stands in no quotes. A remark is not broken, since a shell would run the rest of it. Ends with a line end.
    pub fn command(self, margin: usize, line: &str) -> String {
        // The backslash and the space before it.
        let room =
            self.width.filter(|_| !line.starts_with('#')).map(|width| width.saturating_sub(margin + 2));
        let mut lines: Vec<String> = Vec::new();
        for word in unquoted(line) {
            let long = word.chars().count() + 1;
            match lines.last_mut() {
                Some(last) if room.is_none_or(|room| last.chars().count() + long <= room) => {
                    last.push(' ');
                    last.push_str(word);
                }
                Some(_) => lines.push(format!("    {word}")),
                None => lines.push(word.to_owned()),
            }
        }
        lines.iter().map(|line| format!("{:margin$}{line}", "")).collect::<Vec<_>>().join(" \\\n") + "\n"
    }

    /// Text from the first column on; lines that follow stand two columns in.
    pub fn text(self, tone: Tone, text: &str) -> String {
        let cleaned = clean(text);
        let lines = match self.width {
            Some(width) => wrap(&cleaned, width.saturating_sub(2)),
            None => vec![cleaned.into_owned()],
        };
        let lines = lines.iter().enumerate();
        lines
            .map(|(at, line)| format!("{:1$}{2}\n", "", if at == 0 { 0 } else { 2 }, self.tone(tone, line)))
            .collect()
    }
}

/// The words of a line of a shell, each with its quotes.
fn unquoted(line: &str) -> Vec<&str> {
    let mut quote = None;
    line.split(|c: char| {
        match quote {
            Some(open) if open == c => quote = None,
            None if matches!(c, '"' | '\'') => quote = Some(c),
            _ => {}
        }
        quote.is_none() && c == ' '
    })
    .collect()
}

/// The text in lines of at most `width` columns, broken between words alone: a longer word has a line of its own. A number stays with its
/// unit, and a command that fits on a line is not broken: whoever types it reads it whole.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut used = 0;
    let words = words(text);
    for (at, word) in words.iter().enumerate() {
        let long = word.chars().count();
        let whole = if *word == "picket" { command(words.get(at..).unwrap_or_default()) } else { long };
        let wanted = if whole <= width { whole } else { long };
        match lines.last_mut() {
            Some(line) if used + 1 + wanted <= width => {
                line.push(' ');
                line.push_str(word);
                used += 1 + long;
            }
            _ => {
                lines.push(word.clone());
                used = long;
            }
        }
    }
    lines
}

/// The words of a text, a number and its unit being one.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let is_unit =
            matches!(word.trim_end_matches(|c: char| !c.is_alphabetic()), "ms" | "s" | "min" | "h" | "d");
        match words.last_mut() {
            Some(number) if is_unit && number.ends_with(|c: char| c.is_ascii_digit()) => {
                number.push(' ');
                number.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

/// The columns of the command with which these words begin: it ends at a comma, a semicolon, or before a remark in brackets.
fn command(words: &[String]) -> usize {
    let mut long = 0;
    for word in words.iter().take_while(|word| !word.starts_with('(')) {
        long += word.chars().count() + 1;
        if word.ends_with([',', ';', ':', '?']) {
            break;
        }
    }
    long.saturating_sub(1)
}

/// Text from elsewhere on one line, without what could command a terminal: a BMC's words are not to be trusted.
pub fn clean(text: &str) -> Cow<'_, str> {
    let harmful = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if text.contains(harmful) {
        Cow::Owned(
            text.chars()
                .map(|c| {
                    if c == '\n' {
                        ' '
                    } else if harmful(c) {
                        '?'
                    } else {
                        c
                    }
                })
                .collect(),
        )
    } else {
        Cow::Borrowed(text)
    }
}

/// At most `width` characters of it, with a sign where something was cut: between two words where there is a place.
pub fn clip(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    let next = text.chars().nth(width.saturating_sub(1));
    if next.is_some_and(|next| next != ' ')
        && let Some(space) = short.rfind(' ')
    {
        short.truncate(space);
    }
    short.truncate(short.trim_end().len());
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_commands_a_terminal_passes() {
        assert_eq!(clean("off\x1b[2J\u{9b}1mx\ny\r\u{202e}"), "off?[2J?1mx y??");
        assert_eq!(clean("läuft, 0x60"), "läuft, 0x60");
    }

    #[test]
    fn clipping_counts_characters_and_breaks_no_word_but_the_first() {
        assert_eq!(clip("ääää", 4), "ääää");
        assert_eq!(clip("ääääa", 4), "äää…");
        assert_eq!(clip("waits for Off", 9), "waits…");
        assert_eq!(clip("waits for Off", 10), "waits for…");
    }

    #[test]
    fn a_command_that_is_broken_is_still_one_command() {
        let line = "kubectl create clusterrolebinding picket --clusterrole=picket";
        assert_eq!(Page::PLAIN.command(2, line), format!("  {line}\n"));
        let narrow = Page { colours: false, width: Some(40) };
        let broken = "  kubectl create clusterrolebinding \\\n      picket --clusterrole=picket\n";
        assert_eq!(narrow.command(2, line), broken);
        assert!(broken.lines().all(|line| line.len() <= 40), "{broken}");
        assert_eq!(Page::PLAIN.command(0, "  name: x"), "  name: x\n");
        let remark = "# The next one switches a-node-with-a-long-name off.";
        assert_eq!(narrow.command(2, remark), format!("  {remark}\n"));
        let quoted = "picket fence r1n01 --reason \"a first fence\" --yes";
        assert_eq!(
            narrow.command(0, quoted),
            "picket fence r1n01 --reason \\\n    \"a first fence\" --yes\n"
        );
    }

    #[test]
    fn lines_break_between_words_alone() {
        assert_eq!(wrap("a bb  ccc dddddddd e", 5), ["a bb", "ccc", "dddddddd", "e"]);
        assert_eq!(wrap("off in 20 s; on", 9), ["off in", "20 s; on"]);
        assert_eq!(
            wrap("mend it: picket retry n1 --reason ..., then look (role admin)", 33),
            ["mend it:", "picket retry n1 --reason ...,", "then look (role admin)"]
        );
        let page = Page { colours: false, width: Some(34) };
        assert_eq!(
            page.beside("  next ", 7, Tone::Plain, "cut its power by hand, then retry it"),
            "  next cut its power by hand, then\n       retry it\n"
        );
        let narrow = Page { colours: false, width: Some(24) };
        assert_eq!(
            narrow.beside("  device ", 9, Tone::Plain, "ready; ipmi at 192.0.2.7"),
            "  device\n    ready; ipmi at\n    192.0.2.7\n"
        );
        let id = page.beside("  identity  ", 12, Tone::Plain, "uuid b279452e-0000-4000-8000");
        assert_eq!(id, "  identity\n    uuid\n    b279452e-0000-4000-8000\n".replace("uuid\n    ", "uuid "));
    }
}
