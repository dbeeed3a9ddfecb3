//! The description of the API (OpenAPI 3.1), made from the definitions that the API itself is made from.

use serde_json::{Map, Value, json};

use super::action::ActionDoc;
use super::api::Writes;
use super::question::PAGE;
use super::{Api, Problem, Resource};
use crate::orm::{ColumnSpec, Shape, TableSpec};

/// Where the API lies, in the description.
const BASE: &str = "/api/v1";

impl Api {
    /// The description, as a JSON document.
    pub fn openapi(&self, version: &str) -> Value {
        let mut paths = Map::new();
        for resource in self.resources() {
            paths.insert(format!("{BASE}/{}", resource.name()), collection(self, resource));
            paths.insert(format!("{BASE}/{}/{{key}}", resource.name()), item(resource));
        }
        paths.insert(format!("{BASE}/batch"), json!({"post": batch(self)}));
        if self.inquiry.is_some() {
            paths.insert(format!("{BASE}/sql"), json!({"post": sql()}));
        }
        for action in &self.actions {
            let path = paths.entry(format!("{BASE}{}", action.path)).or_insert_with(|| json!({}));
            if let Some(members) = path.as_object_mut() {
                if action.path.contains("{key}") && !members.contains_key("parameters") {
                    members.insert("parameters".to_owned(), json!([action_key(self, action)]));
                }
                members.insert(action.method.to_ascii_lowercase(), act(action));
            }
        }
        tell_stream(&mut paths);
        let mut schemas = Map::from_iter([("Problem".to_owned(), Problem::schema())]);
        for resource in self.resources() {
            schemas.insert(resource.name().to_owned(), row(resource.table));
            if matches!(resource.writes, Writes::Rows) {
                schemas.insert(format!("{}.new", resource.name()), new_row(resource.table, false));
                schemas.insert(format!("{}.whole", resource.name()), new_row(resource.table, true));
                schemas.insert(format!("{}.patch", resource.name()), patch(resource.table));
            }
        }
        json!({
            "openapi": "3.1.0",
            "info": {
                "title": "Larder",
                "version": version,
                "description": "Every record of a node, and what can be done with them. \
                    Wants the admin token, or the Unix socket. Errors are problem documents (RFC 9457) \
                    that name the field that is wrong and what is allowed there.",
            },
            "security": [{"token": []}],
            "paths": paths,
            "components": {
                "schemas": schemas,
                "responses": {"Problem": {
                    "description": "What was wrong, and what to do about it.",
                    "content": {Problem::MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
                }},
                "securitySchemes": {"token": {
                    "type": "http", "scheme": "bearer",
                    "description": "What stands in <state_dir>/admin.token",
                }},
            },
        })
    }
}

// === paths ===

fn collection(api: &Api, resource: &Resource) -> Value {
    let name = resource.name();
    let rows = json!({"type": "array", "items": reference(name)});
    let mut path = json!({"get": {
        "operationId": format!("list {name}"),
        "summary": format!("List {name}"),
        "description": format!(
            "{}\n\nA long list comes in pages: the field Link leads to the next one. \
             Prefer: count=exact counts all rows in Content-Range.\n\nAlso selectable, with the fields wanted \
             in brackets, and usable in filters with a dot: {}.",
            resource.table.doc,
            api.neighbours(resource).collect::<Vec<_>>().join(", "),
        ),
        "parameters": parameters(resource),
        "responses": {
            "200": {
                "description": "A page of rows.",
                "headers": {
                    "Link": {"schema": {"type": "string"}, "description": "Where the next page is."},
                    "Content-Range": {"schema": {"type": "string"}, "description": "Which rows of how many."},
                },
                "content": {
                    "application/json": {"schema": rows},
                    "application/x-ndjson": {"schema": {"type": "string"}},
                    "text/csv; charset=utf-8": {"schema": {"type": "string"}},
                },
            },
            "default": problem(),
        },
    }});
    if matches!(resource.writes, Writes::Rows)
        && let Some(members) = path.as_object_mut()
    {
        let new = reference(&format!("{name}.new"));
        let body = json!({"oneOf": [new, {"type": "array", "items": new, "minItems": 1, "maxItems": 1000}]});
        let created = json!({"oneOf": [reference(name), {"type": "array", "items": reference(name)}]});
        members.insert(
            "post".to_owned(),
            json!({
                "operationId": format!("add {name}"),
                "summary": format!("Add one or many {name}, all or none"),
                "requestBody": body_of(&body),
                "responses": {"201": answer("What was added.", &created), "default": problem()},
            }),
        );
    }
    path
}

/// Events are listed like other records, and told as they happen.
fn tell_stream(paths: &mut Map<String, Value>) {
    let Some(list) = paths.get_mut(&format!("{BASE}/events")).and_then(|path| path.get_mut("get")) else {
        return;
    };
    // not among the parameters: a stream takes none of a list's, nor a list this one
    if let Some(Value::String(text)) = list.get_mut("description") {
        text.push_str(
            "\n\nWith ?record=blobs,labels alone, the changes of these records are told as they are committed: as a \
             stream of events, or over a WebSocket. Last-Event-ID goes on where an earlier stream ended.",
        );
    }
    if let Some(content) = list.pointer_mut("/responses/200/content").and_then(Value::as_object_mut) {
        content.insert("text/event-stream".to_owned(), json!({"schema": {"type": "string"}}));
    }
}

fn item(resource: &Resource) -> Value {
    let name = resource.name();
    let found = answer("The row.", &reference(name));
    let mut path = json!({
        "parameters": [key(resource.table)],
        "get": {
            "operationId": format!("get {name}"),
            "summary": format!("One of {name}"),
            "parameters": [select(resource.table)],
            "responses": {
                "200": found,
                "304": {"description": "It is in the state that If-None-Match names."},
                "default": problem(),
            },
        },
    });
    let Some(members) = path.as_object_mut() else { return path };
    if !matches!(resource.writes, Writes::Owner { delete: None }) {
        members.insert(
            "delete".to_owned(),
            json!({
                "operationId": format!("delete {name}"),
                "summary": format!("Delete one of {name}"),
                "responses": {"204": {"description": "It is gone."}, "default": problem()},
            }),
        );
    }
    if matches!(resource.writes, Writes::Rows) {
        members.insert(
            "put".to_owned(),
            json!({
                "operationId": format!("put {name}"),
                "summary": format!("Add or replace one of {name}; If-Match says what was seen"),
                "requestBody": body_of(&reference(&format!("{name}.whole"))),
                "responses": {
                    "200": found, "201": answer("It is new.", &reference(name)), "default": problem(),
                },
            }),
        );
        members.insert(
            "patch".to_owned(),
            json!({
                "operationId": format!("change {name}"),
                "summary": format!("Change some fields of one of {name} (RFC 7396)"),
                "requestBody": {"required": true, "content": {
                    "application/json": {"schema": reference(&format!("{name}.patch"))},
                    "application/merge-patch+json": {"schema": reference(&format!("{name}.patch"))},
                }},
                "responses": {"200": found, "default": problem()},
            }),
        );
    }
    path
}

fn batch(api: &Api) -> Value {
    let writable = api.resources().iter().filter(|resource| matches!(resource.writes, Writes::Rows));
    let mut operations = Vec::new();
    for resource in writable {
        let name = json!({"const": resource.name()});
        let one = |method: &str, further: Value| {
            let mut members = json!({"method": {"const": method}, "resource": name});
            let required: Vec<String> =
                ["method", "resource"].iter().map(|name| (*name).to_owned()).collect();
            let mut required = required;
            if let (Some(members), Value::Object(further)) = (members.as_object_mut(), further) {
                required.extend(further.keys().filter(|name| *name != "version").cloned());
                members.extend(further);
            }
            json!({"type": "object", "properties": members, "required": required, "additionalProperties": false})
        };
        let version = json!({"type": ["integer", "null"], "minimum": 1, "maximum": i64::MAX, "description": "Only if it has this version still."});
        operations.push(one("POST", json!({"row": reference(&format!("{}.new", resource.name()))})));
        operations.push(one("PUT", json!({
            "key": key_schema(resource.table), "row": reference(&format!("{}.whole", resource.name())), "version": version,
        })));
        operations.push(one("DELETE", json!({"key": key_schema(resource.table), "version": version})));
    }
    let results = json!({
        "type": "object", "required": ["results"],
        "properties": {"results": {"type": "array", "items": {
            "type": "object", "required": ["status", "version"],
            "properties": {"status": {"type": "integer"}, "version": {"type": ["integer", "null"]}},
        }}},
    });
    let body = json!({"type": "array", "maxItems": 1000, "items": {"oneOf": operations}});
    json!({
        "operationId": "batch",
        "summary": "Many changes in one transaction: all of them, or none",
        "requestBody": body_of(&body),
        "responses": {"200": answer("All were done.", &results), "default": problem()},
    })
}

fn sql() -> Value {
    let body = json!({
        "type": "object", "required": ["sql"], "additionalProperties": false,
        "properties": {
            "sql": {"type": "string", "examples": ["SELECT count(*) AS blobs FROM blobs"]},
            "parameters": {"type": "array", "maxItems": 100, "items": {"type": ["string", "number", "boolean", "null"]}},
            "limit": {"type": ["integer", "null"], "minimum": 1, "maximum": 10_000},
        },
    });
    let found = json!({
        "type": "object", "required": ["columns", "rows", "more"],
        "properties": {
            "columns": {"type": "array", "items": {"type": "string"}},
            "rows": {"type": "array", "items": {"type": "array"}},
            "more": {"type": "boolean"},
        },
    });
    json!({
        "operationId": "sql",
        "summary": "One SELECT, for what no filter can say",
        "requestBody": body_of(&body),
        "responses": {"200": answer("What it gave.", &found), "default": problem()},
    })
}

fn act(action: &ActionDoc) -> Value {
    let (status, gives) = &action.gives;
    let success = match gives {
        Some(schema) => answer("Done.", schema),
        None => json!({"description": "Done."}),
    };
    let mut operation = json!({
        "operationId": format!("{} {}", action.method.to_ascii_lowercase(), action.path),
        "summary": action.doc,
        "responses": {status.to_string(): success, "default": problem()},
    });
    let Some(members) = operation.as_object_mut() else { return operation };
    if let Some(takes) = &action.takes {
        members.insert("requestBody".to_owned(), body_of(takes));
    }
    if !action.query.is_empty() {
        let parameter = |(name, doc, pattern): &(&str, &str, &str)| json!({"name": name, "in": "query", "required": true, "description": doc, "schema": {"type": "string", "pattern": pattern}});
        members.insert("parameters".to_owned(), action.query.iter().map(parameter).collect());
    }
    if action.is_open {
        members.insert("security".to_owned(), json!([]));
    }
    operation
}

fn action_key(api: &Api, action: &ActionDoc) -> Value {
    let name = action.path.trim_start_matches('/').split('/').next().unwrap_or_default();
    api.find(name).map_or_else(|| json!({}), |(_, resource)| key(resource.table))
}

// === parameters ===

fn parameters(resource: &Resource) -> Vec<Value> {
    let table = resource.table;
    let names = names(table);
    let sort = format!("({names})(\\.(asc|desc))?");
    let query = |name: &str, doc: &str, schema: Value| json!({"name": name, "in": "query", "description": doc, "schema": schema});
    let mut all = vec![
        select(table),
        query(
            "order",
            "By which fields, such as a.desc,b.",
            json!({"type": "string", "pattern": format!("^{sort}(,{sort}){{0,3}}$")}),
        ),
        query(
            "limit",
            "Rows of a page.",
            json!({"type": "integer", "minimum": 1, "maximum": PAGE.1, "default": PAGE.0}),
        ),
        query(
            "offset",
            "Rows passed over.",
            json!({"type": "integer", "minimum": 0, "maximum": 1_000_000, "default": 0}),
        ),
    ];
    for column in table.columns {
        let doc = format!("{} As operator.value.", column.doc.replace('\n', " "));
        all.push(query(column.name, &doc, json!({"type": "string", "pattern": filter(column)})));
    }
    for lookup in &resource.lookups {
        all.push(query(lookup.name, lookup.doc, json!({"type": "string", "pattern": "^eq\\..*$"})));
    }
    all
}

fn names(table: &TableSpec) -> String {
    table.columns.iter().map(|column| column.name).collect::<Vec<_>>().join("|")
}

fn select(table: &TableSpec) -> Value {
    let names = names(table);
    json!({
        "name": "select", "in": "query",
        "description": "Which fields, with commas between; name:field gives one another name.",
        "schema": {"type": "string", "pattern": format!("^({names})(,({names})){{0,9}}$")},
    })
}

/// What a filter on a column looks like.
fn filter(column: &ColumnSpec) -> String {
    let texts = matches!(column.shape, Shape::Text | Shape::Json);
    let further = if texts { "|like|ilike" } else { "" };
    format!("^(not\\.)?((eq|neq|gt|gte|lt|lte{further})\\.{}|is\\.(null|not_null))$", part(column))
}

/// What a value of a column looks like in a path or a query.
fn part(column: &ColumnSpec) -> &'static str {
    match (column.shape, column.bytes) {
        (Shape::Integer | Shape::Wide, _) => "-?[0-9]{1,18}",
        (Shape::Unsigned, _) => "[0-9]{1,18}",
        (Shape::Number, _) => "-?[0-9]{1,6}(\\.[0-9]{1,6})?",
        (Shape::Boolean, _) => "(true|false)",
        (Shape::Bytes, Some(32)) => "[0-9a-f]{64}",
        (Shape::Bytes, _) => "([0-9a-f]{2}){1,32}",
        (Shape::Digest, _) => "sha256:[0-9a-f]{64}",
        (Shape::Time, _) => "20[0-9]{2}-0[1-9]-[01][1-9]T[01][0-9]:[0-5][0-9]:[0-5][0-9]Z",
        (Shape::Address, _) => "(1[0-9]{0,2}\\.){3}1[0-9]{0,2}",
        (Shape::Text | Shape::Json, _) => "[^*%_\\\\]{0,40}",
    }
}

