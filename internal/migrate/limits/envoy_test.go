package limits

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"cellserver/internal/base/zones"
	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/decide/namedlimit/limitsfile"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter/calendar"
)

// update rewrites the golden files: go test ./internal/migrate/limits -update
var update = flag.Bool("update", false, "rewrite the golden files")

// TestGolden compares the output, followed by the notes, with a file.
func TestGolden(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"shop", "notes"} {
		text, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		out, notes, err := Translate([]envoyconfig.File{{Path: name + ".yaml", Text: text}}, envoyconfig.Options{})
		if err != nil {
			t.Fatal(err)
		}
		parse(t, out)
		wantReadable(t, out)
		for _, n := range notes {
			out = append(out, "# "+n.String()+"\n"...)
		}
		golden := filepath.Join("testdata", name+".golden")
		if *update {
			if err := os.WriteFile(golden, out, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(out, want) {
			t.Errorf("%s: got\n%s", name, out)
		}
	}
}

func of(descriptors string) string { return "domain: d\ndescriptors:\n" + descriptors }

func first(fields string) string { return of("- {key: a, " + fields + "}\n") }

// refusal is a configuration and its error.
type refusal struct{ text, want string }

func (r refusal) test(t *testing.T) {
	t.Helper()
	out, notes, err := Translate([]envoyconfig.File{{Path: "f", Text: []byte(r.text)}}, envoyconfig.Options{})
	if err == nil || err.Error() != r.want || out != nil || notes != nil {
		t.Errorf("%q: got %v", r.text, err)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []refusal{
		{"", "f:1: the file is empty; domain is missing"},
		{"a: [", "f:2: not YAML: did not find expected node content"},
		{"- a\n", "f:1: the file must be a mapping"},
		{"descriptors: []\n", "f:1: domain is missing"},
		{"domain: ~\n", "f:1: domain is missing"},
		{"domain: [d]\n", "f:1: domain must be a word"},
		{"domain: d\nlimits: []\n", `f:2: unknown field "limits" in the file; a file of named limits is for --limits-file`},
		{"domain: d\ndescriptors: {}\n", "f:2: descriptors must be a list"},
		{of("- a\n"), "f:3: a descriptor must be a mapping"},
		{of("- {value: a}\n"), "f:3: a descriptor must have a key"},
		{of("- {key: [a]}\n"), "f:3: key must be a word"},
		{of("- {key: !!binary YQ==}\n"), "f:3: key must be a word"},
		{of("- {key: a, key: b}\n"), `f:3: "key" is in line 3 already`},
		{first("ratelimit: {}"), `f:3: unknown field "ratelimit" in a descriptor; did you mean rate_limit?`},
		{first("shadow_mode: 1"), `f:3: shadow_mode must be true or false, got "1"`},
		{first("quota_mode: 'true'"), `f:3: quota_mode must be true or false, got "true"`},
		{first("metadata: x"), "f:3: metadata must be a mapping"},
		{of("- {key: a, value: b, share_threshold: true}\n"), `f:3: share_threshold needs a value with *, got "b"`},
		{of("- {key: a, value: b}\n- {key: a, value: b}\n"), `f:4: descriptor "a_b" is in f:3 already; remove one`},
		{of("- {key: a, value: b}\n- {key: a_b}\n"), `f:4: descriptor "a_b" is in f:3 already; remove one`},
		{of("- &a {key: a, <<: *a}\n"), "f:3: too many merged mappings, or deeper than 32 levels; write out some"},
		{of("- &a {key: a, descriptors: [*a]}\n"), "f:3: descriptors nest deeper than 32 levels"},
	} {
		tt.test(t)
	}
	if _, _, err := Translate(nil, envoyconfig.Options{}); err == nil {
		t.Error("no file is no error")
	}
}

// TestOwnFields: fields that cellserver has beside envoyproxy/ratelimit's are translated or noted.
func TestOwnFields(t *testing.T) {
	t.Parallel()
	for algorithm, rule := range map[string]string{
		"quota":              "quota, epoch: true, max_count: 5, every: hour",
		"funnel":             "funnel, capacity: 5, count: 5, period: 3600",
		"token_bucket":       "token_bucket, capacity: 5, refill: 5, period: 3600",
		"fixed_window":       "fixed_window, max_count: 5, period: 3600",
		"sliding_window":     "sliding_window, max_count: 5, period: 3600",
		"approximate_window": "approximate_window, max_count: 5, period: 3600",
	} {
		text := "all_or_nothing: true\n" + first("rate_limit: {unit: hour, requests_per_unit: 5, algorithm: "+algorithm+"}")
		out, notes, err := Translate([]envoyconfig.File{{Path: "f", Text: []byte(text)}}, envoyconfig.Options{})
		if err != nil || !strings.Contains(string(out), "      - {algorithm: "+rule+"}\n") {
			t.Errorf("%s: %v\n%s", algorithm, err, out)
		}
		if len(notes) != 1 || notes[0].String() != "f:1: all_or_nothing is not translated: check the descriptors of a request by one CL.MCHECK without EACH" {
			t.Errorf("%s: notes %v", algorithm, notes)
		}
		path := filepath.Join(t.TempDir(), "limits.yml")
		if err := os.WriteFile(path, out, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := limitsfile.ReadFile(path, funnel.Burst, calendar.NewSet(&calendar.Wall{}, zones.Load)); err != nil {
			t.Errorf("%s: %v", algorithm, err)
		}
	}
}

func TestErrorsOfRateLimits(t *testing.T) {
	t.Parallel()
	for _, tt := range []refusal{
		{first("rate_limit: {}"),
			`f:3: unit must be second, minute, hour, day, week, month or year, got ""`},
		{first("rate_limit: {unit: unknown}"),
			`f:3: unit must be second, minute, hour, day, week, month or year, got "unknown"`},
		{first("rate_limit: {unit: day, unlimited: true}"), "f:3: unlimited has no unit; remove one of them"},
		{first("rate_limit: {unit: day, requests_per_unit: -1}"),
			`f:3: requests_per_unit must be a number from 0 to 4294967295, got "-1"`},
		{first("rate_limit: {unit: day, requests_per_unit: 4294967296}"),
			`f:3: requests_per_unit must be a number from 0 to 4294967295, got "4294967296"`},
		{first("rate_limit: {unit: day, requests_per_unit: '1'}"),
			`f:3: requests_per_unit must be a number from 0 to 4294967295, got "1"`},
		{first("rate_limit: {unit: day, replaces: x}"), "f:3: replaces must be a list"},
		{first("rate_limit: {unit: day, replaces: [{name: }]}"), "f:3: an entry of replaces must have a name"},
		{first("rate_limit: {unit: day, name: x, replaces: [{name: x}]}"),
			`f:3: replaces names its own rate limit, "x"; remove it`},
	} {
		tt.test(t)
	}
}

func TestSeveralFiles(t *testing.T) {
	t.Parallel()
	one := envoyconfig.File{Path: "one", Text: []byte(first("rate_limit: {unit: day, requests_per_unit: 1, name: x}"))}
	replacing := "value: v, rate_limit: {unit: day, requests_per_unit: 2, replaces: [{name: x}]}"
	two := envoyconfig.File{Path: "two", Text: []byte(first(replacing))}
	other := envoyconfig.File{Path: "other", Text: []byte(strings.ReplaceAll(string(one.Text), "domain: d", "domain: e"))}

	want := `two:1: domain "d" is in one:1 already; merge the files (limits import has --merge-domains)`
	if _, _, err := Translate([]envoyconfig.File{one, two}, envoyconfig.Options{}); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	want = `one:3: descriptor "a" is in one:3 already; remove one`
	if _, _, err := Translate([]envoyconfig.File{one, one}, envoyconfig.Options{MergeDomains: true}); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	out, notes, err := Translate([]envoyconfig.File{other, one, two}, envoyconfig.Options{MergeDomains: true})
	if err != nil {
		t.Fatal(err)
	}
	limits := parse(t, out).Limits
	d, e := limits["d.a"], limits["e.a"]
	if len(limits) != 2 || len(d.Rules) != 1 || len(d.Overrides) != 1 || len(e.Rules) != 1 {
		t.Errorf("got\n%s", out)
	}
	want = `two:3: replaces "x" is not translated: a caller of both checks must leave out that of d.a (one:3)`
	if len(notes) != 1 || notes[0].String() != want {
		t.Errorf("got %v", notes)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	tr := &translator{names: map[string]bool{}}
	long := strings.Repeat("k", 70)
	for _, tt := range []struct {
		domain string
		keys   []string
		want   string
	}{
		{"mongo_cps", []string{"database"}, "mongo_cps.database"},
		{"a.b", []string{"c"}, "a.b.c"},
		{"a", []string{"b", "c"}, "a.b.c-981f7e5c"},
		{"api/ü", []string{"x y"}, "api__.x_y"},
		{"d", []string{long}, "d." + long[:53] + "-b2b964f3"},
	} {
		got := tr.name(tt.domain, tt.keys)
		if got != tt.want || len(got) > namedlimit.MaxNameBytes {
			t.Errorf("%q %q: got %s", tt.domain, tt.keys, got)
		}
	}
}

// TestAliases: a few lines of aliases are refused before they fill the memory.
func TestAliases(t *testing.T) {
	t.Parallel()
	text := "domain: d\ndescriptors:\n- {key: a, descriptors: &l0 [{key: x}]}\n"
	for i := range 8 {
		text += "- {key: b" + string(rune('0'+i)) + ", descriptors: &l" + string(rune('1'+i)) + " ["
		for j := range 10 {
			text += "{key: c, value: v" + string(rune('0'+j)) + ", descriptors: *l" + string(rune('0'+i)) + "}, "
		}
		text += "]}\n"
	}
	_, _, err := Translate([]envoyconfig.File{{Path: "f", Text: []byte(text)}}, envoyconfig.Options{})
	if err == nil || !strings.Contains(err.Error(), "more than 100000 descriptors; split the configuration") {
		t.Errorf("got %v", err)
	}
}

// TestMergedMappings: a mapping's own fields precede merged ones, and those the ones of later mappings.
func TestMergedMappings(t *testing.T) {
	t.Parallel()
	text := of(`
- {key: a, rate_limit: &a {unit: day, requests_per_unit: 1}}
- {key: b, rate_limit: &b {unit: hour, requests_per_unit: 2, name: b}}
- {key: c, rate_limit: {<<: [*a, *b], requests_per_unit: 3}}
`)
	out, notes, err := Translate([]envoyconfig.File{{Path: "f", Text: []byte(text)}}, envoyconfig.Options{})
	if err != nil || len(notes) > 0 {
		t.Fatal(notes, err)
	}
	want := rule{Algorithm: "quota", Epoch: true, MaxCount: 3, Every: "day", Name: "b"}
	if got := parse(t, out).Limits["d.c"].Rules; len(got) != 1 || got[0] != want {
		t.Errorf("got %+v", got)
	}
	text = "domain: d\ndescriptors:\n- &m0 {key: a}\n"
	for i := range 30 {
		at := strconv.Itoa(i)
		text += "- &m" + strconv.Itoa(i+1) + " {<<: [*m" + at + ", *m" + at + "], value: v" + at + "}\n"
	}
	_, _, err = Translate([]envoyconfig.File{{Path: "f", Text: []byte(text)}}, envoyconfig.Options{})
	if err == nil || !strings.Contains(err.Error(), "too many merged mappings") {
		t.Errorf("got %v", err)
	}
}

// FuzzTranslate: the output is a file of limits, whatever the input.
func FuzzTranslate(f *testing.F) {
	for _, name := range []string{"shop", "notes"} {
		text, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		out, notes, err := Translate([]envoyconfig.File{{Path: "f", Text: text}}, envoyconfig.Options{})
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("an error of several lines: %q", err)
			}
			return
		}
		for _, n := range notes {
			if strings.Contains(n.String(), "\n") || n.At.Line < 1 {
				t.Errorf("got note %q", n)
			}
		}
		wantReadable(t, out)
		for name, l := range parse(t, out).Limits {
			if namedlimit.CheckName([]byte(name)) != nil {
				t.Errorf("got name %q", name)
			}
			if len(l.Overrides) == 0 && decision(l.Rules, l.Unlimited, false) == "invalid" {
				t.Errorf("%s is invalid in\n%s", name, out)
			}
		}
	})
}
