//! Files: those of the bot, which are shared in threads, and those of people, whose contents are read if they are text.
//!
//! A file's content is at a private address, which needs the bot token. The token is sent only to Slack's own hosts, and no
//! redirect is followed.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use countersign_core::{
    clock::Timestamp,
    ids::{ChannelId, MessageTs},
};
use countersign_wire::{this_machine, tls};
use reqwest::{Client, StatusCode, header, redirect, retry};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slack_morphism::SlackClientHttpConnector as _;
use url::Url;

use super::{
    client::{SlackClient, messages, required_text, without_token},
    client_error::Error,
    field::{self, text},
};

/// The scope that reading needs.
const SCOPE: &str = "files:read";

/// A file of a message. It may be stored, so its fields must remain readable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    /// The file's id (`F…`).
    pub id: String,
    /// The name; empty if Slack did not send it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The size in bytes.
    #[serde(default)]
    pub size: u64,
    /// The kind of content.
    pub content: Content,
}

/// The kinds of content that a file may have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Text, at this private address.
    Text(String),
    /// A snippet, at this private address: text that the person typed, or a message that was too long.
    Snippet(String),
    /// Something else, such as a picture.
    Other,
    /// Slack did not say: the file has to be looked up first.
    LookUp,
}

impl File {
    /// Parses the files of a message.
    pub(super) fn all(files: &Value) -> Vec<Self> {
        files.as_array().into_iter().flatten().filter_map(Self::of).collect()
    }

    /// Parses a file; `None` if it has no id, or was deleted.
    fn of(file: &Value) -> Option<Self> {
        let mode = text(file, "/mode").unwrap_or_default();
        if mode == "tombstone" {
            return None;
        }
        let address = field::first(file, &["/url_private_download", "/url_private"]);
        let content = match address {
            _ if text(file, "/file_access") == Some("check_file_info") => Content::LookUp,
            _ if file["is_external"] == true => Content::Other,
            Some(address) if mode == "snippet" => Content::Snippet(address.to_owned()),
            Some(address) if mode == "hosted" && is_text(file) => Content::Text(address.to_owned()),
            _ => Content::Other,
        };
        Some(Self {
            id: text(file, "/id")?.to_owned(),
            name: field::first(file, &["/name", "/title"]).unwrap_or_default().to_owned(),
            size: file["size"].as_u64().unwrap_or_default(),
            content,
        })
    }
}

/// Returns true if Slack says that an uploaded file is text.
fn is_text(file: &Value) -> bool {
    const KINDS: &[&str] = &["application/json", "application/xml", "application/yaml", "application/x-yaml"];
    let media = text(file, "/mimetype").unwrap_or_default();
    media.starts_with("text/") || KINDS.contains(&media)
}

/// The client for the contents of files, which is made when the first one is read.
#[derive(Clone, Default)]
pub(super) struct Downloads(Arc<OnceLock<Option<Client>>>);

impl Downloads {
    fn client(&self, api: &Url, timeout: Duration) -> Option<&Client> {
        let make = || {
            let builder = Client::builder()
                .tls_backend_preconfigured(tls::client_of(api).ok()?)
                .timeout(timeout)
                .redirect(redirect::Policy::none())
                .retry(retry::never());
            let is_local = this_machine::is_named_by(api);
            if is_local { builder.no_proxy() } else { builder }.build().ok()
        };
        self.0.get_or_init(make).as_ref()
    }
}

impl SlackClient {
    /// Shares a file in a thread, with its title and the description of a picture, which may be empty. This takes three
    /// calls; nothing is visible before the last one.
    pub async fn upload_file(
        &self,
        channel: &ChannelId,
        thread: &MessageTs,
        name: &str,
        (title, alt): (&str, &str),
        bytes: &[u8],
    ) -> Result<(), Error> {
        let length = bytes.len().to_string();
        let query = [("filename", name), ("length", length.as_str()), ("alt_txt", alt)];
        let query = if alt.is_empty() { &query[..2] } else { &query[..] };
        let place = self.get("files.getUploadURLExternal", query).await?;
        let (url, id) = (required_text(&place, "/upload_url")?, required_text(&place, "/file_id")?);
        let url = self.hosts().check(url)?;
        let connector = &self.library().http_api.connector;
        let kind = "application/octet-stream".to_owned();
        // The address alone authorizes the upload, so the token is not sent.
        self.with_timeout(connector.http_post_uri_binary::<Value>(url, kind, bytes, without_token())).await?;
        let body = json!({ "files": [{ "id": id, "title": title }], "channel_id": channel, "thread_ts": thread });
        self.post("files.completeUploadExternal", &body).await.map(drop)
    }

    /// Returns true if a file with this name was shared in a thread at `since` or later.
    pub async fn has_file(
        &self,
        channel: &ChannelId,
        thread: &MessageTs,
        name: &str,
        since: Timestamp,
    ) -> Result<bool, Error> {
        let has_it =
            |message: &Value| message["files"].as_array().into_iter().flatten().any(|file| file["name"] == name);
        let found = self.find_since(channel, Some(thread), since, |page| messages(page).any(has_it).then_some(()));
        Ok(found.await?.is_some())
    }

    /// Returns a file as Slack describes it now.
    ///
    /// # Errors
    ///
    /// [`Error`], such as `file_not_found`.
    pub async fn file_info(&self, id: &str) -> Result<File, Error> {
        File::of(&self.get("files.info", &[("file", id)]).await?["file"]).ok_or(Error::Decode)
    }

