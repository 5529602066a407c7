//! Another graph beside the first, in one store: each engine goes on with its own threads, and leaves the others alone.

use countersign::graph::store::{Acquired, Error, External, Handling, Holder, Outbound};

use super::*;

/// What a graph remembers that reads what other systems tell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Inbox {
    read: Vec<Value>,
}

impl State for Inbox {
    fn begin_turn(&mut self, _: &Said) {}

    fn begin_with(&mut self, arrived: &External, _: Timestamp) -> bool {
        self.read.push(arrived.body().clone());
        arrived.source() == "post"
    }

    fn suspend(&self) -> Value {
        Value::Null
    }

    fn resume(&mut self, _: Value) -> Result<(), serde_json::Error> {
        Ok(())
    }

    fn superseded(&mut self, _: &ActionRecord, _: Timestamp) {}
}

/// What is heard without running a node.
struct Hears;

impl Listener<Inbox> for Hears {
    fn heard(&self, _: &mut Inbox, _: &ActionRecord, _: ActionFollowUp, _: &UserId, _: Timestamp) -> Option<Reply> {
        Some(Reply::text("Noted."))
    }
}

/// Says what it read.
struct Read;

#[async_trait]
impl Node<Inbox> for Read {
    fn name(&self) -> &'static str {
        "read"
    }

    fn targets(&self) -> &'static [&'static str] {
        &[]
    }

    async fn run(&self, state: Inbox, _: &Context) -> Result<Step<Inbox>, NodeError> {
        let words = format!("I read {}.", state.read.last().unwrap_or(&Value::Null));
        let post = json!({ "answer": words });
        Ok(Step::end(state).say(Reply::text(words)).post("post", post))
    }
}

fn letters() -> ThreadId {
    ThreadId { team: "T1".into(), channel: "C2".into(), root: "2.1".into() }
}

fn event(key: &str, body: Value) -> External {
    External::new("post", key, body).unwrap()
}

impl Bench {
    /// The engine of the other graph, on the same store.
    fn other(&self) -> Engine<Inbox> {
        let keys = Arc::new(Keyring::new(vec![vec![7; 32]]).unwrap());
        let graph = Graph::builder("letters", "read", Hears).node(Read).build().unwrap();
        engine_of(graph, self.change.clone(), self.store.clone(), keys, &self.clock, Settings::default())
    }

    /// An event begins a thread of the other graph.
    async fn gets(&self, arrived: External) {
        let mut delivery = arrived.deliver_to(letters(), self.clock.now());
        let Destination::Mailbox { graph, .. } = &mut delivery.to else { unreachable!() };
        *graph = "letters".into();
        self.store.ingest(&delivery, Handling::Later).await.unwrap();
    }

    pub(super) async fn acquire(&self) -> Option<Acquired> {
        self.store.acquire(&Holder::new("w", Duration::from_secs(30), self.clock.now()), None).await.unwrap()
    }
}

#[tokio::test]
async fn a_thread_is_left_to_the_engine_of_its_graph() {
    let bench = Bench::new();
    bench.gets(event("1", json!({ "subject": "hello" }))).await;
    let acquired = bench.acquire().await.unwrap();
    assert_eq!(acquired.lease.graph.as_str(), "letters");
    let messages_before = acquired.messages.clone();
    let refused = bench.engine.advance(acquired).await;
    assert!(matches!(refused, Err(Error::OtherGraph { ref graph, .. }) if graph.as_str() == "letters"), "{refused:?}");
    assert!(bench.acquire().await.is_none(), "it is not tried again and again");

    bench.hears("hello").await;
    assert_eq!(bench.saved().await["state"]["heard"], json!(["hello"]), "the others go on");

    bench.clock.advance(Duration::from_secs(61));
    let acquired = bench.acquire().await.expect("it waits for an engine that has its graph");
    assert_eq!(acquired.messages, messages_before, "with all that it has");
    bench.other().advance(acquired).await.unwrap();
    let saved = bench.store.load(&letters()).await.unwrap().unwrap().restore().unwrap();
    assert_eq!((&saved["graph"], &saved["turns"]), (&json!("letters"), &json!(1)));
    assert_eq!(saved["state"]["read"], json!([{ "subject": "hello" }]));
}

#[tokio::test]
async fn a_thread_that_waits_for_its_engine_is_woken_by_mail() {
    let bench = Bench::new();
    bench.gets(event("1", json!(1))).await;
    bench.engine.advance(bench.acquire().await.unwrap()).await.unwrap_err();
    bench.gets(event("2", json!(2))).await;
    bench.other().advance(bench.acquire().await.expect("there is more for it")).await.unwrap();
    let saved = bench.store.load(&letters()).await.unwrap().unwrap().restore().unwrap();
    assert_eq!(saved["state"]["read"], json!([1, 2]));
    let worker = WorkerId::new("s");
    let said = bench
        .store
        .claim_outbox(&Holder::new(worker.clone(), Duration::from_secs(9), bench.clock.now()), 9, None)
        .await
        .unwrap();
    assert!(matches!(&said[..], [one] if matches!(one.outgoing.body, Outbound::Reply { .. })), "{said:?}");
    bench.store.finish_outbox(&[(said[0].clone(), Sent::Dropped)], None).await.unwrap();
    let said = bench
        .store
        .claim_outbox(&Holder::new(worker.clone(), Duration::from_secs(9), bench.clock.now()), 9, None)
        .await
        .unwrap();
    let by_post = Outbound::Elsewhere { channel: "post".to_owned(), body: json!({ "answer": "I read 1." }) };
    assert_eq!(said.into_iter().map(|one| one.outgoing.body).collect::<Vec<_>>(), [by_post]);
}

#[tokio::test]
async fn an_event_counts_once() {
    let bench = Bench::new();
    for _ in 0..2 {
        bench.gets(event("1", json!(1))).await;
    }
    assert_eq!(bench.acquire().await.unwrap().messages.len(), 1);
}

#[tokio::test]
async fn what_nobody_waits_for_leaves_a_line_in_the_trace_and_nothing_else() {
    let bench = Bench::new();
    bench.hears("hello").await;
    let before = bench.saved().await;
    let arrived = External::new("post", "1", json!({ "secret": "words" })).unwrap();
    bench.store.ingest(&arrived.deliver_to(thread(), bench.clock.now()), Handling::Later).await.unwrap();
    assert!(bench.advances().await);
    assert_eq!(bench.saved().await, before);
    let steps = bench.store.steps(&thread(), 0, 10).await.unwrap();
    let (_, last) = steps.last().unwrap();
    assert_eq!(last.node, "external");
    assert_eq!(last.input, Some(json!({ "kind": "external", "source": "post", "key": "1" })), "and not what it says");
    assert!(bench.acquire().await.is_none());
}

#[test]
fn an_event_is_bounded() {
    let large = "x".repeat(External::MAX_BODY_BYTES);
    assert!(External::new("post", "1", json!(large)).is_err());
    let key = |event: External| event.dedup(&thread());
    assert_eq!(key(event("a", json!(1))), key(event("a", json!(2))));
    assert_ne!(key(External::new("po", "st:1", json!(1)).unwrap()), key(event("1", json!(1))));
    assert_ne!(key(event("a", json!(1))), event("a", json!(1)).dedup(&letters()), "two threads may hear of it");
}
