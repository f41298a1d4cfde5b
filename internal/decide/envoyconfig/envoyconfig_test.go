package envoyconfig

import (
	"strings"
	"testing"

	"cellserver/internal/decide/namedlimit"
)

func of(descriptors string) string {
	return "domain: d\ndescriptors:\n" + strings.TrimPrefix(descriptors, "\n")
}

func first(fields string) string { return of("- {key: a, " + fields + "}\n") }

// TestErrors: an error is one line with the place. What the importer refuses, too, is tested there.
func TestErrors(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", "f:1: the file is empty; domain is missing"},
		{"domain: d\nall_or_nothing: 1\n", `f:2: all_or_nothing must be true or false, got "1"`},
		{"domain: d\nlimits: []\n", `f:2: unknown field "limits" in the file; a file of named limits is for --limits-file`},
		{first("ratelimit: {}"), `f:3: unknown field "ratelimit" in a descriptor; did you mean rate_limit?`},
		{first("rate_limit: {unit: day, request_per_unit: 1}"), `f:3: unknown field "request_per_unit" in rate_limit; did you mean requests_per_unit?`},
		{first("algorithm: funnel"), `f:3: algorithm has no effect in a descriptor; move it into rate_limit`},
		{of("- {key: a, value: b}\n- {key: a, value: b}\n"), `f:4: descriptor "a_b" is in f:3 already; remove one`},
		{first("share_threshold: true"), `f:3: share_threshold needs a value with *, got ""`},
		{first("metadata: [x]"), "f:3: metadata must be a mapping"},
		{first("metadata: {[x]: y}"), "f:3: metadata must have words as keys, and plain values"},
		{first("rate_limit: {unit: day, requests_per_unit: 1, algorithm: gcra}"),
			`f:3: unknown algorithm "gcra"; there are funnel, token_bucket, fixed_window, sliding_window, approximate_window and quota`},
		{first("rate_limit: {unit: day, requests_per_unit: 4097, algorithm: sliding_window}"),
			"f:3: requests_per_unit of a sliding_window must be at most 4096, got 4097; an approximate_window has a larger one"},
	} {
		if _, err := RulesOf([]File{{"f", []byte(tt.text)}}); err == nil || err.Error() != tt.want {
			t.Errorf("%q: got %v", tt.text, err)
		}
	}
	text := []byte("domain: d\n")
	_, err := RulesOf([]File{{"one", text}, {"two", text}})
	if want := `two:1: domain "d" is in one:1 already; merge the files (limits import has --merge-domains)`; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

// TestFields reads a descriptor with all fields.
func TestFields(t *testing.T) {
	r := rulesOf(t, `
all_or_nothing: true
domain: d
descriptors:
- key: k
  value: v*
  rate_limit:
    unit: MoNtH
    requests_per_unit: 1_000
    name: n
    replaces: [{name: other}]
    algorithm: approximate_window
  shadow_mode: true
  quota_mode: true
  detailed_metric: true
  value_to_metric: true
  share_threshold: true
  metadata: {a: {b: [1, x, true, null]}}
`)
	domain := r.Domain("d")
	d := domain.Top.All[0]
	want := Rate{Count: 1000, Unit: "month", Algorithm: namedlimit.ApproximateWindow, Name: "n", NameAt: Line{0, "f", 10}}
	got := *d.Rate
	if len(got.Replaces) != 1 || got.Replaces[0].Name != "other" {
		t.Errorf("replaces %v", got.Replaces)
	}
	got.Replaces = nil
	if got.Count != want.Count || got.Unit != want.Unit || got.Algorithm != want.Algorithm || got.Name != want.Name || got.NameAt != want.NameAt {
		t.Errorf("got %+v", got)
	}
	if !domain.AllOrNothing || !d.Shadow || !d.Quota || !d.Detailed || !d.ValueToMetric || !d.Shared || r.Domain("e") != nil {
		t.Errorf("got %+v", d)
	}
	if metadata, err := d.Metadata.MarshalJSON(); err != nil || strings.ReplaceAll(string(metadata), " ", "") != `{"a":{"b":[1,"x",true,null]}}` {
		t.Errorf("got %s, %v", metadata, err)
	}
}

