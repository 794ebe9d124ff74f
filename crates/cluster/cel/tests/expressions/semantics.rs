//! The values of expressions.

use longshore_cel::Outcome;

use crate::result;

fn all_true(expressions: &[&str]) {
    for source in expressions {
        assert_eq!(result(source), Ok(Outcome::Bool(true)), "{source}");
    }
}

#[test]
fn operators_and_literals() {
    all_true(&[
        "1 + 2 * 3 == 7",
        "-5 - -3 == -2",
        "-9223372036854775808 < 0",
        "7 / 2 == 3 && -7 / 2 == -3 && 7 % 3 == 1",
        "0x1f == 31 && 5u + 1u == 6u",
        "1.5e3 == 1500.0 && .5 == 0.5",
        "dyn(1) == dyn(1.0) && dyn(1u) == dyn(1) && dyn(1) != dyn(1.5)",
        "1 < 1.5 && 2u > 1 && 3.0 >= 3",
        "'a' + \"b\" == 'ab' && r'\\d' == '\\\\d'",
        "'''a'b''' == \"a'b\" && '\\u00e9' == 'é' && '\\x41\\101' == 'AA'",
        "b'hi' == b\"hi\" && size(b'\\xff') == 1",
        "true ? 'a' == 'a' : 1 / 0 == 1",
        "!!true && !false",
        "true || 1 / 0 == 1",
        "1 / 0 == 1 || true",
        "!(false && 1 / 0 == 1)",
        "[1, 2][1] == 2 && {'a': 1}['a'] == 1 && {'a': 1}.a == 1",
        "1 in [1, 2] && 'a' in {'a': 1} && !(3 in [1])",
        "[1] + [2] == [1, 2] && {1: 'a', 2: 'b'} == {2: 'b', 1: 'a'}",
        "type(1) == int && type('') == string && type([]) == list && type(null) == null_type",
        "type(type(1)) == type && type(duration('1s')) == google.protobuf.Duration",
        "null == null && self.inner != null",
        "1 // comment\n == 1",
    ]);
}

#[test]
fn macros() {
    all_true(&[
        "has(self.str) && !has(self.absent) && has(self.inner.a)",
        "[1, 2].all(x, x > 0) && ![1, 2].all(x, x > 1)",
        "[1, 2].exists(x, x > 1) && ![].exists(x, x == 1)",
        "[1, 2].exists_one(x, x > 1)",
        "[1, 2].map(x, x * 2) == [2, 4] && [1, 2].map(x, x > 1, x * 3) == [6]",
        "[1, 2, 3].filter(x, x != 2) == [1, 3]",
        "{'a': 1}.all(k, k == 'a') && {'a': 1}.map(k, k) == ['a']",
        // An error is hidden by an element that decides.
        "[0, 1].exists(x, 1 / x == 1)",
        "![0, 1].all(x, 1 / x == 2)",
        "[[1], [2]].all(x, x.all(y, y > 0))",
    ]);
}

#[test]
fn comprehensions_with_two_variables() {
    all_true(&[
        "[5, 6].all(i, v, v == i + 5)",
        "{'a': 1}.exists(k, v, k == 'a' && v == 1)",
        "[5, 5].existsOne(i, v, i == 1 && v == 5)",
        "[5, 6].transformList(i, v, i * v) == [0, 6]",
        "[5, 6].transformList(i, v, i > 0, v) == [6]",
        "{'a': 1, 'b': 2}.transformMap(k, v, v + 1) == {'a': 2, 'b': 3}",
        "{'a': 1, 'b': 2}.transformMap(k, v, v > 1, v) == {'b': 2}",
        "{'a': 'x'}.transformMapEntry(k, v, {v: k}) == {'x': 'a'}",
    ]);
}

#[test]
fn optional_values() {
    all_true(&[
        "self.?str.hasValue() && !self.?absent.hasValue()",
        "self.?absent.orValue('x') == 'x' && self.?str.value() == 'hello'",
        "self.?inner.?a.orValue('') == 'x' && self.?inner.a == optional.of('x')",
        "[1][?0] == optional.of(1) && [1][?5] == optional.none()",
        "{'a': 1}[?'b'].or(optional.of(2)).value() == 2",
        "optional.of(1).optMap(x, x + 1).value() == 2",
        "optional.none().optMap(x, x) == optional.none()",
        "optional.of([1]).optFlatMap(x, x[?0]).value() == 1",
        "optional.ofNonZeroValue('') == optional.none()",
        "[1, ?optional.none(), ?optional.of(2)] == [1, 2]",
        "{?'a': optional.none()} == {}",
        "has(self.?inner.a)",
    ]);
}

