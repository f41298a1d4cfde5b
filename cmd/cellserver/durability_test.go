package main

import (
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"cellserver/internal/killtest"
)

// killLoad is the load of the tests that kill a server.
func killLoad(eachReply bool) *killtest.Load {
	return killtest.New(killtest.Config{Clients: 6, Keys: 2000, EachReply: eachReply, Seed: rand.Uint64()})
}

// checkLoad fails the test for each key that is not as it may be.
func checkLoad(t *testing.T, load *killtest.Load, p *process) (found killtest.Found) {
	t.Helper()
	found, err := load.Check(t.Context(), p.addr)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range found.Wrong {
		if i == 10 {
			t.Errorf("and %d keys more", len(found.Wrong)-i)
			break
		}
		t.Error(line)
	}
	return found
}

// endLoad ends a server under load, and fails the test for what clients saw amiss before.
func endLoad(t *testing.T, run *killtest.Run, p *process, sig syscall.Signal) (code int) {
	t.Helper()
	for _, line := range run.End(func() { code = p.Stop(t, sig) }) {
		t.Error(line)
	}
	return code
}

// TestLoadNoticesLosses: a server that keeps nothing is found out.
func TestLoadNoticesLosses(t *testing.T) {
	t.Parallel()
	load := killLoad(true)
	p := startServer(t)
	run := load.Begin(t.Context(), p.addr)
	time.Sleep(300 * time.Millisecond)
	for _, line := range run.Pause() {
		t.Error(line)
	}
	if found := checkLoad(t, load, p); found.Confirmed == 0 || found.Unsure != 0 {
		t.Errorf("%+v", found)
	}
	run = load.Begin(t.Context(), p.addr)
	time.Sleep(300 * time.Millisecond)
	endLoad(t, run, p, syscall.SIGKILL)
	found, err := load.Check(t.Context(), startServer(t).addr)
	if err != nil || len(found.Wrong) < found.Keys/2 {
		t.Errorf("%d of %d keys are lost: %v", len(found.Wrong), found.Keys, err)
	}
}
