//! The positions of secrets in the body of a request: in a form, as in the query of a URL, and in JSON.

use std::ops::Range;

/// The values of the fields with secret names, in order. A body that begins with a brace or a bracket is JSON, any other a
/// form.
pub(super) fn secret_values(body: &str, is_secret: impl Fn(&str) -> bool) -> Vec<(&str, Range<usize>)> {
    let fields = if body.trim_start().starts_with(['{', '[']) { in_json(body) } else { in_form(body) };
    fields.into_iter().filter(|(name, value)| is_secret(name) && !value.is_empty()).collect()
}

fn in_form(body: &str) -> Vec<(&str, Range<usize>)> {
    let mut at = 0;
    let field = |pair| {
        let begin = at;
        at += str::len(pair) + 1;
        let (name, value) = pair.split_once('=')?;
        // The end of the line after the last field does not belong to it.
        Some((name, begin + name.len() + 1..begin + name.len() + 1 + value.trim_end().len()))
    };
    body.split('&').filter_map(field).collect()
}

/// The scalars with a name; for a text, the part between its quotes.
fn in_json(body: &str) -> Vec<(&str, Range<usize>)> {
    let mut fields = Vec::new();
    let mut at = 0;
    while let Some(name) = next_text(body, at) {
        at = name.end + 1;
        let rest = body.get(at..).unwrap_or_default().trim_start();
        let Some(value) = rest.strip_prefix(':').map(str::trim_start) else { continue };
        let begin = body.len() - value.len();
        let value = match value.chars().next() {
            Some('"') => next_text(body, begin).unwrap_or(begin + 1..body.len()),
            Some('{' | '[') | None => continue,
            // A reference in place of a number.
            Some('$') => begin..begin + value.find('}').map_or(value.len(), |end| end + 1),
            Some(_) => {
                let ends = |c: char| ",]}".contains(c) || c.is_whitespace();
                begin..begin + value.find(ends).unwrap_or(value.len())
            }
        };
        fields.push((&body[name], value.clone()));
        at = value.end + usize::from(body[value.end..].starts_with('"'));
    }
    fields
}

/// The part between the next two quotes.
fn next_text(body: &str, from: usize) -> Option<Range<usize>> {
    let begin = from + body.get(from..)?.find('"')? + 1;
    let mut is_escaped = false;
    let end = body[begin..].find(|c| {
        let ends = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends
    });
    Some(begin..begin + end?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(body: &str) -> Vec<&str> {
        let values = secret_values(body, |name| name == "password" || name == "pin");
        values.into_iter().map(|(_, value)| &body[value]).collect()
    }

    #[test]
    fn fields_of_a_form_and_of_json_are_found() {
        assert_eq!(found("user=ann&password=a%20b&pin=\n"), ["a%20b"]);
        assert_eq!(found("password=a b\r\n"), ["a b"]);
        assert_eq!(found(r#"{"user": "ann", "password" : "a\"b\\", "pin":1234}"#), [r#"a\"b\\"#, "1234"]);
        assert_eq!(found(r#"[{"x": {"password": ""}}, {"pin": [1], "y": {"pin": 5 }}]"#), ["5"]);
        assert_eq!(found(r#"{"text": "password", "n": "\"password\": \"a\""}"#), [""; 0]);
        assert_eq!(found(r#"{"password": "a"#), ["a"]);
        for none in ["", "password", "a password=b", "{\"password\"", "{\"password\":", "{"] {
            assert_eq!(found(none), [""; 0], "{none}");
        }
    }

    proptest! {
        #[test]
        fn any_text_has_values_in_their_order(body in r#"[{\["\\:,&=a}\] é]{0,40}"#) {
            let mut end = 0;
            for (_, value) in secret_values(&body, |_| true) {
                prop_assert!(end <= value.start && body.get(value.clone()).is_some());
                end = value.end;
            }
        }
    }
}
