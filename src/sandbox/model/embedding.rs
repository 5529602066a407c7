//! Embeddings by the words of a text: deterministic, so that texts with the same words are close to each other.

use serde_json::{Value, json};

use super::check::object;

/// The only number of dimensions.
const DIMENSIONS: usize = 768;

/// Returns the answer of the OpenAI API to a request.
///
/// # Errors
///
/// The rule of the API that the request violates.
pub(super) fn openai(body: &Value) -> Result<Value, String> {
    object(body, "request", &["model", "input", "dimensions", "encoding_format", "user"])?;
    if body["model"].as_str().is_none_or(str::is_empty) {
        return Err("you must provide a model parameter".to_owned());
    }
    if body["dimensions"] != DIMENSIONS || body["encoding_format"] != "float" {
        return Err(format!("This stand-in returns {DIMENSIONS} dimensions as float."));
    }
    let text = body["input"].as_str().filter(|text| !text.is_empty()).ok_or("'$.input' is invalid.")?;
    let data = json!([{ "object": "embedding", "index": 0, "embedding": vector(text, 1.0) }]);
    let tokens = text.len().div_ceil(4);
    let usage = json!({ "prompt_tokens": tokens, "total_tokens": tokens });
    Ok(json!({ "object": "list", "data": data, "model": body["model"], "usage": usage }))
}

/// Returns the answer of the Gemini API to a request. Like there, the vector is not of length 1.
///
/// # Errors
///
/// The rule of the API that the request violates.
pub(super) fn gemini(body: &Value) -> Result<Value, String> {
    object(body, "request", &["model", "content", "taskType", "title", "outputDimensionality"])?;
    if body["outputDimensionality"] != DIMENSIONS {
        return Err(format!("This stand-in returns {DIMENSIONS} dimensions."));
    }
    let kinds = ["SEMANTIC_SIMILARITY", "RETRIEVAL_QUERY", "RETRIEVAL_DOCUMENT", "CLASSIFICATION", "CLUSTERING"];
    if body.get("taskType").is_some_and(|kind| kinds.iter().all(|known| kind != *known)) {
        return Err("Invalid value at 'task_type'".to_owned());
    }
    object(&body["content"], "content", &["parts", "role"])?;
    let text = body["content"]["parts"][0]["text"].as_str().filter(|text| !text.is_empty());
    let text = text.ok_or("content: the text content is empty")?;
    Ok(json!({ "embedding": { "values": vector(text, 0.7) } }))
}

/// Returns a vector of this length: each word adds to one dimension.
fn vector(text: &str, length: f64) -> Vec<f64> {
    let mut vector = vec![0.0_f64; DIMENSIONS];
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    for word in words {
        // FNV-1a, which is the same on all machines.
        let hash = word
            .to_lowercase()
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        vector[(hash % DIMENSIONS as u64) as usize] += 1.0;
    }
    let norm = vector.iter().map(|value| value * value).sum::<f64>().sqrt();
    if norm == 0.0 {
        vector[0] = length; // a text without words
        return vector;
    }
    vector.iter().map(|value| value / norm * length).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_with_the_same_words_are_close() {
        let cosine = |a: &str, b: &str| vector(a, 1.0).iter().zip(vector(b, 1.0)).map(|(a, b)| a * b).sum::<f64>();
        assert!(cosine("Refund, please!", "please refund") > 0.999);
        assert!(cosine("Where is my refund?", "where is my order") > 0.7);
        assert!(cosine("refund", "meeting") < 0.001);
    }
}