fn key(table: &TableSpec) -> Value {
    let docs: Vec<String> = table.key_columns().map(|column| column.doc.replace('\n', " ")).collect();
    json!({
        "name": "key", "in": "path", "required": true,
        "description": docs.join(" "), "schema": key_schema(table),
    })
}

fn key_schema(table: &TableSpec) -> Value {
    let columns: Vec<_> = table.key_columns().collect();
    if let [only] = columns.as_slice() {
        return match only.shape {
            Shape::Text => json!({"type": "string", "minLength": 1}),
            Shape::Time => json!({"type": "string", "pattern": format!("^{}$", part(only))}),
            Shape::Integer
            | Shape::Unsigned
            | Shape::Wide
            | Shape::Number
            | Shape::Boolean
            | Shape::Bytes
            | Shape::Digest
            | Shape::Address
            | Shape::Json => schema(only, false),
        };
    }
    let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
    let parts: Vec<&str> = columns.iter().map(|column| part(column)).collect();
    json!({
        "type": "string", "pattern": format!("^{}$", parts.join(",")),
        "description": format!("{}, with commas between", names.join(", ")),
    })
}

// === schemas ===

fn row(table: &TableSpec) -> Value {
    let members: Map<String, Value> =
        table.columns.iter().map(|column| (column.name.to_owned(), schema(column, true))).collect();
    json!({"type": "object", "description": table.doc, "properties": members})
}

