//! A filter as the kernel takes it: instructions of classic BPF.
//!
//! Guarantees: the bytes of a program are those of the kernel's `struct sock_filter`, and a program that is read
//! back from bytes is whole. Leaves to others: what the instructions say ([`super::compile`]).

/// One instruction, laid out as the kernel's `struct sock_filter`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SockFilter {
    /// What to do.
    pub code: u16,
    /// How many instructions to pass over when a comparison holds.
    pub jt: u8,
    /// How many instructions to pass over when it does not.
    pub jf: u8,
    /// The number that goes with it.
    pub k: u32,
}

/// The most instructions that the kernel takes in one program (`BPF_MAXINSNS`).
pub const MAX_INSTRUCTIONS: usize = 4096;

const BYTES: usize = size_of::<SockFilter>();

/// A filter, ready to be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program(pub Vec<SockFilter>);

impl Program {
    /// Returns the instructions as plain numbers: code, `jt`, `jf` and `k` of each.
    pub fn instructions(&self) -> Vec<(u16, u8, u8, u32)> {
        self.0.iter().map(|ins| (ins.code, ins.jt, ins.jf, ins.k)).collect()
    }

    /// Returns the bytes that the kernel reads, in the byte order of this machine.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.0.len() * BYTES);
        for ins in &self.0 {
            bytes.extend(ins.code.to_ne_bytes());
            bytes.extend([ins.jt, ins.jf]);
            bytes.extend(ins.k.to_ne_bytes());
        }
        bytes
    }

    /// Reads what [`Program::to_bytes`] wrote; `None` for what is empty, cut short or longer than the kernel takes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (chunks, rest) = bytes.as_chunks::<BYTES>();
        if chunks.is_empty() || !rest.is_empty() || chunks.len() > MAX_INSTRUCTIONS {
            return None;
        }
        let instruction = |&[c0, c1, jt, jf, k0, k1, k2, k3]: &[u8; BYTES]| SockFilter {
            code: u16::from_ne_bytes([c0, c1]),
            jt,
            jf,
            k: u32::from_ne_bytes([k0, k1, k2, k3]),
        };
        Some(Self(chunks.iter().map(instruction).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_survives_its_bytes_and_a_cut_one_is_refused() {
        let program = Program(vec![
            SockFilter { code: 0x20, jt: 0, jf: 0, k: 4 },
            SockFilter { code: 0x15, jt: 1, jf: 2, k: 0xc000_003e },
        ]);
        let bytes = program.to_bytes();
        assert_eq!(Program::from_bytes(&bytes), Some(program));
        assert_eq!(Program::from_bytes(&bytes[..bytes.len() - 1]), None);
        assert_eq!(Program::from_bytes(&[]), None);
        assert_eq!(Program::from_bytes(&vec![0; (MAX_INSTRUCTIONS + 1) * BYTES]), None);
    }
}
