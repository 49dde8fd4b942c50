//! Merge bases of two commits, from nothing but their parents.
//!
//! Commit dates only steer the order of the walk, never its answer: an author chooses them freely. All bases are found,
//! and only bases: a criss-cross history must neither hide a change nor invent one.

use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};
use std::hash::Hash;

/// What a walk needs to know of a commit.
#[derive(Debug, Clone)]
pub(super) struct Step<Id> {
    /// Its parents.
    pub(super) parents: Vec<Id>,
    /// When it says it was committed; newer ones are walked first.
    pub(super) time: i64,
}

const LEFT: u8 = 1;
const RIGHT: u8 = 2;
/// In the history of a commit that both sides share already.
const SHARED: u8 = 4;
const QUEUED: u8 = 8;
const CANDIDATE: u8 = 16;

/// The commits that are in both histories and in no other such commit's history, sorted.
pub(super) fn merge_bases<Id, E>(
    left: &Id,
    right: &Id,
    step: &mut dyn FnMut(&Id) -> Result<Step<Id>, E>,
) -> Result<Vec<Id>, E>
where
    Id: Clone + Ord + Hash,
{
    if left == right {
        return Ok(vec![left.clone()]);
    }
    let mut walk = Walk {
        steps: HashMap::new(),
        marks: HashMap::new(),
        queue: BinaryHeap::new(),
        open: 0,
        step,
    };
    walk.mark(left, LEFT)?;
    walk.mark(right, RIGHT)?;
    let found = walk.meet()?;
    walk.only_newest(found)
}

struct Walk<'a, Id, E> {
    steps: HashMap<Id, Step<Id>>,
    marks: HashMap<Id, u8>,
    queue: BinaryHeap<(i64, Id)>,
    /// Queued commits that are not yet known to be behind a shared one; the walk ends with the last of them.
    open: usize,
    step: &'a mut dyn FnMut(&Id) -> Result<Step<Id>, E>,
}

impl<Id: Clone + Ord + Hash, E> Walk<'_, Id, E> {
    fn look(&mut self, id: &Id) -> Result<Step<Id>, E> {
        if let Some(known) = self.steps.get(id) {
            return Ok(known.clone());
        }
        let step = (self.step)(id)?;
        self.steps.insert(id.clone(), step.clone());
        Ok(step)
    }

    fn mark(&mut self, id: &Id, add: u8) -> Result<(), E> {
        let time = self.look(id)?.time;
        let marks = self.marks.entry(id.clone()).or_default();
        let was_open = *marks & QUEUED != 0 && *marks & SHARED == 0;
        if *marks & QUEUED == 0 {
            self.queue.push((time, id.clone()));
        }
        *marks |= add | QUEUED;
        let is_open = *marks & SHARED == 0;
        match (was_open, is_open) {
            (false, true) => self.open += 1,
            (true, false) => self.open -= 1,
            (true, true) | (false, false) => {}
        }
        Ok(())
    }

    /// Commits that both sides reach, before any is known to be behind another.
    fn meet(&mut self) -> Result<Vec<Id>, E> {
        while self.open > 0 {
            let Some((_, id)) = self.queue.pop() else {
                break;
            };
            let marks = self.marks.entry(id.clone()).or_default();
            *marks &= !QUEUED;
            if *marks & SHARED == 0 {
                self.open -= 1;
            }
            let mut pass_on = *marks & (LEFT | RIGHT | SHARED);
            if pass_on == LEFT | RIGHT {
                *marks |= CANDIDATE;
                pass_on |= SHARED;
            }
            for parent in self.look(&id)?.parents {
                let has = self.marks.get(&parent).copied().unwrap_or(0);
                if has & pass_on != pass_on {
                    self.mark(&parent, pass_on)?;
                }
            }
        }
        let found = self.marks.iter();
        Ok(found
            .filter(|(_, marks)| **marks & (CANDIDATE | SHARED) == CANDIDATE)
            .map(|(id, _)| id.clone())
            .collect())
    }

    /// Dates that lie can leave a candidate behind another one; one walk over their histories tells.
    fn only_newest(&mut self, found: Vec<Id>) -> Result<Vec<Id>, E> {
        let mut left: BTreeMap<Id, ()> = found.iter().map(|id| (id.clone(), ())).collect();
        let mut seen = HashSet::new();
        let mut stack = Vec::new();
        for id in &found {
            stack.extend(self.look(id)?.parents);
        }
        while left.len() > 1 {
            let Some(id) = stack.pop() else { break };
            if seen.insert(id.clone()) {
                left.remove(&id);
                stack.extend(self.look(&id)?.parents);
            }
        }
        Ok(left.into_keys().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::convert::Infallible;

    /// Commits by number; parents have smaller numbers.
    type Graph = Vec<(Vec<usize>, i64)>;

    fn bases(graph: &Graph, a: usize, b: usize) -> Vec<usize> {
        let mut step = |id: &usize| {
            Ok::<_, Infallible>(Step {
                parents: graph[*id].0.clone(),
                time: graph[*id].1,
            })
        };
        merge_bases(&a, &b, &mut step).unwrap()
    }

    fn ancestors(graph: &Graph, id: usize) -> BTreeSet<usize> {
        let mut all = BTreeSet::from([id]);
        for parent in &graph[id].0 {
            all.extend(ancestors(graph, *parent));
        }
        all
    }

    /// The definition, word by word.
    fn defined(graph: &Graph, a: usize, b: usize) -> Vec<usize> {
        let common: BTreeSet<_> = ancestors(graph, a)
            .intersection(&ancestors(graph, b))
            .copied()
            .collect();
        let behind_another = |c: &usize| {
            common
                .iter()
                .any(|d| d != c && ancestors(graph, *d).contains(c))
        };
        common
            .iter()
            .copied()
            .filter(|c| !behind_another(c))
            .collect()
    }

    #[test]
    fn line_fork_criss_cross_and_strangers() {
        let line: Graph = vec![(vec![], 0), (vec![0], 1), (vec![1], 2)];
        assert_eq!(bases(&line, 1, 2), [1]);
        assert_eq!(bases(&line, 2, 1), [1]);
        assert_eq!(bases(&line, 2, 2), [2]);
        let cross: Graph = vec![
            (vec![], 0),
            (vec![0], 1),
            (vec![0], 1),
            (vec![1, 2], 2),
            (vec![2, 1], 2),
        ];
        assert_eq!(bases(&cross, 3, 4), [1, 2]);
        let strangers: Graph = vec![(vec![], 0), (vec![], 0)];
        assert!(bases(&strangers, 0, 1).is_empty());
    }

    /// Every small history with every lie about dates that fits in two bits must agree with the definition.
    #[test]
    fn dates_that_lie_change_nothing() {
        let mut seed = 1u64;
        let mut draw = |below: u64| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for _ in 0..3000 {
            let size = 3 + draw(9) as usize;
            let mut graph: Graph = Vec::new();
            for id in 0..size {
                let mut parents = BTreeSet::new();
                for _ in 0..draw(4) {
                    if id > 0 {
                        parents.insert(draw(id as u64) as usize);
                    }
                }
                graph.push((parents.into_iter().collect(), draw(4) as i64));
            }
            for a in 0..size {
                for b in 0..size {
                    assert_eq!(
                        bases(&graph, a, b),
                        defined(&graph, a, b),
                        "{graph:?} {a} {b}"
                    );
                }
            }
        }
    }
}
