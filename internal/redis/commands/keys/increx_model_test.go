package keys_test

import (
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/racetest"
	"cellserver/internal/test/randtest"
	"cellserver/internal/test/resptest"
)

// modelValue is a key of the model, as GET and PEXPIRETIME return it.
type modelValue struct {
	text  string
	endMs int64 // -1 for never
}

// increxModel is what the pages of INCREX say, in exact numbers that are rounded to a long double once.
type increxModel struct {
	keys           map[string]modelValue
	integer, float *modelNumbers
}

func newIncrexModel() *increxModel {
	return &increxModel{
		keys:    map[string]modelValue{},
		integer: newModelNumbers(false, 256, "-9223372036854775808", "9223372036854775807"),
		float:   newModelNumbers(true, 64, "-0x.ffffffffffffffffp+16384", "0x.ffffffffffffffffp+16384"),
	}
}

// increx returns the number after a call and the one added, or an error.
func (m *increxModel) increx(key string, args []string, nowMs int64) (after, added string, err error) {
	o, err := m.readOptions(args, nowMs)
	if err != nil {
		return "", "", err
	}
	old, live := m.keys[key]
	n := new(big.Float).SetPrec(o.bits)
	if live {
		if n, err = o.number(old.text, "value"); err != nil {
			return "", "", err
		}
	}
	if n.IsInf() {
		return "", "", errors.New("value cannot be Infinity")
	}
	if live && o.has["NX"] || !live && o.has["XX"] {
		return o.text(n), "0", nil
	}
	sum := o.add(n, o.by, false)
	low, high := sum.Cmp(o.least) < 0, sum.Cmp(o.most) > 0
	switch {
	case (low || high || sum.IsInf()) && !o.has["SATURATE"]:
		return o.text(n), "0", nil
	case low:
		sum = o.least
	case high:
		sum = o.most
	}
	delta := o.add(sum, n, true)
	if !o.fits(delta) && o.isFloat {
		return "", "", errors.New("applied increment would be Infinity")
	}
	if !o.fits(delta) {
		return "", "", errors.New("applied increment would overflow")
	}
	endMs := int64(-1)
	if live {
		endMs = old.endMs
	}
	if o.has["PERSIST"] || o.endMs != 0 && (!o.has["ENX"] || endMs < 0) {
		endMs = o.endMs
	}
	if m.keys[key] = (modelValue{o.text(sum), endMs}); endMs >= 0 && endMs <= nowMs {
		delete(m.keys, key)
	}
	return o.text(sum), o.text(delta), nil
}

// modelOptions are INCREX's options.
type modelOptions struct {
	*modelNumbers
	has             map[string]bool
	by, least, most *big.Float
	endMs           int64 // 0 without EX and its like, -1 with PERSIST
}

func (m *increxModel) readOptions(args []string, nowMs int64) (o modelOptions, err error) {
	syntax := errors.New("syntax error")
	texts, groups := map[string]string{"BY": "1"}, map[string]bool{}
	o.has = map[string]bool{}
	for i := 0; i < len(args); i++ {
		word := strings.ToUpper(args[i])
		group := word
		switch word {
		case "BYINT", "BYFLOAT":
			group = "BY"
		case "EX", "PX", "EXAT", "PXAT", "PERSIST":
			group = "END"
		case "NX", "XX":
			group = "IF"
		case "LBOUND", "UBOUND", "SATURATE", "ENX":
		default:
			return o, syntax
		}
		if groups[group] {
			return o, syntax
		}
		if groups[group], o.has[word] = true, true; word == "PERSIST" || word == "SATURATE" || word == "ENX" || group == "IF" {
			continue
		}
		if i++; i == len(args) {
			return o, syntax
		}
		texts[group] = args[i]
	}
	switch {
	case o.has["PERSIST"] && o.has["ENX"]:
		return o, syntax
	case o.has["ENX"] && !groups["END"]:
		return o, errors.New("ENX flag requires an expiration")
	}
	if o.modelNumbers = m.integer; o.has["BYFLOAT"] {
		o.modelNumbers = m.float
	}
	if o.by, err = o.number(texts["BY"], "Increment"); err != nil {
		return o, err
	}
	if o.by.IsInf() {
		return o, errors.New("BYFLOAT increment cannot be Infinity")
	}
	if o.least = o.typeLeast; o.has["LBOUND"] {
		if o.least, err = o.number(texts["LBOUND"], "LBOUND"); err != nil {
			return o, err
		}
	}
	if o.most = o.typeMost; o.has["UBOUND"] {
		if o.most, err = o.number(texts["UBOUND"], "UBOUND"); err != nil {
			return o, err
		}
	}
	if o.least.Cmp(o.most) > 0 {
		return o, errors.New("LBOUND can't be greater than UBOUND")
	}
	if groups["END"] {
		o.endMs, err = o.end(texts["END"], nowMs)
	}
	return o, err
}

