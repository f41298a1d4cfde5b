package top

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func aSample() *sample {
	return &sample{
		at: time.Date(2026, 11, 27, 13, 0, 10, 0, time.UTC), runID: "a", version: "0.3.0", up: 90 * time.Second,
		clients: 1234, usedBytes: 3 << 20, maxBytes: 1 << 30, allowed: 1500, limited: 500, errors: 20,
		keys: []hotKey{
			{name: "user:1", calls: 123456.7, limited: 12.25, share: 0.5},
			{name: "\x1b[2J\u202e", db: 3, calls: 4.5, limited: -1, share: 0.03},
		},
		limits: []namedLimit{
			{name: "api", policy: "FUNNEL 99 100 60", allowed: 300, limited: 20, near: 5},
			{name: "login", policy: "FIXEDWINDOW 5 60\x1b[m", isShadow: true, allowed: 10, shadow: 40},
			{name: "new", policy: "DENY", limited: 7},
		},
	}
}

func earlier() *sample {
	s := aSample()
	s.at = s.at.Add(-10 * time.Second)
	s.allowed, s.limited, s.errors = 500, 0, 20
	s.limits = []namedLimit{{name: "api", allowed: 100}, {name: "login"}}
	return s
}

func text(lines []line) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.text + "\n")
	}
	return b.String()
}

func TestLines(t *testing.T) {
	t.Parallel()
	const head = "2026-11-27 13:00:10  cellserver 0.3.0 at peer:1, up 1m30s\n"
	const totals = "100 allowed/s, 50 limited/s (33 %), 0 errors/s, 1,234 clients, 3 MiB of 1 GiB of keys\n"
	const keys = "Most requested keys\n" +
		" CALLS/S  LIMITED/S  OF CALLS  KEY\n" +
		" 123,000       12.2      50 %  user:1\n" +
		"    4.50          -     3.0 %  \"\\x1b[2J\\xe2\\x80\\xae\"  (db 3)\n"
	const limits = "\nNamed limits\n" +
		"ALLOWED/S  LIMITED/S  SHADOW/S    NEAR/S  LIMIT\n" +
		"        1          0         4         0  login  FIXEDWINDOW 5 60\\x1b[m  (shadow)\n" +
		"       20          2         0      0.50  api  FUNNEL 99 100 60\n" +
		"        -          -         -         -  new  DENY\n"
	v := &view{server: "peer:1", before: earlier(), now: aSample()}
	if got, want := text(v.lines(size{})), head+totals+keys+limits; got != want {
		t.Errorf("as text:\n%s\nwant\n%s", got, want)
	}
	if got, want := text(v.lines(size{200, 50})), head+totals+"\n"+keys+limits; got != want {
		t.Errorf("on a screen:\n%s\nwant\n%s", got, want)
	}
	v.before = nil
	if got := text(v.lines(size{})); !strings.Contains(got, "\n- allowed/s, - limited/s, - errors/s, ") || strings.Count(got, "        -          -         -         -") != 3 {
		t.Errorf("the first sample:\n%s", got)
	}
	v.now.keys, v.now.limits, v.now.noLimits = nil, nil, "NOPERM\n\x1b[2J; ask"
	v.byLimited = true
	if got, want := text(v.lines(size{})), "Most limited keys: none stands out\n\nNamed limits: NOPERM\\n\\x1b[2J; ask\n"; !strings.HasSuffix(got, want) {
		t.Errorf("nothing:\n%s\nwant it to end in\n%s", got, want)
	}
}

// TestLinesFit: on every screen no line is too long and none too many, and both tables have rows if there is
// room.
func TestLinesFit(t *testing.T) {
	t.Parallel()
	now := aSample()
	now.keys, now.limits = nil, nil
	for i := range 100 {
		now.keys = append(now.keys, hotKey{name: fmt.Sprint("用户:", strings.Repeat("x", i)), calls: float64(i)})
		now.limits = append(now.limits, namedLimit{name: fmt.Sprint("limit", i), policy: strings.Repeat("FUNNEL 1 2 3 ", i)})
	}
	v := &view{now: now, note: strings.Repeat("away ", 50), isAway: true}
	for width := 1; width < 150; width += 7 {
		for height := 1; height < 60; height++ {
			lines := v.lines(size{width, height})
			rows := text(lines)
			if len(lines) > height || height > 12 && len(lines) != height ||
				height > 12 && width > 80 && (!strings.Contains(rows, "用户") || !strings.Contains(rows, "limit")) {
				t.Fatalf("%d x %d: %d lines\n%s", width, height, len(lines), rows)
			}
			for _, l := range lines {
				used := 0
				for _, r := range l.text {
					used += cells(r)
				}
				if used > width {
					t.Fatalf("%d x %d: %d cells: %s", width, height, used, l.text)
				}
			}
		}
	}
}

func TestScreen(t *testing.T) {
	t.Parallel()
	v := &view{server: "peer:1", now: aSample(), note: "away", isAway: true}
	got := string(v.screen(size{40, 10}))
	for _, want := range []string{home + eraseLine + "2026", "\r\n" + eraseLine + reverse + "away" + normal + "\r\n", bold + " CALLS/S", eraseBelow} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
	if strings.Contains(got, "\x1b[2J") || strings.Contains(got, "\u202e") {
		t.Errorf("a key wrote to the terminal: %q", got)
	}
}
