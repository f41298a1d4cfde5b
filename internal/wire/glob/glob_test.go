package glob_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"cellserver/internal/test/redistest"
	"cellserver/internal/wire/glob"
)

// TestMatch: each row was verified with SET and KEYS of redis-server 7.0.15.
func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern   string
		match, no []string
	}{
		{"", []string{""}, []string{"a"}},
		{"*", []string{"", "a", "\xff\x00"}, nil},
		{"**", []string{"a"}, []string{""}},
		{"?", []string{"a", "\xff"}, []string{"", "ab"}},
		{"a*", []string{"a", "ab"}, []string{"", "ba"}},
		{"*a", []string{"a", "ba"}, []string{"ab"}},
		{"*a*b", []string{"ab", "aab", "bab", "abab"}, []string{"aba", "b"}},
		{"a\x00b", []string{"a\x00b"}, []string{"a"}},
		{"[abc]", []string{"a", "c"}, []string{"d", "ab", ""}},
		{"[^a]", []string{"b"}, []string{"a"}},
		{"[!a]", []string{"!", "a"}, []string{"b"}},
		{"[a-c]x", []string{"bx"}, []string{"dx", "-x"}},
		{"[c-a]", []string{"b"}, []string{"d"}},
		{"[^a-c]", []string{"d"}, []string{"b"}},
		{"[a^]", []string{"^"}, nil},
		{"[^^]", []string{"a"}, []string{"^"}},
		{"[*]", []string{"*"}, []string{"a"}},
		{"[]", nil, []string{"", "a", "]"}},
		{"[]abc]", nil, []string{"a", "]"}},
		{"[^]", []string{"a"}, nil},
		{"[abc", []string{"b"}, []string{"bc"}},
		{"[", nil, []string{"[", "a", ""}},
		{"[^", []string{"a"}, nil},
		{"[a-c", []string{"b"}, nil},
		{"[a-", []string{"a", "-"}, []string{"\x00"}},
		{"[a-]", []string{"a", "^"}, []string{"-", "b"}},
		{"[a-c-e]", []string{"b", "-", "e"}, []string{"d"}},
		{`[\a-c]`, []string{"a", "-", "c"}, []string{"b"}},
		{`[a-\]`, []string{"a", `\`}, nil},
		{`[a-\c]`, []string{"c", "]"}, []string{"b"}},
		{`[\`, []string{`\`}, nil},
		{`[\]`, []string{"]"}, nil},
		{`\*`, []string{"*"}, []string{"a"}},
		{`*\*`, []string{"*", "a*"}, []string{"a"}},
		{`\`, []string{`\`}, nil},
		{`a\`, []string{`a\`}, nil},
		{`\\`, []string{`\`}, []string{`\\`}},
	} {
		for _, s := range c.match {
			if !glob.Compile([]byte(c.pattern)).Matches([]byte(s)) {
				t.Errorf("%q does not match %q", c.pattern, s)
			}
		}
		for _, s := range c.no {
			if glob.Compile([]byte(c.pattern)).Matches([]byte(s)) {
				t.Errorf("%q matches %q", c.pattern, s)
			}
		}
	}
}

// TestMatchFold: each row was verified with CONFIG GET of redis-server 7.0.15.
func TestMatchFold(t *testing.T) {
	for _, c := range []struct {
		pattern string
		want    bool
	}{
		{"SAV?", true},
		{"S?VE", true},
		{"SAV[E]", true},
		{`SAV[\e]`, true},
		{`SAV[\E]`, false},
		{"SA[A-Z]e", true},
		{"[Y-a]*", false}, // y to a after folding
	} {
		if got := glob.CompileFold([]byte(c.pattern)).Matches([]byte("save")); got != c.want {
			t.Errorf("%q: %t", c.pattern, got)
		}
	}
}

// TestAsRedis compares random patterns with KEYS and, for matching without regard to case, with COMMAND LIST.
func TestAsRedis(t *testing.T) {
	ctx := context.Background()
	client := redistest.Start(t)
	random := rand.New(rand.NewPCG(1, 2))
	pairs := []any{"", "1"}
	for range 300 {
		pairs = append(pairs, randomText(random, `abcz-^]\`, 5), "1")
	}
	if err := client.MSet(ctx, pairs...).Err(); err != nil {
		t.Fatal(err)
	}
	keys := client.Keys(ctx, "*").Val()
	for range 5000 {
		pattern := randomText(random, `abz-^][[\***?`, 9)
		got := filter(keys, glob.Compile([]byte(pattern)))
		want := client.Keys(ctx, pattern).Val()
		if compare(t, pattern, got, want) {
			break
		}
	}
	if runtime.GOARCH == "amd64" || runtime.GOARCH == "386" { // where C's char is signed
		compareHighBytes(t, client, random)
	}
	names := client.Do(ctx, "command", "list").Val().([]any)
	commands := make([]string, len(names))
	for i, name := range names {
		commands[i] = name.(string)
	}
	for range 1000 {
		pattern := randomText(random, `aegtESTG|-^][[\*****?`, 7)
		reply, err := client.Do(ctx, "command", "list", "filterby", "pattern", pattern).StringSlice()
		if err != nil {
			t.Fatal(err)
		}
		if compare(t, pattern, filter(commands, glob.CompileFold([]byte(pattern))), reply) {
			break
		}
	}
}

// compareHighBytes compares patterns of bytes on both sides of 128.
func compareHighBytes(t *testing.T, client *redis.Client, random *rand.Rand) {
	ctx := context.Background()
	pairs := make([]any, 0, 1024)
	for c := range 256 {
		pairs = append(pairs, string([]byte{byte(c)}), "1", string([]byte{byte(c), byte(random.IntN(256))}), "1")
	}
	if err := client.MSet(ctx, pairs...).Err(); err != nil {
		t.Fatal(err)
	}
	keys := client.Keys(ctx, "*").Val()
	for range 3000 {
		pattern := randomText(random, "\x00\x01aZ[\x7f\x80\x81\xa0\xc3\xfe\xff--^][[*?", 8)
		if n := random.IntN(4); n < 2 {
			pattern = "[" + "^"[:n] + string([]byte{byte(random.IntN(256)), '-', byte(random.IntN(256))}) + "]*"
		}
		if compare(t, pattern, filter(keys, glob.Compile([]byte(pattern))), client.Keys(ctx, pattern).Val()) {
			break
		}
	}
}

func compare(t *testing.T, pattern string, got, want []string) (differ bool) {
	t.Helper()
	slices.Sort(got)
	slices.Sort(want)
	differ = !slices.Equal(got, want)
	if differ {
		t.Errorf("%q matches %q, of redis-server %q", pattern, got, want)
	}
	return differ
}

func filter(all []string, pattern *glob.Pattern) (matched []string) {
	for _, s := range all {
		if pattern.Matches([]byte(s)) {
			matched = append(matched, s)
		}
	}
	return matched
}

func randomText(random *rand.Rand, alphabet string, maxBytes int) string {
	var b strings.Builder
	for range random.IntN(maxBytes + 1) {
		b.WriteByte(alphabet[random.IntN(len(alphabet))])
	}
	return b.String()
}

// FuzzMatch compares the matcher with one that tracks all possible positions in the pattern, and holds that
// its steps are what Cost says at most.
func FuzzMatch(f *testing.F) {
	f.Add([]byte("a*[b-d]?\\*"), []byte("axcx*"))
	f.Add([]byte("*[^a]*b[*"), []byte("bbb"))
	f.Add([]byte("*a?a*[a-c]bc*aa"), []byte("abaaxbcaa"))
	f.Fuzz(checkMatch)
}

func checkMatch(t *testing.T, pattern, s []byte) {
	if len(pattern)*len(s) > 1<<16 {
		return
	}
	p, b := glob.Compile(pattern), glob.Budget{Left: 1 << 40}
	got, ok := p.Match(s, &b)
	if want := slowMatch(pattern, s, false); !ok || got != want {
		t.Errorf("%q against %q: %t, slowly %t", pattern, s, got, want)
	}
	if steps := 1<<40 - b.Left; steps > p.Cost.Of(1, len(s)) {
		t.Errorf("%q against %q: %d steps, at a cost of %d", pattern, s, steps, p.Cost.Of(1, len(s)))
	}
	if got, want := glob.CompileFold(pattern).Matches(s), slowMatch(pattern, s, true); got != want {
		t.Errorf("%q against %q in any case: %t, want %t", pattern, s, got, want)
	}
}

// TestAsBefore compares random patterns and strings, of few different bytes and of lengths around a word of
// the table.
func TestAsBefore(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 10_000 {
		checkMatch(t, []byte(randomText(random, `aAbz-^][[\***?`, 12)), []byte(randomText(random, `aAbB]`, 20)))
		checkMatch(t, []byte(randomText(random, "aZ\x7f\x80\xff--[[^]*", 12)), []byte(randomText(random, "az\x7f\x80\xfe", 4)))
	}
	for range 500 {
		pattern := "*" + randomText(random, "aaaaaab?", 150) + "[ab]" + randomText(random, "aaaaaaab", 60) + "*" + randomText(random, "ab", 2)
		checkMatch(t, []byte(pattern), []byte(randomText(random, "aaaaaaaaaaaaaaaaaaaab", 400)))
	}
}

// TestSteps: what took the product of both lengths takes about as many steps as there are bytes.
func TestSteps(t *testing.T) {
	a := func(n int) string { return strings.Repeat("a", n) }
	key := []byte(a(4096))
	for _, tt := range []struct {
		pattern  string
		maxSteps int // steps
	}{
		{"*" + a(2040) + "b", 256},
		{"*" + a(2040) + "b*", 5000},
		{"*" + a(30) + "?" + a(30) + "b*", 5000},
		{"*" + a(1000) + "?" + a(1039) + "b*", 32*4096 + 5000},
		{strings.Repeat("*a", 2040) + "b", 20_000},
		{strings.Repeat("*?", 2000) + "b*", 20_000},
		{"user:*:login", 10},
	} {
		p, b := glob.Compile([]byte(tt.pattern)), glob.Budget{Left: 1 << 40}
		if matched, ok := p.Match(key, &b); matched || !ok {
			t.Errorf("%.20q: matched is %t, ok is %t", tt.pattern, matched, ok)
		}
		if steps := 1<<40 - b.Left; steps > tt.maxSteps || steps > p.Cost.Of(1, len(key)) {
			t.Errorf("%.20q: %d steps of %d, at a cost of %d", tt.pattern, steps, tt.maxSteps, p.Cost.Of(1, len(key)))
		}
	}
	if cost := glob.Compile([]byte("user:*:login")).Cost.Of(20_000_000, 20_000_000); cost > 1_000_000 {
		t.Errorf("an ordinary pattern over a million keys costs %d steps", cost)
	}
	if cost := glob.Compile([]byte("*")).Cost.Of(20_000_000, 20_000_000); cost != 0 {
		t.Errorf("the star costs %d steps", cost)
	}
}

// TestElementsBeyondTheTable: a segment may have more elements than there are bits.
func TestElementsBeyondTheTable(t *testing.T) {
	for _, n := range []int{63, 64, 65, 4095, 4096, 4097, 5000} {
		pattern := glob.Compile([]byte("*" + strings.Repeat("?", n-1) + "b*"))
		for at, want := range map[int]bool{n - 2: false, n - 1: true, n + 100: true} {
			s := []byte(strings.Repeat("a", n+200))
			s[at] = 'b'
			if got := pattern.Matches(s); got != want {
				t.Errorf("%d elements, and the byte at %d: %t", n, at, got)
			}
		}
	}
}

// TestBudget: a match ends when its budget does, wherever that is, unless there is more.
func TestBudget(t *testing.T) {
	s := []byte(strings.Repeat("a", 1<<17) + "c")
	for _, pattern := range []string{"*b*", "*b?*", "*?b*c", strings.Repeat("*a", 300) + "*b*"} {
		p := glob.Compile([]byte(pattern))
		if _, ok := p.Match(s, &glob.Budget{Left: 1000}); ok {
			t.Errorf("%.10q: found out in 1,000 steps", pattern)
		}
		refills := 0
		b := glob.Budget{Refill: func() int {
			refills++
			return 10_000
		}}
		if matched, ok := p.Match(s, &b); matched || !ok || refills < 2 {
			t.Errorf("%.10q: matched is %t, ok is %t after %d refills", pattern, matched, ok, refills)
		}
	}
}

// token is a part of a pattern: the set of bytes that it matches one of, or nil for a star.
type token *[256]bool

// slowMatch tracks all possible positions in the pattern.
func slowMatch(pattern, s []byte, fold bool) bool {
	if len(s) == 0 {
		return len(pattern) == 0 || string(pattern) == "*"
	}
	reached := make([]bool, len(s)+1) // which prefixes of s the tokens so far can match
	reached[0] = true
	for _, tok := range tokens(string(pattern), fold) {
		next := make([]bool, len(s)+1)
		for i := range reached {
			switch {
			case tok == nil:
				next[i] = reached[i] || i > 0 && next[i-1]
			case i > 0:
				next[i] = reached[i-1] && tok[s[i-1]]
			}
		}
		reached = next
	}
	return reached[len(s)]
}

func tokens(pattern string, fold bool) (all []token) {
	for pattern != "" {
		c := pattern[0]
		pattern = pattern[1:]
		set := new([256]bool)
		switch {
		case c == '*':
			set = nil
		case c == '?':
			addRange(set, 0x80, 0x7f, false)
		case c == '[':
			pattern = class(pattern, set, fold)
		case c == '\\' && pattern != "":
			addRange(set, pattern[0], pattern[0], fold)
			pattern = pattern[1:]
		default:
			addRange(set, c, c, fold)
		}
		all = append(all, set)
	}
	return all
}

// addRange adds the bytes of a range, in any case if fold; Redis's are signed.
func addRange(set *[256]bool, from, to byte, fold bool) {
	if int8(from) > int8(to) {
		from, to = to, from
	}
	if fold {
		from, to = glob.Lower(from), glob.Lower(to)
	}
	for c := range set {
		b := byte(c)
		if fold {
			b = glob.Lower(b)
		}
		set[c] = set[c] || int8(from) <= int8(b) && int8(b) <= int8(to)
	}
}

func class(pattern string, set *[256]bool, fold bool) (rest string) {
	pattern, negated := strings.CutPrefix(pattern, "^")
	for pattern != "" && pattern[0] != ']' {
		taken := 1
		switch {
		case pattern[0] == '\\' && len(pattern) > 1:
			set[pattern[1]] = true // whatever fold says, as in Redis
			taken = 2
		case len(pattern) > 2 && pattern[1] == '-':
			addRange(set, pattern[0], pattern[2], fold)
			taken = 3
		default:
			addRange(set, pattern[0], pattern[0], fold)
		}
		pattern = pattern[taken:]
	}
	for i := range set {
		set[i] = set[i] != negated
	}
	return strings.TrimPrefix(pattern, "]")
}

// BenchmarkMatch is the worst case: a star that always has to take one more byte.
func BenchmarkMatch(b *testing.B) {
	pattern := glob.Compile([]byte(strings.Repeat("*a", 30) + "b"))
	s := []byte(strings.Repeat("a", 4096))
	for b.Loop() {
		pattern.Matches(s)
	}
}

func TestMatchAllocatesNothing(t *testing.T) {
	for _, pattern := range []string{"user:*:[a-z]?", "*:[a-z]?*", "*" + strings.Repeat("?", 300) + "*"} {
		p, s := glob.Compile([]byte(pattern)), []byte("user:1:xy"+strings.Repeat("a", 400))
		if n := testing.AllocsPerRun(100, func() { p.Matches(s) }); n != 0 {
			t.Errorf("%q: %g allocations", pattern, n)
		}
	}
}
