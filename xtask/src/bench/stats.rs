//! The figures of a table, from raw samples. Ratios are taken round by round: what disturbs the machine disturbs
//! both sides of a round alike.

/// What a series of samples comes to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// How many samples.
    pub count: usize,
    /// Half of them are below.
    pub median: f64,
    /// A quarter of them is below.
    pub low: f64,
    /// A quarter of them is above.
    pub high: f64,
}

/// Sums a series up; nothing of nothing.
pub fn summary(samples: &[f64]) -> Option<Summary> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(Summary {
        count: sorted.len(),
        median: quantile(&sorted, 0.5)?,
        low: quantile(&sorted, 0.25)?,
        high: quantile(&sorted, 0.75)?,
    })
}

/// Sums up `of[i] / by[i]`.
pub fn ratio(of: &[f64], by: &[f64]) -> Option<Summary> {
    let ratios: Vec<f64> = of.iter().zip(by).map(|(of, by)| of / by).collect();
    summary(&ratios)
}

/// Returns the value below which the part `at` of a sorted series lies, between two samples where it must.
fn quantile(sorted: &[f64], at: f64) -> Option<f64> {
    let place = at * (sorted.len().checked_sub(1)? as f64);
    let (below, above) = (sorted.get(place.floor() as usize)?, sorted.get(place.ceil() as usize)?);
    Some(below + (above - below) * place.fract())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_lie_between_samples_where_they_must() {
        let summary = summary(&[4.0, 1.0, 3.0, 2.0]).expect("there are samples");
        assert_eq!(summary, Summary { count: 4, median: 2.5, low: 1.75, high: 3.25 });
    }

    #[test]
    fn a_ratio_is_taken_round_by_round() {
        let ratio = ratio(&[10.0, 100.0, 30.0], &[20.0, 200.0, 20.0]).expect("there are samples");
        assert_eq!((ratio.low, ratio.median, ratio.high), (0.5, 0.5, 1.0));
    }

    #[test]
    fn nothing_sums_up_to_nothing() {
        assert_eq!(summary(&[]), None);
    }
}
