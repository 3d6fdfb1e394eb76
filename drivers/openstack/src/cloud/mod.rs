//! A cloud as one user sees it: its token, its services, questions and commands. All devices of one user in
//! one region share it.
//!
//! # Invariants
//!
//! - A question may be asked again with a new token. A command goes once, with a token that is there and
//!   that no service takes for longer than the ledger says (S8).
//! - Nothing follows a redirect, and a token goes nowhere but to its own services.
//! - A wrong password is not tried again and again. Shown by
//!   `credentials_that_were_refused_are_not_tried_again_at_once`.

mod catalog;
mod clouds_yaml;
mod keystone;
mod login;
mod request;
mod services;
mod words;

use std::sync::Arc;
use std::time::Duration;

use picket_cloud::{CLOCKS, Clients, Tokens, Unclear, carry};
use picket_core::time::BootTime;
use picket_driver::{Call, DriverError, Effect, Effort, ErrorKind};
use picket_reach::web::NoAnswer;
use reqwest::{StatusCode, Url};
use serde::de::DeserializeOwned;
use serde_json::Value;

pub(crate) use self::clouds_yaml::{CloudSettings, read};
pub(crate) use self::keystone::Token;
use self::keystone::TokenDetails;
pub(crate) use self::request::{AcceptedCommands, Command, CommandAnswer};
use self::request::{DetachedCommand, ask, bearing, request_id, unanswered, versioned, without};
pub(crate) use self::services::Service;
pub(crate) use self::words::{said, tame};

/// As much of an answer as is read.
const LONGEST: usize = 4 << 20;
/// Connections that are kept for questions, to one place.
const KEPT: usize = 64;
/// After Keystone refused who we say we are it is not asked again for so long: accounts are locked after a few tries.
const REFUSED: Duration = Duration::from_secs(30);
/// How long tokens live before one was seen: what Keystone comes with (`[token] expiration`), and what clocks may differ by.
pub(crate) const USUAL_LIFE: Duration = Duration::from_secs(3_600 + CLOCKS.as_secs());

/// What a question came to.
#[derive(Debug)]
pub(crate) enum QueryResult<T> {
    It(T),
    /// The service says 404. In its words.
    NotThere(String),
}

/// The cloud.
pub(crate) struct Cloud {
    settings: CloudSettings,
    clients: Clients,
    tokens: Tokens<TokenDetails>,
    /// The compute API's microversion that both know.
    version: tokio::sync::OnceCell<String>,
}

impl std::fmt::Debug for Cloud {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cloud").field("identity", &self.settings.identity.as_str()).finish_non_exhaustive()
    }
}

impl Cloud {
    /// As those settings say.
    pub(crate) fn new(settings: CloudSettings) -> Result<Self, String> {
        let services = settings.endpoints.values();
        let https = std::iter::once(&settings.identity).chain(services).any(|url| url.scheme() == "https");
        Ok(Self {
            clients: Clients::new(KEPT, https, settings.ca_file.as_deref())?,
            settings,
            tokens: Tokens::default(),
            version: tokio::sync::OnceCell::new(),
        })
    }

    /// Where it is, for people.
    pub(crate) fn words(&self) -> String {
        let region = self.settings.region.as_ref().map(|region| format!(", region {region}"));
        format!("{}{}", self.settings.identity, region.unwrap_or_default())
    }

    /// S8: how long what carries a token may still be taken, by the longest life that one was given.
    pub(crate) fn longest_life(&self) -> Duration {
        self.tokens.longest_life().unwrap_or(USUAL_LIFE)
    }

    /// Whether it knows how long tokens live here.
    pub(crate) fn has_seen_a_token(&self) -> bool {
        self.tokens.longest_life().is_some()
    }

    /// The token with which a command would go.
    pub(crate) fn held(&self, now: BootTime) -> Option<Arc<Token>> {
        self.tokens.held(now)
    }

    /// Whether we are an administrator there; `None`: nobody said yet.
    pub(crate) fn is_admin(&self) -> Option<bool> {
        self.tokens.last().map(|token| token.said.is_admin())
    }

    /// A token that serves, a new one if need be.
    pub(crate) async fn token(&self, call: &Call) -> Result<Arc<Token>, DriverError> {
        self.tokens.get(call, REFUSED, self.log_in(call)).await
    }

    /// Where a service is.
    fn place(&self, service: Service, token: &Token) -> Result<Url, DriverError> {
        let kinds = service.kinds();
        if let Some(url) = kinds.iter().find_map(|kind| self.settings.endpoints.get(kind)) {
            return Ok(url.clone());
        }
        let region = self.settings.region.as_deref();
        let all = token.said.catalog.regions();
        if region.is_none() && all.len() > 1 {
            let detail = format!(
                "the cloud has several regions ({}): name one, in region or in clouds.yaml",
                all.join(", ")
            );
            return Err(DriverError::new(ErrorKind::Settings, Effect::DidNotHappen, detail));
        }
        let interfaces = &self.settings.interfaces;
        let said = token.said.catalog.endpoint(kinds, interfaces, region).ok_or_else(|| {
            let detail = token.said.catalog.without(kinds, interfaces, region);
            DriverError::new(ErrorKind::Settings, Effect::DidNotHappen, detail)
        })?;
        clouds_yaml::web_url(said).map_err(|why| {
            DriverError::new(ErrorKind::Protocol, Effect::DidNotHappen, format!("the catalog: {why}"))
        })
    }

