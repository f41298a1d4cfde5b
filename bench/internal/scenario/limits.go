package scenario

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"cellserver/bench/internal/load"
	"cellserver/bench/internal/report"
)

const (
	manyLimits    = 1000
	manyOverrides = 100_000 // of one limit
)

// limits compares named limits and quotas with CL.THROTTLE: a limit of one rule and of two among 1,000, and
// one of 100,000 overrides of other keys.
func (s *Suite) limits(ctx context.Context) error {
	const throttle, one, two, overrides, quota = "CL.THROTTLE", "one rule", "two rules", "one rule, 100,000 overrides", "CL.QUOTA"
	var started servers
	defer started.stop()
	dir, err := os.MkdirTemp("", "limits")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "limits.yaml")
	if err := os.WriteFile(file, []byte(limitsFile()), 0o600); err != nil {
		return err
	}
	check := func(limit string) load.Command {
		return load.NewCommand("CL.CHECK", limit, "u:"+load.KeyMark).LimitedBy('1')
	}
	all := []contestant{
		{name: throttle, command: load.NewCommand("CL.THROTTLE", "u:"+load.KeyMark, "1000000", "1000", "86400", "1").LimitedBy('1')},
		{name: one, command: check("one")},
		{name: two, command: check("two")},
		{name: overrides, command: check("ovr")},
		{name: quota, command: load.NewCommand("CL.QUOTA", "u:"+load.KeyMark, "1000000", "MONTH", "1", "TZ", "Europe/Berlin").LimitedBy('1')},
	}
	for i := range all {
		if all[i].server, err = started.add(s.Kit.StartCellserver(ctx, "--limits-file", file)); err != nil {
			return err
		}
	}
	lanes, err := s.race(ctx, "limits", all)
	if err != nil {
		return err
	}
	by := func(text string, most float64, of, than string) report.Goal {
		return ratio("16 pipelined, "+text, most, lanes[of][16], lanes[than][16], report.CPU)
	}
	s.goal(
		by("a named limit of one rule: CPU per request, by CL.THROTTLE's", 1.15, one, throttle),
		by("a named limit of two rules: CPU per request, by CL.THROTTLE's", 1.3, two, throttle),
		by("a quota of a month: CPU per request, by CL.THROTTLE's", 1.3, quota, throttle),
		by("100,000 overrides: CPU per request of other keys, by that without", 1.02, overrides, one),
	)
	return nil
}

// limitsFile has the limits, none of which denies a call.
func limitsFile() string {
	var b strings.Builder
	const rule = "{algorithm: funnel, max_burst: 1000000, count: 1000, period: 24h}"
	fmt.Fprintf(&b, "limits:\n  one: {rules: [%s]}\n", rule)
	fmt.Fprintf(&b, "  two: {rules: [%s, {algorithm: funnel, max_burst: 1000000, count: 1000, period: 48h}]}\n", rule)
	fmt.Fprintf(&b, "  ovr:\n    rules: [%s]\n    overrides:\n", rule)
	const perOverride = 1000
	for i := range manyOverrides / perOverride {
		b.WriteString("      - keys: [")
		for key := range perOverride {
			fmt.Fprintf(&b, "customer-%d, ", i*perOverride+key)
		}
		b.WriteString("]\n        deny: true\n")
	}
	for i := range manyLimits - 3 {
		fmt.Fprintf(&b, "  l%d: {rules: [%s]}\n", i, rule)
	}
	return b.String()
}
