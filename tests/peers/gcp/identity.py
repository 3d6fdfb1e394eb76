"""Who asks: service accounts with keys, their tokens, and the four ways to one.

A token is got by a service account's signed assertion (`/token`), from the metadata server, or for a foreign token by the security token
service and an impersonation (`/v1/token`, `:generateAccessToken`); or it is a JSON Web Token that a service account signed itself.
Every signature is checked, every time of life is, and a token is refused once it is over. A life may be set for each user: it binds a
self-signed token as well, from when it was first seen, though at Google's that lives for as long as its `exp` says: its client knows
nothing of that, and goes on with it. A client that shall get another one in time is given one of the other kinds.
"""

import asyncio
import base64
import datetime
import functools
import hashlib
import json
import secrets
import time

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

CLOUD = "https://www.googleapis.com/auth/cloud-platform"
AUDIENCE = "https://compute.googleapis.com/"
# Google's own client names this one, wherever it sends an assertion.
OAUTH = "https://oauth2.googleapis.com/token"
GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS, FOREIGN = "urn:ietf:params:oauth:token-type:access_token", "urn:ietf:params:oauth:token-type:jwt"
ISSUER = "https://issuer.picket.test"
LIFE = 3600
# By how much the clocks of others may differ.
SKEW = 60


class Refused(Exception):
    """Whoever asks is not who may; the answer of an OAuth endpoint where it is one that was asked."""

    def __init__(self, message, error="invalid_grant", code=400):
        super().__init__(message)
        self.message, self.error, self.code = message, error, code


def encoded(told):
    told = told if isinstance(told, bytes) else json.dumps(told).encode()
    return base64.urlsafe_b64encode(told).rstrip(b"=").decode()


