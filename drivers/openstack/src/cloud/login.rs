//! Asking Keystone for a token.

use picket_driver::{Call, DriverError, Effect, Effort, ErrorKind, Secret};
use picket_reach::web;
use reqwest::StatusCode;

use super::asking::unanswered;
use super::keystone::Token;
use super::words::{self, said};
use super::{Cloud, LONGEST};

const SUBJECT_TOKEN: &str = "x-subject-token";

impl Cloud {
    /// By the login of the settings.
    pub(super) async fn log_in(&self, call: &Call) -> Result<Token, DriverError> {
        let place = format!("{}/auth/tokens", self.settings.identity);
        let wrong = |kind, detail: String| {
            // An answer may repeat what was asked.
            let detail = self.settings.login.without_secret(&detail);
            DriverError::new(kind, Effect::DidNotHappen, format!("Keystone, POST {place}: {detail}"))
        };
        let request = self.logins.post(&place).json(&self.settings.login.body());
        let asked_at = call.now();
        let answer = web::exchange_up_to(LONGEST, request, call.deadline()).await;
        let answer = answer.map_err(|failed| unanswered(failed).into_error(&Effort::reading(), &place))?;
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
                Token::read(secret, &answer.body, asked_at, call.now())
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
