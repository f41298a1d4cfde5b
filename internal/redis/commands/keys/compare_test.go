package keys_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"

	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/randtest"
	"cellserver/internal/test/resptest"
)

// TestComparingModel sends random calls of the commands that compare values beside a model in plain words, at
// the top, in EXEC and in scripts, while time passes.
func TestComparingModel(t *testing.T) {
	rnd := randtest.New(t)
	for range 40 {
		r := commandstest.New()
		m := comparingModel{Rand: rnd, nowMs: commandstest.T0 / 1e6, keys: map[string]modelValue{}}
		s := r.Session()
		for range 400 {
			if rnd.IntN(8) == 0 {
				ms := rnd.Int64N(4000)
				r.Clock.Advance(ms * 1e6)
				m.nowMs += ms
			}
			call := m.call()
			in, want := resptest.Encode(call...), m.answer(call)
			switch rnd.IntN(4) {
			case 0:
				in, want = "MULTI\r\n"+in+"EXEC\r\n", "+OK\r\n+QUEUED\r\n*1\r\n"+want
			case 1:
				if want[0] != '-' {
					in = resptest.Encode(append([]string{"EVAL", "return redis.call(unpack(ARGV))", "3", "a", "b", "c"}, call...)...)
				}
			}
			if got := commandstest.Say(t, s, in); got != want {
				t.Fatalf("%q: got %q, want %q, with %+v", in, got, want, m.keys)
			}
		}
	}
}

type modelValue struct {
	text string
	atMs int64 // 0 for never
}

type comparingModel struct {
	*rand.Rand
	nowMs int64
	keys  map[string]modelValue
}

func (m *comparingModel) pick(of ...string) string { return of[m.IntN(len(of))] }

func (m *comparingModel) key() string { return m.pick("a", "b", "c") }

func (m *comparingModel) value() string { return m.pick("", "5", "05", "text", "TEXT", "\x00\xff") }

func (m *comparingModel) comparison() []string {
	by := m.pick("IFEQ", "ifne", "IFDEQ", "IfDne")
	if len(by) == 4 {
		return []string{by, m.value()}
	}
	digest := modelDigest(m.value())
	return []string{by, m.pick(digest, digest, strings.ToUpper(digest), digest[1:], "0"+digest, "zzzzzzzzzzzzzzzz")}
}

func (m *comparingModel) call() []string {
	switch m.IntN(12) {
	case 0:
		return []string{"GETSET", m.key(), m.value()}
	case 1:
		return []string{"DIGEST", m.key()}
	case 2:
		return []string{"DELIFEQ", m.key(), m.value()}
	case 3:
		return []string{"DELEX", m.key()}
	case 4, 5:
		return append([]string{"DELEX", m.key()}, m.comparison()...)
	case 6:
		return []string{"MSETNX", m.key(), m.value(), m.key(), m.value()}
	case 7, 8:
		call := []string{"MSETEX", "2", m.key(), m.value(), m.key(), m.value()}
		return m.with(call, m.pick("NX", "XX", ""), m.expiry())
	case 9:
		return []string{"PTTL", m.key()}
	}
	return m.with(append([]string{"SET", m.key(), m.value()}, m.comparison()...), m.expiry(), m.pick("GET", ""))
}

func (m *comparingModel) expiry() string {
	return m.pick("", "", "KEEPTTL", "PX "+strconv.Itoa(1+m.IntN(5000)), "EX 3", "PXAT "+strconv.FormatInt(m.nowMs+m.Int64N(6000)-1000, 10))
}

func (m *comparingModel) with(call []string, options ...string) []string {
	for _, o := range options {
		call = append(call, strings.Fields(o)...)
	}
	return call
}

func modelDigest(text string) string { return fmt.Sprintf("%016x", xxh3.HashString(text)) }

// live returns a key's value unless its time is over.
func (m *comparingModel) live(key string) (modelValue, bool) {
	v, ok := m.keys[key]
	return v, ok && (v.atMs == 0 || v.atMs > m.nowMs)
}

func (m *comparingModel) nullOr(key string) string {
	if v, ok := m.live(key); ok {
		return bulk(v.text)
	}
	return "$-1\r\n"
}

// holds returns whether a live value meets a condition, or an error.
func (m *comparingModel) holds(text, by, with string) (bool, string) {
	switch strings.ToUpper(by) {
	case "IFEQ":
		return text == with, ""
	case "IFNE":
		return text != with, ""
	}
	if len(with) != 16 {
		return false, "-ERR must be exactly 16 hexadecimal characters\r\n"
	}
	return strings.EqualFold(modelDigest(text), with) == strings.EqualFold(by, "IFDEQ"), ""
}

func (m *comparingModel) set(key, text string, options []string) {
	to := modelValue{text: text}
	for i, o := range options {
		switch o {
		case "KEEPTTL":
			if v, ok := m.live(key); ok {
				to.atMs = v.atMs
			}
		case "PX", "EX", "PXAT":
			n, _ := strconv.ParseInt(options[i+1], 10, 64)
			to.atMs = map[string]int64{"PX": m.nowMs + n, "EX": m.nowMs + 1000*n, "PXAT": n}[o]
		}
	}
	m.keys[key] = to
}

func (m *comparingModel) answer(call []string) string {
	switch key := call[1]; call[0] {
	case "GETSET":
		was := m.nullOr(key)
		m.set(key, call[2], nil)
		return was
	case "DIGEST":
		if v, ok := m.live(key); ok {
			return bulk(modelDigest(v.text))
		}
		return "$-1\r\n"
	case "PTTL":
		v, ok := m.live(key)
		switch {
		case !ok:
			return ":-2\r\n"
		case v.atMs == 0:
			return ":-1\r\n"
		}
		return fmt.Sprintf(":%d\r\n", v.atMs-m.nowMs)
	case "DELIFEQ":
		return m.delete(key, "IFEQ", call[2])
	case "DELEX":
		if len(call) == 2 {
			return m.delete(key, "", "")
		}
		return m.delete(key, call[2], call[3])
	case "MSETNX":
		return m.setAll(call[1:], "NX", nil)
	case "MSETEX":
		return m.setAll(call[2:6], strings.Join(call[6:], " "), call[6:])
	}
	return m.setIf(call)
}

func (m *comparingModel) delete(key, by, with string) string {
	v, ok := m.live(key)
	if ok && by != "" {
		var err string
		if ok, err = m.holds(v.text, by, with); err != "" {
			return err
		}
	}
	if !ok {
		return ":0\r\n"
	}
	delete(m.keys, key)
	return ":1\r\n"
}

func (m *comparingModel) setAll(pairs []string, when string, options []string) string {
	for i := 0; i < len(pairs); i += 2 {
		_, found := m.live(pairs[i])
		if found && strings.HasPrefix(when, "NX") || !found && strings.HasPrefix(when, "XX") {
			return ":0\r\n"
		}
	}
	for i := 0; i < len(pairs); i += 2 {
		m.set(pairs[i], pairs[i+1], options)
	}
	return ":1\r\n"
}

func (m *comparingModel) setIf(call []string) string {
	key, options := call[1], call[5:]
	was := m.nullOr(key)
	v, found := m.live(key)
	holds := strings.Contains(strings.ToUpper(call[3]), "NE")
	if found {
		var err string
		if holds, err = m.holds(v.text, call[3], call[4]); err != "" {
			return err
		}
	}
	if holds {
		m.set(key, call[2], options)
	}
	switch {
	case len(options) > 0 && options[len(options)-1] == "GET":
		return was
	case holds:
		return "+OK\r\n"
	}
	return "$-1\r\n"
}
