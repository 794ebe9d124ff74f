"""Writes lists.txt, zeros.txt and messages.txt anew, for another release of Kubernetes.

    python3 generate.py API APIMACHINERY APIEXTENSIONS AGGREGATOR

The arguments are folders with the repositories kubernetes/api,
kubernetes/apimachinery, kubernetes/apiextensions-apiserver and
kubernetes/kube-aggregator, checked out at the same release. Only facts are taken from them: names, numbers, types and
markers of fields. The form of the files is described in ../facts.rs,
../zeros.rs and ../protobuf/table.rs.
"""

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

META = "pkg/apis/meta/v1"
EXTENSIONS = "pkg/apis/apiextensions/v1"
REGISTRATION = "pkg/apis/apiregistration/v1"
GROUPS = """core/v1 apps/v1 batch/v1 events/v1 coordination/v1 discovery/v1 flowcontrol/v1 networking/v1 rbac/v1
    policy/v1 scheduling/v1 scheduling/v1alpha3 storage/v1 autoscaling/v1 autoscaling/v2 authentication/v1
    authorization/v1 certificates/v1 node/v1 resource/v1 admissionregistration/v1
    storagemigration/v1""".split()

SCALARS = {"string": "s", "bool": "b", "bytes": "y", "double": "d"} | dict.fromkeys(
    ["int32", "int64", "uint32", "uint64"], "i"
)

# Messages whose JSON is not an object of their fields: the decoder knows them.
SPECIAL = set(
    """Time MicroTime Timestamp Duration FieldsV1 JSON JSONSchemaPropsOrArray
    JSONSchemaPropsOrBool JSONSchemaPropsOrStringArray""".split()
)
SPECIAL_ELSEWHERE = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
    "io.k8s.apimachinery.pkg.runtime.RawExtension",
}


@dataclass
class GoField:
    type: str
    tag: str
    markers: list

    def json(self):
        """The words of the JSON tag: the name, then options."""
        found = re.search(r'json:"([^"]*)"', self.tag)
        return found.group(1).split(",") if found else [""]

    def tag_value(self, name):
        found = re.search(rf'{name}:"([^"]*)"', self.tag)
        return found.group(1) if found else None

    def number(self):
        found = re.search(r'protobuf:"\w+,(\d+),', self.tag)
        return int(found.group(1)) if found else None

    def marked(self, name):
        return [m.split("=")[1] for m in self.markers if m.startswith(f"+{name}=")]


@dataclass
class GoType:
    markers: list
    fields: list = field(default_factory=list)


def read_aliases(text, aliases):
    """Collects the named types of a Go file that are no structs."""
    aliases |= dict(re.findall(r"^type (\w+) =? ?((?:map\[|[*\[\]\w.])[^{\n]*?)$", text, flags=re.M))


def read_go(text, types):
    """Collects the structs of a Go file."""
    comments, current = [], None
    for line in text.split("\n"):
        stripped = line.strip()
        if stripped.startswith("//"):
            comments.append(stripped[2:].strip())
            continue
        markers = [comment for comment in comments if comment.startswith("+")]
        if current is None:
            found = re.match(r"type (\w+) struct \{(\})?", line)
            if found:
                types[found.group(1)] = GoType(markers)
                current = None if found.group(2) else types[found.group(1)]
            # Markers may stand apart from their type by an empty line.
            if stripped:
                comments = []
        elif line.startswith("}"):
            current, comments = None, []
        else:
            found = re.match(r"(?:\w+\s+)?([*\[\]\w.]+)\s+`([^`]*)`", stripped)
            if found:
                current.fields.append(GoField(found.group(1), found.group(2), markers))
            if stripped:
                comments = []


def read_proto(text):
    """The package of a .proto file; its messages, as number: (label, type, name)."""
    text = re.sub(r"//[^\n]*", "", re.sub(r"/\*.*?\*/", "", text, flags=re.S))
    messages = {}
    for name, body in re.findall(r"message (\w+) \{(.*?)\n\}", text, flags=re.S):
        pattern = r"(optional|repeated|map<string, *([\w.]+)>)\s*([\w.]+)?\s+(\w+)\s*=\s*(\d+)[^;]*;"
        messages[name] = {
            int(number): ("map", value, label) if kind.startswith("map") else (kind, type_, label)
            for kind, value, type_, label, number in re.findall(pattern, body)
        }
        assert len(messages[name]) == body.count(";"), f"{name}: not every field was understood"
    return full_name(re.search(r"package ([\w.]+);", text).group(1)), messages


def full_name(proto_name):
    name = proto_name.lstrip(".").replace("apiextensions_apiserver", "apiextensions-apiserver")
    name = name.replace("kube_aggregator", "kube-aggregator")
    return re.sub(r"^k8s\.io\.", "io.k8s.", name)


