//! The exchange of a person's refresh token, with Google's checks and error messages.

use std::collections::HashMap;

use super::{CLIENT_ID, CLIENT_SECRET, Holder, PERSON, REFRESH_TOKEN, SCOPES, assertion::Refusal};

/// The fields of a request.
const FIELDS: [&str; 4] = ["grant_type", "client_id", "client_secret", "refresh_token"];

/// Checks a request with a refresh token. Returns the rights of its token.
pub(super) fn check(form: &HashMap<String, String>, withdrawn: bool) -> Result<Holder, Refusal> {
    let field = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
    if form.keys().any(|name| !FIELDS.contains(&name.as_str())) {
        return Err(("invalid_request", "Parameter not allowed for this message type."));
    }
    if field("client_id") != CLIENT_ID {
        return Err(("invalid_client", "The OAuth client was not found."));
    }
    if field("client_secret") != CLIENT_SECRET {
        return Err(("invalid_client", "The provided client secret is invalid."));
    }
    match field("refresh_token") {
        "" => Err(("invalid_request", "Missing required parameter: refresh_token")),
        REFRESH_TOKEN if withdrawn => Err(("invalid_grant", "Token has been expired or revoked.")),
        REFRESH_TOKEN => {
            let scopes = SCOPES.iter().map(|scope| (*scope).to_owned()).collect();
            Ok(Holder { person: Some(PERSON.to_owned()), scopes })
        }
        _ => Err(("invalid_grant", "Bad Request")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(secret: &str, token: &str) -> HashMap<String, String> {
        let pairs = [
            ("grant_type", "refresh_token"),
            ("client_id", CLIENT_ID),
            ("client_secret", secret),
            ("refresh_token", token),
        ];
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }

    #[test]
    fn only_the_right_secret_and_token_are_accepted() {
        let holder = check(&form(CLIENT_SECRET, REFRESH_TOKEN), false).unwrap();
        assert_eq!(holder.person.as_deref(), Some(PERSON));
        assert!(holder.may(SCOPES[0]));
        let refused = |secret, token, withdrawn| check(&form(secret, token), withdrawn).unwrap_err().0;
        assert_eq!(refused("other", REFRESH_TOKEN, false), "invalid_client");
        assert_eq!(refused(CLIENT_SECRET, "other", false), "invalid_grant");
        assert_eq!(refused(CLIENT_SECRET, REFRESH_TOKEN, true), "invalid_grant");
    }
}
