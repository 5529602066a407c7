//! The reading threads. They see the committed data and do not wait for the writer.

use std::{
    fmt, io,
    sync::{Arc, Mutex, mpsc},
    thread::JoinHandle,
};

use countersign_graph::store::Error;
use tokio::sync::oneshot;

use super::{connection::Connection, failure::Failure};

type Job = Box<dyn FnOnce(&Connection<'_>) + Send>;

/// The channels to the reading threads.
pub(super) struct Readers {
    jobs: Option<mpsc::Sender<Job>>,
    threads: Vec<JoinHandle<()>>,
}

impl fmt::Debug for Readers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Readers")
    }
}

impl Readers {
    /// Starts a thread for each connection.
    pub(super) fn start(connections: impl IntoIterator<Item = rusqlite::Connection>) -> io::Result<Self> {
        let (jobs, waiting) = mpsc::channel::<Job>();
        let waiting = Arc::new(Mutex::new(waiting));
        let mut threads = Vec::new();
        for connection in connections {
            let waiting = Arc::clone(&waiting);
            let serve = move || {
                let connection = Connection::new(&connection);
                loop {
                    let next = waiting.lock().expect("no thread panics while it holds the lock").recv();
                    let Ok(job) = next else { return };
                    job(&connection);
                }
            };
            threads.push(std::thread::Builder::new().name("sqlite-reader".to_owned()).spawn(serve)?);
        }
        Ok(Self { jobs: Some(jobs), threads })
    }

    /// Runs a read. Everything that `work` reads is from the same snapshot of the database.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection<'_>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            let _ = reply.send(in_transaction(connection, work).map_err(Error::from)); // fails if the caller was dropped
        });
        let jobs = self.jobs.as_ref().expect("taken only when the store is dropped");
        jobs.send(job).map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.jobs.take();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn stopped() -> Error {
    Error::Unavailable("the reading threads are gone".into())
}

fn in_transaction<T>(
    connection: &Connection<'_>,
    work: impl FnOnce(&Connection<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    connection.statement("BEGIN")?.execute([])?;
    let result = work(connection);
    connection.statement("COMMIT")?.execute([])?;
    result
}
