//! The vectors of an account in memory, in one byte a component.
//!
//! A search compares the query with every vector of the account, but in a compact form: each component is an integer
//! from −127 to 127, in units of the largest component. The distance between a vector and its compact form is known, so
//! the difference between the similarity and its estimate has an upper limit. The file is read for those vectors only
//! whose similarity may be among the best. The result is therefore exactly that of a comparison of all full vectors,
//! with a quarter of the memory.

use std::{cmp::Ordering, collections::HashMap};

use crate::item::{DIMENSIONS, Kind};

/// The largest component of a compact vector.
const LARGEST: f32 = 127.0;

/// The largest component of a compact query. The sum of 768 products with 127 fits in 32 bits.
const LARGEST_OF_QUERY: f32 = 16_383.0;

/// An upper limit of the errors of rounding in the computation of an estimate.
const ROUNDING: f32 = 1e-5;

/// The lists of vectors in memory, by account and model.
#[derive(Default)]
pub(super) struct Index {
    lists: HashMap<(String, String), List>,
}

impl Index {
    /// Forgets everything. It is read again when it is needed.
    pub(super) fn clear(&mut self) {
        self.lists.clear();
    }

    /// Returns the list of an account and a model, if it is in memory.
    pub(super) fn list(&self, account: &str, model: &str) -> Option<&List> {
        self.lists.get(&(account.to_owned(), model.to_owned()))
    }

    /// Adds a list that was read.
    pub(super) fn add(&mut self, account: &str, model: &str, list: List) {
        self.lists.insert((account.to_owned(), model.to_owned()), list);
    }

    /// Replaces the vector of an item in the lists that are in memory. `vector` is `None` if it has none any more.
    pub(super) fn put(&mut self, account: &str, id: i64, kind: Kind, vector: Option<(&str, &[f32])>) {
        for ((of, model), list) in &mut self.lists {
            if of != account {
                continue;
            }
            list.remove(id);
            if let Some((_, vector)) = vector.filter(|(name, _)| name == model) {
                list.push(id, kind, vector);
            }
        }
    }
}

/// The compact vectors of one account and one model.
#[derive(Default)]
pub(super) struct List {
    ids: Vec<i64>,
    kinds: Vec<Kind>,
    /// All components, one vector after the other.
    codes: Vec<i8>,
    units: Vec<f32>,
    /// The distances between the vectors and their compact forms.
    errors: Vec<f32>,
    places: HashMap<i64, usize>,
}

impl List {
    /// Adds a vector of length 1. The list must not contain its item.
    pub(super) fn push(&mut self, id: i64, kind: Kind, vector: &[f32]) {
        let (codes, unit, error) = compact(vector, LARGEST);
        self.places.insert(id, self.ids.len());
        self.ids.push(id);
        self.kinds.push(kind);
        self.codes.extend(codes.into_iter().map(|code| code as i8));
        self.units.push(unit);
        self.errors.push(error);
    }

    /// Removes the vector of an item, if there is one. The last vector takes its place.
    fn remove(&mut self, id: i64) {
        let Some(place) = self.places.remove(&id) else { return };
        let last = self.ids.len() - 1;
        self.ids.swap_remove(place);
        self.kinds.swap_remove(place);
        self.units.swap_remove(place);
        self.errors.swap_remove(place);
        self.codes.copy_within(last * DIMENSIONS.., place * DIMENSIONS);
        self.codes.truncate(last * DIMENSIONS);
        if place < last {
            self.places.insert(self.ids[place], place);
        }
    }

