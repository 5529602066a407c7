//! `[telemetry]`: the export of traces.

use percent_encoding::percent_decode_str;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use super::{Problem, secrets::wrong_address};

/// `[telemetry]`: the export of traces to a collector that speaks OTLP.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Telemetry {
    /// The address of the collector for OTLP over HTTP, without `/v1/traces`. Left out: nothing is exported.
    pub otlp_endpoint: Option<String>,
    /// The part of the traces that is exported, from 0 to 1.
    pub sample: f64,
    /// The name under which the collector lists the bot.
    pub service_name: String,
    /// The headers of requests to the collector, such as `authorization=Bearer%20…`, separated by commas.
    #[serde(skip)]
    pub otlp_headers: Option<SecretString>,
}

impl Telemetry {
    /// Returns the headers as pairs of name and value. What is no pair is left out, since [`Self::problems`] reports it.
    pub fn headers(&self) -> Vec<(String, SecretString)> {
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=')?;
            let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
            (!name.trim().is_empty()).then(|| (name.trim().to_owned(), SecretString::from(value.into_owned())))
        };
        let all =
            self.otlp_headers.as_ref().map(|headers| headers.expose_secret().split(',').filter_map(pair).collect());
        all.unwrap_or_default()
    }

    /// Returns the problems with the values.
    pub(super) fn problems(&self) -> Vec<Problem> {
        let address = self.otlp_endpoint.as_deref().and_then(wrong_address);
        let sample = (!(0.0..=1.0).contains(&self.sample)).then(|| format!("found {}; expected 0 to 1", self.sample));
        let name = self.service_name.trim().is_empty().then(|| "found nothing; expected a name".to_owned());
        let given = self.otlp_headers.as_ref().map_or(0, |headers| headers.expose_secret().split(',').count());
        let right = "expected name=value, with commas between several and %20 for a blank";
        let headers = (given != self.headers().len()).then(|| format!("a header has no name or value; {right}"));
        let problem = |(key, what): (&str, Option<String>)| Some(Problem { key: key.to_owned(), what: what? });
        [
            ("telemetry.otlp_endpoint", address),
            ("telemetry.sample", sample),
            ("telemetry.service_name", name),
            ("OTEL_EXPORTER_OTLP_HEADERS", headers),
        ]
        .into_iter()
        .filter_map(problem)
        .collect()
    }
}