// TestNotes: what looks like a mistake is noted.
func TestNotes(t *testing.T) {
	r := rulesOf(t, of(`
- key: a
  unit: day
  shadow_mode: true
- key: b
  rate_limit: {unlimited: true, requests_per_unit: 1, unit: x, algorithm: funnel}
- key: c
  rate_limit: {unit: day, shadow_mode: true, descriptors: []}
- {key: d, rate_limit: {unit: day, requests_per_unit: 1, name: n, replaces: [{name: n2}]}}
- {key: e, rate_limit: {unit: day, requests_per_unit: 1, replaces: [{name: n}], key: x}}
key: x
`))
	want := []string{
		"f:12: key has no effect in the file; move it into an entry of descriptors",
		"f:4: unit has no effect in a descriptor; move it into rate_limit",
		"f:5: shadow_mode has no effect without a limit; remove it",
		"f:7: unit has no effect beside unlimited; remove it",
		"f:7: requests_per_unit has no effect beside unlimited; remove one of them",
		"f:7: algorithm has no effect beside unlimited; remove it",
		"f:9: shadow_mode has no effect in rate_limit; move it beside the key of its descriptor",
		"f:9: descriptors has no effect in rate_limit; move it beside the key of its descriptor",
		"f:9: requests_per_unit is missing, which is 0: it denies all; write it",
		"f:11: key has no effect in rate_limit; move it into an entry of descriptors",
		"f:3: this descriptor limits nothing: it has neither rate_limit nor descriptors; write rate_limit, or remove it",
		`f:10: replaces "n2", which no rate limit of the domain has as its name; correct or remove it`,
	}
	compareNotes(t, r, want)
}

// TestEmptyDescriptors: those that exempt values from another's limit are no mistakes.
func TestEmptyDescriptors(t *testing.T) {
	limit := "rate_limit: {unit: day, requests_per_unit: 1}"
	const noted = "f:3: this descriptor limits nothing: it has neither rate_limit nor descriptors; write rate_limit, or remove it"
	for _, tt := range []struct {
		empty, other string
		want         []string
	}{
		{"key: a, value: b", "key: a, " + limit, nil},
		{"key: a, value: b", "key: a, descriptors: [{key: c, " + limit + "}]", nil},
		{"key: a, value: b", "key: a, value: '*', " + limit, nil},
		{"key: a, value: 'b*'", "key: a, " + limit, nil},
		{"key: a, value: 'bc*'", "key: a, value: 'b*', " + limit, nil},
		{"key: 'a*'", "key: ab, " + limit, nil},
		{"key: a", "key: a, value: b, " + limit, []string{noted}},
		{"key: a, value: b", "key: a, value: c, " + limit, []string{noted}},
		{"key: a, value: b", "key: a, value: 'c*', " + limit, []string{noted}},
		{"key: a, value: 'b*'", "key: c, " + limit, []string{noted}},
	} {
		compareNotes(t, rulesOf(t, of("- {"+tt.empty+"}\n- {"+tt.other+"}\n")), tt.want)
	}
}

func compareNotes(t *testing.T, r *Rules, want []string) {
	t.Helper()
	var got []string
	for _, n := range r.Notes {
		got = append(got, n.String())
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, want %q", got, want)
	}
}

// FuzzRules: whatever a file has, it is refused in a line or finds limits.
func FuzzRules(f *testing.F) {
	f.Add(of("- {key: a, value: 'x*', share_threshold: true, rate_limit: {unit: day, requests_per_unit: 1}}\n"), "a=xy")
	f.Add(of("- key: a\n  detailed_metric: true\n  metadata: {a: [1]}\n  descriptors:\n  - &b {key: b, rate_limit: {unlimited: true}}\n"), "a=1,b=2")
	f.Fuzz(func(t *testing.T, text, request string) {
		r, err := RulesOf([]File{{"f", []byte(text)}})
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("an error of several lines: %q", err)
			}
			return
		}
		for _, n := range r.Notes {
			if strings.Contains(n.String(), "\n") || n.At.Line < 1 {
				t.Errorf("got note %q", n)
			}
		}
		for _, d := range r.Domains {
			found(d, request)
		}
	})
}

// TestLastDocumentMayBeEmpty, as behind the '---' with which some end each file.
func TestLastDocumentMayBeEmpty(t *testing.T) {
	t.Parallel()
	const text = "---\ndomain: d\ndescriptors: [{key: a, rate_limit: {unit: day, requests_per_unit: 5}}]\n---\n"
	if r, err := RulesOf([]File{{"f", []byte(text)}}); err != nil || r.Domain("d") == nil {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := RulesOf([]File{{"f", []byte(text + "domain: e\n")}}); err == nil || err.Error() != "f:4: more than one document; remove this '---' and all below" {
		t.Error(err)
	}
}
