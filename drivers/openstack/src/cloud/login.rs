//! Asking Keystone for a token.

use picket_cloud::redact;
use picket_driver::{Call, DriverError, Effect, Effort, ErrorKind, Secret};
use picket_reach::web;
use reqwest::StatusCode;

use super::keystone::{self, Token};
use super::request::unanswered;
use super::words::{self, said};
use super::{Cloud, LONGEST};

const SUBJECT_TOKEN: &str = "x-subject-token";

impl Cloud {
    /// By the login of the settings.
    pub(super) async fn log_in(&self, call: &Call) -> Result<Token, DriverError> {
        let place = format!("{}/auth/tokens", self.settings.identity);
        let secrets = [self.settings.login.secret().expose()];
        let wrong = |kind, detail: String| {
            // An answer may repeat what was asked.
            let detail = redact::text(&detail, &secrets);
            DriverError::new(kind, Effect::DidNotHappen, format!("Keystone, POST {place}: {detail}"))
        };
        let request = self.clients.logins.post(&place).json(&self.settings.login.body());
        let asked_at = call.now();
        let answer = web::exchange_up_to(LONGEST, request, call.deadline()).await;
        let answer = answer.map_err(|failed| unanswered(failed, &Effort::reading(), &place))?;
        let answer = match answer.code {
            StatusCode::CREATED => answer,
            _ => redact::answer(answer, &secrets),
        };
        match answer.code {
            StatusCode::CREATED => {
                let secret = answer.header(SUBJECT_TOKEN).map(Secret::new);
                let secret = secret.ok_or_else(|| {
                    wrong(ErrorKind::Protocol, "no X-Subject-Token in the answer".to_owned())
                })?;
                if answer.cut {
                    return Err(wrong(
                        ErrorKind::Protocol,
                        format!("the answer is longer than {LONGEST} bytes"),
                    ));
                }
                keystone::token(secret, &answer.body, asked_at, call.now())
                    .map_err(|why| wrong(ErrorKind::Protocol, why))
            }
            StatusCode::NOT_FOUND if !words::is_nobody(&answer) => {
                Err(wrong(ErrorKind::Refused, format!("auth_url names no Keystone: {}", said(&answer))))
            }
            // An application credential that is not there is not found, and counts against nobody; nor is it there in a while.
            StatusCode::UNAUTHORIZED | StatusCode::NOT_FOUND => Err(wrong(
                ErrorKind::Authentication,
                format!("who logs in, or the password, is wrong: {}", said(&answer)),
            )),
            StatusCode::FORBIDDEN => Err(wrong(ErrorKind::Forbidden, said(&answer))),
            code => Err(wrong(words::kind_of(code), said(&answer))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use picket_cloud::fakes;
    use reqwest::Url;
    use serde_json::json;

    use super::super::CloudSettings;
    use super::super::keystone::{IdOrName, Login, Scope};
    use super::*;
    use crate::fake_nova;

    /// JSON and forms have it otherwise.
    const SECRET: &str = "hunter2 \"really\"/";

    /// A Keystone that answers each login so, and a cloud of it.
    async fn cloud(login: Login, status: &str, body: &str) -> Cloud {
        let head = format!("HTTP/1.1 {status}\r\nX-Subject-Token: t\r\nContent-Length: {}", body.len());
        let answer = format!("{head}\r\n\r\n{body}");
        let identity = format!("{}/v3", fakes::serve(move |_, _| Some(answer.clone())).await);
        let settings = CloudSettings {
            identity: Url::parse(&identity).expect("a URL"),
            login,
            region: None,
            interfaces: vec!["public".to_owned()],
            ca_file: None,
            endpoints: BTreeMap::new(),
        };
        Cloud::new(settings).expect("no file is needed")
    }

    #[tokio::test]
    async fn a_secret_that_keystone_repeats_is_not_shown() {
        let user = || IdOrName::Id("u1".to_owned());
        let logins = [
            Login::Password { user: user(), password: Secret::new(SECRET), scope: Scope::System },
            Login::ApplicationCredential { credential: user(), secret: Secret::new(SECRET) },
        ];
        let says = |message: &str| json!({ "error": { "message": message, "title": "Oh" } }).to_string();
        let no_time = json!({ "token": { "issued_at": "", "expires_at": SECRET, "user": { "id": "u1" } } });
        for login in logins {
            for (status, body) in [
                ("400 Bad Request", says(&format!("'{SECRET}' is too short"))),
                ("401 Unauthorized", says(&format!("{SECRET} is not the password"))),
                ("403 Forbidden", says(&format!("{SECRET} may not"))),
                // Of what is shown the end is in the middle of it.
                ("400 Bad Request", says(&format!("{}{SECRET}", ".".repeat(288)))),
                ("404 Not Found", says(&format!("Could not find credential: {SECRET}"))),
                ("404 Not Found", format!("<html>You sent: {}</html>", login.body())),
                ("500 Oh", format!("{SECRET} makes no sense")),
                ("503 Busy", says(&format!("{SECRET}, later"))),
                ("201 Created", no_time.to_string()),
            ] {
                let cloud = cloud(login.clone(), status, &body).await;
                let call = fake_nova::reading();
                for _ in ["asked", "perhaps remembered"] {
                    let error = cloud.token(&call).await.expect_err("no token");
                    let text = format!("{error} {error:?} {cloud:?}");
                    let is_shown = ["hun", "ter2", "really"].iter().any(|part| text.contains(part));
                    assert!(text.contains("[struck ") && !is_shown, "{status}: {text}");
                }
            }
        }
    }
}
