//! The functions that expressions can call, from the Common Expression Language and the libraries
//! of Kubernetes 1.37.

use std::{collections::HashMap, sync::OnceLock};

use crate::types::{Opaque, Type};

/// A signature of a function.
#[derive(Debug)]
pub(crate) struct Overload {
    /// True if the first argument is the receiver.
    pub(crate) is_method: bool,
    pub(crate) args: Vec<Type>,
    pub(crate) result: Type,
}

/// A line per overload: the name, the types of the arguments and of the result.
/// A dot before the arguments marks a method. Capital letters are any type.
const TABLE: &str = "
!_ (bool) bool
-_ (int) int
-_ (double) double
_+_ (int,int) int
_+_ (uint,uint) uint
_+_ (double,double) double
_+_ (string,string) string
_+_ (bytes,bytes) bytes
_+_ (list(A),list(A)) list(A)
_+_ (timestamp,duration) timestamp
_+_ (duration,timestamp) timestamp
_+_ (duration,duration) duration
_-_ (int,int) int
_-_ (uint,uint) uint
_-_ (double,double) double
_-_ (timestamp,timestamp) duration
_-_ (timestamp,duration) timestamp
_-_ (duration,duration) duration
_*_ (int,int) int
_*_ (uint,uint) uint
_*_ (double,double) double
_/_ (int,int) int
_/_ (uint,uint) uint
_/_ (double,double) double
_%_ (int,int) int
_%_ (uint,uint) uint
_==_ (A,A) bool
_!=_ (A,A) bool
@in (A,list(A)) bool
@in (A,map(A,B)) bool
_?_:_ (bool,A,A) A
_[_] (list(A),int) A
_[_] (map(A,B),A) B
_[_] (optional(list(A)),int) optional(A)
_[_] (optional(map(A,B)),A) optional(B)
_[?_] (list(A),int) optional(A)
_[?_] (map(A,B),A) optional(B)
_[?_] (optional(list(A)),int) optional(A)
_[?_] (optional(map(A,B)),A) optional(B)
size (string) int
size (bytes) int
size (list(A)) int
size (map(A,B)) int
size .(string) int
size .(bytes) int
size .(list(A)) int
size .(map(A,B)) int
type (A) type
dyn (A) dyn
bool (bool) bool
bool (string) bool
bytes (bytes) bytes
bytes (string) bytes
double (double) double
double (int) double
double (uint) double
double (string) double
int (int) int
int (uint) int
int (double) int
int (string) int
int (timestamp) int
int (duration) int
uint (uint) uint
uint (int) uint
uint (double) uint
uint (string) uint
string (string) string
string (bool) string
string (bytes) string
string (int) string
string (uint) string
string (double) string
string (timestamp) string
string (duration) string
string (ip) string
string (cidr) string
duration (duration) duration
duration (string) duration
duration (int) duration
timestamp (timestamp) timestamp
timestamp (string) timestamp
timestamp (int) timestamp
contains .(string,string) bool
endsWith .(string,string) bool
startsWith .(string,string) bool
matches (string,string) bool
matches .(string,string) bool
getDate .(timestamp) int
getDate .(timestamp,string) int
getDayOfMonth .(timestamp) int
getDayOfMonth .(timestamp,string) int
getDayOfWeek .(timestamp) int
getDayOfWeek .(timestamp,string) int
getDayOfYear .(timestamp) int
getDayOfYear .(timestamp,string) int
getFullYear .(timestamp) int
getFullYear .(timestamp,string) int
getHours .(timestamp) int
getHours .(timestamp,string) int
getHours .(duration) int
getMilliseconds .(timestamp) int
getMilliseconds .(timestamp,string) int
getMilliseconds .(duration) int
getMinutes .(timestamp) int
getMinutes .(timestamp,string) int
getMinutes .(duration) int
getMonth .(timestamp) int
getMonth .(timestamp,string) int
getSeconds .(timestamp) int
getSeconds .(timestamp,string) int
getSeconds .(duration) int
optional.of (A) optional(A)
optional.ofNonZeroValue (A) optional(A)
optional.none () optional(A)
value .(optional(A)) A
hasValue .(optional(A)) bool
or .(optional(A),optional(A)) optional(A)
orValue .(optional(A),A) A
charAt .(string,int) string
indexOf .(string,string) int
indexOf .(string,string,int) int
indexOf .(list(A),A) int
lastIndexOf .(string,string) int
lastIndexOf .(string,string,int) int
lastIndexOf .(list(A),A) int
lowerAscii .(string) string
upperAscii .(string) string
replace .(string,string,string) string
replace .(string,string,string,int) string
split .(string,string) list(string)
split .(string,string,int) list(string)
substring .(string,int) string
substring .(string,int,int) string
trim .(string) string
join .(list(string)) string
join .(list(string),string) string
format .(string,list(dyn)) string
strings.quote (string) string
slice .(list(A),int,int) list(A)
flatten .(list(list(A))) list(A)
flatten .(list(dyn),int) list(dyn)
sort .(list(A)) list(A)
distinct .(list(A)) list(A)
reverse .(list(A)) list(A)
first .(list(A)) optional(A)
last .(list(A)) optional(A)
lists.range (int) list(int)
isSorted .(list(int)) bool
isSorted .(list(uint)) bool
isSorted .(list(double)) bool
isSorted .(list(bool)) bool
isSorted .(list(duration)) bool
isSorted .(list(timestamp)) bool
isSorted .(list(string)) bool
isSorted .(list(bytes)) bool
sum .(list(int)) int
sum .(list(uint)) uint
sum .(list(double)) double
sum .(list(duration)) duration
min .(list(int)) int
min .(list(uint)) uint
min .(list(double)) double
min .(list(bool)) bool
min .(list(duration)) duration
min .(list(timestamp)) timestamp
min .(list(string)) string
min .(list(bytes)) bytes
max .(list(int)) int
max .(list(uint)) uint
max .(list(double)) double
max .(list(bool)) bool
max .(list(duration)) duration
max .(list(timestamp)) timestamp
max .(list(string)) string
max .(list(bytes)) bytes
find .(string,string) string
findAll .(string,string) list(string)
findAll .(string,string,int) list(string)
sets.contains (list(A),list(A)) bool
sets.equivalent (list(A),list(A)) bool
sets.intersects (list(A),list(A)) bool
url (string) url
isURL (string) bool
getScheme .(url) string
getHost .(url) string
getHostname .(url) string
getPort .(url) string
getEscapedPath .(url) string
getQuery .(url) map(string,list(string))
ip (string) ip
isIP (string) bool
ip.isCanonical (string) bool
family .(ip) int
isUnspecified .(ip) bool
isLoopback .(ip) bool
isLinkLocalMulticast .(ip) bool
isLinkLocalUnicast .(ip) bool
isGlobalUnicast .(ip) bool
cidr (string) cidr
isCIDR (string) bool
containsIP .(cidr,string) bool
containsIP .(cidr,ip) bool
containsCIDR .(cidr,string) bool
containsCIDR .(cidr,cidr) bool
ip .(cidr) ip
masked .(cidr) cidr
prefixLength .(cidr) int
quantity (string) quantity
isQuantity (string) bool
sign (quantity) int
isInteger .(quantity) bool
asInteger .(quantity) int
asApproximateFloat .(quantity) double
add .(quantity,quantity) quantity
add .(quantity,int) quantity
sub .(quantity,quantity) quantity
sub .(quantity,int) quantity
isGreaterThan .(quantity,quantity) bool
isLessThan .(quantity,quantity) bool
compareTo .(quantity,quantity) int
semver (string) semver
semver (string,bool) semver
isSemver (string) bool
isSemver (string,bool) bool
isGreaterThan .(semver,semver) bool
isLessThan .(semver,semver) bool
compareTo .(semver,semver) int
major .(semver) int
minor .(semver) int
patch .(semver) int
format.named (string) optional(format)
validate .(format,string) optional(list(string))
format.dns1123Label () format
format.dns1123Subdomain () format
format.dns1035Label () format
format.qualifiedName () format
format.dns1123LabelPrefix () format
format.dns1123SubdomainPrefix () format
format.dns1035LabelPrefix () format
format.labelValue () format
format.uri () format
format.uuid () format
format.byte () format
format.date () format
format.datetime () format
path .(authorizer,string) pathCheck
group .(authorizer,string) groupCheck
serviceAccount .(authorizer,string,string) authorizer
resource .(groupCheck,string) resourceCheck
subresource .(resourceCheck,string) resourceCheck
namespace .(resourceCheck,string) resourceCheck
name .(resourceCheck,string) resourceCheck
fieldSelector .(resourceCheck,string) resourceCheck
labelSelector .(resourceCheck,string) resourceCheck
check .(pathCheck,string) decision
check .(resourceCheck,string) decision
errored .(decision) bool
error .(decision) string
allowed .(decision) bool
reason .(decision) string
jsonpatch.escapeKey (string) string
";

