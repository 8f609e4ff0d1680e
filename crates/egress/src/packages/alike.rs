//! Names that look like others.

/// The shortest name that another one is told from by letters: of shorter ones there are too many near each other.
const SHORTEST: usize = 4;
/// From this length on two letters may differ.
const LONG: usize = 10;

/// Tells whether somebody could take one name for the other, though they differ.
pub(crate) fn alike(one: &str, other: &str) -> bool {
    if one == other {
        return false;
    }
    let shortest = one.chars().count().min(other.chars().count());
    let most = match shortest {
        0..SHORTEST => 0,
        SHORTEST..LONG => 1,
        _ => 2,
    };
    skeleton(one) == skeleton(other) || strsim::osa_distance(one, other) <= most
}

/// Returns what is left of a name when letters that look alike are one, and what separates words is gone.
fn skeleton(name: &str) -> String {
    let pairs = name.to_ascii_lowercase().replace("rn", "m").replace("vv", "w").replace("cl", "d");
    let one = |letter| match letter {
        '0' => 'o',
        '1' | 'i' | '|' => 'l',
        '5' => 's',
        letter => letter,
    };
    pairs.chars().filter(|letter| !"-_./@".contains(*letter)).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_in_a_letter_a_turn_or_a_look_is_alike() {
        for (one, other) in [
            ("request", "requests"),
            ("reqeusts", "requests"),
            ("l0dash", "lodash"),
            ("nurnpy", "numpy"),
            ("cross-env", "crossenv"),
            ("@types/node", "@typs/node"),
            ("python-dateutil", "python-dateuti1"),
            ("serde-derlve", "serde-derive"),
        ] {
            assert!(alike(one, other) && alike(other, one), "{one} {other}");
        }
    }

    #[test]
    fn others_are_not() {
        for (one, other) in [
            ("serde", "serde"),
            ("serde", "serde-json"),
            ("six", "sip"),
            ("react", "redux"),
            ("left-pad", "right-pad"),
        ] {
            assert!(!alike(one, other), "{one} {other}");
        }
    }
}