    /// Returns the content of a file of text at a private address, up to `longest` bytes.
    ///
    /// # Errors
    ///
    /// [`Error`]: `file_too_long` if it is longer, [`Error::Decode`] if it is no text.
    pub async fn read_file(&self, address: &str, longest: usize) -> Result<String, Error> {
        let url = self.hosts().check(address)?;
        let client = self.downloads().client(&url, self.timeout()).ok_or(Error::NotSent)?;
        let request = client.get(url).bearer_auth(&self.token().token_value.0);
        let mut answer = request.send().await.map_err(|error| lost(&error))?;
        let is_page = content_type(&answer).starts_with("text/html") && !address.ends_with(".html");
        match answer.status() {
            // Instead of refusing the token, Slack shows its sign-in page.
            status if status.is_redirection() || (status.is_success() && is_page) => {
                self.missing_scopes().note(SCOPE, "url_private_download");
                return Err(Error::MissingScope { needed: SCOPE.to_owned() });
            }
            StatusCode::TOO_MANY_REQUESTS => {
                let after =
                    answer.headers().get(header::RETRY_AFTER).and_then(|after| after.to_str().ok()?.parse().ok());
                return Err(Error::RateLimited { retry_after: Duration::from_secs(after.unwrap_or(10).min(300)) });
            }
            StatusCode::NOT_FOUND | StatusCode::GONE => return Err(Error::Gone { code: "file_not_found".to_owned() }),
            status if status.is_server_error() => return Err(Error::NoAnswer("server error")),
            status if !status.is_success() => return Err(Error::Refused { code: format!("http_{}", status.as_u16()) }),
            _ => {}
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|error| lost(&error))? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > longest {
                return Err(Error::Refused { code: TOO_LONG.to_owned() });
            }
        }
        decoded(bytes).ok_or(Error::Decode)
    }
}

/// Decodes text in UTF-8, or in UTF-16 with a byte order mark; `None` if it is something else.
fn decoded(bytes: Vec<u8>) -> Option<String> {
    let utf_16 = |rest: &[u8], unit: fn([u8; 2]) -> u16| {
        let (units, []) = rest.as_chunks() else { return None };
        String::from_utf16(&units.iter().map(|bytes| unit(*bytes)).collect::<Vec<_>>()).ok()
    };
    let text = match bytes.as_slice() {
        [0xff, 0xfe, rest @ ..] => utf_16(rest, u16::from_le_bytes)?,
        [0xfe, 0xff, rest @ ..] => utf_16(rest, u16::from_be_bytes)?,
        _ => String::from_utf8(bytes).ok()?,
    };
    let is_binary = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\x0c');
    (!text.contains(is_binary)).then(|| text.trim_start_matches('\u{feff}').replace("\r\n", "\n"))
}

/// The code of the error for a file that is longer than the limit.
pub const TOO_LONG: &str = "file_too_long";

fn content_type(answer: &reqwest::Response) -> &str {
    answer.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default()
}

fn lost(error: &reqwest::Error) -> Error {
    match error {
        error if error.is_connect() => Error::NotSent,
        error if error.is_timeout() => Error::NoAnswer("timeout"),
        _ => Error::NoAnswer("connection lost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_told_from_other_files() {
        let address = "https://files.slack.com/files-pri/T1-F1/download/x";
        let of = |mode: &str, mimetype: &str| {
            let file = json!({ "id": "F1", "name": "x", "mode": mode, "mimetype": mimetype, "size": 3,
                "url_private_download": address });
            File::all(&json!([file])).pop().map(|file| file.content)
        };
        let is_text = Some(Content::Text(address.to_owned()));
        let is_snippet = Some(Content::Snippet(address.to_owned()));
        assert_eq!(of("snippet", "text/plain"), is_snippet);
        assert_eq!(of("snippet", "application/octet-stream"), is_snippet, "a snippet is text of any kind");
        assert_eq!(of("hosted", "text/csv"), is_text);
        assert_eq!(of("hosted", "application/json"), is_text);
        assert_eq!(of("hosted", "image/png"), Some(Content::Other));
        assert_eq!(of("quip", "application/vnd.slack-docs"), Some(Content::Other));
        assert_eq!(of("tombstone", ""), None);
        let hidden = json!([{ "id": "F2", "mode": "file_access", "file_access": "check_file_info" }]);
        assert_eq!(File::all(&hidden)[0].content, Content::LookUp);
    }

    #[test]
    fn text_is_decoded_and_anything_else_is_refused() {
        let utf_16 = |mark: [u8; 2], bytes: fn(u16) -> [u8; 2]| {
            mark.into_iter().chain("ü1\r\nu2".encode_utf16().flat_map(bytes)).collect::<Vec<u8>>()
        };
        for bytes in [
            "ü1\r\nu2".into(),
            "\u{feff}ü1\nu2".into(),
            utf_16([0xff, 0xfe], u16::to_le_bytes),
            utf_16([0xfe, 0xff], u16::to_be_bytes),
        ] {
            assert_eq!(decoded(bytes).as_deref(), Some("ü1\nu2"));
        }
        let half = utf_16([0xff, 0xfe], u16::to_le_bytes);
        for bytes in [
            &b"PK\x03\x04\x14\0\0\0\x08\0ids.csv"[..], // a zip archive
            &[0x1f, 0x8b, 0x08, 0, 0, 0, 0, 0],        // gzip
            &[0xfc, b'1'],                             // Windows-1252
            &[0x1b, b'[', b'2', b'J'],                 // an order to a terminal
            &half[..half.len() - 1],
        ] {
            assert_eq!(decoded(bytes.to_vec()), None, "{bytes:?}");
        }
    }
}
