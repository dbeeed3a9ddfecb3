//! Whom to read from first: a pure choice among neighbours that offer the same thing.

/// What speaks for and against one neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Standing {
    /// It holds the whole thing.
    pub complete: bool,
    /// It said that it has all the readers it takes.
    pub busy: bool,
    /// It must not be read from: it lied, cannot be reached, or speaks in clear where that is not wanted.
    pub excluded: bool,
    /// How much it has to do; only compared with the others' loads.
    pub load: u32,
}

/// The places of those to be tried, the best first: whoever is free before the busy, complete holders before
/// partial ones, then the lesser load, then chance. `chance` gives one number a call.
pub fn order(standings: &[Standing], mut chance: impl FnMut() -> u64) -> Vec<usize> {
    let mut keyed: Vec<_> = standings
        .iter()
        .enumerate()
        .filter(|(_, standing)| !standing.excluded)
        .map(|(place, s)| ((s.busy, !s.complete, s.load, chance()), place))
        .collect();
    keyed.sort_unstable();
    keyed.into_iter().map(|(_, place)| place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GOOD: Standing = Standing { complete: true, busy: false, excluded: false, load: 0 };

    #[test]
    fn free_and_complete_with_little_to_do_comes_first() {
        let all = [
            Standing { excluded: true, ..GOOD },
            Standing { busy: true, ..GOOD },
            Standing { complete: false, ..GOOD },
            Standing { load: 9, ..GOOD },
            GOOD,
        ];
        assert_eq!(order(&all, || 0), [4, 3, 2, 1]);
        assert!(order(&[], || 0).is_empty());
    }

    #[test]
    fn equals_are_left_to_chance() {
        let mut numbers = [5, 1, 3].into_iter();
        assert_eq!(order(&[GOOD; 3], || numbers.next().unwrap()), [1, 2, 0]);
    }

    proptest! {
        #[test]
        fn everybody_not_excluded_has_one_place(
            all in prop::collection::vec((any::<bool>(), any::<bool>(), any::<bool>(), 0u32..4), 0..20),
            seed: u64,
        ) {
            let all: Vec<_> = all
                .into_iter()
                .map(|(complete, busy, excluded, load)| Standing { complete, busy, excluded, load })
                .collect();
            let mut state = seed;
            let mut places = order(&all, || { state = state.wrapping_mul(6_364_136_223_846_793_005); state });
            places.sort_unstable();
            let wanted: Vec<_> = (0..all.len()).filter(|place| !all[*place].excluded).collect();
            prop_assert_eq!(places, wanted);
        }
    }
}
