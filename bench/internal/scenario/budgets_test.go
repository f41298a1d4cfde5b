package scenario

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cellserver/bench/internal/load"
	"cellserver/bench/internal/report"
)

func TestBudgets(t *testing.T) {
	s := measured(t, "budgets")
	for name, want := range map[string]int{"budgets": 4, "budgets-others": 4, "budgets-bytes": 4} {
		got := 0
		for _, p := range s.Results.Points {
			if p.Scenario == name {
				got++
				if name == "budgets-bytes" && p.Rounds[0].TableBytes < 16 {
					t.Errorf("%s: %v bytes of tables for each hold", p.Peer, p.Rounds[0].TableBytes)
				}
			}
		}
		if got != want {
			t.Errorf("%s: %d points, want %d", name, got, want)
		}
	}
	for _, g := range s.Results.Goals {
		if g.Got.Median <= 0 || g.Outcome() == report.NotMeasured {
			t.Errorf("got %+v", g)
		}
	}
	if len(s.Results.Goals) != 4 {
		t.Errorf("%d goals", len(s.Results.Goals))
	}
}

// TestHolding: what is measured holds on all names, and is settled.
func TestHolding(t *testing.T) {
	s := suite(t)
	file := filepath.Join(t.TempDir(), "limits.yaml")
	if err := os.WriteFile(file, []byte(budgetsFile), 0o600); err != nil {
		t.Fatal(err)
	}
	var started servers
	t.Cleanup(started.stop)
	server, err := started.add(s.Kit.StartCellserver(t.Context(), "--limits-file", file))
	if err != nil {
		t.Fatal(err)
	}
	do := func(words string) string {
		var args []any
		for _, word := range strings.Fields(strings.NewReplacer(load.KeyMark, "1", load.CallMark, "7").Replace(words)) {
			args = append(args, word)
		}
		reply, err := server.Do(t.Context(), args...)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(reply)
	}
	reserve, commit, _ := strings.Cut(holding("user", "team", "org").String(), ", then ")
	if got := do(reserve); !strings.HasPrefix(got, "[0 [0 1000000000 999999000 -1 ") || !strings.HasSuffix(got, " 7]") {
		t.Errorf("%s: %s", reserve, got)
	}
	for i, want := range []string{"1", "0"} {
		if got := do(commit); got != want {
			t.Errorf("%d. %s: %s", i, commit, got)
		}
	}
	check, again, _ := strings.Cut(checkingTwice().String(), ", then ")
	const used = 700 + 1000 // of the team, which leaks nothing
	if got := do(check); check != again || !strings.HasPrefix(got, "[0 ") || !strings.Contains(got, fmt.Sprintf("[0 1000000000000 %d ", 1_000_000_000_000-used)) {
		t.Errorf("%s, then %s: %s", check, again, got)
	}
	for _, name := range []string{"user", "team", "org", "three"} {
		if got := do(leftOpen(name).String()); !strings.HasPrefix(got, "[0 ") {
			t.Errorf("%s: %s", name, got)
		}
	}
}
