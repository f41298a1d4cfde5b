package commands_test

import (
	"strings"
	"testing"

	"cellserver/internal/commands/rig"
)

// TestAnswersAreBounded asks for the most that one command may get.
func TestAnswersAreBounded(t *testing.T) {
	r := rig.New()
	s := r.Session()
	for _, command := range []string{"COMMAND DOCS", "COMMAND INFO", "CONFIG GET"} {
		most := strings.Repeat(" client", maxNames)
		if got := rig.Say(t, s, command+most+"\r\n"); strings.HasPrefix(got, "-") || len(got) > 4<<20 {
			t.Errorf("%s of %d names got %d bytes: %.80q", command, maxNames, len(got), got)
		}
		want := "-ERR more than 128 names or patterns; ask for all of them instead\r\n"
		if got := rig.Say(t, s, command+most+" client\r\n"); got != want {
			t.Errorf("%s of one more got %.80q, want %q", command, got, want)
		}
	}
	evil := strings.Repeat(" *m*a*?*?*?*?*?*?*?*#?*", maxNames)
	if got := rig.Say(t, s, "CONFIG GET"+evil+"\r\n"); got != "*0\r\n" {
		t.Errorf("patterns that match nothing got %.80q", got)
	}
}
