//! What is secret is struck out of answers before anything of them is shown: whoever stands in between may repeat what was asked (S18).

use picket_reach::web::Answer;

/// What stands there instead.
const STRUCK: &str = "[struck out]";

/// That answer without these, as they are and as a form has them.
pub(super) fn without(mut answer: Answer, secrets: &[&[u8]]) -> Answer {
    let mut text = String::from_utf8_lossy(&answer.body).into_owned();
    let mut changed = false;
    for secret in secrets {
        let plain = String::from_utf8_lossy(secret).trim().to_owned();
        // As JSON and as a form have it.
        let json = serde_json::to_string(&plain).unwrap_or_default();
        let json = json.trim_matches('"').to_owned();
        for form in [json.replace('/', "\\/"), json, as_form(&plain), plain] {
            if !form.is_empty() && text.contains(&form) {
                (text, changed) = (text.replace(&form, STRUCK), true);
            }
        }
    }
    if changed {
        answer.body = text.into_bytes();
    }
    answer
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
            let code = StatusCode::from_u16(403).expect("a status");
            let answer = Answer { code, headers: HeaderMap::new(), body: body.into_bytes(), cut: false };
            let told = without(answer, &[secret.as_bytes(), b""]);
            assert_eq!(String::from_utf8_lossy(&told.body), wanted);
        }
    }
}
