//! How an account comes by a token: RFC 7523 for a service account's key, RFC 6749 for a user's, RFC 8693
//! for an external account, and the metadata server's own way.
//!
//! # Invariants
//!
//! - A token without a word on how long it lives is not used: its life bounds what carries it (S8). Shown
//!   by `a_token_without_a_word_on_its_life_is_not_used`.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use picket_cloud::{CLOCKS, Token, Unanswered, redact};
use picket_core::time::BootTime;
use picket_driver::{Call, DriverError, Effect, ErrorKind, Secret, source};
use picket_reach::excerpt;
use picket_reach::web::{self, Answer};
use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::{Client, RequestBuilder, Url};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde::Deserialize;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::{Rfc2822, Rfc3339};

use super::USUAL;
use super::credentials::{Credentials, External, OwnCredentials, Subject, TokenLocation};

/// What the token is for.
const COMPUTE: &str = "https://www.googleapis.com/auth/compute";
/// What an external account's token is for that is turned into a service account's.
const ALL: &str = "https://www.googleapis.com/auth/cloud-platform";
/// How long what we sign is taken.
const SIGNED: u64 = 3_600;
/// As much of an answer as is read.
const LONGEST: usize = 256 << 10;
/// Where the metadata server has tokens.
const METADATA: &str = "/computeMetadata/v1/instance/service-accounts/default/token";
/// Where keys are turned into tokens.
const PLACE: &str = "the token endpoint";
const FLAVOR: &str = "metadata-flavor";

#[derive(Deserialize)]
struct Granted {
    access_token: String,
    #[serde(default)]
    expires_in: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Impersonated {
    access_token: String,
    expire_time: String,
}

/// What is said of a refusal.
#[derive(Default, Deserialize)]
struct Refused {
    #[serde(default)]
    error: Value,
    #[serde(default)]
    error_description: Option<String>,
}

fn wrong(kind: ErrorKind, detail: impl Into<String>) -> DriverError {
    DriverError::new(kind, Effect::DidNotHappen, detail)
}

/// One log-in.
pub(super) struct Login<'a> {
    pub(super) web: &'a Client,
    /// The metadata server.
    pub(super) metadata: &'a str,
    pub(super) call: &'a Call,
}

/// When a request was sent and answered, and what came.
struct TokenAnswer {
    asked_at: BootTime,
    answered_at: BootTime,
    answer: Answer,
}

impl TokenAnswer {
    /// What the clock of who answered said, in seconds.
    fn date(&self) -> Option<u64> {
        let date = OffsetDateTime::parse(self.answer.header("date")?, &Rfc2822).ok()?;
        u64::try_from(date.unix_timestamp()).ok()
    }
}

