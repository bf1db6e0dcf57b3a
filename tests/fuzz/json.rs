//! Changes JSON at a random location.

use fastrand::Rng;
use serde_json::{Value, json};

/// Replaces one value of a JSON text; `None` if it is not JSON.
pub(crate) fn altered(rng: &mut Rng, text: &[u8]) -> Option<Vec<u8>> {
    let mut value: Value = serde_json::from_slice(text).ok()?;
    let mut pointers = Vec::new();
    list(&value, String::new(), &mut pointers);
    let pointer = &pointers[rng.usize(..pointers.len())];
    let target = value.pointer_mut(pointer)?;
    *target = match rng.u32(..8) {
        0 => json!(null),
        1 => json!([target.clone(), target.clone()]),
        2 => json!({ "type": target.clone(), "x\n\u{1b}": 1 }),
        3 => json!(""),
        4 => json!("\n::error::x\u{202e}"),
        5 => json!(18_446_744_073_709_551_615_u64),
        6 => without_one(rng, target.clone()),
        _ => json!((0..rng.u32(..40)).fold(json!({}), |inner, _| json!([inner]))),
    };
    serde_json::to_vec(&value).ok()
}

fn without_one(rng: &mut Rng, value: Value) -> Value {
    match value {
        Value::Array(mut elements) if !elements.is_empty() => {
            elements.remove(rng.usize(..elements.len()));
            elements.into()
        }
        Value::Object(mut members) if !members.is_empty() => {
            let key = members.keys().nth(rng.usize(..members.len())).cloned();
            key.map(|key| members.remove(&key));
            members.into()
        }
        _ => json!(-1.5),
    }
}

fn list(value: &Value, at: String, pointers: &mut Vec<String>) {
    match value {
        Value::Array(elements) => {
            elements
                .iter()
                .enumerate()
                .for_each(|(index, inner)| list(inner, format!("{at}/{index}"), pointers));
        }
        Value::Object(members) => {
            let escaped = |key: &str| key.replace('~', "~0").replace('/', "~1");
            members
                .iter()
                .for_each(|(key, inner)| list(inner, format!("{at}/{}", escaped(key)), pointers));
        }
        _ => {}
    }
    pointers.push(at);
}