/// The types that the operators `<`, `<=`, `>=` and `>` compare. Numbers are
/// comparable with numbers of other types.
const ORDERED: [&str; 5] = ["bool", "string", "bytes", "timestamp", "duration"];
const NUMBERS: [&str; 3] = ["int", "uint", "double"];

type Table = HashMap<&'static str, Vec<Overload>>;

fn table() -> &'static Table {
    static PARSED: OnceLock<Table> = OnceLock::new();
    PARSED.get_or_init(|| {
        let mut table = Table::new();
        for line in TABLE.lines().filter(|line| !line.is_empty()) {
            let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
            let (args, result) = rest.split_once(' ').unwrap_or((rest, ""));
            let is_method = args.starts_with('.');
            let args = args.trim_start_matches('.');
            let args = &args[1..args.len() - 1];
            table.entry(name).or_default().push(Overload {
                is_method,
                args: split(args).into_iter().map(named).collect(),
                result: named(result),
            });
        }
        for name in ["_<_", "_<=_", "_>=_", "_>_"] {
            let same = ORDERED.map(|word| (word, word));
            let numbers = NUMBERS.iter().flat_map(|a| NUMBERS.map(|b| (*a, b)));
            let overloads = numbers.chain(same).map(|(a, b)| Overload {
                is_method: false,
                args: vec![named(a), named(b)],
                result: Type::Bool,
            });
            table.insert(name, overloads.collect());
        }
        table
    })
}

