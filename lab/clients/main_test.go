package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cellserver/lab/clients/internal/program"
	"cellserver/lab/clients/internal/report"
	"cellserver/lab/clients/internal/table"
)

func TestParse(t *testing.T) {
	t.Setenv("CI", "")
	for _, test := range []struct {
		args []string
		want settings
		err  string
	}{
		{args: nil, want: settings{page: "../../docs/CLIENTS.md"}},
		{args: []string{"--check", "--page", "p"}, want: settings{page: "p", check: true}},
		{args: []string{"--check", "--", "s", "-x"}, want: settings{check: true, server: []string{"s", "-x"}}},
		{args: []string{"--only", "go-redis,ruby-redis"}, want: settings{only: []string{"go-redis", "ruby-redis"}}},
		{args: []string{"--only", "cobol"}, err: `there is no client "cobol"`},
		{args: []string{"redis-server"}, err: "unexpected argument redis-server; give a server's command after --"},
		{args: []string{"--nonsense"}, err: "unknown flag"},
	} {
		got, err := parse(test.args, io.Discard)
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%q: %v, want %q", test.args, err, test.err)
			}
			continue
		}
		if err != nil || got.page != test.want.page || got.check != test.want.check ||
			!slices.Equal(got.only, test.want.only) || !slices.Equal(got.server, test.want.server) {
			t.Errorf("%q: %+v, %v; want %+v", test.args, got, err, test.want)
		}
	}
	t.Setenv("CI", "true")
	if got, err := parse(nil, io.Discard); err != nil || !got.check {
		t.Errorf("CI=true does not check: %+v, %v", got, err)
	}
}

func TestJudge(t *testing.T) {
	all := func(change func(map[string]report.Line)) program.Result {
		lines := map[string]report.Line{}
		for _, check := range checks() {
			if check.Name != "scrape" && check.Name != "cache" && check.Name != "increx" {
				lines[check.Name] = report.Line{Check: check.Name, OK: true}
			}
		}
		change(lines)
		return program.Result{Checks: lines}
	}
	for _, test := range []struct {
		name   string
		change func(map[string]report.Line)
		cell   string // of TLS
		err    string
	}{
		{"all pass", func(map[string]report.Line) {}, table.Passed, ""},
		{"one is skipped", func(l map[string]report.Line) { l["tls"] = report.Line{Skip: "has none"} }, "", ""},
		{"one fails", func(l map[string]report.Line) { l["tls"] = report.Line{Error: "oh no"} }, table.Failed, "tls: oh no"},
		{"one is missing", func(l map[string]report.Line) { delete(l, "tls") }, table.Failed, "not reported: tls"},
		{"one is too many", func(l map[string]report.Line) { l["scrape"] = report.Line{OK: true} }, table.Passed, "scrape: reported, but"},
		{"a cache that it has not", func(l map[string]report.Line) { l["cache"] = report.Line{OK: true} }, table.Passed, "cache: reported, but"},
		{"one is unknown", func(l map[string]report.Line) { l["dance"] = report.Line{OK: true} }, table.Passed, "dance: reported, but"},
	} {
		t.Run(test.name, func(t *testing.T) {
			cells, err := judge(client{}, all(test.change))
			if cells["tls"] != test.cell || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("%q, %v; want %q, %q", cells["tls"], err, test.cell, test.err)
			}
		})
	}
}

func TestConclude(t *testing.T) {
	good := outcome{client: client{name: "a"}, row: table.Row{Client: "a", Version: "1", Cells: map[string]string{"url": table.Passed}}}
	newer := outcome{client: client{name: "a"}, row: table.Row{Client: "a", Version: "2", Cells: map[string]string{"url": table.Passed}}}
	bad := outcome{client: client{name: "b"}, err: errors.New("url: refused")}
	absent := outcome{client: client{name: "c"}, missing: "php-redis"}
	section, err := sentinelSection()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name     string
		check    bool
		page     string // before
		outcomes []outcome
		stays    bool
		err      string
	}{
		{"the results are written", false, "by hand\n" + marker + "old", []outcome{good}, false, ""},
		{"a client fails", false, marker + "old", []outcome{good, bad}, true, "b: url: refused"},
		{"a client is missing, locally", false, marker + "old", []outcome{good, absent}, true, ""},
		{"a client is missing, in CI", true, marker + "old", []outcome{good, absent}, true, "c is not tested: sudo apt-get install php-redis"},
		{"a version differs, in CI", true, marker + table.Section(checks(), []table.Row{good.row}) + section, []outcome{newer}, true, ""},
		{"a program's lines differ, in CI", true, marker + table.Section(checks(), []table.Row{good.row}), []outcome{good}, true, "the section on Sentinel"},
		{"the page has no place for results", false, "old", []outcome{good}, true, "has no line"},
		{"the page is old, in CI", true, marker + "old", []outcome{good}, true, "out of date, run make clients"},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "page.md")
			if err := os.WriteFile(file, []byte(test.page), 0o600); err != nil {
				t.Fatal(err)
			}
			err := conclude(settings{page: file, check: test.check}, test.outcomes, io.Discard, io.Discard)
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("error %v, want %q", err, test.err)
			}
			page, err := os.ReadFile(file)
			byHand, _, _ := strings.Cut(test.page, marker)
			if err != nil || (string(page) == test.page) != test.stays || !strings.HasPrefix(string(page), byHand) {
				t.Errorf("the page is %q, %v", page, err)
			}
		})
	}
}

func TestServerThatDoesNotStart(t *testing.T) {
	var log bytes.Buffer
	err := run(context.Background(), []string{"--only", "python-redis", "--", "sh", "-c", "echo no module >&2; exit 1"}, io.Discard, &log)
	if err == nil || !strings.Contains(err.Error(), "no module") && !strings.Contains(log.String(), "not tested") {
		t.Errorf("error %v, log %s", err, log.String())
	}
}

func TestMatrixIsWhole(t *testing.T) {
	for _, c := range matrix() {
		if entries, err := os.ReadDir(c.dir); err != nil || len(entries) == 0 {
			t.Errorf("%s: %v", c.name, err)
		}
		for _, name := range c.checks {
			if !slices.ContainsFunc(checks(), func(check table.Check) bool { return check.Name == name }) {
				t.Errorf("%s has a check %q that is no column", c.name, name)
			}
		}
	}
}
