//! Colours, and what may not reach a terminal.

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

/// Paints text, or leaves it.
#[derive(Clone, Copy, Debug)]
pub struct Paint {
    /// Whether there are colours.
    pub colours: bool,
}

impl Paint {
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

/// At most `width` characters of it, with a sign where something was cut.
pub fn clip(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
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
    fn clipping_counts_characters() {
        assert_eq!(clip("ääää", 4), "ääää");
        assert_eq!(clip("ääääa", 4), "äää…");
    }
}
