//! Decides the time to live by the number of nodes. Pure.

/// A time in seconds, with the minimum and the maximum number of nodes for which it is kept.
struct Step {
    least: usize,
    most: usize,
    seconds: u32,
}

/// The ranges overlap, so that a node that comes and goes does not change the annotations of all
/// others.
const STEPS: [Step; 5] = [
    Step {
        least: 0,
        most: 100,
        seconds: 0,
    },
    Step {
        least: 90,
        most: 500,
        seconds: 15,
    },
    Step {
        least: 450,
        most: 1000,
        seconds: 30,
    },
    Step {
        least: 900,
        most: 2000,
        seconds: 60,
    },
    Step {
        least: 1800,
        most: usize::MAX,
        seconds: 300,
    },
];

/// The current step.
#[derive(Debug, Default)]
pub(super) struct Ttl {
    step: usize,
}

impl Ttl {
    /// Records the number of nodes.
    pub(super) fn set_nodes(&mut self, nodes: usize) {
        while STEPS.get(self.step).is_some_and(|step| nodes > step.most) {
            self.step += 1;
        }
        while STEPS.get(self.step).is_some_and(|step| nodes < step.least) {
            self.step = self.step.saturating_sub(1);
        }
    }

    /// Returns the time in seconds.
    pub(super) fn seconds(&self) -> u32 {
        STEPS.get(self.step).map_or(0, |step| step.seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_increases_with_the_nodes_and_decreases_later() {
        let mut ttl = Ttl::default();
        for (nodes, seconds) in [
            (1, 0),
            (100, 0),
            (101, 15),
            (90, 15),
            (89, 0),
            (501, 15 * 2),
            (450, 30),
            (449, 15),
            (2001, 300),
            (1800, 300),
            (1799, 60),
            (0, 0),
        ] {
            ttl.set_nodes(nodes);
            assert_eq!(ttl.seconds(), seconds, "{nodes}");
        }
    }
}
