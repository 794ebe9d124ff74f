//! IP addresses and networks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::{
    error::EvalError,
    meter::Meter,
    value::{Cidr, Opaque, Value},
};

pub(super) fn call<'a>(
    name: &str,
    args: &[Value<'a>],
    meter: &mut Meter,
) -> Option<Result<Value<'a>, EvalError>> {
    match args {
        [Value::String(text)] => {
            if !matches!(name, "ip" | "isIP" | "ip.isCanonical" | "cidr" | "isCIDR") {
                return None;
            }
            if let Err(error) = meter.work(text.len()) {
                return Some(Err(error));
            }
            of_text(name, text)
        }
        [Value::Opaque(own), rest @ ..] => match (&**own, rest) {
            (Opaque::Ip(ip), []) => of_ip(name, *ip).map(Ok),
            (Opaque::Cidr(cidr), rest) => of_cidr(name, *cidr, rest),
            _ => None,
        },
        _ => None,
    }
}

fn of_text<'a>(name: &str, text: &str) -> Option<Result<Value<'a>, EvalError>> {
    Some(match name {
        "ip" => ip(text).map(|ip| Value::opaque(Opaque::Ip(ip))),
        "isIP" => Ok(Value::Bool(ip(text).is_ok())),
        "ip.isCanonical" => ip(text).map(|ip| Value::Bool(ip.to_string() == text)),
        "cidr" => cidr(text).map(|cidr| Value::opaque(Opaque::Cidr(cidr))),
        "isCIDR" => Ok(Value::Bool(cidr(text).is_ok())),
        _ => return None,
    })
}

fn ip(text: &str) -> Result<IpAddr, EvalError> {
    if text.contains('%') {
        return Err(EvalError::new(format!(
            "IP address {text:?} with zone value is not allowed"
        )));
    }
    let ip: IpAddr = text.parse().map_err(|_| {
        EvalError::new(format!(
            "IP Address {text:?} parse error during conversion from string: ParseAddr({text:?}): unable to parse IP"
        ))
    })?;
    match ip {
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => Err(EvalError::new(format!(
            "IPv4-mapped IPv6 address {text:?} is not allowed"
        ))),
        ip => Ok(ip),
    }
}

fn cidr(text: &str) -> Result<Cidr, EvalError> {
    let wrong = |why: &str| {
        EvalError::new(format!(
            "network address parse error during conversion from string: netip.ParsePrefix({text:?}): {why}"
        ))
    };
    let (address, length) = text.split_once('/').ok_or_else(|| wrong("no '/'"))?;
    let address: IpAddr = address.parse().map_err(|_| wrong("unable to parse IP"))?;
    if matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some()) {
        return Err(EvalError::new(format!(
            "IPv4-mapped IPv6 address {text:?} is not allowed"
        )));
    }
    let plain = length.bytes().all(|byte| byte.is_ascii_digit())
        && (length.len() == 1 || !length.starts_with('0'));
    let prefix: u8 = length
        .parse()
        .ok()
        .filter(|_| plain)
        .ok_or_else(|| wrong("bad bits after slash"))?;
    match prefix <= bits(address) {
        true => Ok(Cidr { address, prefix }),
        false => Err(wrong("prefix length out of range")),
    }
}

fn bits(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

fn of_ip<'a>(name: &str, ip: IpAddr) -> Option<Value<'a>> {
    Some(match name {
        "family" => Value::Int(if ip.is_ipv4() { 4 } else { 6 }),
        "isUnspecified" => Value::Bool(ip.is_unspecified()),
        "isLoopback" => Value::Bool(ip.is_loopback()),
        "isLinkLocalMulticast" => Value::Bool(match ip {
            IpAddr::V4(ip) => ip.octets()[..3] == [224, 0, 0],
            IpAddr::V6(ip) => ip.segments()[0] & 0xff0f == 0xff02,
        }),
        "isLinkLocalUnicast" => Value::Bool(is_link_local(ip)),
        "isGlobalUnicast" => {
            let broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
            let other = ip.is_unspecified() || ip.is_loopback() || ip.is_multicast();
            Value::Bool(!broadcast && !other && !is_link_local(ip))
        }
        _ => return None,
    })
}

fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

/// The address with the bits after the prefix cleared.
fn mask(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(ip) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
            Ipv4Addr::from(u32::from(ip) & mask).into()
        }
        IpAddr::V6(ip) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
            Ipv6Addr::from(u128::from(ip) & mask).into()
        }
    }
}

fn contains(cidr: Cidr, ip: IpAddr) -> bool {
    cidr.address.is_ipv4() == ip.is_ipv4()
        && mask(cidr.address, cidr.prefix) == mask(ip, cidr.prefix)
}

fn of_cidr<'a>(name: &str, own: Cidr, rest: &[Value<'a>]) -> Option<Result<Value<'a>, EvalError>> {
    let masked = mask(own.address, own.prefix);
    Some(match (name, rest) {
        ("ip", []) => Ok(Value::opaque(Opaque::Ip(own.address))),
        ("prefixLength", []) => Ok(Value::Int(own.prefix.into())),
        ("masked", []) => Ok(Value::opaque(Opaque::Cidr(Cidr {
            address: masked,
            prefix: own.prefix,
        }))),
        ("containsIP", [other]) => {
            let ip = match other {
                Value::String(text) => ip(text),
                Value::Opaque(opaque) => match &**opaque {
                    Opaque::Ip(ip) => Ok(*ip),
                    _ => return None,
                },
                _ => return None,
            };
            ip.map(|ip| Value::Bool(contains(own, ip)))
        }
        ("containsCIDR", [other]) => {
            let other = match other {
                Value::String(text) => cidr(text),
                Value::Opaque(opaque) => match &**opaque {
                    Opaque::Cidr(cidr) => Ok(*cidr),
                    _ => return None,
                },
                _ => return None,
            };
            other.map(|other| {
                Value::Bool(own.prefix <= other.prefix && contains(own, other.address))
            })
        }
        _ => return None,
    })
}

/// The text of an address or a network.
pub(super) fn text(opaque: &Opaque) -> Option<String> {
    match opaque {
        Opaque::Ip(ip) => Some(ip.to_string()),
        Opaque::Cidr(cidr) => Some(format!("{}/{}", cidr.address, cidr.prefix)),
        _ => None,
    }
}