    /// Returns the items whose similarity to the query is among the `limit` highest, with ties, and at least
    /// `at_least`, as ids with their similarity in no particular order. `exact` computes the similarity of an item.
    ///
    /// # Errors
    ///
    /// The first error of `exact`.
    pub(super) fn nearest<E>(
        &self,
        search: &Search<'_>,
        exact: impl FnMut(i64) -> Result<f32, E>,
    ) -> Result<Vec<(i64, f32)>, E> {
        let mut exact = exact;
        let Search { query, kind, not, at_least, limit } = *search;
        if limit == 0 {
            return Ok(Vec::new());
        }
        let candidates = self.candidates(query, kind, not, at_least, limit);
        let mut found: Vec<(i64, f32)> = Vec::new();
        let mut best: Vec<f32> = Vec::new(); // the `limit` highest similarities so far, highest first
        for Candidate { id, most } in candidates {
            if most < at_least || best.get(limit - 1).is_some_and(|last| most < *last) {
                break; // the candidates are sorted, so the others are not near enough either
            }
            let similarity = exact(id)?;
            if similarity < at_least {
                continue;
            }
            let place = best.partition_point(|other| *other >= similarity);
            best.insert(place, similarity);
            best.truncate(limit);
            found.push((id, similarity));
        }
        if let Some(last) = best.get(limit - 1) {
            found.retain(|(_, similarity)| similarity >= last);
        }
        Ok(found)
    }

    /// Returns the items that may be among the nearest, sorted by their highest possible similarity.
    fn candidates(
        &self,
        query: &[f32],
        kind: Option<Kind>,
        not: &[i64],
        at_least: f32,
        limit: usize,
    ) -> Vec<Candidate> {
        let (query, unit, error) = compact(query, LARGEST_OF_QUERY);
        let mut candidates = Vec::new();
        let mut least = Vec::new(); // the lowest possible similarities
        for (place, codes) in self.codes.chunks_exact(DIMENSIONS).enumerate() {
            if kind.is_some_and(|kind| kind != self.kinds[place]) {
                continue;
            }
            let estimate = product(codes, &query) as f32 * self.units[place] * unit;
            // |xy − x′y′| ≤ |x|·|y − y′| + |x − x′|·|y′|, where |x| = |y| = 1.
            let own = self.errors[place];
            let off = (own + error * (1.0 + own)) * 1.001 + ROUNDING;
            if estimate + off < at_least || not.contains(&self.ids[place]) {
                continue;
            }
            candidates.push(Candidate { id: self.ids[place], most: estimate + off });
            least.push(estimate - off);
        }
        if least.len() > limit {
            let (_, last, _) = least.select_nth_unstable_by(limit - 1, |one, other| other.total_cmp(one));
            let last = *last;
            candidates.retain(|candidate| candidate.most >= last);
        }
        candidates.sort_unstable_by(|one, other| match other.most.total_cmp(&one.most) {
            Ordering::Equal => one.id.cmp(&other.id),
            order => order,
        });
        candidates
    }
}

/// A search in a list.
#[derive(Clone, Copy)]
pub(super) struct Search<'a> {
    /// The vector of the query, of length 1.
    pub(super) query: &'a [f32],
    /// The wanted kind; `None` for all.
    pub(super) kind: Option<Kind>,
    /// The items that are not wanted.
    pub(super) not: &'a [i64],
    /// The least similarity.
    pub(super) at_least: f32,
    /// The number of wanted items.
    pub(super) limit: usize,
}

/// An item that may be among the nearest.
struct Candidate {
    id: i64,
    /// Its highest possible similarity.
    most: f32,
}

/// Returns the similarity of two vectors of length 1.
pub(super) fn cosine(one: &[f32], other: &[f32]) -> f32 {
    let sum: f64 = one.iter().zip(other).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum();
    sum.clamp(-1.0, 1.0) as f32
}

/// Returns a vector as integers up to `largest`, the size of their unit, and the distance between both.
fn compact(vector: &[f32], largest: f32) -> (Vec<i16>, f32, f32) {
    let most = vector.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    if most == 0.0 {
        return (vec![0; vector.len()], 0.0, 0.0);
    }
    let unit = most / largest;
    let codes: Vec<i16> = vector.iter().map(|x| (x / unit).round().clamp(-largest, largest) as i16).collect();
    let squares: f64 =
        vector.iter().zip(&codes).map(|(x, code)| (f64::from(*x) - f64::from(*code) * f64::from(unit)).powi(2)).sum();
    (codes, unit, squares.sqrt() as f32)
}

