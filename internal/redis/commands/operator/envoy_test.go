package operator_test

import (
	"fmt"
	"strings"
	"testing"

	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/admin"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/resptest"
)

// manyRules has a number of limits in each of two domains, whose keys have a number of bytes.
func manyRules(t *testing.T, n, keyBytes int) *envoyconfig.Rules {
	t.Helper()
	var files []envoyconfig.File
	for _, domain := range []string{"one", "two"} {
		var b strings.Builder
		b.WriteString("domain: " + domain + "\ndescriptors:\n")
		for i := range n {
			fmt.Fprintf(&b, "- {key: %s%d, rate_limit: {unit: day, requests_per_unit: 1}}\n", strings.Repeat("k", keyBytes), i)
		}
		files = append(files, envoyconfig.File{Path: domain, Text: []byte(b.String())})
	}
	rules, err := envoyconfig.RulesOf(files)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// TestEnvoyLimitsInPages: a reply is bounded, however many limits there are, and pages have each limit once.
func TestEnvoyLimitsInPages(t *testing.T) {
	for _, tt := range []struct{ limits, keyBytes, pages, most int }{{99, 1, 1, 99}, {250, 1, 3, 100}, {250, 1000, 8, 33}} {
		rules := manyRules(t, tt.limits, tt.keyBytes)
		s := commandstest.New(func(c *commands.Config) {
			c.Envoy = func() envoyconfig.Status { return envoyconfig.Status{Source: envoyconfig.Files, Rules: rules} }
		}).Session()
		seen, pages := map[string]bool{}, 0
		for cursor := "0"; pages == 0 || cursor != "0"; pages++ {
			page := resptest.ParseAll(t, commandstest.Say(t, s, "CL.ENVOY LIMITS two CURSOR "+cursor+"\r\n"))[0]
			cursor = page.Elements[0].Text
			if n := len(page.Elements[1].Elements); n > tt.most {
				t.Fatalf("%d limits in a page", n)
			}
			for _, limit := range page.Elements[1].Elements {
				if path := limit.Elements[3].Text; limit.Elements[1].Text != "two" || seen[path] {
					t.Fatalf("%s is there twice, or of domain %s", path, limit.Elements[1].Text)
				} else {
					seen[path] = true
				}
			}
		}
		if len(seen) != tt.limits || pages != tt.pages {
			t.Errorf("%d limits of %d, in %d pages", len(seen), tt.limits, pages)
		}
	}
}

// TestEnvoyLimitsReplaced: a cursor of other limits is an error, not a page of both.
func TestEnvoyLimitsReplaced(t *testing.T) {
	rules := manyRules(t, 101, 1)
	s := commandstest.New(func(c *commands.Config) {
		c.Envoy = func() envoyconfig.Status { return envoyconfig.Status{Source: envoyconfig.Files, Rules: rules} }
	}).Session()
	cursor := resptest.ParseAll(t, commandstest.Say(t, s, "CL.ENVOY LIMITS\r\n"))[0].Elements[0].Text
	again := "CL.ENVOY LIMITS CURSOR " + cursor + "\r\n"
	commandstest.ExpectLike(t, s, again, "*2\r\n…")
	rules = manyRules(t, 101, 1)
	const replaced = "-ERR the limits for Envoy were replaced since this cursor; begin with 0\r\n"
	commandstest.Expect(t, s, again, replaced)
	rules = nil
	commandstest.Expect(t, s, again, replaced)
}

// TestEnvoyIsRecorded: SLOWLOG shows CL.ENVOY, and MONITOR does not, as it is administration.
func TestEnvoyIsRecorded(t *testing.T) {
	r := commandstest.New(commandstest.WithEnvoy(t, envoyconfig.XDS), withThresholds(admin.Thresholds{SlowlogMaxLen: 3}))
	monitor, s := r.Session(), r.Session()
	commandstest.Expect(t, monitor, "MONITOR\r\n", "+OK\r\n")
	commandstest.Say(t, s, "CL.ENVOY LIMITS api CURSOR 0\r\n")
	if got := slowlogText(t, s, "1"); !strings.Contains(got, "[CL.ENVOY,LIMITS,api,CURSOR,0,]") {
		t.Errorf("SLOWLOG: %q", got)
	}
	if got := watched(t, monitor); got != "" {
		t.Errorf("MONITOR: %q", got)
	}
}
