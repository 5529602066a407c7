//! Checks that addresses received from outside belong to Slack.
//!
//! The bot sends data to the `response_url` of a delivery and to the upload address in an answer. With a forged address
//! it would send messages to any host, including those in its own network. So an address must refer to `slack.com` or
//! one of its subdomains, over TLS, or to the host of the Web API.

use countersign_wire::this_machine;
use url::Url;

use super::client_error::Error;

/// The domain of Slack.
const SLACK: &str = "slack.com";

/// The hosts to which data may be sent.
#[derive(Clone, Debug)]
pub(super) struct Hosts {
    api: Option<Url>,
}

impl Hosts {
    /// Creates the set of Slack's hosts and the host of the Web API.
    pub(super) fn with_api(api_url: &str) -> Self {
        Self { api: api_url.parse().ok() }
    }

    /// Parses an address and returns it if data may be sent to it.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] with `invalid_url`, or with `foreign_url` for another host, which is logged.
    pub(super) fn check(&self, address: &str) -> Result<Url, Error> {
        let refused = |code: &str| Error::Refused { code: code.to_owned() };
        let url: Url = address.parse().map_err(|_| refused("invalid_url"))?;
        if self.is_allowed(&url, ["http", "https"]) {
            return Ok(url);
        }
        let (scheme, host) = (url.scheme(), url.host_str().unwrap_or("nowhere"));
        tracing::error!("An address was not used, since it refers to {scheme}://{host} and not to Slack");
        Err(refused("foreign_url"))
    }

    /// Returns true if a WebSocket address belongs to Slack.
    pub(super) fn is_socket(&self, address: &str) -> bool {
        address.parse().is_ok_and(|url| self.is_allowed(&url, ["ws", "wss"]))
    }

    /// Returns true if an address belongs to Slack or is on the host of the Web API. `plain` and `secure` are its
    /// possible schemes.
    fn is_allowed(&self, url: &Url, [plain, secure]: [&str; 2]) -> bool {
        if !url.username().is_empty() || url.password().is_some() {
            return false;
        }
        let Some(host) = url.host_str() else { return false };
        let below = |domain: &str| host == domain || host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'));
        if url.scheme() == secure && url.port().is_none() && below(SLACK) {
            return true;
        }
        let Some(api) = &self.api else { return false };
        let over_tls = api.scheme() == "https";
        let named = api.domain().filter(|_| over_tls && api.port().is_none() && url.port().is_none());
        // A stand-in on this machine may be behind a proxy, so that its own port differs.
        let same_port = url.port_or_known_default() == api.port_or_known_default() || this_machine::is_named_by(api);
        let same = url.host() == api.host() && same_port;
        url.scheme() == if over_tls { secure } else { plain } && (same || named.is_some_and(below))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slacks_own_addresses_are_accepted() {
        let hosts = Hosts::with_api("https://slack.com/api/");
        for address in [
            "https://hooks.slack.com/actions/T1/1/x",
            "https://files.slack.com/upload/v1/x",
            "https://slack.com/x",
            "https://SLACK.com:443/x",
        ] {
            assert!(hosts.check(address).is_ok(), "{address}");
        }
        assert!(hosts.is_socket("wss://wss-primary.slack.com/link/?ticket=x"));
    }

    #[test]
    fn other_addresses_are_refused() {
        let hosts = Hosts::with_api("https://slack.com/api/");
        for address in [
            "http://hooks.slack.com/x",
            "https://slack.com.evil.example/x",
            "https://evilslack.com/x",
            "https://hooks.slack.com@evil.example/x",
            "https://me@hooks.slack.com/x",
            "https://hooks.slack.com:8443/x",
            "https://169.254.169.254/latest",
            "https://slack.com./x",
            "http://127.0.0.1/x",
            "file:///etc/passwd",
        ] {
            assert_eq!(hosts.check(address), Err(Error::Refused { code: "foreign_url".into() }), "{address}");
        }
        assert_eq!(hosts.check("not an address"), Err(Error::Refused { code: "invalid_url".into() }));
        assert!(!hosts.is_socket("ws://wss-primary.slack.com/link") && !hosts.is_socket("wss://evil.example/link"));
    }

    #[test]
    fn a_stand_in_is_accepted_only_on_its_own_host() {
        let hosts = Hosts::with_api("http://127.0.0.1:4711/api");
        assert!(hosts.check("http://127.0.0.1:4711/response/x").is_ok());
        assert!(hosts.check("http://127.0.0.1:4712/behind/a/proxy").is_ok());
        assert!(hosts.is_socket("ws://127.0.0.1:4711/link"));
        for address in ["https://127.0.0.1:4711/x", "http://localhost:4711/x", "http://10.0.0.1:4711/x"] {
            assert!(hosts.check(address).is_err(), "{address}");
        }
    }

    #[test]
    fn subdomains_of_another_api_domain_are_accepted() {
        let hosts = Hosts::with_api("https://slack-gov.com/api/");
        assert!(hosts.check("https://hooks.slack-gov.com/x").is_ok());
        assert!(hosts.check("https://hooks.evil-slack-gov.com/x").is_err());
    }
}