/// Returns the sum of the products of the components. The compiler turns this into vector instructions.
fn product(codes: &[i8], query: &[i16]) -> i32 {
    codes.iter().zip(query).map(|(code, other)| i32::from(*code) * i32::from(*other)).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::item::Embedding;

    /// Returns a direction that depends on the seed: near others with the same `group`.
    fn direction(group: u64, seed: u64, spread: f32) -> Vec<f32> {
        let mut state = group.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut other = seed.wrapping_mul(0xd134_2543_de82_ef95) | 1;
        let next = |state: &mut u64| {
            *state ^= *state << 13;
            *state ^= *state >> 7;
            *state ^= *state << 17;
            (*state >> 40) as f32 / (1 << 24) as f32 - 0.5
        };
        let vector = (0..DIMENSIONS).map(|_| next(&mut state) + spread * next(&mut other)).collect();
        Embedding::new("m", vector).unwrap().vector().to_vec()
    }

    fn list(vectors: &[Vec<f32>]) -> List {
        let mut list = List::default();
        for (id, vector) in vectors.iter().enumerate() {
            list.push(id as i64, if id % 3 == 0 { Kind::Crm } else { Kind::Email }, vector);
        }
        list
    }

    fn sorted(mut found: Vec<(i64, f32)>) -> Vec<(i64, f32)> {
        found.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        found
    }

    fn nearest(list: &List, vectors: &[Vec<f32>], search: Search<'_>) -> Vec<(i64, f32)> {
        let exact = |id: i64| Ok::<_, ()>(cosine(search.query, &vectors[id as usize]));
        sorted(list.nearest(&search, exact).unwrap())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn the_result_is_that_of_a_comparison_with_all(
            seeds in prop::collection::vec((0..4_u64, any::<u64>()), 1..80),
            spread in 0.001..2.0_f32,
            at_least in -1.0..1.0_f32,
            limit in 1..8_usize,
        ) {
            let vectors: Vec<_> = seeds.iter().map(|(group, seed)| direction(*group, *seed, spread)).collect();
            let query = direction(1, 99, spread);
            let search = Search { query: &query, kind: Some(Kind::Email), not: &[1], at_least, limit };
            let found = nearest(&list(&vectors), &vectors, search);

            let all = vectors.iter().enumerate().map(|(id, vector)| (id as i64, cosine(&query, vector)));
            let mut expected = sorted(all.filter(|(id, near)| id % 3 != 0 && *id != 1 && *near >= at_least).collect());
            if let Some((_, last)) = expected.get(limit - 1).copied() {
                expected.retain(|(_, near)| *near >= last);
            }
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn few_full_vectors_are_read() {
        let vectors: Vec<_> = (0..500).map(|seed| direction(seed, seed, 0.1)).collect();
        let list = list(&vectors);
        let mut read = 0;
        let search = Search { query: &vectors[7], kind: None, not: &[], at_least: 0.7, limit: 5 };
        let found = list.nearest(&search, |id| {
            read += 1;
            Ok::<_, ()>(cosine(&vectors[7], &vectors[id as usize]))
        });
        let ids: Vec<_> = found.unwrap().into_iter().map(|(id, _)| id).collect();
        assert_eq!((ids, read), (vec![7], 1));
    }

    #[test]
    fn a_replaced_and_a_removed_vector_are_not_found() {
        let vectors: Vec<_> = (0..4).map(|seed| direction(seed, seed, 0.0)).collect();
        let mut index = Index::default();
        index.add("a", "m", list(&vectors));
        index.put("a", 1, Kind::Email, None);
        index.put("a", 2, Kind::Email, Some(("m", &vectors[0])));
        index.put("b", 3, Kind::Email, None);
        let own = index.list("a", "m").unwrap();
        assert_eq!(own.ids.len(), 3);
        let search = Search { query: &vectors[0], kind: None, not: &[], at_least: 0.9, limit: 5 };
        let now = [vectors[0].clone(), vectors[1].clone(), vectors[0].clone(), vectors[3].clone()];
        assert_eq!(nearest(own, &now, search).iter().map(|(id, _)| *id).collect::<Vec<_>>(), [0, 2]);
        index.clear();
        assert!(index.list("a", "m").is_none());
    }
}
