package limits

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cellserver/internal/base/zones"
	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/decide/namedlimit/limitsfile"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter/calendar"
)

// wantReadable requires an output that a server reads.
func wantReadable(t testing.TB, out []byte) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "limits.yml")
	if err := os.WriteFile(file, out, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := limitsfile.ReadFile(file, funnel.Burst, calendar.NewSet(&calendar.Wall{}, zones.Load)); err != nil {
		t.Fatalf("%v in\n%.10000s", err, out)
	}
}

// descriptors returns n of them, each made of a number.
func descriptors(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return of(b.String())
}

// TestBounds: a file has room for the most of all, and one more is refused with its line.
func TestBounds(t *testing.T) {
	t.Parallel()
	const limit = "rate_limit: {unit: day, requests_per_unit: %[1]d}}\n"
	for _, tt := range []struct {
		bound        int
		format, want string
	}{
		{bound: namedlimit.MaxNames, format: "- {key: a%[1]d, rate_limit: {unit: day, requests_per_unit: 1}}\n",
			want: "f:1027: with this descriptor there are more than 1024 limits, the most of a file; translate fewer domains at once"},
		{bound: namedlimit.MaxPatterns, format: "- {key: a, value: 'v%[1]d*', " + limit,
			want: "f:3: values with * below this descriptor need 129 patterns, and a limit has at most 128; list fewer"},
	} {
		out, notes, err := Translate([]envoyconfig.File{{Path: "f", Text: []byte(descriptors(tt.bound, tt.format))}}, envoyconfig.Options{})
		if err != nil || len(notes) > 0 {
			t.Fatal(err, notes)
		}
		wantReadable(t, out)
		refusal{descriptors(tt.bound+1, tt.format), tt.want}.test(t)
	}
	long := strings.Repeat("v", maxPatternBytes)
	refusal{of("- {key: a, value: '" + long + "*', rate_limit: {unit: day, requests_per_unit: 1}}\n"),
		"f:3: a value below this descriptor needs a pattern of 1025 bytes, and a limit has at most 1024; shorten it"}.test(t)
	out, _, err := Translate([]envoyconfig.File{{Path: "f", Text: []byte(of("- {key: a, value: '" + long[1:] + "*', rate_limit: {unit: day, requests_per_unit: 1}}\n"))}}, envoyconfig.Options{})
	if err != nil {
		t.Fatal(err)
	}
	wantReadable(t, out)
}

// TestManyKeys: a file has room for the keys of the most descriptors.
func TestManyKeys(t *testing.T) {
	t.Parallel()
	text := descriptors(envoyconfig.MaxDescriptors, "- {key: a, value: v%[1]d, rate_limit: {unit: day, requests_per_unit: 1}}\n")
	out, _, err := Translate([]envoyconfig.File{{Path: "f", Text: []byte(text)}}, envoyconfig.Options{})
	if err != nil {
		t.Fatal(err)
	}
	wantReadable(t, out)
}