def decoded(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def stamp(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class Key:
    def __init__(self):
        self.private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.id = secrets.token_hex(20)

    def pem(self):
        form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        return self.private.private_bytes(*form).decode()

    def signed(self, claims):
        text = f"{encoded({'alg': 'RS256', 'typ': 'JWT', 'kid': self.id})}.{encoded(claims)}"
        return f"{text}.{encoded(self.private.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()))}"

    def claims(self, token):
        """What a token says that this key signed."""
        try:
            head, body, signature = token.split(".")
            header, claims = json.loads(decoded(head)), json.loads(decoded(body))
            signature, text = decoded(signature), f"{head}.{body}".encode()
        except ValueError as error:
            raise Refused("Invalid JWT: it is not three parts of JSON.") from error
        if header.get("alg") != "RS256" or header.get("kid", self.id) != self.id:
            raise Refused("Invalid JWT: its algorithm or its key is not the account's.")
        try:
            self.private.public_key().verify(signature, text, padding.PKCS1v15(), hashes.SHA256())
        except InvalidSignature as error:
            raise Refused("Invalid JWT Signature.") from error
        times = [claims.get("iat"), claims.get("exp")]
        now = time.time()
        if not all(isinstance(one, (int, float)) for one in times):
            raise Refused("Invalid JWT: iat and exp are missing.")
        issued, expires = times
        if issued > now + SKEW or expires <= now or not 0 < expires - issued <= LIFE + SKEW:
            raise Refused("Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe.")
        return claims


class User:
    def __init__(self, email, permissions, life, key):
        self.email, self.permissions, self.life, self.key = email, set(permissions), life, key
        self.subject = f"workload-{email.split('@')[0]}"
        self.revoked = 0.0

    def may(self, permission):
        return "*" in self.permissions or permission in self.permissions


class Token:
    def __init__(self, serial, user, kind, scopes, issued, expires):
        self.serial, self.user, self.kind, self.scopes = serial, user, kind, scopes
        self.issued, self.expires = issued, expires

    def told(self):
        age = round(time.time() - self.issued, 3)
        return {"serial": self.serial, "age": age, "user": self.user.email, "kind": self.kind}


class Identity:
    def __init__(self, project, number, endpoint):
        self.project, self.number, self.endpoint = project, number, endpoint
        self.users, self.tokens, self.serial = {}, {}, 0
        self.pool = f"//iam.googleapis.com/projects/{number}/locations/global/workloadIdentityPools/picket/providers/tests"
        self.pool_key = None

    async def user(self, permissions, life=LIFE):
        key = await asyncio.to_thread(Key)
        if self.pool_key is None:
            made = await asyncio.to_thread(Key)
            # Another user may have been the first meanwhile, and have a token by its key.
            self.pool_key = self.pool_key or made
        email = f"picket-{len(self.users)}@{self.project}.iam.gserviceaccount.com"
        self.users[email] = User(email, permissions, life, key)
        return self.files(self.users[email])

    def files(self, user):
        """What a user is given: a key, and what stands for a foreign identity."""
        key = {
            "type": "service_account", "project_id": self.project, "private_key_id": user.key.id, "private_key": user.key.pem(),
            "client_email": user.email, "client_id": str(self.number), "auth_uri": f"{self.endpoint}/auth",
            "token_uri": f"{self.endpoint}/token", "universe_domain": "googleapis.com",
        }  # fmt: skip
        impersonation = f"{self.endpoint}/v1/projects/-/serviceAccounts/{user.email}:generateAccessToken"
        external = {
            "type": "external_account", "audience": self.pool, "subject_token_type": FOREIGN, "universe_domain": "googleapis.com",
            "token_url": f"{self.endpoint}/v1/token", "service_account_impersonation_url": impersonation,
        }  # fmt: skip
        return {"email": user.email, "key": key, "external": external, "subject": self.subject(user)}

    def subject(self, user):
        now = int(time.time())
        claims = {"iss": ISSUER, "sub": user.subject, "aud": self.pool, "iat": now, "exp": now + LIFE}
        return self.pool_key.signed(claims)

    def issue(self, user, kind, scopes, life):
        self.serial += 1
        token = Token(self.serial, user, kind, scopes, time.time(), time.time() + life)
        text = f"ya29.picket-{self.serial}-{secrets.token_urlsafe(24)}"
        self.tokens[text] = token
        return text, token

    # The token endpoints.

    def granted(self, form):
        """`/token`: an access token for a service account's assertion."""
        if form.get("grant_type") != GRANT:
            raise Refused(f"Invalid grant_type: {form.get('grant_type')}", "unsupported_grant_type")
        user = self.users.get(issuer_of(form.get("assertion", "")))
        if user is None:
            raise Refused("Invalid grant: account not found")
        claims = user.key.claims(form["assertion"])
        if claims.get("aud") not in (f"{self.endpoint}/token", OAUTH):
            raise Refused("Invalid JWT: Failed audience check.")
        if not claims.get("scope"):
            raise Refused("Invalid OAuth scope or ID token audience provided.", "invalid_scope")
        text, _ = self.issue(user, "assertion", set(claims["scope"].split()), user.life)
        return {"access_token": text, "expires_in": int(user.life), "token_type": "Bearer"}

    def exchanged(self, form):
        """`/v1/token`: a federated token for a foreign one."""
        wanted = {"grant_type": EXCHANGE, "audience": self.pool, "subject_token_type": FOREIGN, "requested_token_type": ACCESS}
        for name, value in wanted.items():
            if form.get(name) != value:
                raise Refused(f"Invalid value for {name!r}: {form.get(name)!r}.", "invalid_request")
        if self.pool_key is None:
            raise Refused("The target service indicated by the \"audience\" parameters is invalid.", "invalid_target")
        claims = self.pool_key.claims(form.get("subject_token", ""))
        named = [user for user in self.users.values() if user.subject == claims.get("sub")]
        if claims.get("iss") != ISSUER or claims.get("aud") != self.pool or not named:
            raise Refused("The subject token is of another issuer, audience or subject.")
        text, _ = self.issue(named[0], "federated", set(form.get("scope", "").split()), named[0].life)
        life = int(named[0].life)
        return {"access_token": text, "issued_token_type": ACCESS, "token_type": "Bearer", "expires_in": life}

    def impersonated(self, email, authorization, said):
        """`:generateAccessToken`: a service account's token, for the federated token of who may be it."""
        by = self.bearer(authorization)
        user = self.users.get(email)
        if user is None or by.user is not user or by.kind != "federated":
            raise Refused("Permission 'iam.serviceAccounts.getAccessToken' denied on resource (or it may not exist).", "", 403)
        scopes = said.get("scope") if isinstance(said, dict) else None
        if not scopes or not isinstance(scopes, list):
            raise Refused("Request contains an invalid argument: scope is missing.", "", 400)
        asked = float(str(said.get("lifetime", f"{LIFE}s")).removesuffix("s"))
        text, token = self.issue(user, "impersonated", set(scopes), min(user.life, asked))
        return {"accessToken": text, "expireTime": stamp(token.expires)}

    def of_metadata(self, email, scopes):
        user = self.users[email]
        text, _ = self.issue(user, "metadata", set(scopes) or {CLOUD}, user.life)
        return {"access_token": text, "expires_in": int(user.life), "token_type": "Bearer"}

    # Whose a request is.

    def bearer(self, authorization):
        """The token that a request bears, where it is good."""
        kind, _, text = (authorization or "").partition(" ")
        if kind.lower() != "bearer" or not text:
            raise Refused("Request is missing required authentication credential.", "required", 401)
        token = self.tokens.get(text) or self.self_signed(text)
        now = time.time()
        over = min(token.expires, token.issued + token.user.life)
        if now >= over or token.issued <= token.user.revoked:
            error = Refused("Request had invalid authentication credentials: it is over.", "authError", 401)
            error.token = token
            raise error
        return token

    def self_signed(self, text):
        user = self.users.get(issuer_of(text))
        if user is None:
            raise Refused("Request had invalid authentication credentials: nobody's.", "authError", 401)
        try:
            claims = user.key.claims(text)
        except Refused as error:
            raise Refused(error.message, "authError", 401) from error
        scopes = set(claims.get("scope", "").split())
        if claims.get("sub") != user.email or not (scopes or claims.get("aud") == AUDIENCE):
            raise Refused("Request had invalid authentication credentials: subject or audience.", "authError", 401)
        self.serial += 1
        # Clients date it back; what a test sets for its life counts from when it was first seen.
        token = Token(self.serial, user, "self-signed", scopes or {CLOUD}, time.time(), claims["exp"])
        # Looked at once: the signature does not change, and its times are looked at whenever it comes.
        self.tokens[text] = token
        return token


def issuer_of(token):
    """Who says that it signed it."""
    try:
        claims = json.loads(decoded(token.split(".")[1]))
        return claims.get("iss") if isinstance(claims, dict) else None
    except (ValueError, IndexError):
        return None


def fingerprint(labels):
    return fingerprint_of(json.dumps(labels, sort_keys=True))


@functools.lru_cache(maxsize=100_000)
def fingerprint_of(text):
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()