impl Login<'_> {
    /// A new token.
    pub(super) async fn by(&self, who: &Credentials) -> Result<Token, DriverError> {
        match who {
            Credentials::Impersonated { by, place, delegates } => {
                let by = self.granted(by, ALL).await?;
                let by: Granted = body(&by.answer, PLACE)?;
                self.in_place_of(place, by, delegates, USUAL).await
            }
            Credentials::Own(own) => token(self.granted(own, COMPUTE).await?),
            Credentials::External(external) => self.external(external).await,
            Credentials::Metadata => {
                let place = format!("{}{METADATA}", self.metadata);
                let request = self.web.get(place).header(FLAVOR, "Google");
                let heard = self.send("the metadata server", request, &[]).await?;
                if heard.answer.header(FLAVOR) != Some("Google") {
                    return Err(wrong(
                        ErrorKind::Protocol,
                        "whoever answered is no metadata server: its Metadata-Flavor is not Google",
                    ));
                }
                token(heard)
            }
        }
    }

    /// What was granted to whoever has a secret.
    async fn granted(&self, own: &OwnCredentials, scope: &str) -> Result<TokenAnswer, DriverError> {
        match own {
            OwnCredentials::ServiceAccount { email, key, key_id, tokens } => {
                let history = self.call.clock().wall().millis() / 1_000;
                let asked = async |now| {
                    let assertion = signed(email, key, key_id.as_deref(), (tokens, scope), now)?;
                    let grant = [
                        ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
                        ("assertion", &assertion),
                    ];
                    self.exchange(PLACE, self.form(tokens, &grant), &[&assertion]).await
                };
                let mut heard = asked(history).await?;
                // It is taken by Google's clock alone, which may not be ours: that is told with the refusal.
                if let Some(theirs) =
                    heard.date().filter(|theirs| theirs.abs_diff(history) > CLOCKS.as_secs())
                    && heard.answer.code.as_u16() == 400
                {
                    tracing::warn!(
                        history,
                        theirs,
                        "this machine's clock is not Google's: a token is asked for by theirs"
                    );
                    heard = asked(theirs).await?;
                }
                granted(PLACE, heard)
            }
            OwnCredentials::User { client, secret, refresh, tokens } => {
                let text = |secret: &Secret| String::from_utf8_lossy(secret.expose()).into_owned();
                let (secret, refresh) = (text(secret), text(refresh));
                let grant = [
                    ("grant_type", "refresh_token"),
                    ("client_id", client.as_str()),
                    ("client_secret", &secret),
                    ("refresh_token", &refresh),
                ];
                self.send(PLACE, self.form(tokens, &grant), &[&secret, &refresh]).await
            }
        }
    }

    /// The token of a service account, made for whoever that token is of.
    async fn in_place_of(
        &self,
        place: &Url,
        by: Granted,
        delegates: &[String],
        life: u64,
    ) -> Result<Token, DriverError> {
        let bearer = bearer(&Secret::new(by.access_token.clone()))?;
        let mut wanted = json!({ "scope": [COMPUTE], "lifetime": format!("{life}s") });
        if !delegates.is_empty() {
            wanted["delegates"] = delegates.into();
        }
        let request = self.web.post(place.clone()).header(AUTHORIZATION, bearer).json(&wanted);
        let secrets = [by.access_token.as_str()];
        impersonated(self.send("the service account's impersonation", request, &secrets).await?)
    }

    async fn external(&self, external: &External) -> Result<Token, DriverError> {
        let subject = self.subject(&external.subject).await?;
        let subject = String::from_utf8_lossy(subject.expose()).into_owned();
        let scope = if external.impersonates.is_some() { ALL } else { COMPUTE };
        let grant = [
            ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
            ("audience", external.audience.as_str()),
            ("scope", scope),
            ("requested_token_type", "urn:ietf:params:oauth:token-type:access_token"),
            ("subject_token_type", external.token_kind.as_str()),
            ("subject_token", &subject),
        ];
        let heard = self.send("the token exchange", self.form(&external.tokens, &grant), &[&subject]).await?;
        let Some(place) = &external.impersonates else { return token(heard) };
        let exchanged: Granted = body(&heard.answer, "the token exchange")?;
        self.in_place_of(place, exchanged, &[], external.life).await
    }

    /// What the other provider vouches with.
    async fn subject(&self, subject: &Subject) -> Result<Secret, DriverError> {
        let text = match &subject.place {
            TokenLocation::File(path) => {
                let read = std::fs::read(path).map_err(|error| format!("cannot be read: {error}"));
                read.and_then(|text| source::unchanged(path).map(|()| text)).map_err(|why| {
                    let detail = format!("the external account's token, {}, {why}", path.display());
                    wrong(ErrorKind::Settings, detail)
                })?
            }
            TokenLocation::Web { url, headers } => {
                let request = headers.iter().try_fold(self.web.get(url.clone()), |request, (name, value)| {
                    Some(request.header(name, redact::header(value.expose())?))
                });
                let request = request.ok_or_else(|| {
                    wrong(ErrorKind::Settings, "a header of credential_source cannot be sent")
                })?;
                let secrets = headers.iter().map(|(_, value)| String::from_utf8_lossy(value.expose()));
                let secrets: Vec<_> = secrets.collect();
                let secrets: Vec<&str> = secrets.iter().map(AsRef::as_ref).collect();
                self.send("the external account's provider", request, &secrets).await?.answer.body
            }
        };
        let found = match &subject.field {
            None => String::from_utf8(text).ok().map(|text| text.trim().to_owned()),
            Some(field) => serde_json::from_slice::<Value>(&text)
                .ok()
                .and_then(|table| table.get(field)?.as_str().map(str::to_owned)),
        };
        let found = found.filter(|text| !text.is_empty());
        found.map(Secret::new).ok_or_else(|| {
            wrong(ErrorKind::Settings, "the external account's own token is not where it should be")
        })
    }

    fn form(&self, place: &Url, pairs: &[(&str, &str)]) -> RequestBuilder {
        // Only its query is used: it is encoded as a form is.
        let mut form = place.clone();
        form.set_query(None);
        form.query_pairs_mut().extend_pairs(pairs);
        let body = form.query().unwrap_or_default().to_owned();
        self.web.post(place.clone()).header("content-type", "application/x-www-form-urlencoded").body(body)
    }

    async fn send(
        &self,
        whom: &str,
        request: RequestBuilder,
        secrets: &[&str],
    ) -> Result<TokenAnswer, DriverError> {
        granted(whom, self.exchange(whom, request, secrets).await?)
    }

    /// Whatever is answered; a refusal without these, which were sent.
    async fn exchange(
        &self,
        whom: &str,
        request: RequestBuilder,
        secrets: &[&str],
    ) -> Result<TokenAnswer, DriverError> {
        let place = request.try_clone().and_then(|request| request.build().ok());
        let place = place.map(|request| request.url().origin().ascii_serialization()).unwrap_or_default();
        let asked_at = self.call.now();
        let answer = web::exchange_up_to(LONGEST, request, self.call.deadline()).await;
        let answered_at = self.call.now();
        let answer = answer.map_err(|failed| {
            let Unanswered { kind, why, .. } = Unanswered::of(failed, &place);
            wrong(kind, format!("no token: {whom} at {place}: {why}"))
        })?;
        let answer = match answer.code.as_u16() {
            200 => answer,
            _ => redact::answer(answer, &secrets.iter().map(|secret| secret.as_bytes()).collect::<Vec<_>>()),
        };
        Ok(TokenAnswer { asked_at, answered_at, answer })
    }
}

