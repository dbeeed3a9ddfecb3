//! URLs: what they are, what may lie beside them, who may speak for them; spelled once is spelled for good.
#![no_main]

use larder::ecosystem::{classify, gives_tokens, sidecars, speaks_for, spelling};
use larder::mirror::Mirrors;
use larder_fuzz::target;

libfuzzer_sys::fuzz_target!(|path: &str| {
    // behind `/m/@` lies a URL of any server, not a part of one
    if let Some(Ok(entry)) =
        Mirrors::default().enter(path).filter(|_| !path.starts_with("/m/@") && !path.starts_with("/m/%40"))
    {
        assert!(!entry.target.path().split('/').any(|part| part == ".."), "it leads out of the mirror");
    }
    let Some(target) = target(path) else { return };
    assert!(speaks_for(&target, &target));
    let (_, _, _) = (classify(&target), sidecars(&target), gives_tokens(&target));
    let spelled = spelling(&target);
    assert_eq!(spelling(&spelled), spelled);
});
