package session_test

import (
	"fmt"
	"strings"
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/funnel/vectors"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/resptest"
)

// TestThrottleOverTime runs calls of redis-cell through a session, and those of text.
func TestThrottleOverTime(t *testing.T) {
	rows, err := vectors.Read(vectors.AnyNanosecond)
	if err != nil {
		t.Fatal(err)
	}
	r := commandstest.New()
	s := r.Session()
	for i, row := range rows {
		r.Clock.Set(row.AtNs)
		call := resptest.Encode(strings.Fields(fmt.Sprintln("cl.throttle", row.Key, row.MaxBurst, row.Count, row.PeriodSec, row.Quantity))...)
		limited := int64(0)
		if row.Limited {
			limited = 1
		}
		want := resptest.Ints(limited, row.Limit, row.Remaining, row.RetryAfter, row.ResetAfter)
		if got := commandstest.Say(t, s, call); got != want {
			t.Fatalf("line %d: got %q, want %q", i+2, got, want)
		}
	}
	asCapacity := commandstest.New(commandstest.WithReading(funnel.Capacity))
	for _, tt := range []struct {
		args string
		want []int64
	}{
		{"a 5 1 10 5", []int64{0, 5, 0, -1, 50}},
		{"b 5 1 10 6", []int64{1, 5, 5, -1, 0}}, // leaves no state, as what follows
		{"b 5 1 10 0", []int64{0, 5, 5, -1, 0}},
		{"b 5 1 10 3", []int64{0, 5, 2, -1, 30}},
		{"b 5 1 10 -3", []int64{0, 5, 5, -1, 0}},
	} {
		call := resptest.Encode(append([]string{"cl.throttle"}, strings.Fields(tt.args)...)...)
		commandstest.Expect(t, asCapacity.Session(), call, resptest.Ints(tt.want...))
	}
	if st := asCapacity.Stats(); st.Keys != 1 {
		t.Errorf("%d keys are stored, want 1", st.Keys)
	}
	s = commandstest.New().Session()
	for _, tt := range []struct {
		args string
		want []int64
	}{
		{"a +15 +30 +60 +1", []int64{0, 16, 15, -1, 2}},
		{"a 0015 030 00000060 -0", []int64{0, 16, 15, -1, 2}},
		{"a " + strings.Repeat("0", 5000) + "15 +" + strings.Repeat("0", 300) + "30 60 -" + strings.Repeat("0", 99) + "1", []int64{0, 16, 16, -1, 0}},
		{"a 15 30 60 -9223372036854775807", []int64{0, 16, 16, -1, 0}},
		{"b -0 1 1", []int64{0, 1, 0, -1, 1}},
	} {
		call := resptest.Encode(append([]string{"cl.throttle"}, strings.Fields(tt.args)...)...)
		commandstest.Expect(t, s, call, resptest.Ints(tt.want...))
	}
}

// TestKeysAreAnyBytes: names of any bytes are different keys.
func TestKeysAreAnyBytes(t *testing.T) {
	r := commandstest.New()
	s := r.Session()
	keys := []string{"", "\x00", "\x00\x00", "k", "K", "k\x00", "k ", "\xff\xfe", "\xc3", "\xed\xa0\x80", "漢字", "\r\n", "*1\r\n$4\r\nPING\r\n",
		strings.Repeat("k", commandstest.MaxKeyBytes)}
	for _, round := range []string{resptest.Ints(0, 1, 0, -1, 60), resptest.Ints(1, 1, 0, 60, 60)} {
		for _, key := range keys {
			commandstest.Expect(t, s, resptest.Encode("CL.THROTTLE", key, "0", "1", "60"), round)
			commandstest.Expect(t, s, resptest.Encode("EXISTS", key)+resptest.Encode("TTL", key), ":1\r\n:60\r\n")
		}
	}
	if st := r.Stats(); st.Keys != len(keys) {
		t.Errorf("%d keys are stored, want %d", st.Keys, len(keys))
	}
	for _, key := range keys {
		commandstest.Expect(t, s, resptest.Encode("DEL", key, key), ":1\r\n")
	}
}

// TestProbesNeverWrite to an absent, a full or an expired key.
func TestProbesNeverWrite(t *testing.T) {
	r := commandstest.New()
	s := r.Session()
	for range 3 {
		commandstest.Say(t, s, resptest.Encode("CL.THROTTLE", "k", "4", "1", "10", "0"))
	}
	if st := r.Stats(); st.Keys != 0 || st.Allowed != 3 {
		t.Errorf("after probes of an absent key: %+v", st)
	}
	commandstest.Say(t, s, resptest.Encode("CL.THROTTLE", "k", "4", "1", "10", "5"))
	before := commandstest.Say(t, s, "PTTL k\r\n")
	commandstest.Say(t, s, resptest.Encode("CL.THROTTLE", "k", "4", "1", "10", "0")+resptest.Encode("CL.THROTTLE", "k", "100", "1", "9", "0"))
	if after := commandstest.Say(t, s, "PTTL k\r\n"); after != before || after != ":50000\r\n" {
		t.Errorf("a probe of a full funnel changes its TTL from %q to %q", before, after)
	}
	r.Clock.Advance(50 * commandstest.Sec)
	commandstest.Expect(t, s, resptest.Encode("CL.THROTTLE", "k", "4", "1", "10", "0")+"EXISTS k\r\n", resptest.Ints(0, 5, 5, -1, 0)+":0\r\n")
}

// TestKeyTooLong: every command on keys refuses long ones before it does anything.
func TestKeyTooLong(t *testing.T) {
	r := commandstest.New()
	s := r.Session()
	long, longest := strings.Repeat("k", commandstest.MaxKeyBytes+1), strings.Repeat("k", commandstest.MaxKeyBytes)
	const refused = "-ERR key is longer than 4096 bytes, the limit of --max-key-bytes\r\n"
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"CL.THROTTLE", long, "1", "1", "1"}, refused},
		{[]string{"CL.THROTTLE", long}, refused},
		{[]string{"EXISTS", long}, refused},
		{[]string{"EXISTS", "a", long, "b"}, refused},
		{[]string{"TTL", long}, refused},
		{[]string{"PTTL", long}, refused},
		{[]string{"CL.THROTTLE", "a", "1", "1", "60"}, resptest.Ints(0, 2, 1, -1, 60)},
		{[]string{"DEL", "a", long}, refused},
		{[]string{"UNLINK", long, "a"}, refused},
		{[]string{"DBSIZE"}, ":1\r\n"},
		{[]string{"CL.THROTTLE", longest, "1", "1", "60"}, resptest.Ints(0, 2, 1, -1, 60)},
		{[]string{"EXISTS", longest, longest}, ":2\r\n"},
		{[]string{"DEL", longest, "a"}, ":2\r\n"},
		{[]string{"ECHO", long}, "$4097\r\n" + long + "\r\n"}, // no key
	} {
		commandstest.Expect(t, s, resptest.Encode(tt.args...), tt.want)
	}
}