#[test]
fn objects_of_a_schema() {
    all_true(&[
        "self.int == 5 && self.num == 1.0 && self.num / 2.0 == 0.5",
        "self.x__dash__dash__dot__dot == 'd'",
        "self.__namespace__ == 'ns'",
        "self.namespace == 'ns' && has(self.namespace)",
        "self.dur == duration('90m') && self.dur > duration('1h')",
        "self.at > timestamp('2024-01-01T00:00:00Z') && self.at.getFullYear() == 2024",
        "self.day.getMonth() == 1 && self.day.getDate() == 29",
        "self.raw == b'hi' && string(self.raw) == 'hi'",
        "type(self.either) == string && self.either.endsWith('%')",
        "self.list.sum() == 6 && size(self.labels) == 2 && self.labels['app'] == 'web'",
        "self.labels.app == 'web' && 'tier' in self.labels",
        "self.set == self.set2 && self.names != ['a', 'b']",
        "(self.set + ['b', 'c']) == ['a', 'b', 'c'] && size(self.set + ['a']) == 2",
        "self.ports.exists(p, p.name == 'http' && p.port == 80)",
        "size(self.ports + self.ports) == 2",
        "any.int == 5 && any.inner.a == 'x' && any.list[0] == 3",
    ]);
}

#[test]
fn strings() {
    all_true(&[
        "size('héllo') == 5 && 'héllo'.charAt(1) == 'é'",
        "'hello'.contains('ell') && 'hello'.startsWith('he') && 'hello'.endsWith('lo')",
        "'hello'.indexOf('l') == 2 && 'hello'.lastIndexOf('l') == 3 && 'hello'.indexOf('z') == -1",
        "'hello'.indexOf('l', 3) == 3 && 'hello'.lastIndexOf('l', 2) == 2",
        "'AbC'.lowerAscii() == 'abc' && 'AbC'.upperAscii() == 'ABC' && ' a '.trim() == 'a'",
        "'a-b-c'.replace('-', '+') == 'a+b+c' && 'a-b-c'.replace('-', '+', 1) == 'a+b-c'",
        "'ab'.replace('', '-') == '-a-b-'",
        "'a,b,c'.split(',') == ['a', 'b', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c']",
        "'abc'.split('') == ['a', 'b', 'c'] && 'a'.split(',', 0) == []",
        "'hello'.substring(1, 3) == 'el' && 'hello'.substring(3) == 'lo'",
        "['a', 'b'].join() == 'ab' && ['a', 'b'].join('-') == 'a-b'",
        "'%s is %d, %.2f, %x, %b'.format(['x', 3, 1.5, 255, 5]) == 'x is 3, 1.50, ff, 101'",
        "'%s'.format([[1, 'a', null]]) == '[1, \"a\", null]' && '100%%'.format([]) == '100%'",
        "'%s'.format([{'b': 1, 'a': 2}]) == '{\"a\":2, \"b\":1}' && '%e'.format([1234.5]) == '1.234500×10⁰³'",
        "strings.quote('a\"b\\n') == '\"a\\\\\"b\\\\n\"'",
        "string(1.5) == '1.5' && string(1000000.0) == '1e+06' && string(true) == 'true'",
        "int('42') == 42 && double('1.5') == 1.5 && bool('true') && uint(3) == 3u && int(2.9) == 2",
        "string(duration('90s')) == '90s' && string(timestamp('2024-01-01T00:00:00Z')) == '2024-01-01T00:00:00Z'",
    ]);
}

