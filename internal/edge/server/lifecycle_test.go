package server

import (
	"math"
	"testing"
	"time"

	"cellserver/internal/wire/peer"
)

const sec = int64(time.Second)

func TestInputDue(t *testing.T) {
	for _, tt := range []struct {
		name   string
		limits Limits
		life   lifecycle
		nowNs  int64
		want   int64
	}{
		{"no limits", Limits{}, lifecycle{openedNs: 5 * sec}, 7 * sec, 0},
		{"idle", Limits{IdleTimeout: 3 * time.Second}, lifecycle{openedNs: 5 * sec}, 7 * sec, 10 * sec},
		{"idle, in MONITOR", Limits{IdleTimeout: 3 * time.Second}, lifecycle{openedNs: 5 * sec, monitors: true}, 7 * sec, 0},
		{"handshake", Limits{HandshakeTimeout: 3 * time.Second}, lifecycle{openedNs: 5 * sec}, 7 * sec, 8 * sec},
		{"handshake, in MONITOR", Limits{HandshakeTimeout: 3 * time.Second}, lifecycle{openedNs: 5 * sec, monitors: true}, 7 * sec, 8 * sec},
		{"handshake done", Limits{HandshakeTimeout: 3 * time.Second}, lifecycle{openedNs: 5 * sec, handshakeDone: true}, 7 * sec, 0},
		{"handshake first", Limits{IdleTimeout: 2 * time.Second, HandshakeTimeout: 3 * time.Second}, lifecycle{openedNs: 5 * sec}, 7 * sec, 8 * sec},
		{"idle first", Limits{IdleTimeout: time.Second, HandshakeTimeout: 4 * time.Second}, lifecycle{openedNs: 5 * sec}, 7 * sec, 8 * sec},
		{"both, handshake done", Limits{IdleTimeout: 2 * time.Second, HandshakeTimeout: time.Second}, lifecycle{openedNs: 5 * sec, handshakeDone: true}, 7 * sec, 9 * sec},
		{"long", Limits{IdleTimeout: math.MaxInt64, HandshakeTimeout: math.MaxInt64}, lifecycle{openedNs: 5 * sec}, 7 * sec, math.MaxInt64},
	} {
		if got := tt.life.inputDueNs(&tt.limits, tt.nowNs); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestSilenceReason(t *testing.T) {
	limits := Limits{IdleTimeout: time.Second, HandshakeTimeout: 3 * time.Second}
	for _, tt := range []struct {
		name   string
		limits Limits
		life   lifecycle
		nowNs  int64
		want   closeReason
	}{
		{"before the handshake's end", limits, lifecycle{openedNs: 5 * sec}, 8*sec - 1, reasonIdle},
		{"at the handshake's end", limits, lifecycle{openedNs: 5 * sec}, 8 * sec, reasonHandshake},
		{"handshake done", limits, lifecycle{openedNs: 5 * sec, handshakeDone: true}, 8 * sec, reasonIdle},
		{"no limit of the handshake", Limits{IdleTimeout: time.Second}, lifecycle{openedNs: 5 * sec}, 8 * sec, reasonIdle},
	} {
		if got := tt.life.silenceReason(&tt.limits, tt.nowNs); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

// A fakeSession says of itself what it is told.
type fakeSession struct {
	peer.Session
	locked, monitors bool
}

func (s fakeSession) Authenticated() bool { return !s.locked }
func (s fakeSession) Monitors() bool      { return s.monitors }

// TestObserve: who was authenticated once has greeted, whatever becomes of it; to monitor can end.
func TestObserve(t *testing.T) {
	var life lifecycle
	for i, step := range []struct {
		session       fakeSession
		handshakeDone bool
		monitors      bool
	}{
		{fakeSession{locked: true}, false, false},
		{fakeSession{locked: true, monitors: true}, false, true},
		{fakeSession{}, true, false},
		{fakeSession{locked: true, monitors: true}, true, true},
	} {
		life.observe(step.session)
		if life.handshakeDone != step.handshakeDone || life.monitors != step.monitors {
			t.Errorf("step %d: got %+v", i, life)
		}
	}
}

func TestTheFirstReasonCounts(t *testing.T) {
	for _, tt := range []struct {
		reasons []closeReason
		want    closeReason
	}{
		{nil, reasonClient},
		{[]closeReason{reasonClient, reasonIdle}, reasonIdle},
		{[]closeReason{reasonOutput, reasonKilled, reasonPanic}, reasonOutput},
		{[]closeReason{reasonKilled, reasonClient}, reasonKilled},
	} {
		var life lifecycle
		for _, r := range tt.reasons {
			life.because(r)
		}
		if life.reason != tt.want {
			t.Errorf("%v: got %s, want %s", tt.reasons, life.reason, tt.want)
		}
	}
}

func TestJudgeOutput(t *testing.T) {
	limits := Limits{MaxOutputBytes: 4096}
	for _, tt := range []struct {
		pending       int
		authenticated bool
		want          outputVerdict
	}{
		{4096, true, outputFits},
		{4097, true, outputBlocks},
		{peer.UnauthenticatedOutput, false, outputFits},
		{peer.UnauthenticatedOutput + 1, false, outputOverruns},
	} {
		if got := limits.judgeOutput(tt.pending, tt.authenticated); got != tt.want {
			t.Errorf("%d bytes, authenticated: %v: got %d, want %d", tt.pending, tt.authenticated, got, tt.want)
		}
	}
}