// end returns when the key is to expire.
func (o *modelOptions) end(text string, nowMs int64) (int64, error) {
	if o.has["PERSIST"] {
		return -1, nil
	}
	if !isModelInteger(text) {
		return 0, errors.New("value is not an integer or out of range")
	}
	ms, _ := new(big.Int).SetString(text, 10)
	positive := ms.Sign() > 0
	if o.has["EX"] || o.has["EXAT"] {
		ms.Mul(ms, big.NewInt(1000))
	}
	if o.has["EX"] || o.has["PX"] {
		ms.Add(ms, big.NewInt(nowMs))
	}
	if !positive || !ms.IsInt64() {
		return 0, errors.New("invalid expire time in 'increx' command")
	}
	return min(ms.Int64(), 9223372036854), nil // the server's last millisecond
}

func isModelInteger(text string) bool {
	n, ok := new(big.Int).SetString(text, 10)
	return ok && n.IsInt64() && n.String() == text
}

// modelNumbers are the numbers of a type. Integers have enough bits to be exact.
type modelNumbers struct {
	isFloat             bool
	bits                uint
	typeLeast, typeMost *big.Float
	infinite, decimal   *regexp.Regexp
}

func newModelNumbers(isFloat bool, bits uint, least, most string) *modelNumbers {
	parse := func(text string) *big.Float {
		f, _, err := big.ParseFloat(text, 0, bits, big.ToNearestEven)
		if err != nil {
			panic(err)
		}
		return f
	}
	return &modelNumbers{
		isFloat, bits, parse(least), parse(most),
		regexp.MustCompile(`^[-+]?(?i:inf|infinity)$`), regexp.MustCompile(`^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,4})?$`),
	}
}

// number reads a number; what names it in errors.
func (m *modelNumbers) number(text, what string) (*big.Float, error) {
	f := new(big.Float).SetPrec(m.bits)
	if !m.isFloat {
		if !isModelInteger(text) {
			return nil, errors.New(what + " is not an integer or out of range")
		}
		f.SetString(text)
		return f, nil
	}
	if m.infinite.MatchString(text) {
		return f.SetInf(text[0] == '-'), nil
	}
	if m.decimal.MatchString(text) {
		if r, ok := new(big.Rat).SetString(text); ok && m.fits(f.SetRat(r)) {
			return f, nil
		}
	}
	return nil, errors.New(what + " is not a valid float")
}

func (m *modelNumbers) fits(f *big.Float) bool {
	return f.Cmp(m.typeLeast) >= 0 && f.Cmp(m.typeMost) <= 0
}

// add adds, or subtracts. What a long double cannot hold is infinite.
func (m *modelNumbers) add(a, b *big.Float, subtracts bool) *big.Float {
	f := new(big.Float).SetPrec(m.bits)
	if subtracts {
		f.Sub(a, b)
	} else {
		f.Add(a, b)
	}
	if m.isFloat && !m.fits(f) {
		f.SetInf(f.Signbit())
	}
	return f
}

func (m *modelNumbers) text(f *big.Float) string {
	if !m.isFloat {
		return f.Text('f', 0)
	}
	text := strings.TrimSuffix(strings.TrimRight(f.Text('f', 17), "0"), ".")
	if text == "-0" {
		return "0"
	}
	return text
}

