package limits

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/wire/glob"
)

// limitsFile is the output.
type limitsFile struct {
	Limits map[string]limitEntry `yaml:"limits"`
}

type limitEntry struct {
	Rules     []rule     `yaml:"rules"`
	Unlimited bool       `yaml:"unlimited"`
	Overrides []selector `yaml:"overrides"`
	Shadow    bool       `yaml:"shadow"`
}

type selector struct {
	Keys      []string `yaml:"keys"`
	Pattern   string   `yaml:"pattern"`
	Rules     []rule   `yaml:"rules"`
	Unlimited bool     `yaml:"unlimited"`
	Deny      bool     `yaml:"deny"`
}

type rule struct {
	Algorithm string `yaml:"algorithm"`
	Epoch     bool   `yaml:"epoch"`
	MaxCount  int64  `yaml:"max_count"`
	Every     string `yaml:"every"`
	Name      string `yaml:"name"`
}

func parse(t testing.TB, out []byte) (f limitsFile) {
	t.Helper()
	if err := yaml.Load(out, &f, yaml.WithKnownFields()); err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	return f
}

// decide returns what a limit does about a key.
func (l limitEntry) decide(key string) string {
	matches := func(s selector) bool {
		return len(s.Keys) == 0 && glob.Compile([]byte(s.Pattern)).Matches([]byte(key))
	}
	at := slices.IndexFunc(l.Overrides, func(s selector) bool { return slices.Contains(s.Keys, key) })
	if at < 0 {
		at = slices.IndexFunc(l.Overrides, matches)
	}
	if at < 0 {
		return decision(l.Rules, l.Unlimited, false)
	}
	return decision(l.Overrides[at].Rules, l.Overrides[at].Unlimited, l.Overrides[at].Deny)
}

func decision(rules []rule, unlimited, deny bool) string {
	switch {
	case len(rules) == 1 && !unlimited && !deny && rules[0].Algorithm == "quota" && rules[0].Epoch:
		return fmt.Sprint(rules[0].MaxCount, " every ", rules[0].Every)
	case unlimited && !deny && len(rules) == 0:
		return "unlimited"
	case deny && !unlimited && len(rules) == 0:
		return "0 every second"
	}
	return "invalid"
}

// theirs is a descriptor of the configuration.
type theirs struct {
	key, value string
	count      int // -1 without a limit
	below      []*theirs
}

// model decides as envoyproxy/ratelimit does: on each level by a composite key, in three steps.
func model(list []*theirs, keys, values []string) string {
	for i := range keys {
		var found *theirs
		for _, step := range []func(d *theirs) bool{
			func(d *theirs) bool { return d.key == keys[i] && d.value == values[i] && d.value != "" },
			func(d *theirs) bool { return d.key == keys[i] && stars(d.value, values[i]) },
			func(d *theirs) bool { return d.key == keys[i] && d.value == "" },
		} {
			if at := slices.IndexFunc(list, step); found == nil && at >= 0 {
				found = list[at]
			}
		}
		switch {
		case found == nil:
			return "unlimited"
		case i == len(keys)-1 && found.count >= 0:
			return fmt.Sprint(found.count, " every second")
		}
		list = found.below
	}
	return "unlimited"
}

// stars matches a value with stars by trying all lengths.
func stars(pattern, value string) bool {
	if !strings.Contains(pattern, "*") {
		return false
	}
	var match func(p, v string) bool
	match = func(p, v string) bool {
		switch {
		case p == "":
			return v == ""
		case p[0] == '*':
			return match(p[1:], v) || v != "" && match(p, v[1:])
		}
		return v != "" && p[0] == v[0] && match(p[1:], v[1:])
	}
	return match(pattern, value)
}

func (d *theirs) write(b *strings.Builder, indent string) {
	fmt.Fprintf(b, "%s- key: %q\n%s  value: %q\n", indent, d.key, indent, d.value)
	if d.count >= 0 {
		fmt.Fprintf(b, "%s  rate_limit: {unit: second, requests_per_unit: %d}\n", indent, d.count)
	}
	if len(d.below) > 0 {
		fmt.Fprintf(b, "%s  descriptors:\n", indent)
	}
	for _, below := range d.below {
		below.write(b, indent+"    ")
	}
}

func randomLevel(r *rand.Rand, depth int) (list []*theirs) {
	values := []string{"", "", "a", "ab", "a|", "%", "b?", `\[x]`, "a*", "*b", "a*b*", "*", "**", "*|*", "[x]*"}
	seen := map[string]bool{}
	for range 1 + r.IntN(6) {
		d := &theirs{key: []string{"k", "l"}[r.IntN(2)], value: values[r.IntN(len(values))], count: r.IntN(6) - 1}
		if seen[d.key+d.value] {
			continue
		}
		seen[d.key+d.value] = true
		if depth > 1 && r.IntN(3) > 0 {
			d.below = randomLevel(r, depth-1)
		}
		list = append(list, d)
	}
	return list
}

// TestDecisionsAreTheirs compares random requests with the model.
func TestDecisionsAreTheirs(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	compared := 0
	for range 300 {
		list := randomLevel(r, 3)
		b := &strings.Builder{}
		b.WriteString("domain: d\ndescriptors:\n")
		for _, d := range list {
			d.write(b, "  ")
		}
		out, _, err := Translate([]envoyconfig.File{{Path: "f", Text: []byte(b.String())}}, envoyconfig.Options{})
		if err != nil {
			t.Fatalf("%v of\n%s", err, b)
		}
		wantReadable(t, out)
		limits := parse(t, out).Limits
		if limits == nil {
			t.Fatalf("no limits in\n%s", out)
		}
		for range 300 {
			keys, values := randomRequest(r)
			l := &limit{keys: keys}
			entry, found := limits["d."+strings.Join(keys, ".")]
			got, want := "unlimited", model(list, keys, values)
			if found {
				got = entry.decide(l.key(values))
				compared++
			}
			if got != want {
				t.Fatalf("%q = %q: got %s, want %s of\n%s\nin\n%s", keys, values, got, want, b, out)
			}
		}
	}
	if compared < 50_000 {
		t.Errorf("only %d requests had a limit", compared)
	}
}

func randomRequest(r *rand.Rand) (keys, values []string) {
	some := []string{"", "a", "ab", "a|b", "%", "b?", "bx", `\[x]`, "[x]y", "|"}
	for range 1 + r.IntN(3) {
		keys = append(keys, []string{"k", "l"}[r.IntN(2)])
		values = append(values, some[r.IntN(len(some))])
	}
	return keys, values
}