#[test]
fn lists_and_sets() {
    all_true(&[
        "[1, 2].isSorted() && !['b', 'a'].isSorted() && [1.5].sum() == 1.5",
        "[3, 1].min() == 1 && ['a', 'b'].max() == 'b' && [duration('1s')].sum() == duration('1s')",
        "[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2 && [1].indexOf(5) == -1",
        "[1, 2, 3].slice(1, 3) == [2, 3] && [[1], [2, 3]].flatten() == [1, 2, 3]",
        "[3, 1, 2].sort() == [1, 2, 3] && ['bb', 'a'].sortBy(x, size(x)) == ['a', 'bb']",
        "[1, 2, 1].distinct() == [1, 2] && [1, 2].reverse() == [2, 1] && lists.range(3) == [0, 1, 2]",
        "[1, 2].first() == optional.of(1) && [1, 2].last().value() == 2 && ![].first().hasValue()",
        "sets.contains([1, 2], [2]) && sets.equivalent([1, 2], [2, 1, 1]) && !sets.intersects([1], [2])",
    ]);
}

#[test]
fn libraries_of_kubernetes() {
    all_true(&[
        "'abc 123'.find('[0-9]+') == '123' && 'a1b2'.findAll('[0-9]') == ['1', '2']",
        "'a1b2'.findAll('[0-9]', 1) == ['1'] && 'abc'.matches('^a.c$') && matches('b', '[a-c]')",
        "isURL('https://user@example.com:80/a/b?x=1') && !isURL('example.com') && isURL('/path')",
        "url('https://example.com:80/a b?x=1&x=2').getHost() == 'example.com:80'",
        "url('https://example.com:80/a b?x=1&x=2').getEscapedPath() == '/a%20b'",
        "url('https://[::1]:80/').getHostname() == '::1' && url('https://h:81/').getPort() == '81'",
        "url('https://h/?k=a&k=b').getQuery() == {'k': ['a', 'b']}",
        "isIP('::1') && !isIP('1.2.3') && ip('10.0.0.1').family() == 4 && ip('::1').isLoopback()",
        "!isIP('::ffff:1.2.3.4') && ip.isCanonical('::1') && !ip.isCanonical('::0001')",
        "ip('8.8.8.8').isGlobalUnicast() && ip('169.254.0.1').isLinkLocalUnicast()",
        "cidr('10.0.0.0/8').containsIP('10.1.2.3') && !cidr('10.0.0.0/8').containsIP(ip('11.0.0.1'))",
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8')",
        "cidr('10.0.0.0/8').prefixLength() == 8 && string(cidr('::/0').ip()) == '::' && !isCIDR('10.0.0.0/33')",
        "quantity('1Gi').isGreaterThan(quantity('1G')) && quantity('500m').add(quantity('500m')) == quantity('1')",
        "quantity('2k').asInteger() == 2000 && !quantity('1.5').isInteger() && isQuantity('20Mi') && !isQuantity('x')",
        "quantity('1').compareTo(quantity('2')) == -1 && sign(quantity('-1')) == -1 && quantity('3').sub(1) == quantity('2')",
        "semver('1.2.3').isLessThan(semver('1.10.0')) && semver('1.0.0-alpha.1').isLessThan(semver('1.0.0'))",
        "isSemver('1.2.3') && !isSemver('v1.2') && semver('v1.2', true).minor() == 2 && isSemver('1', true)",
        "format.dns1123Label().validate('ok') == optional.none() && format.dns1123Label().validate('No').hasValue()",
        "format.named('uuid').value().validate('123e4567-e89b-12d3-a456-426614174000') == optional.none()",
        "!format.named('nothing').hasValue() && format.date().validate('2024-13-01').hasValue()",
        "type(ip('::1')) == net.IP",
    ]);
}

#[test]
fn times() {
    all_true(&[
        "duration('1.5h') == duration('90m') && duration('90m').getHours() == 1",
        "timestamp('2024-01-01T00:00:00Z') + duration('24h') == timestamp('2024-01-02T00:00:00Z')",
        "timestamp('2024-01-02T00:00:00Z') - timestamp('2024-01-01T00:00:00Z') == duration('24h')",
        "timestamp('2024-01-01T23:00:00Z').getHours('Europe/Berlin') == 0",
        "timestamp('2024-01-01T23:00:00Z').getHours('-01:30') == 21",
        "timestamp('2024-01-07T00:00:00Z').getDayOfWeek() == 0 && self.at.getDayOfYear() == 59",
        "self.at.getMilliseconds() == 500 && int(timestamp('1970-01-01T00:01:00Z')) == 60",
    ]);
}