fn new_row(table: &TableSpec, key_in_path: bool) -> Value {
    let columns = table.columns.iter().filter(|column| !(column.is_version || key_in_path && column.is_key));
    let (mut members, mut required) = (Map::new(), Vec::new());
    for column in columns {
        members.insert(column.name.to_owned(), schema(column, true));
        if column.default.is_none() && !column.nullable {
            required.push(column.name);
        }
    }
    json!({"type": "object", "properties": members, "required": required, "additionalProperties": false})
}

fn patch(table: &TableSpec) -> Value {
    let columns = table.columns.iter().filter(|column| !column.is_version && !column.is_key);
    let members: Map<String, Value> =
        columns.map(|column| (column.name.to_owned(), patched(schema(column, true)))).collect();
    json!({"type": "object", "properties": members, "additionalProperties": false})
}

/// In a patch, null takes a member of an object away.
fn patched(mut schema: Value) -> Value {
    if let Some(kind) = schema.pointer_mut("/additionalProperties/type") {
        *kind = json!([kind.take(), "null"]);
    }
    schema
}

/// The values of a column.
fn schema(column: &ColumnSpec, with_docs: bool) -> Value {
    let stated = column.schema.and_then(|text| serde_json::from_str(text).ok());
    let mut schema = stated.unwrap_or_else(|| match column.shape {
        Shape::Integer => json!({"type": "integer", "minimum": i64::MIN, "maximum": i64::MAX}),
        Shape::Unsigned => json!({"type": "integer", "minimum": 0, "maximum": u64::MAX}),
        Shape::Wide => json!({"type": ["integer", "string"]}),
        Shape::Number => json!({"type": "number"}),
        Shape::Boolean => json!({"type": "boolean"}),
        Shape::Text => json!({"type": "string"}),
        Shape::Bytes => match column.bytes {
            Some(bytes) => json!({"type": "string", "pattern": format!("^[0-9a-f]{{{}}}$", bytes * 2)}),
            None => json!({"type": "string", "pattern": "^([0-9a-f]{2})*$"}),
        },
        Shape::Digest => json!({"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"}),
        Shape::Time => json!({"type": "string"}),
        Shape::Address => json!({"type": "string", "anyOf": [{"format": "ipv4"}, {"format": "ipv6"}]}),
        Shape::Json => json!({}),
    });
    if let Some(members) = schema.as_object_mut().filter(|_| with_docs) {
        members.insert("description".to_owned(), column.doc.replace('\n', " ").into());
        if column.is_version {
            members.insert("readOnly".to_owned(), true.into());
        }
    }
    match (column.nullable && with_docs, schema.get("type").cloned()) {
        (true, Some(kind)) => {
            let kinds = json!([kind, "null"]);
            if let Some(members) = schema.as_object_mut() {
                members.insert("type".to_owned(), kinds);
            }
            schema
        }
        _ => schema,
    }
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn answer(doc: &str, schema: &Value) -> Value {
    json!({"description": doc, "content": {"application/json": {"schema": schema}}})
}

fn body_of(schema: &Value) -> Value {
    let is_binary = schema.get("format").is_some_and(|format| format == "binary");
    let kind = if is_binary { "application/octet-stream" } else { "application/json" };
    json!({"required": true, "content": {kind: {"schema": schema}}})
}

fn problem() -> Value {
    json!({"$ref": "#/components/responses/Problem"})
}
