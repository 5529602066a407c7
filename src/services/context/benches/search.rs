//! The search over 100,000 vectors in a file of SQLite: `cargo bench -p countersign-context --bench search`.
//!
//! Two collections are searched: independent directions, and mails about a thousand subjects, which are as similar to
//! each other as real mails are. Each result is compared with that of an exact search over all full vectors. The first
//! search also reads the vectors into memory and is reported separately. `--vectors N` sets the number of vectors.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "it is a bench")]

use std::time::{Duration, Instant};

use countersign_context::{
    ContextStore as _, Embedding, Item, Kind,
    item::DIMENSIONS,
    sqlite::SqliteContext,
    store::{Match, Query},
};
use countersign_core::clock::Timestamp;
use serde_json::Value;

/// The number of searches of each collection.
const SEARCHES: usize = 50;

/// A source of numbers that are the same in every run.
struct Random(u64);

impl Random {
    /// Returns a number that is distributed nearly normally, with mean 0 and variance 1.
    fn normal(&mut self) -> f32 {
        let mut sum = 0.0;
        for _ in 0..12 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            sum += (self.0 >> 40) as f32 / (1_u32 << 24) as f32;
        }
        sum - 6.0
    }

    fn direction(&mut self, around: Option<&[f32]>, spread: f32) -> Vec<f32> {
        let vector: Vec<f32> = match around {
            None => (0..DIMENSIONS).map(|_| self.normal()).collect(),
            Some(center) => center.iter().map(|x| x + spread * self.normal()).collect(),
        };
        Embedding::new("bench", vector).unwrap().vector().to_vec()
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let count = arguments
        .iter()
        .position(|argument| argument == "--vectors")
        .map_or(100_000, |at| arguments[at + 1].parse().unwrap());
    let mut random = Random(0x5eed);
    let independent: Vec<_> = (0..count).map(|_| random.direction(None, 0.0)).collect();
    let queries = near_some(&independent, &mut random, 0.02);
    search("independent", &independent, &queries).await;
    drop(independent);

    let subjects: Vec<_> = (0..1000).map(|_| random.direction(None, 0.0)).collect();
    // At this spread, two mails about one subject have a similarity of about 0.8.
    let mails: Vec<_> = (0..count).map(|n| random.direction(Some(&subjects[n % subjects.len()]), 0.018)).collect();
    let queries = near_some(&mails, &mut random, 0.018);
    search("by subject", &mails, &queries).await;
}

fn near_some(vectors: &[Vec<f32>], random: &mut Random, spread: f32) -> Vec<Embedding> {
    let near = |n: usize| random.direction(Some(&vectors[n * vectors.len() / SEARCHES]), spread);
    (0..SEARCHES).map(near).map(|vector| Embedding::new("bench", vector).unwrap()).collect()
}

/// Fills a store with the vectors, searches it, and compares the results with an exact search.
async fn search(name: &str, vectors: &[Vec<f32>], queries: &[Embedding]) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteContext::open(&folder.path().join("context.sqlite")).unwrap();
    let begun = Instant::now();
    for (n, vector) in vectors.iter().enumerate() {
        let item = Item {
            account: "us@example.com".into(),
            kind: Kind::Email,
            source_id: format!("{n:06}"),
            text: format!("mail {n}"),
            embedding: Some(Embedding::new("bench", vector.clone()).unwrap()),
            metadata: Value::Null,
            at: Timestamp(n as i64),
        };
        store.remember(&item).await.unwrap();
    }
    let count = vectors.len();
    println!("{name}: {count} vectors written in {:.1} s", begun.elapsed().as_secs_f64());

    let ask = |query: &Embedding| Query::new("", Some(query.clone()));
    let begun = Instant::now();
    store.similar("us@example.com", &ask(&queries[0])).await.unwrap();
    println!("{name}: the first search, which reads the file, took {} ms", begun.elapsed().as_millis());

    let mut times = Vec::new();
    let mut found = 0;
    for query in queries {
        let begun = Instant::now();
        let result = store.similar("us@example.com", &ask(query)).await.unwrap();
        times.push(begun.elapsed());
        found += result.len();
        assert_eq!(names(&result), exact(vectors, query), "the result is that of an exact search");
    }
    times.sort_unstable();
    let millis = |time: Duration| time.as_secs_f64() * 1000.0;
    println!(
        "{name}: {SEARCHES} searches, {found} matches, all as in an exact search; median {:.1} ms, slowest {:.1} ms",
        millis(times[SEARCHES / 2]),
        millis(times[SEARCHES - 1])
    );
}

fn names(found: &[Match]) -> Vec<(String, f32)> {
    found.iter().map(|found| (found.source_id.clone(), found.similarity)).collect()
}

/// Compares a query with every vector. Of equally near ones the newest is first.
fn exact(vectors: &[Vec<f32>], query: &Embedding) -> Vec<(String, f32)> {
    let similarity = |vector: &Vec<f32>| {
        // The components of the store: each vector is scaled again when it becomes an embedding.
        let vector = Embedding::new("bench", vector.clone()).unwrap();
        let pairs = vector.vector().iter().zip(query.vector());
        pairs.map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>().clamp(-1.0, 1.0) as f32
    };
    let mut all: Vec<(usize, f32)> =
        vectors.iter().map(similarity).enumerate().filter(|(_, near)| *near >= 0.7).collect();
    all.sort_by(|one, other| other.1.total_cmp(&one.1).then(other.0.cmp(&one.0)));
    all.into_iter().take(5).map(|(n, near)| (format!("{n:06}"), near)).collect()
}
