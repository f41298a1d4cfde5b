package main

import (
	"bytes"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseFailover(t *testing.T) {
	t.Setenv("CI", "")
	s, err := parseFailover([]string{"--kills", "20", "--pairs", "redis-server", "--down-after", "3s"}, io.Discard)
	if err != nil || s.kills != 20 || s.planned != 1 ||
		!slices.Equal(s.pairs, []string{"redis-server"}) || s.sentinel.DownAfter != 3*time.Second {
		t.Errorf("%+v, %v", s, err)
	}
	for _, args := range [][]string{{"--pairs", "valkey"}, {"more"}, {"--nonsense"}} {
		if s, err := parseFailover(args, io.Discard); err == nil {
			t.Errorf("%q: %+v, no error", args, s)
		}
	}
}

func TestFollowers(t *testing.T) {
	var libraries []string
	for _, f := range followers() {
		libraries = append(libraries, f.library)
		if _, err := os.Stat(f.source); err != nil {
			t.Error(err)
		}
	}
	if want := []string{"go-redis", "redis-py", "ioredis", "redis-rb"}; !slices.Equal(libraries, want) {
		t.Errorf("%q, want %q", libraries, want)
	}
	section, err := sentinelSection()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"redis.NewFailoverClient(", "sentinel.master_for(", "new Redis({", "Redis.new(url:"} {
		if !strings.Contains(section, line) {
			t.Errorf("no %q in\n%s", line, section)
		}
	}
}

// TestFailover kills the leader of a pair once and has Sentinel replace it once. The Sentinels are as patient
// as a busy machine requires.
func TestFailover(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for Sentinels")
	}
	var stdout, stderr bytes.Buffer
	err := run(t.Context(), []string{"failover", "--pairs", "cellserver", "--down-after", "20s", "--failover-timeout", "60s"}, &stdout, &stderr)
	t.Logf("%s\n%s", stderr.String(), stdout.String())
	if err != nil {
		t.Error(err)
	}
}
