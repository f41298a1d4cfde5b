package table

import (
	"slices"
	"strings"
	"testing"
)

func checksOf(names ...string) (checks []Check) {
	for _, name := range names {
		checks = append(checks, Check{Name: name, Does: "what " + name + " does"})
	}
	return checks
}

func TestSection(t *testing.T) {
	page := Section(checksOf("url", "tls"), []Row{
		{Client: "a", Version: "1", Cells: map[string]string{"url": Passed, "tls": Failed}},
		{Client: "b", Version: "2", Cells: map[string]string{"url": Passed}, Notes: []string{"no TLS"}},
	})
	for _, line := range []string{
		"| client | version | url | tls |",
		"| a | 1 | yes | NO |",
		"| b | 2 | yes | – |",
		"| tls | what tls does |",
		"- b: no TLS.",
	} {
		if !strings.Contains(page, "\n"+line+"\n") {
			t.Errorf("no line %q in\n%s", line, page)
		}
	}
}

func TestDifferences(t *testing.T) {
	row := func(client, version, url, tls string) Row {
		return Row{Client: client, Version: version, Cells: map[string]string{"url": url, "tls": tls}}
	}
	was := Section(checksOf("url", "tls"), []Row{row("a", "1", Passed, Passed), row("b", "1", Passed, "")})
	for _, test := range []struct {
		name string
		is   string
		want []string
	}{
		{"the same", was, nil},
		{"another version", Section(checksOf("url", "tls"), []Row{row("a", "2", Passed, Passed), row("b", "1", Passed, "")}), nil},
		{"a check fails", Section(checksOf("url", "tls"), []Row{row("a", "1", Passed, Failed), row("b", "1", Passed, "")}),
			[]string{`a, tls is "NO", the page has "yes"`}},
		{"a client is gone", Section(checksOf("url", "tls"), []Row{row("a", "1", Passed, Passed)}),
			[]string{`b, url is gone, the page has "yes"`, `b, tls is gone, the page has "–"`}},
		{"a check is new", Section(checksOf("url", "tls", "eval"), []Row{row("a", "1", Passed, Passed), row("b", "1", Passed, "")}),
			[]string{`a, eval is "–", the page has ""`, `b, eval is "–", the page has ""`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Differences(was, test.is); !slices.Equal(got, test.want) {
				t.Errorf("differences %q, want %q", got, test.want)
			}
		})
	}
}