// increxCall returns the words after INCREX of a random call; few are wrong.
func increxCall(r *rand.Rand, nowMs int64) []string {
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	number := func(isFloat bool) string {
		switch n := r.IntN(12); {
		case r.IntN(60) == 0:
			return pick("x", "", "1.5", "+1", " 1", "9223372036854775808", "nan", "inf", "-inf", "+Infinity", "1e99999", "--1")
		case !isFloat && n < 2:
			return strconv.FormatInt(int64(r.Uint64())>>r.IntN(64), 10)
		case !isFloat:
			return strconv.Itoa(r.IntN(25) - 10)
		case n == 0:
			return pick("1.18973149535723176502e4932", "-1.18973149535723176502e4932", "1e4932", "-1e4932", "1e300", "-1e19", "1e-17", "-4e-18")
		case n < 4:
			return strconv.FormatFloat(r.NormFloat64()*100, 'g', 1+r.IntN(18), 64)
		}
		return strconv.FormatFloat(float64(r.IntN(200)-80)/10, 'f', -1, 64)
	}
	isFloat := r.IntN(4) == 0
	var groups [][]string
	if isFloat {
		groups = append(groups, []string{"BYFLOAT", number(true)})
	} else if r.IntN(3) > 0 {
		groups = append(groups, []string{"BYINT", number(false)})
	}
	for _, word := range []string{"LBOUND", "UBOUND"} {
		if r.IntN(3) == 0 {
			groups = append(groups, []string{word, number(isFloat)})
		}
	}
	endless := r.IntN(2) == 0
	if !endless {
		time := map[string]int64{"EX": int64(r.IntN(3)), "PX": int64(1 + r.IntN(1500)), "EXAT": nowMs/1000 + int64(r.IntN(4)-1), "PXAT": nowMs + int64(r.IntN(3000)-500)}
		word := pick("EX", "PX", "EXAT", "PXAT", "PERSIST")
		group := []string{word, strconv.FormatInt(time[word], 10)}
		if r.IntN(30) == 0 {
			group[1] = pick("x", "-1", "9223372036854775807", "9223372036854775", "9223370000000000000", "")
		}
		if word == "PERSIST" {
			group = group[:1]
		}
		groups = append(groups, group)
	}
	if !endless && r.IntN(2) == 0 || r.IntN(50) == 0 {
		groups = append(groups, []string{"ENX"})
	}
	for _, word := range []string{"SATURATE", "SATURATE", "SATURATE", pick("NX", "XX")} {
		if r.IntN(9) == 0 {
			groups = append(groups, []string{word})
		}
	}
	r.Shuffle(len(groups), func(i, j int) { groups[i], groups[j] = groups[j], groups[i] })
	words := slices.Concat(groups...)
	if n := len(words); n > 0 && r.IntN(40) == 0 { // one word too few
		words = slices.Delete(words, n-1, n)
	}
	for i := range words {
		if r.IntN(2) == 0 {
			words[i] = strings.ToLower(words[i])
		}
	}
	return words
}

// TestIncrexAsItsModel compares random calls with the model, while time goes on.
func TestIncrexAsItsModel(t *testing.T) {
	calls := 1_000_000
	switch {
	case racetest.IsQuick():
		calls = 20_000
	case racetest.OmitsLong():
		calls = 100_000
	}
	seed := randtest.Seed(t, 1)
	r := rand.New(rand.NewPCG(seed, 0))
	harness := commandstest.New()
	s := harness.Session()
	commandstest.Say(t, s, "HELLO 3\r\n")
	m, sets := newIncrexModel(), []string{"0", "5", "-3", "10.5", "9223372036854775800", "-9223372036854775808", "1e4932", "inf", "-inf", "x", "007", "0.1", "3.0", ""}
	for done := 0; done < calls; {
		nowMs := harness.Clock.Now() / 1e6
		for key, v := range m.keys {
			if v.endMs >= 0 && v.endMs <= nowMs {
				delete(m.keys, key)
			}
		}
		var in, want strings.Builder
		for range 1 + r.IntN(30) {
			key := string(rune('a' + r.IntN(4)))
			if r.IntN(12) == 0 { // another value, perhaps one that expires
				text, ms := sets[r.IntN(len(sets))], int64(r.IntN(3))*700
				call, endMs := []string{"SET", key, text}, int64(-1)
				if ms > 0 {
					call, endMs = append(call, "PX", strconv.FormatInt(ms, 10)), nowMs+ms
				}
				in.WriteString(resptest.Encode(call...) + resptest.Encode("GET", key))
				want.WriteString("+OK\r\n" + bulk(text))
				m.keys[key] = modelValue{text, endMs}
				continue
			}
			words := increxCall(r, nowMs)
			after, added, err := m.increx(key, words, nowMs)
			in.WriteString(resptest.Encode(append([]string{"INCREX", key}, words...)...))
			mark := ":"
			if slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, "BYFLOAT") }) {
				mark = ","
			}
			if err != nil {
				fmt.Fprintf(&want, "-ERR %v\r\n", err)
			} else {
				fmt.Fprintf(&want, "*2\r\n%s%s\r\n%s%s\r\n", mark, after, mark, added)
			}
			in.WriteString(resptest.Encode("GET", key) + resptest.Encode("PEXPIRETIME", key))
			if v, ok := m.keys[key]; ok {
				fmt.Fprintf(&want, "%s:%d\r\n", bulk(v.text), v.endMs)
			} else {
				want.WriteString("_\r\n:-2\r\n")
			}
			done++
		}
		if got := commandstest.Say(t, s, in.String()); got != want.String() {
			t.Fatalf("%s=%d, at %d ms, after %d calls:\n%s\ngot  %q\nwant %q", randtest.Env, seed, nowMs, done, strings.ReplaceAll(in.String(), "\r\n", " "), got, want.String())
		}
		harness.Clock.Advance(r.Int64N(400_000_000))
	}
}
