package replication

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"cellserver/internal/store/replicas"
)

func TestOther(t *testing.T) {
	for _, tt := range []struct {
		info string
		want Other
	}{
		{"", Other{}},
		{"# Server\r\nrun_id:abc\r\n# Replication\r\nrole:master\r\ncell_starting:no\r\n", Other{RunID: "abc"}},
		{"loading:1\r\ncell_starting:with_states\r\n", Other{Loading: true, starting: int32(slices.Index(startingWords(), "with_states"))}},
		{"loading:0\r\ncell_starting:without_states\r\n", Other{starting: int32(slices.Index(startingWords(), "without_states"))}},
		{
			"role:slave\r\nmaster_host:10.0.0.1\r\nmaster_port:6380\r\nmaster_link_status:up\r\ncell_latest_usec:7\r\n",
			Other{Role: replicas.Replica, Leader: replicas.Address{Host: "10.0.0.1", Port: 6380}, LinkUp: true, LatestNs: 7000},
		},
		{"role:slave\nmaster_host:::1\nmaster_port:x\nmaster_link_status:down\n", Other{Role: replicas.Replica, Leader: replicas.Address{Host: "::1"}}},
	} {
		var got Other
		if got.read(tt.info); got != tt.want {
			t.Errorf("%q is read as %+v, want %+v", tt.info, got, tt.want)
		}
	}
}

func TestStartReplies(t *testing.T) {
	sound := func() []any {
		return []any{int64(5), "full", someHistory, "", int64(-1), int64(7), int64(9), int64(1)}
	}
	want := replicas.Start{Format: 5, HasHad: true, Full: true, History: someHistory, Branch: -1, Offset: 7, ClockNs: 9}
	if got, err := readStart(sound()); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	older := sound()[:7]
	older[0], want.Format = int64(1), 1
	if got, err := readStart(older); err != nil || got != want {
		t.Errorf("of format 1: got %+v, %v", got, err)
	}
	for i := range sound() {
		broken := sound()
		if broken[i] = any(1.5); reflect.DeepEqual(broken, sound()) {
			t.Fatal("not broken")
		}
		if got, err := readStart(broken); err == nil {
			t.Errorf("element %d: %+v", i, got)
		}
	}
	for _, reply := range []any{nil, "OK", sound()[:6], sound()[:7], append(sound(), 1), append(older, int64(1))} {
		if got, err := readStart(reply); err == nil {
			t.Errorf("%v: %+v", reply, got)
		}
	}
	for _, format := range []int64{0, -1, Format + 1} {
		reply := sound()
		reply[0] = format
		if _, err := readStart(reply); err == nil || !strings.Contains(err.Error(), "reads formats up to 5") {
			t.Errorf("format %d: %v", format, err)
		}
	}
	short := sound()
	short[2] = "abc"
	if got, err := readStart(short); err == nil {
		t.Errorf("a short history: %+v", got)
	}
}

// TestPromotedClock: a promoted replica's clock is not before any that it has seen.
func TestPromotedClock(t *testing.T) {
	m := newModelOfOne(t)
	m.latestNs = m.config.Clock.Now() + 1e12
	m.role.state = promoted
	if m.becomeLeader(); m.config.Clock.Now() < m.latestNs {
		t.Errorf("it is %d, and has seen %d", m.config.Clock.Now(), m.latestNs)
	}
	if st := m.Status(); st.Role != replicas.Leader || len(st.Parent) != 40 || st.BranchOffset != st.Offset || st.Counts.Promotions != 1 {
		t.Errorf("it is %+v", st)
	}
}

// TestWantedMeanwhile: a replica that is to follow another server while it becomes a leader accepts no
// change.
func TestWantedMeanwhile(t *testing.T) {
	m := newModelOfOne(t)
	m.role.state = promoted
	m.Follow(replicas.Address{Host: "x", Port: 1})
	if m.becomeLeader() || m.config.Gate.Refusal() == nil {
		t.Error("it accepts changes")
	}
}

func newModelOfOne(t *testing.T) *Node { return newHost("a", 0, &model{t: t}, 0).node }
