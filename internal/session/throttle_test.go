package session_test

import (
	"strings"
	"testing"

	"cellserver/internal/commands/rig"
	"cellserver/internal/funnel"
	"cellserver/internal/resptest"
)

// call is CL.THROTTLE at a time, and its five numbers.
type call struct {
	atNs int64 // after the first
	args string
	want []int64
}

func TestThrottleOverTime(t *testing.T) {
	const ms = int64(1_000_000)
	for _, tt := range []struct {
		name    string
		reading funnel.Reading
		keys    int // stored in the end
		calls   []call
	}{
		{"the articles' reply limit", funnel.Burst, 1, []call{{0, "user123 15 30 60", []int64{0, 16, 15, -1, 2}}}},
		{"the same, read as capacity", funnel.Capacity, 1, []call{{0, "laoqian:reply 15 30 60", []int64{0, 15, 14, -1, 2}}}},
		{"more than the funnel holds", funnel.Burst, 0, []call{{0, "a 4 1 10 6", []int64{1, 5, 5, -1, 0}}}},
		{"a probe", funnel.Burst, 0, []call{{0, "a 4 1 10 0", []int64{0, 5, 5, -1, 0}}}},
		{"one a second", funnel.Burst, 1, []call{
			{0, "a 0 1 1", []int64{0, 1, 0, -1, 1}},
			{0, "a 0 1 1", []int64{1, 1, 0, 1, 1}},
			{rig.Sec - ms, "a 0 1 1", []int64{1, 1, 0, 1, 1}},
			{rig.Sec - 1, "a 0 1 1", []int64{1, 1, 0, 0, 0}}, // less than a millisecond is dropped
			{rig.Sec, "a 0 1 1", []int64{0, 1, 0, -1, 1}},
		}},
		{"the limit may change from call to call", funnel.Burst, 1, []call{
			{0, "a 9 10 60", []int64{0, 10, 9, -1, 6}},
			{0, "a 0 1 1", []int64{1, 1, 0, 6, 6}},
			{0, "a 9 1 6", []int64{0, 10, 8, -1, 12}},
		}},
		{"quantities", funnel.Burst, 1, []call{
			{0, "a 4 1 10 3", []int64{0, 5, 2, -1, 30}},
			{0, "a 4 1 10 3", []int64{1, 5, 2, 10, 30}},
			{0, "a 4 1 10 2", []int64{0, 5, 0, -1, 50}},
			{0, "a 4 1 10 0", []int64{0, 5, 0, -1, 50}},
			{0, "a 4 1 10 6", []int64{1, 5, 0, -1, 50}},
		}},
		{"a huge quantity can never pass", funnel.Burst, 0, []call{
			{0, "a 4 1 10 9223372036854775807", []int64{1, 5, 5, -1, 0}},
			{0, "a 0 1000000000 1 4611686018427387904", []int64{1, 1, 1, -1, 0}},
		}},
		{"refunds", funnel.Burst, 0, []call{
			{0, "a 4 1 10 -1", []int64{0, 5, 5, -1, 0}},
			{0, "a 4 1 10 3", []int64{0, 5, 2, -1, 30}},
			{0, "a 4 1 10 -1", []int64{0, 5, 3, -1, 20}},
			{0, "a 4 1 10 -9223372036854775808", []int64{0, 5, 5, -1, 0}},
		}},
		{"signs and leading zeros", funnel.Burst, 1, []call{
			{0, "a +15 +30 +60 +1", []int64{0, 16, 15, -1, 2}},
			{0, "a 0015 030 00000060 -0", []int64{0, 16, 15, -1, 2}},
			{0, "a " + strings.Repeat("0", 5000) + "15 +" + strings.Repeat("0", 300) + "30 60 -" + strings.Repeat("0", 99) + "1",
				[]int64{0, 16, 16, -1, 0}},
			{0, "a 15 30 60 -9223372036854775807", []int64{0, 16, 16, -1, 0}},
			{0, "b -0 1 1", []int64{0, 1, 0, -1, 1}},
		}},
		{"the largest funnels", funnel.Burst, 1, []call{
			{0, "a 0 1 4611686018", []int64{0, 1, 0, -1, 4611686018}},
			{0, "b 4611686018427387903 1000000000 1 0", []int64{0, 1 << 62, 1 << 62, -1, 0}},
		}},
		{"not whole microseconds", funnel.Burst, 1, []call{{0, "a 9 300000 1 3", []int64{0, 10, 7, -1, 0}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := rig.New(rig.WithReading(tt.reading))
			s := r.Session()
			for _, c := range tt.calls {
				r.Clock.Set(rig.T0 + c.atNs)
				in := resptest.Encode(append([]string{"cl.throttle"}, strings.Split(c.args, " ")...)...)
				if got, want := rig.Say(t, s, in), resptest.Ints(c.want...); got != want {
					t.Errorf("at %d ns, %.50s: got %q, want %q", c.atNs, c.args, got, want)
				}
			}
			if st := r.Stats(); st.Keys != tt.keys {
				t.Errorf("%d keys are stored, want %d", st.Keys, tt.keys)
			}
		})
	}
}

// TestKeysAreAnyBytes: each of them is a key of its own.
func TestKeysAreAnyBytes(t *testing.T) {
	r := rig.New()
	s := r.Session()
	keys := []string{"", "\x00", "\x00\x00", "k", "K", "k\x00", "k ", "\xff\xfe", "\xc3", "\xed\xa0\x80", "漢字", "\r\n", "*1\r\n$4\r\nPING\r\n",
		strings.Repeat("k", rig.MaxKeyBytes)}
	for _, round := range []string{resptest.Ints(0, 1, 0, -1, 60), resptest.Ints(1, 1, 0, 60, 60)} {
		for _, key := range keys {
			if got := rig.Say(t, s, resptest.Encode("CL.THROTTLE", key, "0", "1", "60")); got != round {
				t.Errorf("key %.30q: got %q, want %q", key, got, round)
			}
			if got := rig.Say(t, s, resptest.Encode("EXISTS", key)+resptest.Encode("TTL", key)); got != ":1\r\n:60\r\n" {
				t.Errorf("key %.30q: EXISTS and TTL reply %q", key, got)
			}
		}
	}
	if st := r.Stats(); st.Keys != len(keys) {
		t.Errorf("%d keys are stored, want %d", st.Keys, len(keys))
	}
	for _, key := range keys {
		if got := rig.Say(t, s, resptest.Encode("DEL", key, key)); got != ":1\r\n" {
			t.Errorf("key %.30q: DEL replies %q", key, got)
		}
	}
}

// TestProbesNeverWrite: of an absent key, of a full funnel, and of an expired one.
func TestProbesNeverWrite(t *testing.T) {
	r := rig.New()
	s := r.Session()
	for range 3 {
		rig.Say(t, s, resptest.Encode("CL.THROTTLE", "k", "4", "1", "10", "0"))
	}
	if st := r.Stats(); st.Keys != 0 || st.Allowed != 3 {
		t.Errorf("after probes of an absent key: %+v", st)
	}
	rig.Say(t, s, resptest.Encode("CL.THROTTLE", "k", "4", "1", "10", "5"))
	before := rig.Say(t, s, "PTTL k\r\n")
	rig.Say(t, s, resptest.Encode("CL.THROTTLE", "k", "4", "1", "10", "0")+resptest.Encode("CL.THROTTLE", "k", "100", "1", "9", "0"))
	if after := rig.Say(t, s, "PTTL k\r\n"); after != before || after != ":50000\r\n" {
		t.Errorf("a probe of a full funnel changes its TTL from %q to %q", before, after)
	}
	r.Clock.Advance(50 * rig.Sec)
	if got := rig.Say(t, s, resptest.Encode("CL.THROTTLE", "k", "4", "1", "10", "0")+"EXISTS k\r\n"); got != resptest.Ints(0, 5, 5, -1, 0)+":0\r\n" {
		t.Errorf("a probe of an expired key: got %q", got)
	}
}