    /// Asks, and reads JSON. With a new token once, where the service does not know ours any more.
    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        service: Service,
        path: &str,
        call: &Call,
    ) -> Result<QueryResult<T>, DriverError> {
        let mut renewed = false;
        loop {
            let token = self.token(call).await?;
            let place = format!("{}{path}", self.place(service, &token)?);
            let mut request = self.clients.questions.get(&place);
            if service == Service::Compute {
                request = versioned(request, self.version(&token, call).await?);
            }
            let answer = ask(request, &token, call, &place).await?;
            let wrong = |kind, detail: String| {
                let asked = format!("{}, GET {path}: {detail}", service.words());
                let error = DriverError::new(kind, Effect::DidNotHappen, asked);
                // Nova's policy stays as it is until a person changes it.
                Err(error.for_good(kind == ErrorKind::Forbidden))
            };
            match answer.code {
                StatusCode::OK => {
                    if answer.cut {
                        return wrong(
                            ErrorKind::Protocol,
                            format!("the answer is longer than {LONGEST} bytes"),
                        );
                    }
                    return match serde_json::from_slice(&answer.body) {
                        Ok(it) => Ok(QueryResult::It(it)),
                        Err(error) => {
                            wrong(ErrorKind::Protocol, format!("the answer makes no sense: {error}"))
                        }
                    };
                }
                StatusCode::NOT_FOUND => return Ok(QueryResult::NotThere(said(&answer))),
                StatusCode::UNAUTHORIZED if !renewed && !token.is_young(call.now()) => {
                    self.tokens.forget(&token, call.now());
                    renewed = true;
                }
                StatusCode::UNAUTHORIZED => {
                    return wrong(
                        ErrorKind::Authentication,
                        words::refused_anew(&answer, &format!("GET {path}")),
                    );
                }
                code => return wrong(words::kind_of(code), said(&answer)),
            }
        }
    }

    /// Sends a command, once, with a token that is there: none is asked for. What the answer means is its sender's matter.
    ///
    /// # Errors
    /// Nothing was sent, or it is not known what became of it; `effort` knows which.
    pub(crate) async fn tell(
        &self,
        command: Command<'_>,
        unclear: &Unclear,
        effort: &mut Effort,
        call: &Call,
    ) -> Result<CommandAnswer, DriverError> {
        let Command { service, method, path, body, bound, taken } = command;
        let Some(token) = self.held(call.now()) else {
            return Err(effort
                .error(ErrorKind::Authentication, "there is no token that serves: a question comes first"));
        };
        if let Some(bound) = bound {
            bound.allows(&token, call).map_err(|error| effort.judge(error))?;
        }
        let place = format!("{}{path}", self.place(service, &token)?);
        let asked = format!("{method} {path}");
        let mut request = self.clients.commands.request(method, &place);
        if service == Service::Compute {
            let Some(version) = self.version.get() else {
                return Err(
                    effort.error(ErrorKind::Protocol, "its version is not known: a question comes first")
                );
            };
            request = versioned(request, version);
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        let request = bearing(request, &token).map_err(|error| effort.judge(error))?;
        effort.may_send(call)?;
        effort.sent();
        let asked_at = call.now();
        let until = asked_at + self.longest_life();
        let taken = taken.map(|taken| (taken, until));
        let heard = DetachedCommand { sending: unclear.sending(until), taken, call: call.clone() };
        let answer = match carry(request, LONGEST, bound, call, |answered: &_| heard.hear(answered)).await {
            Ok(Ok(answer)) => without(answer, &token),
            Ok(Err(failed)) => {
                if matches!(failed, NoAnswer::NeverSent(_)) {
                    effort.unsent();
                }
                return Err(unanswered(failed, effort, &place));
            }
            Err(barred) => {
                effort.unsent();
                return Err(effort.judge(barred));
            }
        };
        if answer.code == StatusCode::UNAUTHORIZED {
            self.tokens.forget(&token, call.now());
        }
        let words = match answer.code {
            StatusCode::UNAUTHORIZED => words::refused_anew(&answer, &asked),
            _ => said(&answer),
        };
        let request = request_id(&answer);
        Ok(CommandAnswer { code: answer.code, request, asked_at, answered_at: call.now(), words })
    }

    /// The newest microversion that both know.
    async fn version(&self, token: &Token, call: &Call) -> Result<&str, DriverError> {
        let found = self.version.get_or_try_init(|| async {
            let mut place = self.place(Service::Compute, token)?;
            // The version's own document stands at the endpoint, or above what of it names the project.
            let path = place.path().to_owned();
            let versioned = path.split('/').position(|part| part.starts_with("v2.1"));
            if let Some(at) = versioned {
                place.set_path(&path.split('/').take(at + 1).collect::<Vec<_>>().join("/"));
            }
            let place = format!("{place}/");
            let answer = ask(self.clients.questions.get(&place), token, call, &place).await?;
            let wrong = |detail: String| {
                DriverError::new(
                    ErrorKind::Unsupported,
                    Effect::DidNotHappen,
                    format!("Nova, GET {place}: {detail}"),
                )
            };
            if answer.code != StatusCode::OK {
                let kind = words::kind_of(answer.code);
                let detail = format!("Nova, GET {place}: {}", said(&answer));
                return Err(DriverError::new(kind, Effect::DidNotHappen, detail));
            }
            let document: Value =
                serde_json::from_slice(&answer.body).map_err(|error| wrong(error.to_string()))?;
            words::microversion(&document["version"]).map_err(wrong)
        });
        Ok(found.await?)
    }
}
