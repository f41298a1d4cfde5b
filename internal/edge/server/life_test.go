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
		life   life
		nowNs  int64
		want   int64
	}{
		{"no limits", Limits{}, life{openedNs: 5 * sec}, 7 * sec, 0},
		{"idle", Limits{IdleTimeout: 3 * time.Second}, life{openedNs: 5 * sec}, 7 * sec, 10 * sec},
		{"idle, in MONITOR", Limits{IdleTimeout: 3 * time.Second}, life{openedNs: 5 * sec, listens: true}, 7 * sec, 0},
		{"handshake", Limits{HandshakeTimeout: 3 * time.Second}, life{openedNs: 5 * sec}, 7 * sec, 8 * sec},
		{"handshake, in MONITOR", Limits{HandshakeTimeout: 3 * time.Second}, life{openedNs: 5 * sec, listens: true}, 7 * sec, 8 * sec},
		{"handshake done", Limits{HandshakeTimeout: 3 * time.Second}, life{openedNs: 5 * sec, handshakeDone: true}, 7 * sec, 0},
		{"handshake first", Limits{IdleTimeout: 2 * time.Second, HandshakeTimeout: 3 * time.Second}, life{openedNs: 5 * sec}, 7 * sec, 8 * sec},
		{"idle first", Limits{IdleTimeout: time.Second, HandshakeTimeout: 4 * time.Second}, life{openedNs: 5 * sec}, 7 * sec, 8 * sec},
		{"both, handshake done", Limits{IdleTimeout: 2 * time.Second, HandshakeTimeout: time.Second}, life{openedNs: 5 * sec, handshakeDone: true}, 7 * sec, 9 * sec},
		{"long", Limits{IdleTimeout: math.MaxInt64, HandshakeTimeout: math.MaxInt64}, life{openedNs: 5 * sec}, 7 * sec, math.MaxInt64},
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
		life   life
		nowNs  int64
		want   Reason
	}{
		{"before the handshake's end", limits, life{openedNs: 5 * sec}, 8*sec - 1, ReasonIdle},
		{"at the handshake's end", limits, life{openedNs: 5 * sec}, 8 * sec, ReasonHandshake},
		{"handshake done", limits, life{openedNs: 5 * sec, handshakeDone: true}, 8 * sec, ReasonIdle},
		{"no limit of the handshake", Limits{IdleTimeout: time.Second}, life{openedNs: 5 * sec}, 8 * sec, ReasonIdle},
	} {
		if got := tt.life.silenceReason(&tt.limits, tt.nowNs); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

// fakeSession has a settable state.
type fakeSession struct {
	peer.Session
	locked, listens bool
}

func (s fakeSession) Authenticated() bool { return !s.locked }
func (s fakeSession) Listens() bool       { return s.listens }

// TestObserve checks that one authentication counts for good, and that MONITOR can end.
func TestObserve(t *testing.T) {
	var life life
	for i, step := range []struct {
		session       fakeSession
		handshakeDone bool
		listens       bool
	}{
		{fakeSession{locked: true}, false, false},
		{fakeSession{locked: true, listens: true}, false, true},
		{fakeSession{}, true, false},
		{fakeSession{locked: true, listens: true}, true, true},
	} {
		life.observe(step.session)
		if life.handshakeDone != step.handshakeDone || life.listens != step.listens {
			t.Errorf("step %d: got %+v", i, life)
		}
	}
}

func TestTheFirstReasonCounts(t *testing.T) {
	for _, tt := range []struct {
		reasons []Reason
		want    Reason
	}{
		{nil, ReasonClient},
		{[]Reason{ReasonClient, ReasonIdle}, ReasonIdle},
		{[]Reason{ReasonOutput, ReasonKilled, ReasonPanic}, ReasonOutput},
		{[]Reason{ReasonKilled, ReasonClient}, ReasonKilled},
	} {
		var life life
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
