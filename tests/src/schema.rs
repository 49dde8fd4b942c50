//! JSON Schema, as far as our own tools use it. A keyword that is not known here is a panic: what is not understood was not
//! checked.

use serde_json::Value;

/// Hold a value against a schema; a panic says where it does not fit.
#[track_caller]
pub fn check(schema: &Value, value: &Value) {
    if let Err(why) = fits(schema, schema, value, "$") {
        panic!("{why}\n{value:#}");
    }
}

fn fits(root: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    for (keyword, wanted) in schema.as_object().ok_or(format!("{at}: no schema"))? {
        let held = match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" | "default" => Ok(()),
            "format" => match wanted.as_str() {
                Some("uint" | "uint32" | "uint64") => as_if(value.is_null() || value.is_u64()),
                _ => Err(format!("{at}: format {wanted} is not known here")),
            },
            "$ref" => {
                let path = wanted.as_str().unwrap_or_default();
                let named = root.pointer(path.trim_start_matches('#'));
                let named = named.ok_or(format!("{at}: {path} leads nowhere"))?;
                fits(root, named, value, at)
            }
            "type" => as_if(match wanted.as_array() {
                Some(types) => types.iter().any(|one| is_of(one, value)),
                None => is_of(wanted, value),
            }),
            "const" => as_if(value == wanted),
            "minimum" => as_if(value.is_null() || value.as_f64() >= wanted.as_f64()),
            "maximum" => as_if(value.is_null() || value.as_f64() <= wanted.as_f64()),
            "required" => as_if(list(wanted).iter().all(|key| {
                let key = key.as_str().unwrap_or_default();
                value.get(key).is_some()
            })),
            "properties" => properties(root, wanted, value, at),
            "items" => list(value)
                .iter()
                .enumerate()
                .try_for_each(|(n, item)| fits(root, wanted, item, &format!("{at}[{n}]"))),
            "anyOf" => as_if(alternatives(root, wanted, value, at) >= 1),
            "oneOf" => as_if(alternatives(root, wanted, value, at) == 1),
            other => Err(format!("{at}: keyword {other} is not known here")),
        };
        held.map_err(|why| match why.is_empty() {
            true => format!("{at}: {keyword} {wanted} does not hold"),
            false => why,
        })?;
    }
    Ok(())
}

/// Stricter than the standard: a field that the schema does not describe is one that nobody was told of.
fn properties(root: &Value, described: &Value, value: &Value, at: &str) -> Result<(), String> {
    let Some(fields) = value.as_object() else {
        return Ok(());
    };
    for (key, field) in fields {
        let schema = described.get(key);
        let schema = schema.ok_or(format!("{at}.{key} is not described"))?;
        fits(root, schema, field, &format!("{at}.{key}"))?;
    }
    Ok(())
}

fn alternatives(root: &Value, schemas: &Value, value: &Value, at: &str) -> usize {
    let fit = list(schemas).iter();
    fit.filter(|schema| fits(root, schema, value, at).is_ok())
        .count()
}

fn as_if(holds: bool) -> Result<(), String> {
    if holds { Ok(()) } else { Err(String::new()) }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn is_of(wanted: &Value, value: &Value) -> bool {
    match wanted.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_u64() || value.is_i64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        Some("null") => value.is_null(),
        _ => false,
    }
}
