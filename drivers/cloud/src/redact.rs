//! What is secret is struck out of answers before anything of them is shown: a far side may repeat what was
//! asked (S18).
//!
//! # Invariants
//!
//! - A secret is struck out before a text is shortened: of one that is cut in two the first half would stay.

use picket_reach::web::Answer;
use reqwest::header::HeaderValue;

/// What stands there instead.
const REDACTED: &str = "[struck out]";

/// That answer without these, in whichever form they stand there.
pub fn answer(mut answer: Answer, secrets: &[&[u8]]) -> Answer {
    let read = String::from_utf8_lossy(&answer.body);
    let redacted = text(&read, secrets);
    if redacted != read {
        answer.body = redacted.into_bytes();
    }
    answer
}

/// That text without these: as they are, as JSON has them and as a form has them.
pub fn text(text: &str, secrets: &[&[u8]]) -> String {
    let mut text = text.to_owned();
    for secret in secrets {
        let plain = String::from_utf8_lossy(secret).trim().to_owned();
        let json = serde_json::to_string(&plain).unwrap_or_default();
        let json = json.trim_matches('"').to_owned();
        for form in [json.replace('/', "\\/"), json, as_form(&plain), plain] {
            if !form.is_empty() && text.contains(&form) {
                text = text.replace(&form, REDACTED);
            }
        }
    }
    text
}

/// As a form has it (application/x-www-form-urlencoded).
fn as_form(text: &str) -> String {
    let mut form = String::new();
    for byte in text.bytes() {
        match byte {
            b' ' => form.push('+'),
            b'*' | b'-' | b'.' | b'_' => form.push(byte.into()),
            _ if byte.is_ascii_alphanumeric() => form.push(byte.into()),
            _ => form.push_str(&format!("%{byte:02X}")),
        }
    }
    form
}

/// A header's value that no debug print shows; `None`: no header can have it.
pub fn header(value: &[u8]) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_bytes(value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use reqwest::StatusCode;
    use reqwest::header::HeaderMap;

    use super::*;

    #[test]
    fn a_secret_is_struck_out_however_it_is_written() {
        let secret = "ya29.a/b+c=d\"e";
        for (body, wanted) in [
            (
                format!("Authorization: Bearer {secret}, and so on"),
                "Authorization: Bearer [struck out], and so on",
            ),
            ("{\"error\": \"ya29.a\\/b+c=d\\\"e\"}".to_owned(), "{\"error\": \"[struck out]\"}"),
            ("{\"error\": \"ya29.a/b+c=d\\\"e\"}".to_owned(), "{\"error\": \"[struck out]\"}"),
            ("refresh_token=ya29.a%2Fb%2Bc%3Dd%22e&x=1".to_owned(), "refresh_token=[struck out]&x=1"),
            ("<html>No.</html>".to_owned(), "<html>No.</html>"),
        ] {
            assert_eq!(text(&body, &[secret.as_bytes(), b""]), wanted);
            let (code, headers) = (StatusCode::FORBIDDEN, HeaderMap::new());
            let told = Answer { code, headers, body: body.into_bytes(), cut: false };
            let told = answer(told, &[secret.as_bytes()]);
            assert_eq!(String::from_utf8_lossy(&told.body), wanted);
        }
    }

    #[test]
    fn a_header_s_secret_is_not_in_a_debug_print() {
        let value = header(b"hunter2").expect("a value");
        assert!(value == "hunter2" && !format!("{value:?}").contains("hunter2"));
        assert_eq!(header(b"a\nb"), None);
    }
}
