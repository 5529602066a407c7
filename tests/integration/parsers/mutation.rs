//! Inputs that are nearly right: a good one with some of its JSON or some of its bytes changed.

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};
use serde_json::{Map, Value, json};

/// The longest input, in bytes: what the HTTP ingress reads at most.
const LONGEST: usize = 1 << 20;

/// Texts that parsers trip over.
const TEXTS: [&str; 26] = [
    "",
    " ",
    "\0",
    "\u{202e}abc",
    "𝒳é\u{301}",
    "<@U0BOT>",
    "<@U0BOT",
    "<!channel>",
    "<https://a|b>",
    "<",
    ">",
    "&amp",
    "&#x;",
    "`a``",
    "*_~",
    "-1",
    "1e999",
    "NaN",
    "0x10",
    "9223372036854775808",
    "1767225600.000100",
    ".",
    "1.",
    "enrolling",
    "2026-02-30T25:61:00Z",
    "..//?#%zz",
];

/// The input of a case: a pure function of the seeds and the number.
pub(crate) fn input(seeds: &[Vec<u8>], case: u64) -> Vec<u8> {
    let mut random = StdRng::seed_from_u64(case);
    let seed = seeds.choose(&mut random).expect("every parser has a good input");
    let mut bytes = match serde_json::from_slice::<Value>(seed) {
        Ok(mut value) => {
            for _ in 0..random.random_range(0..4) {
                change(&mut value, &mut random);
            }
            serde_json::to_vec(&value).expect("a value is JSON")
        }
        Err(_) => seed.clone(),
    };
    if random.random_bool(0.4) {
        for _ in 0..random.random_range(1..6) {
            garble(&mut bytes, &mut random);
        }
    }
    bytes.truncate(LONGEST);
    bytes
}

/// Changes one node, wherever it is.
fn change(value: &mut Value, random: &mut StdRng) {
    let nodes = count(value);
    let mut at = random.random_range(0..nodes);
    let donor = nth(value, random.random_range(0..nodes)).clone();
    if let Some(node) = nth_mut(value, &mut at) {
        change_node(node, donor, random);
    }
}

fn change_node(node: &mut Value, donor: Value, random: &mut StdRng) {
    match random.random_range(0..12) {
        0 => *node = Value::Null,
        1 => *node = donor,
        2 => *node = json!(random.random_bool(0.5)),
        3 => *node = number(random),
        4 => *node = json!(TEXTS.choose(random).expect("there are texts")),
        5 => *node = json!(TEXTS.choose(random).expect("there are texts").repeat(random.random_range(1..4_000))),
        6 => *node = deep(random.random_range(1..200), random.random_bool(0.5)),
        7 => *node = json!({}),
        8 => *node = json!([]),
        9 => match node {
            Value::Array(items) if !items.is_empty() => {
                let item = items[random.random_range(0..items.len())].clone();
                items.extend(std::iter::repeat_n(item, random.random_range(1..200)));
            }
            Value::Object(members) => many_members(members, random.random_range(1..200)),
            Value::String(text) => *text = text.chars().rev().collect(),
            other => *other = json!([other.clone()]),
        },
        _ => match node {
            Value::Object(members) => lose_or_rename(members, random),
            Value::Array(items) if !items.is_empty() => {
                items.remove(random.random_range(0..items.len()));
            }
            other => *other = json!(other.to_string()),
        },
    }
}

fn lose_or_rename(members: &mut Map<String, Value>, random: &mut StdRng) {
    let Some(name) = members.keys().nth(random.random_range(0..members.len().max(1))).cloned() else { return };
    let value = members.remove(&name).expect("the name was just there");
    if random.random_bool(0.3) {
        members.insert(name.to_uppercase(), value);
    }
}

fn many_members(members: &mut Map<String, Value>, more: usize) {
    members.extend((0..more).map(|n| (format!("member{n}"), json!(n))));
}

fn number(random: &mut StdRng) -> Value {
    let numbers = [json!(0), json!(-1), json!(i64::MIN), json!(u64::MAX), json!(1e308), json!(-0.0), json!(0.1 + 0.2)];
    numbers.choose(random).expect("there are numbers").clone()
}

/// A value so many levels deep; beyond 127 a JSON parser refuses it.
fn deep(levels: usize, arrays: bool) -> Value {
    (0..levels).fold(json!("bottom"), |inner, _| if arrays { json!([inner]) } else { json!({ "text": inner }) })
}

/// Changes some bytes, as a broken connection or a hostile sender would.
fn garble(bytes: &mut Vec<u8>, random: &mut StdRng) {
    if bytes.is_empty() {
        bytes.push(random.random());
        return;
    }
    let at = random.random_range(0..bytes.len());
    let end = (at + random.random_range(1..64)).min(bytes.len());
    match random.random_range(0..6) {
        0 => bytes[at] = random.random(),
        1 => bytes.truncate(at),
        2 => drop(bytes.drain(at..end)),
        3 => {
            let part = bytes[at..end].to_vec();
            bytes.splice(at..at, part);
        }
        4 => drop(bytes.splice(at..at, *b"\xff\xfe\x00")),
        _ => bytes[at] ^= 1 << random.random_range(0..8),
    }
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        _ => 0,
    }
}

/// The node at this place in reading order.
fn nth(value: &Value, at: usize) -> &Value {
    let mut left = at;
    let mut stack = vec![value];
    while let Some(node) = stack.pop() {
        if left == 0 {
            return node;
        }
        left -= 1;
        match node {
            Value::Array(items) => stack.extend(items.iter().rev()),
            Value::Object(members) => stack.extend(members.values().rev()),
            _ => {}
        }
    }
    value
}

fn nth_mut<'a>(value: &'a mut Value, at: &mut usize) -> Option<&'a mut Value> {
    if *at == 0 {
        return Some(value);
    }
    *at -= 1;
    match value {
        Value::Array(items) => items.iter_mut().find_map(|item| nth_mut(item, at)),
        Value::Object(members) => members.values_mut().find_map(|member| nth_mut(member, at)),
        _ => None,
    }
}
