//! The factors of a factorial design: `factors hints: none, text; feedback: now, later`.

use serde_json::{Value, json};

use super::{
    clauses::{Taken, one, starts_clause},
    words::{Word, after, skip, text},
};

pub(super) const FACTORS: &str = "the following factors|the factors|factors|factor";

/// Parses factors after the word `factors`.
pub(super) fn factors(words: &[Word]) -> Taken<'_> {
    let (all, rest) = read(skip(after(words, FACTORS)?, "are|is|to|of|:|,"));
    if all.is_empty() { None } else { one("factors", all, rest) }
}

/// Parses factors as the answer to a question, where the word `factors` may be left out.
pub(super) fn bare(words: &[Word]) -> Value {
    read(skip(words, FACTORS)).0.into()
}

/// Parses factors. Returns them and the words that follow.
fn read(words: &[Word]) -> (Vec<Value>, &[Word]) {
    let mut all = Vec::new();
    let mut rest = words;
    while let Some((factor, more)) = together(rest).or_else(|| named(rest)) {
        all.push(factor);
        rest = more;
    }
    (all, rest)
}

/// Parses `hints=none/text`, a factor in one word.
fn together(words: &[Word]) -> Option<(Value, &[Word])> {
    let (word, rest) = skip(words, ", and|,|and").split_first()?;
    let (name, levels) = word.text.split_once(['=', ':']).filter(|_| !word.quoted)?;
    let levels: Vec<_> = levels.split(['/', '|']).filter(|level| !level.is_empty()).collect();
    (!name.is_empty() && levels.len() > 1).then(|| (json!({ "name": name, "levels": levels }), rest))
}

/// Parses `hints: none, text`, up to a semicolon, the next factor, or another part of the description.
fn named(words: &[Word]) -> Option<(Value, &[Word])> {
    let (name, mut rest) = name(skip(words, ", and|,|and|;"))?;
    let mut levels = vec![Vec::new()];
    while let Some((word, others)) = rest.split_first() {
        let separates = word.any(&[",", "and", "or", "vs"]);
        let ends = starts_clause(if separates { skip(rest, ", and|,|and") } else { rest });
        if ends || (separates && name_begins(others)) {
            break;
        }
        match levels.last_mut() {
            Some(last) if !separates => last.push(word.clone()),
            _ => levels.push(Vec::new()),
        }
        rest = others;
        if word.tail.contains(';') {
            break;
        }
    }
    let levels: Vec<_> = levels.iter().filter(|level| !level.is_empty()).map(|level| text(level)).collect();
    Some((json!({ "name": name, "levels": levels }), rest))
}

fn name_begins(words: &[Word]) -> bool {
    name(skip(words, "and")).is_some() || together(words).is_some()
}

/// Parses the name of a factor: up to three words, the last of them with a colon.
fn name(words: &[Word]) -> Option<(String, &[Word])> {
    let end = words.iter().take(3).position(|word| word.tail.contains([':', ';']) || word.any(&[",", "and"]))?;
    let (name, rest) = words.split_at(end + 1);
    name[end].tail.contains(':').then(|| (text(name), rest))
}

#[cfg(test)]
mod tests {
    use super::super::{situation::Situation, tests::check};

    #[test]
    fn factors_in_two_forms() {
        check(
            &Situation::default(),
            &[
                (
                    "create a factorial experiment Foo in assign-prog with factors hints: none, text; feedback: now, later \
                     at SelectSection/area_model with weights 40/20/20/20",
                    r#"create_experiment {"context":"assign-prog","decision_points":["SelectSection / area_model"],"factors":[{"levels":["none","text"],"name":"hints"},{"levels":["now","later"],"name":"feedback"}],"name":"Foo","weights":"40/20/20/20"}"#,
                ),
                (
                    "create a factorial experiment Foo in assign-prog with factors hints=none/text and font size: small, very large, at SelectSection/area_model",
                    r#"create_experiment {"context":"assign-prog","decision_points":["SelectSection / area_model"],"factors":[{"levels":["none","text"],"name":"hints"},{"levels":["small","very large"],"name":"font size"}],"name":"Foo"}"#,
                ),
                (
                    "create a factorial experiment Foo in assign-prog",
                    r#"create_experiment {"context":"assign-prog","factors":[],"name":"Foo"}"#,
                ),
            ],
        );
    }
}