/// What was granted, or why nothing was.
fn granted(whom: &str, heard: TokenAnswer) -> Result<TokenAnswer, DriverError> {
    let code = heard.answer.code.as_u16();
    if code == 200 && !heard.answer.cut {
        return Ok(heard);
    }
    let kind = match code {
        // RFC 6749 has 400 for what is wrong with who asks.
        400 | 401 | 404 => ErrorKind::Authentication,
        403 => ErrorKind::Forbidden,
        429 => ErrorKind::Throttled,
        _ => ErrorKind::Protocol,
    };
    Err(wrong(kind, format!("no token: {whom} answered {code}: {}", said(&heard.answer))))
}

/// In words.
fn said(answer: &Answer) -> String {
    let told: Refused = serde_json::from_slice(&answer.body).unwrap_or_default();
    let code =
        told.error.as_str().or_else(|| told.error.get("status")?.as_str()).unwrap_or("it does not say why");
    let message = told.error_description.or_else(|| Some(told.error.get("message")?.as_str()?.to_owned()));
    let message = message.map(|message| format!(": {message}")).unwrap_or_default();
    excerpt(format!("{code}{message}").as_bytes())
}

fn body<T: serde::de::DeserializeOwned>(answer: &Answer, whom: &str) -> Result<T, DriverError> {
    // What stands there may be a token: the words of the error are not repeated.
    serde_json::from_slice(&answer.body)
        .map_err(|_| wrong(ErrorKind::Protocol, format!("no token: the answer of {whom} makes no sense")))
}

fn token(heard: TokenAnswer) -> Result<Token, DriverError> {
    let Granted { access_token, expires_in } = body(&heard.answer, "who gives tokens")?;
    let life = expires_in.filter(|life| *life > 0).map(Duration::from_secs);
    made(access_token, life, &heard)
}

fn impersonated(heard: TokenAnswer) -> Result<Token, DriverError> {
    let Impersonated { access_token, expire_time } =
        body(&heard.answer, "the service account's impersonation")?;
    let date = heard.answer.header("date").and_then(|text| OffsetDateTime::parse(text, &Rfc2822).ok());
    let end = OffsetDateTime::parse(&expire_time, &Rfc3339).ok();
    let life = end.zip(date).and_then(|(end, date)| Duration::try_from(end - date).ok());
    made(access_token, life.filter(|life| !life.is_zero()), &heard)
}

fn made(token: String, life: Option<Duration>, heard: &TokenAnswer) -> Result<Token, DriverError> {
    let life = life.ok_or_else(|| {
        wrong(
            ErrorKind::Protocol,
            "the token comes without a word on how long it lives, which would bound what carries it",
        )
    })?;
    let (asked_at, answered_at) = (heard.asked_at, heard.answered_at);
    Ok(Token { secret: Secret::new(token), said: (), life, asked_at, answered_at })
}

/// A token as a request bears it.
pub(super) fn bearer(secret: &Secret) -> Result<HeaderValue, DriverError> {
    redact::header(&[b"Bearer ", secret.expose()].concat())
        .ok_or_else(|| wrong(ErrorKind::Protocol, "the token cannot be sent: it is no header's value"))
}

/// What a service account says of itself, signed with its key.
fn signed(
    email: &str,
    key: &Secret,
    key_id: Option<&str>,
    (tokens, scope): (&Url, &str),
    now: u64,
) -> Result<String, DriverError> {
    let pair = key_pair(key).ok_or_else(|| {
        wrong(ErrorKind::Settings, "the service account's private_key is no RSA key in PKCS#8 and PEM form")
    })?;
    let mut head = json!({ "alg": "RS256", "typ": "JWT" });
    if let Some(key_id) = key_id {
        head["kid"] = key_id.into();
    }
    let claims =
        json!({ "iss": email, "scope": scope, "aud": tokens.as_str(), "iat": now, "exp": now + SIGNED });
    let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!("{}.{}", part(head), part(claims));
    let mut signature = vec![0; pair.public().modulus_len()];
    pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature)
        .map_err(|_| wrong(ErrorKind::Settings, "the service account's private_key does not sign"))?;
    Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

fn key_pair(key: &Secret) -> Option<RsaKeyPair> {
    let text = std::str::from_utf8(key.expose()).ok()?;
    let inner = text.split_once("-----BEGIN PRIVATE KEY-----")?.1.split_once("-----END PRIVATE KEY-----")?.0;
    let inner: String = inner.chars().filter(|c| !c.is_whitespace()).collect();
    RsaKeyPair::from_pkcs8(&STANDARD.decode(inner).ok()?).ok()
}
