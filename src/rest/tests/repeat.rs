//! Answers that are kept, on SQLite and in memory.

use super::*;

#[test]
fn a_question_asked_again_is_answered_without_a_look_until_a_row_changes() {
    on_each(|api| {
        fill(api);
        let at_hand = |target: &str, fields: &[(&str, &str)]| {
            let (path, query) = target.split_once('?').unwrap_or((target, ""));
            let name = |name: &str| name.parse::<HeaderName>().unwrap();
            let headers = fields.iter().map(|(field, value)| (name(field), value.parse().unwrap())).collect();
            let ask = Ask { method: &Method::GET, path, query, headers: &headers, body: b"" };
            api.at_hand(path, &ask).map(read)
        };
        for target in ["/cheeses/1", "/cheeses?limit=2&order=grams.desc", "/cheeses/1?select=name"] {
            assert!(at_hand(target, &[]).is_none(), "{target}: nobody has asked yet");
            let first = get(api, target);
            let again = at_hand(target, &[("accept", "*/*")]).unwrap();
            assert_eq!((again.status, &again.text, &again.headers), (200, &first.text, &first.headers));
            for field in
                [("if-none-match", "*"), ("if-match", "*"), ("prefer", "count=exact"), ("accept", "text/csv")]
            {
                assert!(at_hand(target, &[field]).is_none(), "{target} {field:?}");
            }
        }
        // what others change, what may mean something else tomorrow, and what is no answer
        for target in
            ["/cheeses/1?select=name,bites(eater)", "/cheeses?called=eq.brie", "/cheeses/99", "/nothing"]
        {
            get(api, target);
            assert!(at_hand(target, &[]).is_none(), "{target}");
        }
        let patch = json!({"grams": 11});
        assert_eq!(send(api, "PATCH", "/cheeses/1", &[], &patch).status, 200);
        assert!(at_hand("/cheeses/1", &[]).is_none(), "it is another row now");
        assert_eq!(get(api, "/cheeses/1").json()["grams"], 11);
        assert_eq!(at_hand("/cheeses/1", &[]).unwrap().json()["grams"], 11);
        assert_eq!(send(api, "DELETE", "/cheeses/1", &[], &Value::Null).status, 204);
        assert!(at_hand("/cheeses/1", &[]).is_none());
        // a thousand answers are not all kept, and the newest is
        for number in 0..6000 {
            get(api, &format!("/cheeses?offset={number}"));
        }
        assert!(
            at_hand("/cheeses?offset=0", &[]).is_none() && at_hand("/cheeses?offset=5999", &[]).is_some()
        );
    });
}
