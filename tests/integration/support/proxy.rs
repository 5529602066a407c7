//! A wire that can be cut: stands in front of a server and passes bytes on, until told otherwise.

use std::sync::Arc;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

/// What the wire does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wire {
    /// It passes bytes on.
    Up,
    /// It is cut: connections end, new ones too.
    Cut,
    /// It keeps connections and passes nothing on.
    Stalled,
    /// It passes on what clients send, and is cut as soon as the server answers.
    LosesAnswers,
}

/// A proxy on a port of its own in front of `127.0.0.1:target`.
#[derive(Debug)]
pub(crate) struct Proxy {
    port: u16,
    wire: Arc<watch::Sender<Wire>>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// A wire to `target` that is up.
    pub(crate) async fn before(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let wire = Arc::new(watch::Sender::new(Wire::Up));
        let accepting = tokio::spawn({
            let wire = Arc::clone(&wire);
            async move {
                while let Ok((client, _)) = listener.accept().await {
                    tokio::spawn(pass_on(client, target, wire.subscribe()));
                }
            }
        });
        Self { port, wire, accepting }
    }

    /// Where it listens.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Ends all connections, and new ones as soon as they are made.
    pub(crate) fn cut(&self) {
        self.wire.send_replace(Wire::Cut);
    }

    /// Keeps connections open and passes nothing on, in either direction, from now on.
    pub(crate) fn stall(&self) {
        self.wire.send_replace(Wire::Stalled);
    }

    /// Lets the server hear what clients send, but not the clients what it answers: they are cut off instead.
    pub(crate) fn lose_answers(&self) {
        self.wire.send_replace(Wire::LosesAnswers);
    }

    /// Passes on what new connections send; those that were stalled stay so.
    pub(crate) fn restore(&self) {
        self.wire.send_replace(Wire::Up);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.cut();
        self.accepting.abort();
    }
}

/// Serves one connection until either end closes it or the wire is cut.
async fn pass_on(mut client: TcpStream, target: u16, mut wire: watch::Receiver<Wire>) {
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", target)).await else { return };
    let (mut request, mut answer) = ([0; 16 * 1024], [0; 16 * 1024]);
    loop {
        let now = *wire.borrow_and_update();
        match now {
            Wire::Cut => return,
            Wire::Stalled => {
                // What was stalled stays so until it is cut, as behind a firewall that forgot the connection.
                let _ = wire.wait_for(|wire| *wire == Wire::Cut).await;
                return;
            }
            Wire::Up | Wire::LosesAnswers => {}
        }
        tokio::select! {
            biased;
            changed = wire.changed() => if changed.is_err() { return },
            read = server.read(&mut answer) => match read {
                Ok(n @ 1..) if now == Wire::Up => if client.write_all(&answer[..n]).await.is_err() { return },
                _ => return,
            },
            read = client.read(&mut request) => match read {
                Ok(n @ 1..) => if server.write_all(&request[..n]).await.is_err() { return },
                _ => return,
            },
        }
    }
}
