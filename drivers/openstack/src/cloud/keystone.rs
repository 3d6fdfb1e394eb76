//! Keystone v3: the request for a token, and what its answer says (Identity API, `POST /v3/auth/tokens`).

use std::time::Duration;

use picket_core::time::BootTime;
use picket_driver::Secret;
use serde::Deserialize;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::catalog::Catalog;

/// A token of Keystone's.
pub(crate) type Token = picket_cloud::Token<TokenDetails>;

/// Who logs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Login {
    /// `v3password`.
    Password { user: IdOrName, password: Secret, scope: Scope },
    /// `v3applicationcredential`: it brings its project.
    ApplicationCredential { credential: IdOrName, secret: Secret },
}

/// By its id, or by its name and where that is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IdOrName {
    Id(String),
    Name { name: String, of: Option<Box<IdOrName>> },
}

/// For what a token is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Project(IdOrName),
    /// All of the cloud.
    System,
}

impl IdOrName {
    /// As Keystone wants it; `of` is called `owner` there (`domain`, `user`).
    fn json(&self, owner: &str) -> Value {
        match self {
            IdOrName::Id(id) => json!({ "id": id }),
            IdOrName::Name { name, of: None } => json!({ "name": name }),
            IdOrName::Name { name, of: Some(of) } => json!({ "name": name, owner: of.json("domain") }),
        }
    }
}

impl Login {
    /// What nobody else knows.
    pub(crate) fn secret(&self) -> &Secret {
        let (Login::Password { password: secret, .. } | Login::ApplicationCredential { secret, .. }) = self;
        secret
    }

    /// The body of the request. Holds secrets: it is sent, and never shown.
    pub(crate) fn body(&self) -> Value {
        let text = |secret: &Secret| String::from_utf8_lossy(secret.expose()).into_owned();
        match self {
            Login::Password { user, password, scope } => {
                let mut user = user.json("domain");
                user["password"] = text(password).into();
                let scope = match scope {
                    Scope::Project(project) => json!({ "project": project.json("domain") }),
                    Scope::System => json!({ "system": { "all": true } }),
                };
                let identity = json!({ "methods": ["password"], "password": { "user": user } });
                json!({ "auth": { "identity": identity, "scope": scope } })
            }
            Login::ApplicationCredential { credential, secret } => {
                let mut credential = credential.json("user");
                credential["secret"] = text(secret).into();
                let identity =
                    json!({ "methods": ["application_credential"], "application_credential": credential });
                json!({ "auth": { "identity": identity } })
            }
        }
    }
}

/// What Keystone says with a token.
pub(crate) struct TokenDetails {
    /// The user's id: whose actions are ours.
    pub(crate) user: String,
    /// The id of the project for which it is; `None`: for all of the cloud.
    pub(crate) project: Option<String>,
    roles: Vec<String>,
    pub(super) catalog: Catalog,
}

impl TokenDetails {
    /// Whether Nova takes it for an administrator's (its policy `context_is_admin`, as it comes).
    pub(crate) fn is_admin(&self) -> bool {
        self.roles.iter().any(|role| role == "admin")
    }
}

#[derive(Deserialize)]
struct Answer {
    token: Body,
}

#[derive(Deserialize)]
struct Body {
    issued_at: String,
    expires_at: String,
    user: User,
    #[serde(default)]
    project: Option<Project>,
    #[serde(default)]
    roles: Vec<Role>,
    #[serde(default)]
    catalog: Catalog,
}

#[derive(Deserialize)]
struct User {
    id: String,
}

#[derive(Deserialize)]
struct Project {
    id: String,
}

#[derive(Deserialize)]
struct Role {
    name: String,
}

