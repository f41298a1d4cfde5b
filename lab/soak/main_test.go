package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"cellserver/internal/test/processtest"
	"cellserver/lab/soak/internal/attack"
)

// TestSoak is a short soak.
func TestSoak(t *testing.T) {
	duration := "60s"
	if testing.Short() {
		duration = "16s"
	}
	var out bytes.Buffer
	err := run(t.Context(), []string{"run", "--time", duration}, &out)
	t.Log(out.String())
	if err != nil {
		t.Error(err)
	}
}

// TestKills is a few kills.
func TestKills(t *testing.T) {
	kills := "10"
	if testing.Short() {
		kills = "3"
	}
	var out bytes.Buffer
	err := run(t.Context(), []string{"kills", "--kills", kills, "--pause", "5s"}, &out)
	t.Log(out.String())
	if err != nil {
		t.Error(err)
	}
}

// TestRemote is a short time in front of a cluster.
func TestRemote(t *testing.T) {
	processtest.Need(t, "redis-server")
	args := []string{"remote", "--time", "30s", "--kills", "3"}
	if testing.Short() {
		args = []string{"remote", "--time", "5s", "--kills", "1"}
	}
	var out bytes.Buffer
	err := run(t.Context(), args, &out)
	t.Log(out.String())
	if err != nil {
		t.Error(err)
	}
}

// TestFailover is a few rounds.
func TestFailover(t *testing.T) {
	processtest.Need(t, "redis-server")
	rounds := "10"
	if testing.Short() {
		rounds = "4"
	}
	try(t, "failover", "--rounds", rounds)
}

// TestChangeKills is a few kills.
func TestChangeKills(t *testing.T) {
	kills, every := "50", "80ms"
	if testing.Short() {
		kills, every = "8", "500ms"
	}
	try(t, "changekills", "--kills", kills, "--every", every)
}

// TestWaits is a few kills.
func TestWaits(t *testing.T) {
	kills := "50"
	if testing.Short() {
		kills = "10"
	}
	try(t, "waits", "--kills", kills)
}

// TestReplica is a short time with a slow replica, and a small full sync.
func TestReplica(t *testing.T) {
	try(t, "replica", "--keys", "100000", "--repeats", "1", "--seconds", "1")
}

func try(t *testing.T, args ...string) {
	t.Helper()
	var out bytes.Buffer
	err := run(t.Context(), args, &out)
	t.Log(out.String())
	if err != nil {
		t.Error(err)
	}
}

func TestCommandLine(t *testing.T) {
	for _, test := range []struct{ args, err string }{
		{"", ""},
		{"--help", ""},
		{"swim", `unknown command "swim"; see soak --help`},
		{"run now", `unknown argument "now"; see soak run --help`},
		{"kills --kills many", "invalid argument"},
		{"run --time soon", "invalid argument"},
		{"run --only laughter", `there is no attack "laughter"`},
		{"measure --only 1 --binary /no/such", "/no/such"},
	} {
		err := run(context.Background(), strings.Fields(test.args), io.Discard)
		if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%q: %v, want %q", test.args, err, test.err)
		}
	}
}

// TestTrialsAreAttacks: an unknown name would only be noticed in its turn.
func TestTrialsAreAttacks(t *testing.T) {
	names := attack.Floods()
	for _, trial := range trials() {
		names = append(names, trial.attack)
	}
	for _, name := range names {
		if _, err := attack.Find(name); err != nil {
			t.Error(err)
		}
	}
}

func TestAt(t *testing.T) {
	waits := []time.Duration{1e6, 2e6, 3e6, 4e6}
	for quantile, want := range map[float64]time.Duration{0: 1e6, 0.5: 3e6, 0.99: 4e6, 1: 4e6} {
		if got := at(waits, quantile); got != want {
			t.Errorf("%v: %v, want %v", quantile, got, want)
		}
	}
	if at(nil, 1) != 0 {
		t.Error("no waits are no time")
	}
}

// TestValues is a few calls, and a short flood.
func TestValues(t *testing.T) {
	processtest.Need(t, "redis-server")
	try(t, "values", "--calls", "300000", "--time", "5s")
}