/// The signatures of a function; empty for unknown functions.
pub(crate) fn overloads(name: &str) -> &'static [Overload] {
    table().get(name).map_or(&[], Vec::as_slice)
}

/// Returns true if a function with this name exists.
pub(crate) fn is_function(name: &str) -> bool {
    table().contains_key(name) || matches!(name, "_&&_" | "_||_")
}

/// The names of types that expressions may compare with the result of `type`.
pub(crate) fn type_named(name: &str) -> Option<&'static str> {
    const NAMES: [&str; 15] = [
        "bool",
        "bytes",
        "double",
        "int",
        "list",
        "map",
        "null_type",
        "string",
        "type",
        "uint",
        "optional_type",
        "google.protobuf.Duration",
        "google.protobuf.Timestamp",
        "net.IP",
        "net.CIDR",
    ];
    NAMES.into_iter().find(|known| *known == name)
}

/// Splits at the commas outside of parentheses.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut from) = (Vec::new(), 0i32, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    if !text.is_empty() {
        parts.push(&text[from..]);
    }
    parts
}

/// The type with a name in the table.
fn named(text: &str) -> Type {
    if let Some((name, inner)) = text.split_once('(') {
        let mut inner = split(&inner[..inner.len() - 1]).into_iter().map(named);
        let first = inner.next().unwrap_or(Type::Dyn);
        return match name {
            "list" => Type::list(first),
            "optional" => Type::optional(first),
            _ => Type::map(first, inner.next().unwrap_or(Type::Dyn)),
        };
    }
    match text {
        "A" => Type::Var(0),
        "B" => Type::Var(1),
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "duration" => Type::Duration,
        "timestamp" => Type::Timestamp,
        "type" => Type::Meta,
        "quantity" => Type::Opaque(Opaque::Quantity),
        "url" => Type::Opaque(Opaque::Url),
        "ip" => Type::Opaque(Opaque::Ip),
        "cidr" => Type::Opaque(Opaque::Cidr),
        "semver" => Type::Opaque(Opaque::Semver),
        "format" => Type::Opaque(Opaque::Format),
        "authorizer" => Type::Opaque(Opaque::Authorizer),
        "pathCheck" => Type::Opaque(Opaque::PathCheck),
        "groupCheck" => Type::Opaque(Opaque::GroupCheck),
        "resourceCheck" => Type::Opaque(Opaque::ResourceCheck),
        "decision" => Type::Opaque(Opaque::Decision),
        _ => Type::Dyn,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_complete() {
        let typed = |t: &Type| t.to_string();
        let add = overloads("containsIP");
        assert_eq!(add.len(), 2);
        assert!(add[0].is_method);
        assert_eq!(typed(&add[0].args[0]), "net.CIDR");
        assert_eq!(
            typed(&overloads("getQuery")[0].result),
            "map(string, list(string))"
        );
        assert_eq!(overloads("_<_").len(), 14);
        // Unknown names are read as `dyn`, so the table must not contain misspelled types.
        let words = TABLE
            .lines()
            .flat_map(|line| line.split(|c: char| !c.is_alphabetic()));
        assert!(!words.collect::<Vec<_>>().contains(&"str"));
    }
}