/// What was answered with 201 to a request that was asked at `asked_at`.
pub(super) fn token(
    secret: Secret,
    body: &[u8],
    asked_at: BootTime,
    answered_at: BootTime,
) -> Result<Token, String> {
    let Answer { token } =
        serde_json::from_slice(body).map_err(|error| format!("it is no token: {error}"))?;
    let stamp = |text: &str| {
        OffsetDateTime::parse(text, &Rfc3339).map_err(|error| format!("{text:?} is no time: {error}"))
    };
    let life = stamp(&token.expires_at)? - stamp(&token.issued_at)?;
    let life = Duration::try_from(life).ok().filter(|life| !life.is_zero());
    let life = life.ok_or("it ends before it begins")?;
    let said = TokenDetails {
        user: token.user.id,
        project: token.project.map(|project| project.id),
        roles: token.roles.into_iter().map(|role| role.name).collect(),
        catalog: token.catalog,
    };
    Ok(Token { secret, said, life, asked_at, answered_at })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> BootTime {
        BootTime::default() + Duration::from_secs(seconds)
    }

    fn answer(issued: &str, expires: &str) -> Vec<u8> {
        let endpoint =
            |region: &str, url: &str| json!({ "interface": "public", "region": region, "url": url });
        json!({ "token": {
            "issued_at": issued, "expires_at": expires, "user": { "id": "u1", "name": "picket" }, "project": { "id": "p1" },
            "roles": [{ "id": "r", "name": "member" }],
            "catalog": [{ "type": "compute", "endpoints": [endpoint("one", "http://1/v2.1"), endpoint("two", "http://2/v2.1")] }],
        } })
        .to_string()
        .into_bytes()
    }

    #[test]
    fn what_keystone_says_with_a_token_is_read() {
        let body = answer("2026-11-22T14:00:00.000000Z", "2026-11-22T15:00:00.000000Z");
        let token = token(Secret::new("s"), &body, at(100), at(103)).expect("a token");
        assert_eq!((token.life, token.said.is_admin()), (Duration::from_secs(3600), false));
        assert_eq!((token.said.user.as_str(), token.said.project.as_deref()), ("u1", Some("p1")));
        assert_eq!((token.asked_at, token.answered_at), (at(100), at(103)));
        assert_eq!(token.said.catalog.regions(), ["one", "two"]);
    }

    #[test]
    fn what_has_no_life_is_no_token() {
        for (issued, expires, why) in [
            ("2026-11-22T15:00:00Z", "2026-11-22T14:00:00Z", "before it begins"),
            ("2026-11-22T15:00:00Z", "2026-11-22T15:00:00Z", "before it begins"),
            ("yesterday", "2026-11-22T14:00:00Z", "\"yesterday\" is no time"),
        ] {
            let wrong = token(Secret::new("s"), &answer(issued, expires), at(1), at(1));
            assert!(wrong.expect_err("no life").contains(why));
        }
        let cut = token(Secret::new("s"), b"{\"token\": {", at(1), at(1)).expect_err("cut off");
        assert!(cut.contains("it is no token"), "{cut}");
    }

    #[test]
    fn a_request_names_the_user_and_the_project_where_they_are() {
        let domain = |name: &str| Some(Box::new(IdOrName::Name { name: name.to_owned(), of: None }));
        let user = IdOrName::Name { name: "picket".to_owned(), of: domain("Default") };
        let project =
            IdOrName::Name { name: "db".to_owned(), of: Some(Box::new(IdOrName::Id("d1".to_owned()))) };
        let login = Login::Password { user, password: Secret::new("pw"), scope: Scope::Project(project) };
        assert_eq!(
            login.body(),
            json!({ "auth": {
                "identity": { "methods": ["password"], "password": { "user": {
                    "name": "picket", "domain": { "name": "Default" }, "password": "pw" } } },
                "scope": { "project": { "name": "db", "domain": { "id": "d1" } } },
            } })
        );
        let of = Some(Box::new(IdOrName::Name { name: "picket".to_owned(), of: domain("Default") }));
        let credential = IdOrName::Name { name: "fence".to_owned(), of };
        let login = Login::ApplicationCredential { credential, secret: Secret::new("pw") };
        assert_eq!(
            login.body()["auth"]["identity"]["application_credential"],
            json!({ "name": "fence", "secret": "pw", "user": { "name": "picket", "domain": { "name": "Default" } } })
        );
    }
}
