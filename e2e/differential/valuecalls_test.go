package differential

import (
	"bytes"
	"encoding/binary"
	"hash/crc64"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// valueMaker generates calls of the commands of values. No key expires while a stream lasts.
type valueMaker struct {
	callMaker
	dumped string // a payload that both servers have returned
}

func newValueMaker(seed, number uint64) *valueMaker {
	return &valueMaker{callMaker: callMaker{Rand: rand.New(rand.NewPCG(seed, number))}}
}

// call returns a call, valid or spoiled, in a script or not. In a transaction few are spoiled, as each aborts
// it.
func (m *valueMaker) call(queued bool) []string {
	for {
		call := m.command()
		if m.IntN(6) == 0 && (!queued || m.IntN(10) == 0) && !slices.ContainsFunc(call, isLong) {
			call = m.spoil(call)
		}
		if endsSoon(call) || endsLate(call) {
			continue
		}
		for i := range call {
			if i == 0 || isToken(call[i]) {
				call[i] = m.anyCase(call[i])
			}
		}
		if len(call) > 1 && m.IntN(8) == 0 {
			call = m.scripted(call)
		}
		return call
	}
}

// command returns a valid call. Its placeholders are K, V, I, F, C, T, P, and S, M, A, B for expiries.
func (m *valueMaker) command() []string {
	words := m.pick("INCREX", "INCREX", "INCREX", "INCREX", "INCREX", "INCREX",
		"GET K", "GET K", "GET K", "GETDEL K", "GETEX K", "GETEX K EX S", "GETEX K PX M",
		"GETEX K EXAT A", "GETEX K PXAT B",
		"GETEX K PERSIST", "SET K V", "SET K V", "SET", "SET", "SET", "SET", "SETNX K V", "SETEX K S V",
		"PSETEX K M V", "MSET K V", "MSET K V K V K V", "GETSET K V", "GETSET K V", "MSETNX K V", "MSETNX K V K V K V",
		"MGET K", "MGET K K K", "INCR K", "INCR K", "DECR K", "INCRBY K I", "DECRBY K I",
		"INCRBYFLOAT K F", "INCRBYFLOAT K F", "STRLEN K",
		"RENAME K K", "RENAME K K", "RENAMENX K K", "EXPIRE K S", "PEXPIRE K M", "EXPIREAT K A",
		"PEXPIREAT K B",
		"EXPIRE K S C", "PEXPIRE K M C", "EXPIREAT K A C", "PEXPIREAT K B C", "EXPIRE K S C C",
		"PERSIST K", "PERSIST K", "TTL K", "PTTL K",
		"EXPIRETIME K", "PEXPIRETIME K", "TYPE K", "OBJECT ENCODING K", "OBJECT ENCODING K",
		"EXISTS K K K", "TOUCH K K", "DEL K", "DEL K K", "UNLINK K K",
		"DUMP K", "DUMP K", "RESTORE K T P", "RESTORE K T P REPLACE", "RESTORE K B P REPLACE ABSTTL",
		"RESTORE K T P REPLACE", "RESTORE K 5000000 P REPLACE ABSTTL")
	call := strings.Fields(words)
	if words == "SET" {
		call = append(call, "K", "V")
		for range 1 + m.IntN(3) {
			call = append(call, strings.Fields(m.pick("NX", "XX", "GET", "GET", "KEEPTTL", "EX S", "PX M",
				"EXAT A", "PXAT B"))...)
		}
	}
	if words == "INCREX" {
		call = m.increx()
	}
	for i, word := range call {
		if maker, ok := m.placeholders()[word]; ok {
			call[i] = maker()
		}
	}
	return call
}

func (m *valueMaker) placeholders() map[string]func() string {
	return map[string]func() string{
		"K": m.key, "V": m.value, "I": m.integer, "F": func() string { return floatText(m.Rand) },
		"P": m.payload,
		"C": func() string { return m.pick("NX", "XX", "GT", "LT") },
		"S": func() string { return m.span(100_000, 1e9, "9223372036854775807") },
		"M": func() string { return m.span(100_000_000, 1e12, "9223372036854775000") },
		"A": func() string { return m.span(5e9, 6e9, "9223372036854776") },
		"B": func() string { return m.span(5e12, 6e12, "9223372036854775808") },
		"T": func() string {
			return m.pick("0", "0", "-1", "x",
				strconv.FormatInt(100_000_000+m.Int64N(1e12), 10))
		},
	}
}

// span returns a time of a range, or one that expires at once, is too late or is no time. It does not repeat
// times that are valid, as GT and LT of equal ones depend on the time that passes. None is valid and after
// 2262, which is as late as cellserver's keys expire.
func (m *valueMaker) span(least, most int64, late string) string {
	if m.IntN(3) > 0 {
		return strconv.FormatInt(least+m.Int64N(most-least), 10)
	}
	return m.pick(late, "0", "-1", "-5000", "-9223372036854775808", "9223372036854775808", "", "1.5", "x",
		" 100000", "+100000")
}

func (m *valueMaker) key() string { return m.pick("a", "b", "key:1", "", "\x00\xff\r\n") }

func (m *valueMaker) integer() string {
	if m.IntN(3) == 0 {
		return strconv.FormatInt(int64(m.Uint64())>>m.IntN(64), 10)
	}
	return m.number()
}

func (m *valueMaker) value() string {
	if m.IntN(64) == 0 { // replies in several turns
		return strings.Repeat(m.pick("l", "o"), 60_000)
	}
	switch m.IntN(8) {
	case 0, 1, 2:
		return m.integer()
	case 3, 4:
		return floatText(m.Rand)
	case 5: // the lengths at which Redis changes an encoding
		return strings.Repeat(m.pick("x", "1", "ab", "\x00"), m.IntN(50))
	case 6:
		b := make([]byte, m.IntN(300))
		for i := range b {
			b[i] = byte(m.IntN(256) >> m.IntN(9))
		}
		return string(b)
	}
	if m.IntN(20) > 0 {
		return m.word()
	}
	return strings.Repeat(m.word()+"y", 1<<16)[:m.pickInt(1<<16, 1<<16-1, 1<<14, 1<<14-1, 20_000)]
}

func (m *valueMaker) pickInt(choices ...int) int { return choices[m.IntN(len(choices))] }

// payload returns one of DUMP, mostly a valid one.
func (m *valueMaker) payload() string {
	if m.dumped != "" && m.IntN(2) == 0 {
		return m.dumped
	}
	b := []byte{0}
	switch m.IntN(8) {
	case 0: // integers of one, two and four bytes
		b = append(b, 0xc0+byte(m.IntN(3)), byte(m.IntN(256)), byte(m.IntN(256)), byte(m.IntN(256)),
			byte(m.IntN(256)))
		b = b[:[]int{3, 4, 6}[b[1]-0xc0]]
	case 1: // compressed: three bytes, and a run of the last one
		run := m.IntN(7)
		b = append(b, 0xc3, 6, byte(3+run+2), 2, 'a', 'b', 'c', byte(run<<5), 0)
	case 2: // with a length of two bytes, and of four
		b = append(b, 0x40, 3, 'a', 'b', 'c')
	case 3:
		b = append(b, 0x80, 0, 0, 0, 3, 'a', 'b', 'c')
	case 4:
		b = append(b, byte(m.pickInt(3, 60, 0xc4, 0xff)), 'a', 'b', 'c')
	default:
		value := m.value()
		for len(value) > 63 {
			value = m.value()
		}
		b = append(append(b, byte(len(value))), value...)
	}
	b = append(b, byte(m.pickInt(10, 10, 10, 9, 1, 99)), 0) // the version
	b = binary.LittleEndian.AppendUint64(b, ^crc64.Update(^uint64(0), crc64.MakeTable(0x95ac9329ac4bc9b5), b))
	switch m.IntN(16) {
	case 0:
		b[m.IntN(len(b))]++
	case 1:
		b = b[:m.IntN(len(b))]
	}
	return string(b)
}

// scripted returns a script that executes the call. Words that may be keys are declared as such.
func (m *valueMaker) scripted(call []string) []string {
	script := m.pick("return redis.call(unpack(ARGV))", "return redis.call(unpack(ARGV))",
		"return redis.pcall(unpack(ARGV))",
		"return {redis.pcall(unpack(ARGV)), redis.call('GET', KEYS[1]), redis.call('STRLEN', KEYS[1])}",
		"redis.setresp(3) return redis.call(unpack(ARGV))",
		"redis.call('INCR', KEYS[1]) return redis.pcall(unpack(ARGV))",
		"if redis.call('INCR', KEYS[1]) == 1 then redis.call('PEXPIRE', KEYS[1], 100000000) end return redis.pcall(unpack(ARGV))",
		"local v = redis.call('GET', KEYS[1]) redis.call('SET', KEYS[1], #(v or ''), 'KEEPTTL') return {v, redis.call(unpack(ARGV))}")
	keys := []string{m.key()}
	for _, word := range call[1:] {
		if !isLong(word) && !slices.Contains(keys, word) {
			keys = append(keys, word)
		}
	}
	eval := append([]string{"EVAL", script, strconv.Itoa(len(keys))}, keys...)
	return append(eval, call...)
}

// isLong reports whether a word is never used as a key.
func isLong(word string) bool { return len(word) >= 100 }

// endsSoon reports whether a call may let a key expire before the stream ends.
func endsSoon(call []string) bool {
	name := strings.ToLower(call[0])
	if name == "increx" {
		return increxEnds(call)
	}
	if !slices.Contains([]string{"set", "setex", "psetex", "getex", "expire", "pexpire", "restore"}, name) {
		return false
	}
	for i := 2; i < len(call); i++ {
		n, err := strconv.ParseInt(call[i], 10, 64)
		value := name == "set" && i == 2 || strings.HasSuffix(name, "setex") && i == 3
		if err == nil && n > 0 && n < 100_000 && !value {
			return true
		}
	}
	return false
}

// endsLate reports whether a call may let a key expire after 2262, as cellserver's keys cannot.
func endsLate(call []string) bool {
	absolute := func(word string) bool {
		return slices.Contains([]string{"pexpireat", "pxat", "restore"}, strings.ToLower(word))
	}
	late := func(word string) bool {
		n, err := strconv.ParseInt(word, 10, 64)
		return err == nil && n > 9e12
	}
	return slices.ContainsFunc(call, absolute) && slices.ContainsFunc(call, late)
}

// floatText returns text that may be a floating-point number.
func floatText(r *rand.Rand) string {
	digits := func(most int) string {
		b := make([]byte, r.IntN(most+1))
		for i := range b {
			b[i] = '0' + byte(r.IntN(10))
		}
		return string(b)
	}
	odd := []string{"", "0", "-0", "-0.0", "+1", " 1", "1 ", "1\x00", "0x10", "0X1.8p3", "0x.1", "0x",
		"-0x1p-3", "nan", "-nan", "NaN(1)", "inf", "-Infinity", "+INF",
		"infinity1", "1e400", "1e4932", "-1.2e4932", "1e4933", "1e-4950", "1e-4951", "1e-5000", "5e-324",
		"1.7976931348623157e308", "3.0", "3.", ".5", ".", "e5", "1e", "1e+",
		"--1", "+-1", "1,5", "1_000", "1.1.1", "1d5", "1f", "1L", "9223372036854775807",
		"18446744073709551615", "18446744073709551616", "-9223372036854775808",
		"0.1", "0.2", "1e17", "1e-17", "5e-18", "4.9e-18", "0.000000000000000005",
		"999999999999999999.99999", "\t1", "1\n", "one", "1.0000000000000000001"}
	switch n := r.IntN(20); {
	case n < 5:
		return odd[r.IntN(len(odd))]
	case n < 6:
		return "0x" + strconv.FormatUint(r.Uint64()>>r.IntN(64),
			16) + "." + strconv.FormatUint(r.Uint64(), 16)[:r.IntN(10)] + "p" + strconv.Itoa(r.IntN(200)-100)
	case n < 7:
		return strconv.FormatFloat(r.NormFloat64(), 'g', r.IntN(18), 64)
	}
	text := []string{"", "-", "", "+"}[r.IntN(4)] + digits(20)
	if r.IntN(3) > 0 {
		text += "." + digits(22)
	}
	if r.IntN(3) == 0 {
		text += "e" + strconv.Itoa(r.IntN(60)-30)
	} else if r.IntN(30) == 0 {
		text += "E" + strconv.Itoa(r.IntN(10_000)-5000)
	}
	if r.IntN(100) == 0 {
		text = "1" + string(bytes.Repeat([]byte("0"), r.IntN(6000)))
	}
	return text
}
