//! What an action is given: a JSON object, read strictly into what the action wants.
//!
//! serde would also take a list in the place of an object, its members in their order; here that is refused.

use axum::Json;
use axum::extract::{FromRequest, Request};
use serde::de::DeserializeOwned;
use serde_json::{Number, Value};

use super::control::bad_request;
use crate::rest::Problem;

/// The body of a request.
pub(super) struct Given<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Given<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let body = Json::<Value>::from_request(request, state).await;
        let Json(value) = body.map_err(|error| bad_request(error.body_text()))?;
        if !value.is_object() {
            return Err(bad_request("the body is not a JSON object".to_owned()));
        }
        let given = serde_json::from_value(whole(value)).map_err(|error| bad_request(error.to_string()))?;
        Ok(Self(given))
    }
}

/// 5.0 is the same number as 5: RFC 8259 section 6 knows no whole ones, and some programs write them so.
fn whole(value: Value) -> Value {
    match value {
        Value::Number(number) => {
            let text = number.to_string();
            let whole = text.strip_suffix(".0").and_then(|text| text.parse::<u64>().ok());
            Value::Number(whole.map_or(number, Number::from))
        }
        Value::Array(items) => items.into_iter().map(whole).collect(),
        Value::Object(members) => members.into_iter().map(|(name, value)| (name, whole(value))).collect(),
        Value::Null | Value::Bool(_) | Value::String(_) => value,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_whole_number_may_have_a_point() {
        let given = json!({"a": [5.0, 5.5, 18_446_744_073_709_551_615_u64], "b": {"c": -1.0}, "d": "5.0"});
        let taken = json!({"a": [5, 5.5, 18_446_744_073_709_551_615_u64], "b": {"c": -1.0}, "d": "5.0"});
        assert_eq!(whole(given), taken);
    }
}
