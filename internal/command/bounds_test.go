package command

import (
	"strings"
	"testing"
)

// TestAnswersAreBounded asks for the most that one command may get.
func TestAnswersAreBounded(t *testing.T) {
	r := newRig()
	s := r.session()
	for _, command := range []string{"COMMAND DOCS", "COMMAND INFO", "CONFIG GET"} {
		most := strings.Repeat(" client", maxNames)
		if got := say(t, s, command+most+"\r\n"); strings.HasPrefix(got, "-") || len(got) > 4<<20 {
			t.Errorf("%s of %d names got %d bytes: %.80q", command, maxNames, len(got), got)
		}
		want := "-ERR more than 128 names or patterns; ask for all of them instead\r\n"
		if got := say(t, s, command+most+" client\r\n"); got != want {
			t.Errorf("%s of one more got %.80q, want %q", command, got, want)
		}
	}
	evil := strings.Repeat(" *m*a*?*?*?*?*?*?*?*#?*", maxNames)
	if got := say(t, s, "CONFIG GET"+evil+"\r\n"); got != "*0\r\n" {
		t.Errorf("patterns that match nothing got %.80q", got)
	}
}

// TestScratchRefersToNoInput is about memory: what sessions share would keep an input buffer of megabytes alive.
func TestScratchRefersToNoInput(t *testing.T) {
	r := newRig()
	s := r.session()
	say(t, s, strings.Repeat("CL.THROTTLE k 1 1 1\r\n", 300)+"ECHO "+strings.Repeat("x", 1000)+"\r\n")
	shared := s.engine.scratch.Get().(*scratch)
	for _, arg := range shared.args[:cap(shared.args)] {
		if arg != nil {
			t.Fatalf("an argument is left: %.20q", arg)
		}
	}
	for _, q := range shared.batch[:cap(shared.batch)] {
		if q.Key.Name != nil {
			t.Fatalf("a key is left: %.20q", q.Key.Name)
		}
	}
}
