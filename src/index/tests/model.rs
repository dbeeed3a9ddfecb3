//! Random lives of an index against plain maps: what is there after any sequence, with closing and opening in
//! between, is what the maps say.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Deed {
    PutBlob(u64, u64),
    RemoveBlob(u64),
    Used(u64, u64),
    PutResource { of: u64, language: u64, tag: u64, age: u64, to: Option<u64> },
    RemoveUrl(u64),
    Flush,
    Reopen,
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let few = 0..6_u64;
    let deed = prop_oneof![
        4 => (few.clone(), 0..1_000_u64).prop_map(|(number, size)| Deed::PutBlob(number, size)),
        2 => few.clone().prop_map(Deed::RemoveBlob),
        4 => (few.clone(), 0..1_000_u64).prop_map(|(number, later)| Deed::Used(number, later)),
        6 => (few.clone(), 0..3_u64, 0..3_u64, 0..100_u64, prop::option::of(few.clone()))
            .prop_map(|(of, language, tag, age, to)| Deed::PutResource { of, language, tag, age, to }),
        1 => few.prop_map(Deed::RemoveUrl),
        1 => Just(Deed::Flush),
        1 => Just(Deed::Reopen),
    ];
    prop::collection::vec(deed, 0..60)
}

#[derive(Default)]
struct Model {
    blobs: HashMap<Digest, BlobRecord>,
    answers: HashMap<(UrlKey, Variance), ResourceRecord>,
}

impl Model {
    fn follow(&mut self, deed: &Deed) {
        match deed {
            Deed::PutBlob(number, size) => {
                self.blobs.insert(digest(*number), blob(*number, *size));
            }
            Deed::RemoveBlob(number) => {
                self.blobs.remove(&digest(*number));
            }
            Deed::Used(number, later) => {
                if let Some(blob) = self.blobs.get_mut(&digest(*number)) {
                    blob.hits += 1;
                    blob.last_used = blob.last_used.max(Timestamp(NOON.0 + later));
                }
            }
            Deed::PutResource { of, language, tag, age, to } => {
                let record = answer(*of, *language, *tag, *age, *to);
                self.answers.insert((record.url_key, record.variance.clone()), record);
            }
            Deed::RemoveUrl(of) => self.answers.retain(|(key, _), _| *key != url(*of)),
            Deed::Flush | Deed::Reopen => {}
        }
    }

    fn compare(&self, index: &Index) {
        let blobs: HashMap<_, _> = index.blobs().iter().map(|b| (b.digest, (**b).clone())).collect();
        assert_eq!(blobs, self.blobs);
        let bytes = self.blobs.values().map(|b| b.size).sum();
        let again_bytes = self.blobs.values().filter(|b| b.hits > 0).map(|b| b.size).sum();
        assert_eq!(index.totals(), Totals { blobs: self.blobs.len() as u64, bytes, again_bytes });
        let mut expected: Vec<_> = self.answers.values().cloned().collect();
        let mut found: Vec<_> = index.resources().iter().map(|r| (**r).clone()).collect();
        let mut by_url: Vec<_> = (0..6).flat_map(|n| index.variants(&url(n))).map(|r| (*r).clone()).collect();
        for list in [&mut expected, &mut found, &mut by_url] {
            list.sort_by_key(|record| record.resource_key);
        }
        assert_eq!(found, expected);
        assert_eq!(by_url, expected);
        for number in 0..6 {
            let of = index.resources_of(&digest(number));
            assert_eq!(of.len(), expected.iter().filter(|r| r.digest == Some(digest(number))).count());
        }
    }
}

fn act(index: &Index, deed: &Deed) {
    match deed {
        Deed::PutBlob(number, size) => index.put_blob(blob(*number, *size)),
        Deed::RemoveBlob(number) => index.remove_blob(&digest(*number)),
        Deed::Used(number, later) => index.used(&digest(*number), Timestamp(NOON.0 + later)),
        Deed::PutResource { of, language, tag, age, to } => {
            index.put_resource(answer(*of, *language, *tag, *age, *to));
        }
        Deed::RemoveUrl(of) => index.remove_url(&url(*of)),
        Deed::Flush => assert!(index.flush()),
        Deed::Reopen => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn an_index_is_what_was_put_into_it(deeds in deeds()) {
        let folder = tempfile::tempdir().unwrap();
        let (mut index, _) = open(folder.path());
        let mut model = Model::default();
        for deed in &deeds {
            if let Deed::Reopen = deed {
                assert!(index.close());
                let (again, opened) = open(folder.path());
                prop_assert!(!opened.fresh);
                index = again;
                model.compare(&index);
            }
            act(&index, deed);
            model.follow(deed);
        }
        model.compare(&index);
        prop_assert!(index.close());
        model.compare(&open(folder.path()).0);
    }
}
