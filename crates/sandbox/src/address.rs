//! Reads socket addresses out of the memory of a command.

use std::net::{Ipv4Addr, Ipv6Addr};

use model::text::escape;

/// Describes a `sockaddr` as `IP:PORT`, `[IP]:PORT`, `unix:PATH` or `abstract:NAME`; `None` for other families.
pub(crate) fn describe(bytes: &[u8]) -> Option<String> {
    let family = i32::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
    let rest = bytes.get(2..)?;
    match family {
        libc::AF_INET => {
            let port = u16::from_be_bytes(rest.get(..2)?.try_into().ok()?);
            let address: [u8; 4] = rest.get(2..6)?.try_into().ok()?;
            Some(format!("{}:{port}", Ipv4Addr::from(address)))
        }
        libc::AF_INET6 => {
            let port = u16::from_be_bytes(rest.get(..2)?.try_into().ok()?);
            let address: [u8; 16] = rest.get(6..22)?.try_into().ok()?;
            Some(format!("[{}]:{port}", Ipv6Addr::from(address)))
        }
        libc::AF_UNIX => Some(match rest {
            [] => "unix:".to_owned(),
            [0, name @ ..] => format!("abstract:{}", escape(&String::from_utf8_lossy(name))),
            path => {
                let end = path.iter().position(|byte| *byte == 0).unwrap_or(path.len());
                format!("unix:{}", escape(&String::from_utf8_lossy(&path[..end])))
            }
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_family(family: i32, rest: &[u8]) -> Vec<u8> {
        let family = u16::try_from(family).expect("a family");
        [family.to_ne_bytes().as_slice(), rest].concat()
    }

    #[test]
    fn each_family_is_described() {
        let v4 = with_family(libc::AF_INET, &[1, 187, 192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(describe(&v4).as_deref(), Some("192.0.2.1:443"));
        let path = with_family(libc::AF_UNIX, b"/run/x.sock\0junk");
        assert_eq!(describe(&path).as_deref(), Some("unix:/run/x.sock"));
        let hidden = with_family(libc::AF_UNIX, b"\0na\x1bme");
        assert_eq!(describe(&hidden).as_deref(), Some("abstract:na\\u{1b}me"));
    }

    #[test]
    fn what_is_cut_short_is_nothing() {
        for length in 0..8 {
            let short = &with_family(libc::AF_INET, &[1, 187, 192, 0, 2, 1])[..length];
            assert_eq!(describe(short), None, "{length}");
        }
        assert_eq!(describe(&with_family(libc::AF_NETLINK, &[0; 10])), None);
    }
}
