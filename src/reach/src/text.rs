//! What is kept and shown of what others say.

/// How much of an answer is kept, in bytes.
pub const KEPT: usize = 64 * 1024;
/// How much of it is shown to people, in characters.
const SHOWN: usize = 200;

/// The beginning of an answer, fit for one line of a log: no control characters, at most 200 characters.
pub fn excerpt(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line = line.trim();
    match line.char_indices().nth(SHOWN) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_one_short_line() {
        assert_eq!(excerpt(b" a\x1b[31m\r\nb \xff"), "a [31m  b \u{fffd}");
        let long = "ä".repeat(300);
        assert_eq!(excerpt(long.as_bytes()).chars().count(), 201);
    }
}
