//! One connection: commands and responses (RFC 5321, RFC 4954).

use std::io;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
};

use super::{Accepted, Fault, PASSWORD, USER, World};

/// The maximum length of a line in a message, with its end, in bytes.
const MAX_LINE: usize = 1_000;
/// The maximum size of a message, in bytes.
const MAX_MESSAGE: usize = 40 * 1024 * 1024;

/// The commands of the client so far.
#[derive(Debug, Default)]
struct State {
    is_greeted: bool,
    is_signed_in: bool,
    from: Option<String>,
    to: Vec<String>,
}

/// The end of a connection.
enum End {
    /// Closed on purpose, or by the client.
    Closed,
    /// Lost.
    Failed,
}

impl From<io::Error> for End {
    fn from(_: io::Error) -> Self {
        Self::Failed
    }
}

/// Serves a connection until the client leaves.
pub(super) async fn serve(stream: TcpStream, world: World) {
    stream.set_nodelay(true).ok();
    let fault = world.begin();
    let mut stream = BufReader::new(stream);
    if let Err(End::Failed) = talk(&mut stream, &world, fault).await {
        tracing::debug!("an SMTP session was cut");
    }
}

async fn talk(stream: &mut BufReader<TcpStream>, world: &World, fault: Option<Fault>) -> Result<(), End> {
    if fault == Some(Fault::NoGreeting) {
        return Err(End::Closed);
    }
    say(stream, "220 sandbox ESMTP").await?;
    let mut state = State::default();
    loop {
        let line = line(stream, world).await?;
        let (verb, rest) = line.split_once(' ').unwrap_or((&line, ""));
        match verb.to_ascii_uppercase().as_str() {
            "EHLO" if !rest.is_empty() => {
                state = State { is_greeted: true, ..State::default() };
                say(stream, "250-sandbox\r\n250-8BITMIME\r\n250-SIZE 41943040\r\n250 AUTH PLAIN LOGIN").await?;
            }
            "AUTH" if state.is_greeted => {
                let is_right = rest.strip_prefix("PLAIN ").is_some_and(is_right) && fault != Some(Fault::WrongPassword);
                state.is_signed_in = is_right;
                say(stream, if is_right { "235 signed in" } else { "535 5.7.8 wrong name or password" }).await?;
            }
            "MAIL" if state.is_signed_in && fault == Some(Fault::SilentBeforeMessage) => world.fall_silent().await,
            "MAIL" if state.is_signed_in && state.from.is_none() => {
                state.from = path(rest, "FROM:");
                say(stream, if state.from.is_some() { "250 go on" } else { "501 no path" }).await?;
            }
            "RCPT" if state.from.is_some() => {
                match path(rest, "TO:").filter(|_| fault != Some(Fault::UnknownRecipient)) {
                    Some(to) => {
                        state.to.push(to);
                        say(stream, "250 go on").await?;
                    }
                    None => say(stream, "550 5.1.1 <nobody@example.com> unknown").await?,
                }
            }
            "DATA" if !state.to.is_empty() && fault == Some(Fault::Busy) => say(stream, "451 4.3.0 busy").await?,
            "DATA" if !state.to.is_empty() => {
                say(stream, "354 send").await?;
                message(stream, world, fault, &mut state).await?;
            }
            "NOOP" => say(stream, "250 here").await?,
            "QUIT" => {
                say(stream, "221 bye").await?;
                return Ok(());
            }
            _ => {
                world.violated(format!("{verb} out of order or unknown"));
                say(stream, "503 not now").await?;
            }
        }
    }
}

/// Receives a message up to the line with a single dot.
async fn message(
    stream: &mut BufReader<TcpStream>,
    world: &World,
    fault: Option<Fault>,
    state: &mut State,
) -> Result<(), End> {
    let mut message = Vec::new();
    loop {
        if fault == Some(Fault::ClosedInMessage) {
            return Err(End::Closed);
        }
        let mut line = Vec::new();
        (&mut *stream).take(MAX_LINE as u64 + 1).read_until(b'\n', &mut line).await?;
        if line.is_empty() {
            return Err(End::Failed);
        }
        if line.len() > MAX_LINE || !line.ends_with(b"\r\n") || line[..line.len() - 2].contains(&b'\r') {
            world.violated(format!("a line of {} bytes, or not ended by CRLF", line.len()));
        }
        if line == b".\r\n" {
            break;
        }
        message.extend_from_slice(line.strip_prefix(b".").unwrap_or(&line));
        if message.len() > MAX_MESSAGE {
            return Err(End::Closed);
        }
    }
    if fault == Some(Fault::RefusedMessage) {
        return Ok(say(stream, "554 5.7.1 refused").await?);
    }
    let (from, to) = (state.from.take().unwrap_or_default(), std::mem::take(&mut state.to));
    world.accept(Accepted { from, to, message });
    match fault {
        Some(Fault::LostResponse) => Err(End::Closed),
        Some(Fault::SilentAfterMessage) => {
            world.fall_silent().await;
            Ok(())
        }
        _ => Ok(say(stream, "250 2.0.0 accepted").await?),
    }
}

async fn say(stream: &mut BufReader<TcpStream>, response: &str) -> io::Result<()> {
    stream.write_all(format!("{response}\r\n").as_bytes()).await?;
    stream.flush().await
}

async fn line(stream: &mut BufReader<TcpStream>, world: &World) -> Result<String, End> {
    let mut line = Vec::new();
    (&mut *stream).take(MAX_LINE as u64).read_until(b'\n', &mut line).await?;
    if line.is_empty() {
        return Err(End::Closed);
    }
    let Some(line) = line.strip_suffix(b"\r\n") else {
        world.violated("a command that is too long, or not ended by CRLF".to_owned());
        return Err(End::Closed);
    };
    Ok(String::from_utf8_lossy(line).into_owned())
}

fn is_right(credentials: &str) -> bool {
    STANDARD.decode(credentials.trim()).is_ok_and(|found| found == format!("\0{USER}\0{PASSWORD}").into_bytes())
}

/// Returns the address in `FROM:<…>` or `TO:<…>`.
fn path(rest: &str, start: &str) -> Option<String> {
    let path =
        rest.get(..start.len()).filter(|found| found.eq_ignore_ascii_case(start)).map(|_| &rest[start.len()..])?;
    let (address, _) = path.trim().strip_prefix('<')?.split_once('>')?;
    address.contains('@').then(|| address.to_owned())
}