def message_line(name, fields, go, package, known):
    go_fields = {f.number(): f for f in go[name].fields} if name in go else {}
    words = [name]
    for number, (label, type_, proto_name) in sorted(fields.items()):
        code = SCALARS.get(type_)
        if code is None:
            code = full_name(type_)
            if "." in code and code not in known:
                continue  # An alpha type of another package.
            if code.rpartition(".")[0] == package:
                code = code.rpartition(".")[2]
        name_in_json, omits_zero = proto_name, False
        if go_field := go_fields.get(number):
            name_in_json, *options = go_field.json()
            if is_inline(go_field):
                name_in_json = "^"
            is_plain = label == "optional" and type_ in SCALARS
            is_plain = is_plain and not go_field.type.startswith(("*", "["))
            omits_zero = is_plain and "omitempty" in options
        many = {"repeated": "*", "map": "%"}.get(label, "")
        words.append(f"{name_in_json}={number}:{many}{code}{'?' if omits_zero else ''}")
    return " ".join(words)


def list_facts(name, go):
    """Facts of the fields of a type, those of inlined types among them. Of the
    defaults only those of keys of lists count, and no other key has one."""
    for go_field in go[name].fields if name in go else []:
        name_in_json, *options = go_field.json()
        if is_inline(go_field):
            yield from list_facts(go_field.type, go)
            continue
        words = []
        for word, value in [
            ("patch", go_field.tag_value("patchStrategy")),
            ("key", go_field.tag_value("patchMergeKey")),
            ("list", "".join(go_field.marked("listType")[:1])),
            ("keys", ",".join(go_field.marked("listMapKey"))),
        ]:
            if value:
                words.append(f"{word}={value}")
        if is_atomic(go_field.markers):
            words.append("map=atomic")
        if go_field.marked("default") and name_in_json == "protocol":
            default = go_field.marked("default")[0].strip('"')
            words.append(f"default={default}")
        if words and name_in_json not in ("", "-"):
            yield f".{name_in_json} {' '.join(words)}"


ZEROS = {"string": '""', "bool": "false", "Time": "null", "MicroTime": "null", "Quantity": '"0"',
    "IntOrString": "0", "RawExtension": "null", "JSON": "null", "UID": '""',
    "ConditionStatus": '""'} | dict.fromkeys(["int", "int32", "int64", "uint32", "uint64", "float64"], "0")


def zero(go_type, aliases):
    """The JSON of a type's zero value; "list" for lists and maps, which omitempty drops too."""
    name = go_type.rpartition(".")[2]
    if go_type.startswith("*"):
        return "pointer"
    if go_type.startswith(("[", "map[")):
        return "list"
    if name in ZEROS:
        return ZEROS[name]
    if name in aliases:
        return zero(aliases[name], aliases)
    return "{}"


def zero_facts(name, go, aliases):
    """What each field is when nothing is said of it; those of inlined types among them."""
    for go_field in go[name].fields if name in go else []:
        name_in_json, *options = go_field.json()
        if is_inline(go_field):
            yield from zero_facts(go_field.type.rpartition(".")[2], go, aliases)
            continue
        if name_in_json in ("", "-"):
            continue
        value = zero(go_field.type, aliases)
        plain = go_field.type.rpartition(".")[2] if value != "list" else ""
        is_struct = value == "{}" or plain in ("Time", "MicroTime", "Quantity", "IntOrString", "RawExtension")
        if "omitzero" in options or ("omitempty" in options and value == "pointer"):
            continue
        if "omitempty" in options and not is_struct:
            yield f"{name_in_json}?"
        else:
            yield f"{name_in_json}={'null' if value in ('pointer', 'list') else value}"


def is_inline(go_field):
    """Whether a type's fields stand among those of the type it is embedded in."""
    name, *options = go_field.json()
    return "inline" in options or (name == "" and "json:" in go_field.tag)


def is_atomic(markers):
    return not {"+structType=atomic", "+mapType=atomic"}.isdisjoint(markers)


def main(api, machinery, extensions, aggregator):
    sources = [(machinery, META)] + [(api, group) for group in GROUPS]
    sources += [(extensions, EXTENSIONS), (aggregator, REGISTRATION)]
    packages, aliases = [], {}
    for folder, path in sources:
        place = Path(folder) / path
        package, messages = read_proto((place / "generated.proto").read_text())
        go = {}
        for file in ["types.go", "types_jsonschema.go"]:
            if (place / file).exists():
                read_go((place / file).read_text(), go)
                read_aliases((place / file).read_text(), aliases)
        packages.append((package, messages, go))
    known = {f"{package}.{name}" for package, messages, _ in packages for name in messages}
    lists, zeros, lines = [], [], []
    for package, messages, go in packages:
        lists.append(f"@{package}")
        zeros.append(f"@{package}")
        lines.append(f"@{package}")
        for name in sorted(messages.keys() - SPECIAL):
            lines.append(message_line(name, messages[name], go, package, known | SPECIAL_ELSEWHERE))
            if name in go and is_atomic(go[name].markers):
                lists.append(f"{name} map=atomic")
            lists += [name + fact for fact in list_facts(name, go)]
            if words := list(zero_facts(name, go, aliases)):
                zeros.append(" ".join([name, *words]))
    here = Path(__file__).parent
    (here / "lists.txt").write_text("\n".join(lists) + "\n")
    (here / "zeros.txt").write_text("\n".join(zeros) + "\n")
    (here / "messages.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
