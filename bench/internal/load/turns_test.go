package load

import (
	"strings"
	"testing"
)

// TestTurns: every second batch is of the second command, for the keys and calls of the first, and no call
// comes twice, on whatever connection and in whatever run.
func TestTurns(t *testing.T) {
	hold, settle := NewCommand("HOLD", "k:"+KeyMark, CallMark), NewCommand("SETTLE", CallMark, "k:"+KeyMark, "1")
	pair := hold.Then(settle)
	if got, want := pair.String(), "HOLD k:{key} {call}, then SETTLE {call} k:{key} 1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if hold.Turns() != 1 || pair.Turns() != 2 {
		t.Errorf("%d and %d turns", hold.Turns(), pair.Turns())
	}
	keys := &sequence{first: 7, count: 100}
	again := pair // as in another run
	a, b, c := pair.newDialect(2), pair.newDialect(2), again.newDialect(2)
	for _, batch := range []struct {
		of   dialect
		want string
	}{
		{a, "HOLD k:7 1 HOLD k:8 2"}, {b, "HOLD k:9 3 HOLD k:10 4"},
		{b, "SETTLE 3 k:9 1 SETTLE 4 k:10 1"}, {a, "SETTLE 1 k:7 1 SETTLE 2 k:8 1"},
		{a, "HOLD k:11 5 HOLD k:12 6"}, {a, "SETTLE 5 k:11 1 SETTLE 6 k:12 1"},
		{c, "HOLD k:13 7 HOLD k:14 8"}, {c, "SETTLE 7 k:13 1 SETTLE 8 k:14 1"},
	} {
		if got := wordsOf(string(batch.of.fill(2, keys))); got != batch.want {
			t.Errorf("got %q, want %q", got, batch.want)
		}
	}
	if got := wordsOf(string(hold.newDialect(1).fill(1, keys))); got != "HOLD k:15 9" {
		t.Errorf("alone: %q", got)
	}
}

// wordsOf returns the words of requests, without leading zeros.
func wordsOf(wire string) string {
	var words []string
	for line := range strings.SplitSeq(wire, "\r\n") {
		if line == "" || line[0] == '*' || line[0] == '$' {
			continue
		}
		before, after, found := strings.Cut(line, ":")
		if found {
			line = before + ":" + strings.TrimLeft(after, "0")
		}
		words = append(words, strings.TrimLeft(line, "0"))
	}
	return strings.Join(words, " ")
}
