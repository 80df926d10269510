//! The fields of a record, as tables, from its JSON schema.

use serde_json::Value;

/// A row for each field that the schema describes, those inside others by their path: `verdict.checks[].held`. Parts that several
/// fields have in common follow, in a table each.
///
/// # Panics
/// Where the text is not a schema.
pub fn fields(schema: &str) -> String {
    let schema: Value = serde_json::from_str(schema).expect("a schema is JSON");
    let mut text = table(&schema);
    for (name, part) in schema["$defs"].as_object().into_iter().flatten().filter(|(_, part)| has_fields(part))
    {
        let about = part["description"].as_str().map(|about| format!(": {about}")).unwrap_or_default();
        text += &format!("\n`{name}`{about}\n\n{}", table(part));
    }
    text
}

fn has_fields(part: &Value) -> bool {
    part["properties"].as_object().is_some_and(|fields| !fields.is_empty())
}

fn table(schema: &Value) -> String {
    let mut rows = "| field | meaning |\n| --- | --- |\n".to_owned();
    below(schema, "", &mut rows);
    rows
}

fn below(schema: &Value, path: &str, rows: &mut String) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let (inner, is_list) = if field["items"].is_object() { (&field["items"], "[]") } else { (field, "") };
        let path = format!("{path}{name}{is_list}");
        let part = inner["$ref"].as_str().and_then(|part| part.rsplit('/').next());
        let part = part.map(|part| format!("`{part}`"));
        let meaning = field["description"].as_str().map(str::to_owned);
        let meaning: Vec<String> = meaning.into_iter().chain(part).collect();
        *rows += &format!("| `{path}` | {} |\n", meaning.join(" ").replace('|', "\\|"));
        below(inner, &format!("{path}."), rows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_their_path() {
        let schema = r##"{"properties": {"a": {"description": "A | list", "items": {"properties": {"b": {"$ref": "#/$defs/time"}}}}},
            "$defs": {"time": {"description": "A time", "properties": {"s": {"description": "Seconds"}}}}}"##;
        let head = "| field | meaning |\n| --- | --- |\n";
        let expected = format!(
            "{head}| `a[]` | A \\| list |\n| `a[].b` | `time` |\n\n`time`: A time\n\n{head}| `s` | Seconds |\n"
        );
        assert_eq!(fields(schema), expected);
    }
}
